"""What a decision, a reward and a fit of `auto-*` may cost, on random worlds: counted, whatever the data are like."""

from collections import Counter
from threading import current_thread, main_thread
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.algebra import cholesky as factored
from coterie.models.engines.local import model as local
from coterie.policies.auto import evidence as evidence_module
from coterie.policies.auto.prior import STEPS
from coterie.policies.auto.sampling import BLOCK_PAIRS, BLOCKS
from coterie.problems import draw_rounds, draw_world, random_traits, world_settings

ROUNDS = 260
TRIALS_A_STEP = 3  # of a line search, at most in the mean
STARTS = 4


class Counts:
    """Factorisations of the engine, by size, and evaluations of the evidence, by pairs."""

    def __init__(self) -> None:
        self.factors: list[int] = []
        self.evaluations: list[int] = []

    def taken(self) -> list[int]:
        """Returns the sizes factored since the last time."""
        sizes, self.factors = self.factors, []
        return sizes


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    counted = Counts()
    evaluate = evidence_module.Evidence.value_and_gradient

    def cholesky(matrix: np.ndarray, *rest: Any, **options: Any) -> np.ndarray:
        if current_thread() is main_thread():  # a fit beside the decisions holds up nobody
            counted.factors.append(len(matrix))
        return factored(matrix, *rest, **options)

    def value_and_gradient(self: evidence_module.Evidence, point: np.ndarray) -> tuple[float, np.ndarray]:
        counted.evaluations.append(len(self._means))
        return evaluate(self, point)

    monkeypatch.setattr(local, "cholesky", cholesky)
    monkeypatch.setattr(evidence_module.Evidence, "value_and_gradient", value_and_gradient)
    return counted


@pytest.mark.parametrize("number", range(10))
def test_no_call_does_more_than_it_may(number: int, counts: Counts) -> None:
    settings, seed = world_settings({"kind": "random", "number": number}), np.random.SeedSequence(number)
    world = draw_world(settings, seed)
    policy = ct.make_policy("auto-ucb", graph=world.graph, arms=world.arms, seed=0)
    fits, seen = Counter[int](), 0
    for shown in draw_rounds(settings, world, seed)[:ROUNDS]:
        counts.taken()
        arm = policy.select(shown.user, shown.candidates).arm
        decided = counts.taken()
        assert len(decided) <= 1  # one factorisation, of the rows near the user
        assert all(size <= local.NEAR for size in decided)
        policy.update(shown.user, arm, world.judge(shown, arm)[0])
        if len(policy.fits) > seen:  # a study waits for its fit, which made a model: what follows is that one's
            seen = len(policy.fits)
            fits[seen] = len(counts.evaluations)
            assert max(counts.evaluations) <= BLOCK_PAIRS
            counts.evaluations.clear()
    for evaluations in fits.values():
        assert evaluations <= BLOCKS * (STARTS + TRIALS_A_STEP * (STEPS + 1))
    assert len(fits) <= 11  # at 8, 12, 16, 24, ... 192, 256
    assert fits


def test_the_worlds_of_the_test_differ() -> None:
    traits = [random_traits(number) for number in range(10)]
    assert len({each.family for each in traits}) >= 3
    assert max(each.n_users for each in traits) > 500
    assert {each.clicks for each in traits} == {True, False}


def test_rewards_choose_the_trend_once_and_fits_do_afterwards() -> None:
    graph, arms = ct.make_graph("ring", 40), ct.ArmPool(np.random.default_rng(0).normal(size=(60, 3)))
    policy = ct.make_policy("auto-ucb", graph=graph, arms=arms)
    chosen = set()
    for pair in range(2_400):
        policy.update(pair % 40, pair // 40, 1.0)  # all the same: nothing is fitted
        model = policy.model
        assert isinstance(model, local.LocalModel)
        chosen.add(len(model._chosen_for))
    assert chosen == {0, local.NEAR + 1}
