"""Many rewards at once on `sparse`: one solve for all users is as right as one by one, and goes on from there."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sparse_model import FAMILIES, assert_bounds_hold, hostile, make_case

import coterie as ct
from coterie.algebra import iterative
from coterie.models import DenseModel, SparseModel, restore_model
from coterie.models.history import History
from engine_cases import limited
from strategies import graphs

pytest.importorskip("numba")

Rows = list[tuple[int, int, float]]


def drawn(n_users: int, n_rows: int, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    return [(int(rng.integers(n_users)), int(rng.integers(8)), float(rng.normal())) for _ in range(n_rows)]


def collapsed(rows: Rows) -> History:
    history = History()
    for user, arm, reward in rows:
        history.add((user, arm), user, arm, reward)
    return history


def fitted(graph: ct.UserGraph, rows: Rows, **options: Any) -> tuple[SparseModel, DenseModel]:
    model, reference = make_case(graph, **options)
    model.fit(collapsed(rows))
    reference.update_many(*zip(*rows, strict=True))
    return model, reference


@pytest.mark.parametrize("ridge", [0.01, 1.0])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("normalised", [False, True])
def test_a_fit_is_the_exact_belief_within_the_bounds_and_goes_on(family: str, ridge: float, normalised: bool) -> None:
    graph = ct.make_graph(family, 25, seed=1)
    model, reference = fitted(graph, drawn(25, 200), ridge=ridge, normalised=normalised, as_if_many=True)
    assert model.n_waiting == 0
    for number, (user, arm, reward) in enumerate(drawn(25, 20, seed=1)):
        assert_bounds_hold(model, reference, number)
        model.update(user, arm, reward)
        reference.update(user, arm, reward)
        assert_bounds_hold(model, reference, user)
    assert model.n_observations == 220
    assert model.check().healed is False


@settings(max_examples=30)
@given(graph=graphs(), ridge=st.floats(0.01, 10.0), n_rows=st.integers(1, 60))
def test_a_fit_is_right_on_any_graph(graph: ct.UserGraph, ridge: float, n_rows: int) -> None:
    model, reference = fitted(graph, drawn(graph.n_users, n_rows), ridge=ridge, as_if_many=True)
    for user in range(graph.n_users):
        assert_bounds_hold(model, reference, user)


@pytest.mark.parametrize("ridge", [1e-4, 1.0, 1e2])
@pytest.mark.parametrize("name", ["hub", "path", "weights"])
def test_a_fit_is_right_on_hostile_graphs(name: str, ridge: float) -> None:
    model, reference = fitted(hostile(name), drawn(60, 300), ridge=ridge, as_if_many=True)
    for user in range(60):
        assert_bounds_hold(model, reference, user)


def test_a_fit_adds_to_what_was_learned_before() -> None:
    model, reference = make_case(ct.make_graph("sbm", 30, seed=1))
    before, after = drawn(30, 40), drawn(30, 50, seed=5)
    for each in before:
        model.update(*each)
    model.predict(3)
    model.fit(collapsed(after))
    reference.update_many(*zip(*before, *after, strict=True))
    for user in range(30):
        assert_bounds_hold(model, reference, user)
    assert model.n_observations == 90
    assert len(model.history) == len({each[:2] for each in before + after})


def test_the_gain_of_a_fit_is_a_lower_bound_and_the_evidence_is_that_of_its_gain() -> None:
    model, reference = fitted(ct.make_graph("sbm", 40, seed=1), drawn(40, 300), eps=1e-6)
    assert 0.5 * reference.info_gain < model.info_gain <= reference.info_gain
    missed = 0.5 * (reference.info_gain - model.info_gain)
    assert model.log_marginal_likelihood - missed == pytest.approx(reference.log_marginal_likelihood, abs=1e-3)


def test_no_blocks_are_made_before_they_are_needed() -> None:
    model, _ = fitted(ct.make_graph("ring", 200), drawn(200, 2000), as_if_many=True)
    assert len(model._data) == 0
    model.update(7, 1, 0.5)
    assert 0 < len(model._data) < 200


def test_an_error_on_the_way_changes_nothing() -> None:
    model, _ = make_case(ct.make_graph("sbm", 30, seed=1))
    model.update(3, 1, 1.0)
    before = model.predict(4), len(model.history), model.info_gain

    def stop(step: int, above: float) -> None:
        if step == 1:
            assert above > 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(collapsed(drawn(30, 50)), progress=stop)
    np.testing.assert_array_equal(model.predict(4), before[0])
    assert (len(model.history), model.info_gain) == before[1:]
    assert not model.check().healed


def test_blocks_beyond_their_room_are_evicted_and_made_again() -> None:
    graph = ct.make_graph("sbm", 60, seed=1)
    model, reference = make_case(graph, ridge=0.5, as_if_many=True, engine=limited(block_bytes=16 * 9 * 8))
    for number, each in enumerate(drawn(60, 150)):
        model.update(*each)
        reference.update(*each)
        assert_bounds_hold(model, reference, number % 60)
        assert len(model._data) <= 16
        assert len(model._marginals) <= 16
    assert model.check().healed is False


def test_a_fitted_state_gives_the_same_model_to_the_bit() -> None:
    model, _ = fitted(ct.make_graph("sbm", 30, seed=1), drawn(30, 100), as_if_many=True)
    model.update(2, 1, 0.5)
    state = model.state()
    other = restore_model({key: _copied(value) for key, value in state.items()}, model.kernel)
    assert isinstance(other, SparseModel)
    model._posterior.solves_globally = other._posterior.solves_globally = False
    for each in (model, other):
        each.update(3, 1, 1.0)
    for user in range(30):
        np.testing.assert_array_equal(model.predict(user), other.predict(user))


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value


def test_many_rewards_at_once_are_fitted_where_that_is_faster() -> None:
    model, reference = make_case(ct.make_graph("sbm", 30, seed=1), engine=limited(fit_rows=50))
    rows = drawn(30, 200)
    for each in (model, reference):
        each.update_many(*zip(*rows, strict=True))
        each.set_noise_var(0.3)
    assert len(model._data) == 0  # a fit makes none
    for user in range(30):
        assert_bounds_hold(model, reference, user)


def test_nothing_is_compiled_after_the_model_is_made() -> None:
    from coterie.algebra import reward_rows

    model, reference = make_case(ct.make_graph("ring", 30), ridge=1e-3)
    names = [name for name in vars(reward_rows) if hasattr(getattr(reward_rows, name), "signatures")]
    before = {name: len(getattr(reward_rows, name).signatures) for name in names}
    for user, arm, reward in drawn(30, 30):
        model.update(user, arm, reward)
        reference.update(user, arm, reward)
        model.predict(user)
    assert iterative.COMPILED
    assert {name: len(getattr(reward_rows, name).signatures) for name in names} == before


def test_a_fitted_model_that_was_loaded_goes_on_with_the_blocks_of_the_right_users() -> None:
    rows = [(0, 0, 3.0), (0, 1, -2.0), (4, 2, 5.0)]
    model, reference = fitted(ct.make_graph("ring", 6), rows, as_if_many=True)
    loaded = restore_model(model.state(), model.kernel)
    assert isinstance(loaded, SparseModel)
    for user in (4, 0, 0):
        loaded.update(user, 2, 4.0)
        reference.update(user, 2, 4.0)
    assert_bounds_hold(loaded, reference, 0)
    assert loaded.check().healed is False
