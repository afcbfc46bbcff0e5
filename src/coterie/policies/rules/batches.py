"""Decisions for several users among the same candidates, made together: the same as one after another, to the bit."""

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import Array
from coterie.models import Model
from coterie.policies.rules.draws import Draws
from coterie.policies.rules.scores import ROUNDING, InNoiseUnits, Score, greedy, thompson, ucb, widening_ucb

Index = NDArray[np.intp]

KNOWN: frozenset[Any] = frozenset({ucb, widening_ucb, greedy, thompson})  # all but the last take tables as they are


class Batch(NamedTuple):
    """What several decisions were made from, a row for each.

    Attributes:
        first: The number of the first decision; the others follow.
        rows: The users' rows.
        best: The position of each chosen candidate.
        mean: The believed rewards.
        std: Their uncertainty.
        score: What was maximised.
        width: How wide the policy explored: a number, or one for each score.
        tolerances: The gap within which scores are tied, for each user.
    """

    first: int
    rows: list[int]
    best: Index
    mean: Array
    std: Array
    score: Array
    width: float | Array
    tolerances: list[float]


def decide_together(
    model: Model,
    score: Score,
    widths: Callable[[Array], float | Array],
    draws: Draws,
    *,
    first: int,
    rows: list[int],
    arms: Any,
    ties: list[float],
) -> Batch | None:
    """Returns the decisions for these users, or none where they must be made one after another.

    How wide to explore is asked with the std of every arm for every user.
    So it is with scores that draw candidates together or are the caller's own, and where a score is not a number: the
    decisions before it then count.
    """
    rule: Any = score.score if isinstance(score, InNoiseUnits) else score
    if rule not in KNOWN:
        return None
    mean, std = model.read_many(np.array(rows, dtype=np.intp), arms)
    width = widths(std)
    factor = width / sqrt(model.noise_var) if isinstance(score, InNoiseUnits) else width
    numbers = range(first, first + len(rows))
    if rule is thompson:
        scores = mean + factor * std * np.array([draws.normals(number, mean.shape[1]) for number in numbers])
    else:
        scores = rule(mean, std, factor, model=model)
    best = _best(scores, np.array(ties), draws, numbers)
    return None if best is None else Batch(first, rows, best, mean, std, scores, width, ties)


def _best(scores: Array, ties: Array, draws: Draws, numbers: Sequence[int]) -> Index | None:
    """Returns the position of the highest score of each row, ties broken by the decision's own draw."""
    highest = scores.max(axis=1)
    with np.errstate(invalid="ignore"):
        bar = highest - np.maximum(ties, ROUNDING * np.abs(highest))
    tied = scores >= bar[:, None]
    n_tied = tied.sum(axis=1)
    if not n_tied.all():
        return None
    best = tied.argmax(axis=1)
    for i in np.flatnonzero(n_tied > 1).tolist():
        best[i] = np.flatnonzero(tied[i])[draws.pick(numbers[i], int(n_tied[i]))]
    return np.asarray(best)
