"""What an engine can do is asked of the model; what it cannot has a default that any engine gives."""

from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.kernels import PoolKernel
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models import History, Model, make_model
from coterie.models.choose import default_options

CAPABILITIES = ("can_fit", "certifies", "follows_graph", "has_cheap_means")
FEATURES = np.random.default_rng(0).normal(size=(6, 3))
ARMS = np.arange(6)


def taught(engine: str) -> Model:
    graph = ct.make_graph("ring", 8)
    kernel: Any = GraphKernel(graph, FEATURES)
    if engine != "sparse":
        kernel = PoolKernel(ct.Green().matrix(graph), FEATURES @ FEATURES.T)
    model = make_model(kernel, engine=engine, noise_var=0.1)
    for user, arm, reward in ((0, 1, 1.0), (1, 2, -0.5), (0, 1, 2.0)):
        model.update(user, arm, reward)
    return model


def test_only_sparse_has_them() -> None:
    pytest.importorskip("numba")
    for name in CAPABILITIES:
        assert getattr(taught("sparse"), name)
        assert not getattr(taught("exact"), name)


def test_an_engine_that_cannot_gives_what_it_reads() -> None:
    model = taught("exact")
    mean, std = model.predict(3)
    np.testing.assert_array_equal(model.read_means(np.array([3, 0]), ARMS)[0], mean)
    np.testing.assert_array_equal(model.std_bound(3, ARMS), std)
    found = model.read_certain(3, ARMS, 1.0)
    assert not found.certain
    np.testing.assert_array_equal(found.mean, mean)
    with pytest.raises(NotImplementedError, match="exact"):
        model.fit(History())


@pytest.mark.parametrize("engine", ["exact", "grid", "sparse"])
def test_the_weights_of_rewards_add_up_to_the_mean(engine: str) -> None:
    if engine == "sparse":
        pytest.importorskip("numba")
    model = taught(engine)
    pairs = np.array([0, 1]), np.array([1, 2]), np.array([2.0, 1.0])
    weights, own = model.reward_weights(0, 1, *pairs)
    assert weights @ [1.5, -0.5] == pytest.approx(model.predict(0)[0][1], abs=0.02)
    assert own[1] == 0.0


@pytest.mark.parametrize("engine", ["exact", "sparse"])
def test_a_new_history_has_the_form_that_the_engine_keeps(engine: str) -> None:
    if engine == "sparse":
        pytest.importorskip("numba")
    model = taught(engine)
    rewards = [1, 0, 1, 2], [2, 1, 2, 0], [1.0, 4.0, 3.0, 9.0]
    history = model.new_history(*rewards, np.array([1.0, 0.5, 1.0, 0.0]))
    assert type(history) is type(model.history)
    found = dict(zip(zip(history.users, history.arms, strict=True), history.means, strict=True))
    assert found == {(1, 2): 2.0, (0, 1): 4.0}
    assert history.n_observations == 3


def test_options_that_nobody_names_are_those_of_the_constructor() -> None:
    assert default_options("sparse")["max_work"] == 150_000
    assert "user_rank" in default_options("features")
