"""Hyperparameters learned from the bandit's own rewards, by evidence, so that nothing is left to tune."""

from coterie.policies.auto.auto_policy import AutoPolicy, make_auto_policy
from coterie.policies.auto.bernoulli_policy import BernoulliPolicy, make_bernoulli_policy

__all__ = ["AutoPolicy", "BernoulliPolicy", "make_auto_policy", "make_bernoulli_policy"]
