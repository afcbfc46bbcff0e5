"""Hyperparameters of a kernel with the graph part alone, by the same evidence: for `lk-gp-*`, which has no other part.

    reward = f(u, x) + noise,   f ~ GP(0, scale (L + ridge I)^-1 o Kx),
    Kx = SE(lengthscale) + level, or linear + level

The parts of `auto` that are each user's own or common to all are absent, and there is no prior mean: the level of Kx,
which the graph spreads over users as all else, explains what rewards are on average.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import exp, log, sqrt
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.graphs import UserGraph
from coterie.kernels import ArmKernel, ArmPool, Constant, Green, Linear, SquaredExponential
from coterie.models import History
from coterie.policies.auto.arm_kernel import standardised
from coterie.policies.auto.evidence import Holding, Together
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.fits import FIRST_FIT
from coterie.policies.auto.hyper import ABSENT, Hyper
from coterie.policies.auto.prior import THOROUGH, Prior, fit
from coterie.policies.auto.statistics import centre_and_variance, is_constant, noise_share_of

SURE = 700.0  # the logit of a share of all


def graph_alone_options(
    graph: UserGraph,
    arms: ArmPool,
    history: History,
    *,
    laplacian_ridge: float | None = None,
    lengthscale: float | None = None,
    linear: bool = False,
    noise_var: float | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Returns the options of `lk-gp-*` that explain a sample of the rewards best: kernels and noise variance.

    The sample is that of a fit of `auto`: all pairs up to 256, else one to four neighbourhood samples of 256 pairs. The
    Laplacian is normalised where `auto` normalises it. What is given is held, and the rest fitted to it.

    Args:
        graph: The users.
        arms: The pool.
        history: The rewards by rows.
        laplacian_ridge: Held, if given.
        lengthscale: Held, if given, in the units of the features; else features are in units of their own spread.
        linear: Whether the arm kernel is linear in the features as they are.
        noise_var: Held, if given.
        seed: Fixes the sample.
    """
    plain = linear or lengthscale is not None
    context = FitContext(graph, arms, seed=seed, features=arms.features if plain else None)
    given = {"ridge": laplacian_ridge, "lengthscale": lengthscale, "noise": noise_var}
    held = {name: log(value) for name, value in given.items() if value is not None}
    hyper = fit_graph_alone(context, history, {"linear": SURE if linear else -SURE, **held})
    users = Green(laplacian_ridge=_exact(laplacian_ridge, hyper.ridge), normalised=context.normalised)
    kernel = _arm_kernel(context, hyper, arms, linear=linear, lengthscale=lengthscale)
    return {"user_kernel": users, "arm_kernel": kernel, "noise_var": _exact(noise_var, hyper.noise)}


def fit_graph_alone(context: FitContext, history: History, held: Mapping[str, float]) -> Hyper:
    """Returns the hyperparameters of highest evidence with the graph part alone; the prior's where rewards say nothing.

    Args:
        context: What kernels are made of.
        history: The rewards.
        held: Hyperparameters that are not fitted, on the scale they are learned on.
    """
    fixed = {"own": ABSENT, "common": ABSENT, **held}
    prior = _prior(context, history)
    if history.n_observations < FIRST_FIT or is_constant(history):
        return prior.centre._replace(**fixed)
    samples = context.evidences(history, history.n_observations)
    found = fit(Holding(Together(samples), fixed), prior, prior.centre, corners=False, steps=THOROUGH)[0]
    return found._replace(**fixed)


def _prior(context: FitContext, history: History) -> Prior[Hyper]:
    """Returns the prior of `auto`, with all of the signal's variance on the graph, and the mean in the level."""
    mean, variance = centre_and_variance(history)
    noise_share = noise_share_of(history, variance)
    prior: Prior[Hyper] = context.prior(variance, noise_share)
    signal = variance * (1.0 if noise_share is None else 1 - noise_share)
    level = max(exp(prior.centre.offset), mean * mean / signal)
    return replace(prior, centre=prior.centre._replace(graph=log(signal), offset=log(level)))


def _arm_kernel(
    context: FitContext, hyper: Hyper, arms: ArmPool, *, linear: bool, lengthscale: float | None
) -> ArmKernel:
    scale, level = context.scale(hyper), exp(hyper.offset)
    if linear:
        square = float(np.einsum("ij,ij->i", arms.features, arms.features).mean()) or 1.0
        return (scale / square) * Linear(offset=sqrt(level * square))
    lengths: Any = exp(hyper.lengthscale) * _spreads(arms.features) if lengthscale is None else lengthscale
    return scale * (SquaredExponential(lengths) + level * Constant())


def _spreads(features: Array) -> Array:
    """Returns the unit of each feature: its standard deviation, 1 for one that is constant.

    Examples:
        >>> _spreads(np.array([[1990.0, 7.0], [2010.0, 7.0]]))
        array([10.,  1.])
    """
    out = np.ones(features.shape[1])
    for column in range(features.shape[1]):
        own = standardised(features[:, [column]])
        apart = float(np.ptp(own))
        out[column] = float(np.ptp(features[:, column])) / apart if apart else 1.0
    return out


def _exact(given: float | None, learned: float) -> float:
    return exp(learned) if given is None else given
