"""Hyperparameters learned from the bandit's own rewards, by evidence, so that nothing is left to tune."""

from coterie.policies.auto.learner import AutoPolicy, make_auto_policy

__all__ = ["AutoPolicy", "make_auto_policy"]
