"""How sure an estimate is: the percentile bootstrap over decisions, the same draws for all estimates."""

from collections.abc import Mapping

import numpy as np

from coterie.contracts import Array
from coterie.product.evaluation.estimators import Terms

BLOCK = 2**20  # counts held at a time


def ratio(above: Array, below: Array) -> Array:
    """Returns above / below, and nan where there is nothing below."""
    return np.asarray(np.divide(above, below, out=np.full(np.shape(above), np.nan), where=np.asarray(below) != 0))


def value_of(terms: Terms) -> float:
    """Returns the estimate; nan if no decision counts."""
    return float(ratio(np.array(terms.above.sum()), np.array(terms.below.sum())))


def draws_of(terms: Mapping[str, Terms], *, n_draws: int, seed: int) -> dict[str, Array]:
    """Returns the estimates of so many logs that are drawn from the decisions with replacement. O(n_draws * decisions).

    Examples:
        >>> same = Terms(np.ones(5), np.ones(5), 5.0)
        >>> draws_of({"ips": same}, n_draws=3, seed=0)["ips"]
        array([1., 1., 1.])
    """
    columns = np.stack([column for each in terms.values() for column in each[:2]], axis=1)
    rng, sums = np.random.default_rng([seed, 2]), np.empty((n_draws, columns.shape[1]))
    size = max(1, BLOCK // len(columns))
    for start in range(0, n_draws, size):
        block = sums[start : start + size]
        block[:] = _counts(rng, len(block), len(columns)) @ columns
    return {name: ratio(sums[:, 2 * i], sums[:, 2 * i + 1]) for i, name in enumerate(terms)}


def interval(draws: Array, confidence: float) -> tuple[float, float]:
    """Returns the middle part of the draws that are numbers; nan if none is."""
    told = draws[np.isfinite(draws)]
    if not len(told):
        return float("nan"), float("nan")
    low, high = np.quantile(told, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def _counts(rng: np.random.Generator, n_draws: int, n: int) -> Array:
    """Returns how often each decision is in each draw."""
    drawn = rng.integers(n, size=(n_draws, n)) + n * np.arange(n_draws)[:, np.newaxis]
    return np.bincount(drawn.ravel(), minlength=n_draws * n).reshape(n_draws, n).astype(np.float64)
