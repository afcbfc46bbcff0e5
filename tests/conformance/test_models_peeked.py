"""A look between a decision and its reward changes nothing: what is learned next is the same to the bit."""

import numpy as np
import pytest

import coterie as ct
from coterie.kernels import PoolKernel
from coterie.models import Model
from engine_cases import ENGINE_NAMES, model_of
from strategies import Case

RNG = np.random.default_rng(1)
POOL = ct.ArmPool(RNG.normal(size=(30, 3)))
GRAM = POOL.features @ POOL.features.T
CASE = Case(ct.make_graph("ring", 6), POOL, ct.Linear(), PoolKernel(np.eye(6) + 0.5, GRAM + np.eye(30)), 0.1, [])


def lived(engine: str, *, peeks: bool) -> Model:
    model, rng = model_of(engine, CASE), np.random.default_rng(2)
    for _ in range(80):
        user, shown = int(rng.integers(6)), rng.permutation(30)[:11]
        model.read(user, shown)
        if peeks:
            model.peek((user + 1) % 6, np.arange(30))
        model.learn(user, int(shown[4]), float(rng.normal()))
    return model


@pytest.mark.parametrize("engine", ENGINE_NAMES)
def test_a_look_leaves_no_trace(engine: str) -> None:
    looked, alone = lived(engine, peeks=True), lived(engine, peeks=False)
    for user in range(6):
        for found, expected in zip(looked.predict(user), alone.predict(user), strict=True):
            np.testing.assert_array_equal(found, expected)
