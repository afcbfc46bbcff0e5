"""What a decision is made from, and what it was made from."""

from dataclasses import dataclass
from typing import NamedTuple

from coterie.contracts import Array
from coterie.policies.rules.scores import Score


@dataclass(frozen=True, slots=True, eq=False)
class Grounds:
    """What a decision is made from.

    Attributes:
        score: The rule that orders the candidates.
        mean: The model's mean of each candidate.
        std: The model's std of each candidate.
        width: How wide to explore: a number, or one for each.
        tolerance: The gap within which scores are tied.
    """

    score: Score
    mean: Array
    std: Array
    width: float | Array
    tolerance: float


class Considered(NamedTuple):
    """What a decision was made from: which candidate is best, and what was believed of every one.

    Attributes:
        best: The position of the chosen candidate.
        mean: The believed reward of each.
        std: The uncertainty of each.
        score: What was maximised.
        n_ties: How many candidates had the highest score.
        width: How wide the policy explored: a number, or one for each.
        told: Mean and std of each in the rewards' own units, where the belief is about something else.
        certain: Whether the exact belief is proven to choose the same; None where nobody asked.
    """

    best: int
    mean: Array
    std: Array
    score: Array
    n_ties: int
    width: float | Array
    told: tuple[Array, Array] | None = None
    certain: bool | None = None
