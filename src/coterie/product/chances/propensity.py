"""With which probability each candidate is chosen: exact, by quadrature, or simulated with a standard error."""

from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from coterie.contracts import Array
from coterie.errors import DimensionError, NumericalError, ParameterError, listed
from coterie.policies.considered import Considered, Grounds
from coterie.policies.policy import Policy
from coterie.policies.rules.draws import Draws
from coterie.policies.rules.scores import (
    ROUNDING,
    InNoiseUnits,
    Score,
    epsilon_greedy,
    greedy,
    joint_thompson,
    thompson,
    ucb,
    uniform,
    widening_ucb,
)
from coterie.policies.staged import StagedPolicy
from coterie.product.chances.quadrature import wins

N_DRAWS = 10_000
BLOCK = 2**18  # numbers drawn at a time
LARGEST_ERROR = 1e-6
SETTLED: frozenset[Any] = frozenset({ucb, widening_ucb, greedy})  # scores that draw nothing


@dataclass(frozen=True, slots=True, eq=False)
class Propensities:
    """The probability of each candidate to be chosen.

    Attributes:
        probabilities: One for each candidate, in their order; they sum to 1.
        standard_errors: Theirs where they were simulated; None where they are exact or within 1e-6.
    """

    probabilities: Array
    standard_errors: Array | None = None


def probabilities_of(
    policy: Policy, user_row: int, arms: Any, *, rng: np.random.Generator | None = None, n_draws: int = N_DRAWS
) -> Propensities | None:
    """Returns the propensities of a policy's next decision, or None where they are not known.

    They are not known for a score of the caller's own, which may use its draws in any way, and for decisions in stages.

    Args:
        policy: The policy; it is not changed.
        user_row: The user's row.
        arms: The candidates as the model knows them: rows of the pool, or vectors.
        rng: For joint Thompson sampling only.
        n_draws: As for `rng`.
    """
    if isinstance(policy, StagedPolicy):
        return None
    at, model = policy.grounds(user_row, arms), policy.model
    rule, width = _in_units_of_std(at.score, at.width, model.noise_var)
    scores = rule(at.mean, at.std, width, model=model) if rule in SETTLED else at.mean
    covariance = joint_covariance(policy, user_row, arms) if rule is joint_thompson else None
    return probabilities_from(Seen(at, scores, model.noise_var, covariance), rng=rng, n_draws=n_draws)


class Seen(NamedTuple):
    """What a decision's propensities depend on, taken when it was made; the belief may have moved since.

    Attributes:
        at: What it was made from.
        scores: What the rule gave each candidate.
        noise_var: The model's noise variance.
        covariance: Of the candidates, and the largest prior variance, for joint Thompson sampling only.
        shown: Mean and std of the candidates as they are told, where that is on another scale.
    """

    at: Grounds
    scores: Array
    noise_var: float
    covariance: tuple[Array, float] | None = None
    shown: tuple[Array, Array] | None = None

    @property
    def told(self) -> tuple[Array, Array]:
        """Mean and std of the candidates as they are told."""
        return self.shown or (self.at.mean, self.at.std)


def seen_by(
    considered: Considered,
    score: Score,
    tolerance: float,
    noise_var: float,
    covariance: tuple[Array, float] | None,
) -> Seen:
    """Returns what the propensities of a decision depend on."""
    at = Grounds(score, considered.mean, considered.std, considered.width, tolerance)
    return Seen(at, considered.score, noise_var, covariance, considered.told)


def joint_covariance(policy: Policy, user_row: int, arms: Any) -> tuple[Array, float]:
    """Returns the covariance of the candidates, and their largest prior variance."""
    model = policy.doubtful
    return model.covariance(user_row, arms), float(model.prior_std(user_row, arms).max()) ** 2


def probabilities_from(
    seen: Seen, *, rng: np.random.Generator | None = None, n_draws: int = N_DRAWS
) -> Propensities | None:
    """Returns the propensities of a decision, or None where they are not known."""
    at = seen.at
    rule, width = _in_units_of_std(at.score, at.width, seen.noise_var)
    if rule in SETTLED:
        return Propensities(argmax_probabilities(seen.scores, at.tolerance))
    if rule is thompson:
        gap = max(at.tolerance, ROUNDING * float(np.abs(at.mean).max()))
        return Propensities(thompson_probabilities(at.mean, width * at.std, gap))
    if rule is epsilon_greedy:
        return Propensities(epsilon_probabilities(at.mean, min(float(np.max(width)), 1.0), at.tolerance))
    if rule is uniform:
        return Propensities(np.full(len(at.mean), 1.0 / len(at.mean)))
    if seen.covariance is not None:
        covariance, scale = seen.covariance
        return Propensities(
            *joint_thompson_probabilities(
                at.mean, covariance, width, _needed(rng), n_draws, tolerance=at.tolerance, scale=scale
            )
        )
    return None


