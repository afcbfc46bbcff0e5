"""Hyperparameters learned from the bandit's own rewards, by evidence, so that nothing is left to tune.

`auto_policy` is the policy. `likelihood` is what a reward says to the model: Gaussian, or Bernoulli
(`bernoulli_likelihood`, `bernoulli`), which reaches it as one pseudo-observation of each pair with a weight of its own.
`fits` is when hyperparameters are fitted, and a fit that goes on in a thread; its model follows the rewards meanwhile.
A study takes it at a reward whose number is known beforehand, a `Bandit` when it is ready, with a line in the journal
that has the hyperparameters, so that a replay computes none. `parts` is the model in three lines, `fit_context` makes
kernels and evidence of hyperparameters on samples of neighbourhoods (`sampling`), `prior` is the prior of the
hyperparameters and the climb, `exploration` the rule for the width.
"""

from coterie.policies.auto.auto_policy import AutoPolicy, make_auto_policy

__all__ = ["AutoPolicy", "make_auto_policy"]
