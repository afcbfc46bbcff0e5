"""Decisions for several users among the same candidates, as the Bandit hands them out."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from coterie.contracts import ArmId
from coterie.policies import Policy
from coterie.policies.considered import Grounds
from coterie.policies.rules.batches import Batch
from coterie.policies.rules.draws import Draws
from coterie.policies.rules.scores import Score
from coterie.product.chances.propensity import Seen, exploration
from coterie.product.decision import Decision


def decisions_of(
    policy: Policy, batch: Batch, shown: list[ArmId], *, draws: Draws, min_propensity: float, seed: int
) -> Iterator[tuple[int, int, Decision]]:
    """Yields the user's row, the position of the chosen candidate, and the decision, one after another."""
    best, rule, noise_var = batch.best.tolist(), policy.score, policy.model.noise_var
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
                seen=partial(_seen, batch, i, rule, noise_var),
                seed=seed,
            ),
        )


def _seen(batch: Batch, i: int, rule: Score, noise_var: float) -> Seen:
    """Returns what the propensities of one decision of a batch depend on."""
    width = batch.width[i] if isinstance(batch.width, np.ndarray) else batch.width
    grounds = Grounds(rule, batch.mean[i], batch.std[i], width, batch.tolerances[i])
    return Seen(grounds, batch.score[i], noise_var)