def argmax_probabilities(score: Array, tolerance: float = 0.0) -> Array:
    """Returns 1/k for each of the k candidates whose score is the highest within the tolerance, 0 for the others.

    As in a policy's choice, a gap of 1e-13 of the highest score is always a tie.

    Examples:
        >>> argmax_probabilities(np.array([2.0, 1.0, 2.0]))
        array([0.5, 0. , 0.5])
    """
    return _shares(_checked("scores", score), tolerance)


def epsilon_probabilities(mean: Array, epsilon: float, tolerance: float = 0.0) -> Array:
    """Returns epsilon/k for each of k candidates, and the rest shared among those of the highest mean.

    Examples:
        >>> epsilon_probabilities(np.array([1.0, 0.0]), 0.1)
        array([0.95, 0.05])
    """
    if not 0.0 <= epsilon <= 1.0:
        raise ParameterError(f"epsilon is {epsilon!r}", "it is a probability", "Choose, say, 0.1")
    best = argmax_probabilities(mean, tolerance)
    return epsilon / len(best) + (1.0 - epsilon) * best


def thompson_probabilities(mean: Array, spread: Array, tolerance: float = 0.0) -> Array:
    """Returns the probability of each mean + spread * z to be the largest, z independent standard normals, within 1e-6.

    P_i = integral of phi_i(x) prod_{j != i} Phi_j(x) dx, on panels of Gauss-Legendre nodes. Spreads up to the tolerance
    count as 0, and such candidates are tied within it; other ties are left out, an error of about
    (tolerance / spread)^2. Time and memory are O(k) for k candidates, some 200 nodes for each.

    Examples:
        >>> thompson_probabilities(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 1.0])).round(6)
        array([0.707861, 0.14607 , 0.14607 ])
    """
    mean, spread = _checked("means", mean), _checked("spreads", spread)
    if mean.shape != spread.shape or spread.min() < 0.0:
        raise DimensionError(
            f"there are {len(mean)} means and spreads {listed(spread.tolist())}",
            "each mean has a spread >= 0",
            "Pass width * std",
        )
    certain = spread <= tolerance
    if not certain.any():
        return _summing_to_one(wins(mean, spread, -np.inf))
    probabilities = np.zeros(len(mean))
    known, others, theirs = float(mean[certain].max()), mean[~certain], spread[~certain]
    probabilities[~certain] = wins(others, theirs, known)
    with np.errstate(over="ignore"):
        below = float(ndtr((known - others) / theirs).prod())
    probabilities[certain] = below * argmax_probabilities(mean[certain], tolerance)
    return _summing_to_one(probabilities)


def joint_thompson_probabilities(
    mean: Array,
    covariance: Array,
    width: float | Array,
    rng: np.random.Generator,
    n_draws: int = N_DRAWS,
    *,
    tolerance: float = 0.0,
    scale: float | None = None,
) -> tuple[Array, Array]:
    """Returns how often each candidate was the largest of mean + width * a joint draw, and the standard errors.

    A standard error is at least 1/n_draws: a candidate that no draw chose may still be chosen.

    Args:
        mean: The believed mean of each candidate.
        covariance: Their joint covariance.
        width: What multiplies the draws: a number, or one for each candidate.
        rng: Where the draws come from.
        n_draws: How many.
        tolerance: The gap within which values are tied.
        scale: The largest prior variance: eigenvalues below 1e-12 of it are rounding. By default the largest variance.
    """
    mean = _checked("means", mean)
    root = width * _symmetric_root(covariance, float(np.max(np.diagonal(covariance))) if scale is None else scale)
    if not root.any():
        return argmax_probabilities(mean, tolerance), np.zeros(len(mean))
    total, squares = np.zeros(len(mean)), np.zeros(len(mean))
    for size in _blocks(n_draws, len(mean)):
        shares = _shares(mean + rng.standard_normal((size, len(mean))) @ root, tolerance)
        total += shares.sum(axis=0)
        squares += (shares * shares).sum(axis=0)
    probabilities = total / n_draws
    variance = np.maximum(squares / n_draws - probabilities**2, 0.0)
    return probabilities, np.sqrt((variance + 1.0 / n_draws) / n_draws)


