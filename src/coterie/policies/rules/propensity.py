"""With which probability each candidate is chosen: exact, by quadrature, or simulated with a standard error."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from coterie.contracts import Array
from coterie.errors import DimensionError, NumericalError, ParameterError, listed
from coterie.policies.rules.draws import Draws
from coterie.policies.rules.quadrature import wins

N_DRAWS = 10_000
BLOCK = 2**18  # numbers drawn at a time
LARGEST_ERROR = 1e-6
ROUNDING = 1e-13  # scores this close, beside the highest, are tied


@dataclass(frozen=True, slots=True, eq=False)
class Propensities:
    """The probability of each candidate to be chosen.

    Attributes:
        probabilities: One for each candidate, in their order; they sum to 1.
        standard_errors: Theirs where they were simulated; None where they are exact or within 1e-6.
    """

    probabilities: Array
    standard_errors: Array | None = None

    def with_exploration(self, share: float) -> "Propensities":
        """Returns the propensities after this share of uniform choices is mixed in."""
        errors = None if self.standard_errors is None else (1 - share) * self.standard_errors
        return Propensities((1 - share) * self.probabilities + share / len(self.probabilities), errors)


def tied(scores: Array, tolerance: float | Array) -> Array:
    """Returns which scores of each row are the highest within the tolerance; none if one is not a number.

    A gap of 1e-13 of the highest score is always a tie.

    Examples:
        >>> tied(np.array([2.0, 1.0, 2.0]), 0.0)
        array([ True, False,  True])
    """
    highest = scores.max(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.asarray(scores >= highest - np.maximum(tolerance, ROUNDING * np.abs(highest)))


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
    rng: np.random.Generator | None,
    n_draws: int = N_DRAWS,
    *,
    tolerance: float = 0.0,
    scale: float | None = None,
    block: int = BLOCK,
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
        block: How many numbers are drawn at a time.
    """
    if rng is None:
        raise ParameterError("rng is None", "joint Thompson sampling is simulated", "Pass np.random.default_rng(seed)")
    mean = _checked("means", mean)
    root = width * symmetric_root(covariance, float(np.max(np.diagonal(covariance))) if scale is None else scale)
    if not root.any():
        return argmax_probabilities(mean, tolerance), np.zeros(len(mean))
    total, squares = np.zeros(len(mean)), np.zeros(len(mean))
    for size in _blocks(n_draws, len(mean), block):
        shares = _shares(mean + rng.standard_normal((size, len(mean))) @ root, tolerance)
        total += shares.sum(axis=0)
        squares += (shares * shares).sum(axis=0)
    probabilities = total / n_draws
    variance = np.maximum(squares / n_draws - probabilities**2, 0.0)
    return probabilities, np.sqrt((variance + 1.0 / n_draws) / n_draws)


def check_least(min_propensity: float, n_candidates: int) -> None:
    """Raises if not all of so many candidates can have this probability."""
    if not 0.0 <= min_propensity <= 1.0 / n_candidates:
        raise ParameterError(
            f"min_propensity is {min_propensity!r} with {n_candidates} candidates",
            f"it lies between 0 and 1/{n_candidates} = {1.0 / n_candidates:.6g}, for the probabilities sum to 1",
            "Name fewer candidates, or make the bandit with a lower one",
        )


def exploration(draws: Draws, number: int, size: int, min_propensity: float) -> tuple[float, int | None]:
    """Returns the share of uniform exploration, and the candidate it takes in this decision, if it takes one.

    The share depends on the number of candidates alone, so that the floor holds whatever the policy would do, and also
    where its propensities are estimates.
    """
    if min_propensity <= 0:
        return 0.0, None
    check_least(min_propensity, size)
    share = min_propensity / (1.0 / size)
    coin, place = draws.explore(number, size)
    return share, place if coin < share else None


def _checked(what: str, values: Any) -> Array:
    """Returns the values as floats, or raises if they are not a row of finite numbers."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise DimensionError(f"the {what} have shape {array.shape}", "there is one for each candidate", "Pass a row")
    if not np.isfinite(array).all():
        raise NumericalError(
            f"the {what} of the candidates are {listed(array.tolist())}",
            "they must be numbers",
            "Check the width and the model's describe()",
        )
    return array


def _shares(scores: Array, tolerance: float) -> Array:
    """Returns for each row of scores 1/k at the k that are highest within the tolerance, as ties are broken."""
    ties = tied(scores, tolerance)
    return np.asarray(ties / ties.sum(axis=-1, keepdims=True))


def _summing_to_one(probabilities: Array) -> Array:
    """Returns the probabilities without the quadrature's last error, or raises if that was no small one."""
    total = float(probabilities.sum())
    if not abs(total - 1.0) <= LARGEST_ERROR:
        raise NumericalError(
            f"the probabilities sum to {total!r}", f"1 within {LARGEST_ERROR:g}", "Scale means and spreads towards 1"
        )
    return probabilities / total


def symmetric_root(covariance: Array, scale: float) -> Array:
    """Returns the symmetric square root of a covariance; eigenvalues below 1e-12 of the scale count as zero.

    Unlike a Cholesky factor it exists for a singular covariance, and unlike eigenvectors it has no signs to choose, so
    every exact engine gives the same draw. The roots of eigenvalues that are rounding would be a million times larger
    than what engines differ by.
    """
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.sqrt(np.where(values > 1e-12 * scale, values, 0.0))) @ vectors.T)


def _blocks(n_draws: int, n_candidates: int, block: int) -> list[int]:
    """Returns how many draws to make at a time, so that many draws of many candidates take little memory."""
    if n_draws < 1:
        raise ParameterError(f"n_draws is {n_draws!r}", "it is a whole number >= 1", f"Choose, say, {N_DRAWS}")
    size = max(1, block // n_candidates)
    full, rest = divmod(n_draws, size)
    return [size] * full + [rest] * (rest > 0)
