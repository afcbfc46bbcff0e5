"""Hyperparameters learned from the bandit's own rewards, by evidence, so that nothing is left to tune."""

from coterie.policies.auto.binary import BernoulliPolicy, make_bernoulli_policy
from coterie.policies.auto.learner import AutoPolicy, make_auto_policy

__all__ = ["AutoPolicy", "BernoulliPolicy", "make_auto_policy", "make_bernoulli_policy"]
