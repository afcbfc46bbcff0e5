"""Experiments: worlds and policies brought together, and their pictures."""
