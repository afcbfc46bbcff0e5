"""Rewards gathered and sent together."""
