"""Hyperparameters learned from the bandit's own rewards, by evidence, so that nothing is left to tune.

`auto_policy` is the policy and when it fits; `pending` a fit that goes on in a thread (`background`) whose model
follows what happens meanwhile. A study takes it at a reward whose number is known beforehand, a `Bandit` when it is
ready, with a line in the journal that has the hyperparameters, so that a replay computes none. `parts` is the model in
three lines, `fit_context` makes kernels and evidence of hyperparameters on samples of neighbourhoods (`sampling`,
`spectra`), `prior` what is thought of them beforehand and the climb, `exploration` the width. A Bernoulli likelihood
(`bernoulli`, `bernoulli_policy`) reaches a model as one pseudo-observation of each pair with a weight of its own.
"""

from coterie.policies.auto.auto_policy import AutoPolicy, make_auto_policy
from coterie.policies.auto.bernoulli_policy import BernoulliPolicy, make_bernoulli_policy

__all__ = ["AutoPolicy", "BernoulliPolicy", "make_auto_policy", "make_bernoulli_policy"]
