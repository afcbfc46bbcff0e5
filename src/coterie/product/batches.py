"""Decisions for several users among the same candidates, as the Bandit hands them out."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from coterie.contracts import ArmId
from coterie.policies import Policy
from coterie.policies.rules.draws import Draws
from coterie.policies.rules.scores import ScoredBatch
from coterie.product.decision import Decision
from coterie.product.floor import exploration


def decisions_of(
    policy: Policy, batch: ScoredBatch, shown: list[ArmId], *, draws: Draws, min_propensity: float, seed: int
) -> Iterator[tuple[int, int, Decision]]:
    """Yields the user's row, the position of the chosen candidate, and the decision, one after another."""
    best = batch.best.tolist()
    shares, places = [0.0] * len(best), best
    if min_propensity > 0:
        numbers = range(batch.first, batch.first + len(best))
        drawn = [exploration(draws, number, len(shown), min_propensity) for number in numbers]
        shares = [share for share, _ in drawn]
        places = [chosen if place is None else place for chosen, (_, place) in zip(best, drawn, strict=True)]
    at = np.arange(len(best)), np.array(places, dtype=np.intp)
    means, stds, scores = batch.mean[at].tolist(), batch.std[at].tolist(), batch.score[at].tolist()
    for i, (row, place) in enumerate(zip(batch.rows, places, strict=True)):
        yield (
            row,
            place,
            Decision(
                number=batch.first + i,
                user=policy.graph.user_at(row),
                shown=shown,
                place=place,
                mean=means[i],
                std=stds[i],
                score=scores[i],
                explored=place != best[i],
                share=shares[i],
                scored=partial(batch.at, i),
                seed=seed,
            ),
        )
