"""How sure an estimate is: the bootstrap over decisions, the same for all estimates, widened where few decide."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

from coterie.contracts import Array
from coterie.product.evaluation.estimators import Terms

BLOCK = 2**20  # counts held at a time
ROUNDING = 1e-12  # of the largest term


def ratio(above: Array, below: Array) -> Array:
    """Returns above / below, and nan where there is nothing below."""
    return np.asarray(np.divide(above, below, out=np.full(np.shape(above), np.nan), where=np.asarray(below) != 0))


def value_of(terms: Terms) -> float:
    """Returns the estimate; nan if no decision counts."""
    return float(ratio(np.array(terms.above.sum()), np.array(terms.below.sum())))


def bootstrap(terms: Mapping[str, Terms], *, n_draws: int, seed: int, block: int = BLOCK) -> "dict[str, Bootstrapped]":
    """Returns estimates with those of resampled logs, the same for all of them. O(n_draws * decisions).

    Args:
        terms: By the name of the estimator.
        n_draws: How many logs are drawn from the decisions, with replacement.
        seed: Fixes which.
        block: How many counts are held in memory at a time.

    Examples:
        >>> bootstrap({"ips": Terms(np.ones(5), np.ones(5), 5.0)}, n_draws=3, seed=0)["ips"].draws
        array([1., 1., 1.])
    """
    columns = np.stack([column for each in terms.values() for column in each[:2]], axis=1)
    rng, sums = np.random.default_rng([seed, 2]), np.empty((n_draws, columns.shape[1]))
    size = max(1, block // len(columns))
    for start in range(0, n_draws, size):
        part = sums[start : start + size]
        part[:] = _counts(rng, len(part), len(columns)) @ columns
    together = enumerate(terms.items())
    return {name: Bootstrapped.of(each, ratio(sums[:, 2 * i], sums[:, 2 * i + 1])) for i, (name, each) in together}


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrapped:
    """An estimate, or a difference of two, with what its interval is made of.

    Attributes:
        value: The estimate; nan if no decision counts.
        draws: The estimates of resampled logs.
        influence: By how much each decision moves it.
        effective: The effective sample size.
    """

    value: float
    draws: Array
    influence: Array
    effective: float

    @classmethod
    def of(cls, terms: Terms, draws: Array) -> "Bootstrapped":
        """Returns an estimate with its draws."""
        value = value_of(terms)
        moved = terms.above - value * terms.below
        if not np.abs(moved).max() > ROUNDING * np.abs(terms.above).max(initial=0.0):  # also where it is nan
            moved = np.zeros(len(moved))
        return cls(value, draws, ratio(moved, np.broadcast_to(terms.below.sum(), moved.shape)), terms.effective)

    @property
    def dof(self) -> float:
        """Degrees of freedom of the error: n / kurtosis of the influence, 0 where no decision moves the estimate."""
        squares = self.influence**2
        return float(ratio(np.array(squares.sum() ** 2), np.array((squares**2).sum()))) if squares.any() else 0.0

    def interval(self, confidence: float, lowest: float, highest: float) -> tuple[float, float]:
        """Returns the lower and the upper end; nan if nothing is known.

        The percentiles of the draws, as far from the estimate as Student's t with `dof` degrees of freedom is
        wider than a normal, though not beyond the rewards because of that. Where no decision moves the estimate,
        because all rewards that count are the same, the interval of Clopper and Pearson between the rewards.

        Args:
            confidence: How probably it is to hold the truth.
            lowest: The smallest reward.
            highest: The largest reward.
        """
        known, outside = self.draws[np.isfinite(self.draws)], (1 - confidence) / 2
        if not len(known) or np.isnan(self.value):
            return float("nan"), float("nan")
        if not self.influence.any():
            unseen = 1 - outside ** (1 / self.effective) if self.effective else 1.0
            low, high = self.value - unseen * (self.value - lowest), self.value + unseen * (highest - self.value)
            return min(low, self.value), max(high, self.value)
        low, high = np.quantile(known, [outside, 1 - outside]).tolist()
        wider = float(stdtrit(self.dof, 1 - outside) / ndtri(1 - outside))
        return (
            max(self.value - wider * (self.value - low), min(low, lowest)),
            min(self.value + wider * (high - self.value), max(high, highest)),
        )

    def gain_over(
        self, other: "Bootstrapped", confidence: float, lowest: float, highest: float
    ) -> tuple[float, float, float]:
        """Returns by how much this is more than another on the same decisions, and the ends of its interval.

        Where no decision moves one of them, the ends of both intervals stand for the draws.
        """
        gap, span = self.value - other.value, highest - lowest
        if self.influence.any() and other.influence.any():
            both = Bootstrapped(gap, self.draws - other.draws, self.influence - other.influence, 0.0)
            return gap, *(both.interval(confidence, -span, span) if both.influence.any() else (gap, gap))
        mine, theirs = (each.interval(confidence, lowest, highest) for each in (self, other))
        return gap, mine[0] - theirs[1], mine[1] - theirs[0]


def _counts(rng: np.random.Generator, n_draws: int, n: int) -> Array:
    """Returns how often each decision is in each draw."""
    drawn = rng.integers(n, size=(n_draws, n)) + n * np.arange(n_draws)[:, np.newaxis]
    return np.bincount(drawn.ravel(), minlength=n_draws * n).reshape(n_draws, n).astype(np.float64)
