"""Popularity alone: what was liked most often so far."""

from collections import Counter
from typing import Any

import numpy as np

from coterie.contracts import ArmId, UserId
from coterie.policies.online.learner import Chosen


class MostHits:
    """Chooses the candidate with the most hits so far, ties at random; a hit is a reward above 0 that it was told.

    Args:
        seed: Of the ties.

    Examples:
        >>> rule = MostHits(seed=0)
        >>> rule.update("ana", "tea", 1.0)
        >>> rule.select("bo", ["milk", "tea"]).arm
        'tea'
    """

    __slots__ = ("_hits", "_rng")

    def __init__(self, *, seed: int = 0) -> None:
        self._hits: Counter[ArmId] = Counter()
        self._rng = np.random.default_rng(seed)

    def select(self, user: UserId, candidates: Any) -> Chosen:  # noqa: ARG002 - the same for everybody
        """Returns the choice."""
        hits = [self._hits.get(arm, 0) for arm in candidates]
        best = [arm for arm, count in zip(candidates, hits, strict=True) if count == max(hits)]
        return Chosen(best[int(self._rng.integers(len(best)))])

    def update(self, user: UserId, arm: ArmId, reward: float) -> None:  # noqa: ARG002 - the same for everybody
        """Counts a hit."""
        if reward > 0:
            self._hits[arm] += 1
