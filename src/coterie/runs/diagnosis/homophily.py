"""Are linked users alike? What they share, against graphs of the same degrees that link others.

`product.insight.graph_report` compares the rewards of neighbours on arms that both have met, against users shuffled.
A log of positives alone has no rewards to compare, and shuffled users have other degrees: hence another measure here.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from coterie.graphs import UserGraph
from coterie.graphs.random_pairs import rewirings
from coterie.logs.log import Floats, Ints
from coterie.runs.diagnosis.outcomes import Outcomes

MOST_REWIRINGS, LEAST_REWIRINGS = 99, 19
ROOM = 7_000_000  # edges x rewirings: about a minute
TOGETHER = 20_000  # edges whose rows are multiplied at once

Measure = Callable[[Ints, Ints], float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Alike:
    """How alike linked users are by one measure.

    Attributes:
        name: "shared", "lift" or "opinions".
        observed: The measure on the graph.
        rewired: The measure on each rewired graph.
    """

    name: str
    observed: float
    rewired: Floats

    @property
    def expected(self) -> float:
        """The mean over rewired graphs."""
        return float(self.rewired.mean())

    @property
    def p_value(self) -> float:
        """How probable a rewired graph is to be at least as alike: (1 + those that are) / (1 + rewirings)."""
        return float((1 + np.count_nonzero(self.rewired >= self.observed)) / (1 + len(self.rewired)))

    @property
    def ratio(self) -> float | None:
        """How many times the rewired graphs' mean; none for a correlation, and where that is 0."""
        return None if self.name == "opinions" or self.expected <= 0 else self.observed / self.expected


def affordable(n_edges: int) -> int:
    """Returns how many rewirings a graph of this size gets.

    Examples:
        >>> affordable(12_717), affordable(125_826), affordable(1_000_000)
        (99, 55, 19)
    """
    return int(np.clip(ROOM // max(n_edges, 1), LEAST_REWIRINGS, MOST_REWIRINGS))


def homophily(graph: UserGraph, outcomes: Outcomes, *, count: int, seed: int) -> list[Alike]:
    """Returns how alike linked users are by each measure that this log allows; nothing without two edges.

    "shared": positives that both ends of an edge have, mean over edges. "lift": the same over what would be shared if
    every positive were dealt by the arm's popularity alone, so that it does not count how active the two are.
    "opinions": where rewards differ, the correlation of their rewards on arms both have met, less arm's and user's
    means.
    """
    upper = sp.triu(graph.weights, k=1).tocoo()
    rows, cols = upper.row.astype(np.int64), upper.col.astype(np.int64)
    measures = dict(_measures(outcomes)) if len(rows) > 1 else {}
    found = {name: measure(rows, cols) for name, measure in measures.items()}
    measures = {name: measure for name, measure in measures.items() if np.isfinite(found[name])}
    dealt: dict[str, list[float]] = {name: [] for name in measures}
    for ends in rewirings(rows, cols, graph.n_users, count=count, seed=seed) if measures else ():
        for name, measure in measures.items():
            dealt[name].append(measure(*ends))
    return [Alike(name=name, observed=found[name], rewired=_finite(dealt[name])) for name in measures]


def _finite(values: list[float]) -> Floats:
    """Returns the values; where no rewired neighbours have anything in common their likeness is 0."""
    return np.asarray(np.nan_to_num(np.array(values), nan=0.0))


def _measures(outcomes: Outcomes) -> Iterator[tuple[str, Measure]]:
    had = outcomes.table(np.ones(len(outcomes.user)))
    liked = outcomes.table(outcomes.positive.astype(float))
    liked.eliminate_zeros()
    active, popular = (np.asarray(liked.sum(axis=axis)).ravel() for axis in (1, 0))
    chance = float(popular @ popular) / float(popular.sum()) ** 2 if popular.sum() else 0.0

    def shared(rows: Ints, cols: Ints) -> float:
        return _products(liked, liked, rows, cols) / len(rows)

    def lift(rows: Ints, cols: Ints) -> float:
        expected = chance * float(active[rows] @ active[cols])
        return _products(liked, liked, rows, cols) / expected if expected > 0 else float("nan")

    yield "shared", shared
    yield "lift", lift
    if outcomes.kind != "one-class":
        left = outcomes.table(_residuals(outcomes))
        squared = left.power(2)

        def opinions(rows: Ints, cols: Ints) -> float:
            spread = _products(squared, had, rows, cols) * _products(had, squared, rows, cols)
            return _products(left, left, rows, cols) / float(np.sqrt(spread)) if spread > 0 else float("nan")

        yield "opinions", opinions


def _residuals(outcomes: Outcomes) -> Floats:
    """Returns the mean rewards of the pairs less their arm's mean, and then less their user's."""
    left = outcomes.reward
    for label, size in ((outcomes.arm, outcomes.n_arms), (outcomes.user, outcomes.n_users)):
        means = np.bincount(label, left, minlength=size) / np.maximum(np.bincount(label, minlength=size), 1)
        left = left - means[label]
    return left


def _products(here: sp.csr_array, there: sp.csr_array, rows: Ints, cols: Ints) -> float:
    """Returns the sum of the products of these rows of the one table with those of the other."""
    total = 0.0
    for start in range(0, len(rows), TOGETHER):
        some = slice(start, start + TOGETHER)
        total += float(here[rows[some]].multiply(there[cols[some]]).sum())
    return total