def exploration_share(probabilities: Array, min_propensity: float) -> float:
    """Returns the smallest share of uniform choices that gives every candidate at least min_propensity.

    Where the probabilities are estimates, pass zeros: the share is then enough whatever the truth.
    """
    n_candidates = len(probabilities)
    check_least(min_propensity, n_candidates)
    least = float(np.min(probabilities))
    return 0.0 if least >= min_propensity else (min_propensity - least) / (1.0 / n_candidates - least)


def check_least(min_propensity: float, n_candidates: int) -> None:
    """Raises if not all of so many candidates can have this probability."""
    if not 0.0 <= min_propensity <= 1.0 / n_candidates:
        raise ParameterError(
            f"min_propensity is {min_propensity!r} with {n_candidates} candidates",
            f"it lies between 0 and 1/{n_candidates} = {1.0 / n_candidates:.6g}, for the probabilities sum to 1",
            "Name fewer candidates, or make the bandit with a lower one",
        )


def mixed(probabilities: Array, min_propensity: float) -> Array:
    """Returns (1 - a) p + a/k with the smallest a that gives every candidate at least min_propensity.

    Examples:
        >>> mixed(np.array([1.0, 0.0]), 0.05)
        array([0.95, 0.05])
    """
    share = exploration_share(probabilities, min_propensity)
    mixture = (1.0 - share) * np.asarray(probabilities) + share / len(probabilities)
    return np.maximum(mixture, min_propensity)  # rounding may fall short of it by a bit


def _in_units_of_std(score: Any, width: float | Array, noise_var: float) -> tuple[Any, float | Array]:
    """Returns the score, out of its `InNoiseUnits` if it is in one, and the width that goes with it."""
    while isinstance(score, InNoiseUnits):
        score, width = score.score, width / sqrt(noise_var)
    return score, width


def _needed(rng: np.random.Generator | None) -> np.random.Generator:
    if rng is None:
        raise ParameterError("rng is None", "joint Thompson sampling is simulated", "Pass np.random.default_rng(seed)")
    return rng


def _checked(what: str, values: Any) -> Array:
    """Returns the values as floats, or raises if they are not a row of finite numbers."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise DimensionError(f"the {what} have shape {array.shape}", "there is one for each candidate", "Pass a row")
    if not np.isfinite(array).all():
        raise NumericalError(
            f"the {what} of the candidates are {listed(array.tolist())}",
            "they must be numbers",
            "Check the width and the model's explain()",
        )
    return array


def _shares(scores: Array, tolerance: float) -> Array:
    """Returns for each row of scores 1/k at the k that are highest within the tolerance, as `Policy` breaks ties."""
    highest = scores.max(axis=-1, keepdims=True)
    ties = scores >= highest - np.maximum(tolerance, ROUNDING * np.abs(highest))
    return np.asarray(ties / ties.sum(axis=-1, keepdims=True))


def _summing_to_one(probabilities: Array) -> Array:
    """Returns the probabilities without the quadrature's last error, or raises if that was no small one."""
    total = float(probabilities.sum())
    if not abs(total - 1.0) <= LARGEST_ERROR:
        raise NumericalError(
            f"the probabilities sum to {total!r}", f"1 within {LARGEST_ERROR:g}", "Scale means and spreads towards 1"
        )
    return probabilities / total


def _symmetric_root(covariance: Array, scale: float) -> Array:
    """Returns the root that `joint_thompson` draws with: eigenvalues that are rounding count as zero."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.sqrt(np.where(values > 1e-12 * scale, values, 0.0))) @ vectors.T)


def _blocks(n_draws: int, n_candidates: int) -> list[int]:
    """Returns how many draws to make at a time, so that many draws of many candidates take little memory."""
    if n_draws < 1:
        raise ParameterError(f"n_draws is {n_draws!r}", "it is a whole number >= 1", f"Choose, say, {N_DRAWS}")
    size = max(1, BLOCK // n_candidates)
    full, rest = divmod(n_draws, size)
    return [size] * full + [rest] * (rest > 0)


def exploration(draws: Draws, number: int, size: int, min_propensity: float) -> tuple[float, int | None]:
    """Returns the share of uniform exploration, and the candidate it takes in this decision, if it takes one.

    The share depends on the number of candidates alone, so that the floor holds whatever the policy would do, and also
    where its propensities are estimates.
    """
    if min_propensity <= 0:
        return 0.0, None
    share = exploration_share(np.zeros(size), min_propensity)
    coin, place = draws.explore(number, size)
    return share, place if coin < share else None


def with_exploration(found: Propensities, share: float) -> Propensities:
    """Returns the propensities after uniform exploration is mixed in."""
    errors = None if found.standard_errors is None else (1 - share) * found.standard_errors
    return Propensities((1 - share) * found.probabilities + share / len(found.probabilities), errors)
