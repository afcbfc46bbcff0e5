"""A look between a decision and its reward changes nothing: what is learned next is the same to the bit."""

import numpy as np
import pytest

from coterie.kernels import PoolKernel
from coterie.models import ENGINES, Model, make_model


def lived(engine: str, *, peeks: bool) -> Model:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(30, 3))
    model = make_model(PoolKernel(np.eye(6) + 0.5, features @ features.T + np.eye(30)), engine=engine, noise_var=0.1)
    for _ in range(80):
        user, shown = int(rng.integers(6)), rng.permutation(30)[:11]
        model.read(user, shown)
        if peeks:
            model.peek((user + 1) % 6, np.arange(30))
        model.learn(user, int(shown[4]), float(rng.normal()))
    return model


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_a_look_leaves_no_trace(engine: str) -> None:
    looked, alone = lived(engine, peeks=True), lived(engine, peeks=False)
    for user in range(6):
        for found, expected in zip(looked.predict(user), alone.predict(user), strict=True):
            np.testing.assert_array_equal(found, expected)
