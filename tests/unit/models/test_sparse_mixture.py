"""`sparse` with own and common parts: as the dense mixture, within what it states."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.algebra import own as own_rows
from coterie.algebra import push, rows
from coterie.kernels import PoolKernel
from coterie.kernels.graph import GraphKernel
from coterie.models import DenseModel, SparseModel, restore_model
from strategies import graphs

pytest.importorskip("numba")

N_ARMS = 8
FEATURES = np.random.default_rng(3).normal(size=(N_ARMS, 3))
TINY = 1e-9
PARTS = [(0.7, 0.0), (0.0, 1.3), (0.7, 1.3), (1e-3, 20.0)]


def make_pair(
    graph: ct.UserGraph,
    own: float,
    common: float,
    *,
    ridge: float = 0.1,
    normalised: bool = False,
    as_if_many: bool = False,
    **options: Any,
) -> tuple[SparseModel, DenseModel]:
    """The model, and the reference on the same mixture; as if many, there is no solve for everybody."""
    fixed: dict[str, Any] = {"laplacian_ridge": ridge, "normalised": normalised}
    kernel = GraphKernel(graph, FEATURES, own=own, common=common, **fixed)
    users = ct.Green(**fixed).matrix(graph) + own * np.eye(graph.n_users) + common
    model = SparseModel(kernel, noise_var=0.1, **options)
    model._residual.few = model._residual.few and not as_if_many
    return model, DenseModel(PoolKernel(users, FEATURES @ FEATURES.T), noise_var=0.1)


def play(model: SparseModel, reference: DenseModel, n_rounds: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    for _ in range(n_rounds):
        user, arm = int(rng.integers(model.n_users)), int(rng.integers(N_ARMS))
        reward = float(FEATURES[arm].sum() + rng.normal() * rng.choice([1.0, 5.0]))
        model.update(user, arm, reward)
        reference.update(user, arm, reward)
        yield int(rng.integers(model.n_users))


def assert_bounds_hold(model: SparseModel, reference: DenseModel, user: int) -> None:
    mean, std = model.predict(user)
    exact_mean, exact_std = reference.predict(user)
    assert np.all(np.abs(mean - exact_mean) <= model.error_bound(user) * (1 + TINY) + TINY)
    assert np.all(std >= exact_std * (1 - TINY))


@pytest.mark.parametrize("ridge", [0.01, 0.3, 10.0])
@pytest.mark.parametrize("family", ["sbm", "barabasi-albert", "empty"])
@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize(("own", "common"), PARTS)
def test_few_users_are_within_eps_of_the_dense_mixture(
    family: str, ridge: float, normalised: bool, own: float, common: float
) -> None:
    graph = ct.make_graph(family, 25, seed=1)
    model, reference = make_pair(graph, own, common, ridge=ridge, normalised=normalised)
    for user in play(model, reference, 25):
        assert_bounds_hold(model, reference, user)
        assert np.all(model.error_bound(user) <= 0.1 * reference.prior_std(user) * (1 + TINY))


@pytest.mark.parametrize("ridge", [0.01, 0.3, 10.0])
@pytest.mark.parametrize("family", ["sbm", "barabasi-albert", "empty"])
@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize(("own", "common"), PARTS)
def test_the_bounds_are_true_without_a_solve_for_everybody(
    family: str, ridge: float, normalised: bool, own: float, common: float
) -> None:
    graph = ct.make_graph(family, 25, seed=1)
    model, reference = make_pair(graph, own, common, ridge=ridge, normalised=normalised, as_if_many=True)
    for user in play(model, reference, 40):
        assert_bounds_hold(model, reference, user)


@settings(max_examples=30)
@given(
    graph=graphs(),
    ridge=st.floats(0.01, 10.0),
    normalised=st.booleans(),
    cap=st.sampled_from([1, 20, 20_000]),
    parts=st.tuples(st.floats(0, 10), st.floats(0, 10)).map(lambda both: tuple(x if x > 1e-6 else 0.0 for x in both)),
    as_if_many=st.booleans(),
)
def test_the_bounds_are_true_on_any_graph_and_with_any_cap(
    graph: ct.UserGraph, ridge: float, normalised: bool, cap: int, parts: tuple[float, float], as_if_many: bool
) -> None:
    fixed: dict[str, Any] = {"normalised": normalised, "max_work": cap, "as_if_many": as_if_many}
    model, reference = make_pair(graph, *parts, ridge=ridge, **fixed)
    for user in play(model, reference, 12):
        assert_bounds_hold(model, reference, user)


@pytest.mark.parametrize(("own", "common"), PARTS)
@pytest.mark.parametrize("normalised", [False, True])
def test_the_std_of_few_users_is_close_to_the_exact_one(own: float, common: float, normalised: bool) -> None:
    model, reference = make_pair(ct.make_graph("sbm", 40, seed=1), own, common, normalised=normalised)
    ratios = [model.predict(user)[1] / reference.predict(user)[1] for user in play(model, reference, 60)]
    assert np.mean(ratios) < 1.06
    assert np.max(ratios) < 1.6
    assert model.prior_std(3) == pytest.approx(reference.prior_std(3), rel=0.03)


@pytest.mark.parametrize(("own", "common"), PARTS)
def test_among_many_the_common_weights_follow_and_all_learn_from_all(own: float, common: float) -> None:
    model, reference = make_pair(ct.make_graph("sbm", 60, seed=1), own, common, ridge=1.0, as_if_many=True)
    users = list(play(model, reference, 150))
    gaps, ratios = [], []
    for user in users[:40]:
        mean, std = model.predict(user)
        exact_mean, exact_std = reference.predict(user)
        gaps.append(np.max(np.abs(mean - exact_mean) / reference.prior_std(user)))
        ratios.append(np.mean(std / exact_std))
    assert np.max(gaps) < 0.3
    assert np.mean(gaps) < 0.1
    assert np.mean(ratios) < 1.25


def hostile(name: str) -> ct.UserGraph:
    rng = np.random.default_rng(0)
    if name == "hub":
        return ct.UserGraph.from_edges([(0, i) for i in range(1, 60)], users=range(60))
    if name == "path":
        return ct.UserGraph.from_edges([(i, i + 1) for i in range(59)])
    pairs = {tuple(sorted(map(int, rng.integers(50, size=2)))) for _ in range(120)}  # ten users are left alone
    return ct.UserGraph.from_edges(
        [(*p, float(10 ** rng.uniform(-4, 4))) for p in pairs if p[0] < p[1]], users=range(60)
    )


@pytest.mark.parametrize("ridge", [1e-4, 1.0, 1e2])
@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("name", ["hub", "path", "weights"])
@pytest.mark.parametrize("as_if_many", [False, True])
def test_the_bounds_are_true_on_hostile_graphs(name: str, ridge: float, normalised: bool, as_if_many: bool) -> None:
    fixed: dict[str, Any] = {"normalised": normalised, "max_work": 500, "as_if_many": as_if_many}
    model, reference = make_pair(hostile(name), 0.4, 0.9, ridge=ridge, **fixed)
    for user in play(model, reference, 15):
        assert_bounds_hold(model, reference, user)


@pytest.mark.parametrize(("own", "common"), PARTS)
@pytest.mark.parametrize("as_if_many", [False, True])
def test_a_retuned_model_is_as_one_made_anew(own: float, common: float, as_if_many: bool) -> None:
    graph = ct.make_graph("sbm", 30, seed=1)
    plain, _ = make_pair(graph, 0.0, 0.0, ridge=0.5)
    model, reference = make_pair(graph, own, common, ridge=0.1, as_if_many=as_if_many)
    list(play(plain, DenseModel(PoolKernel(np.eye(30), FEATURES @ FEATURES.T)), 60))
    list(play(model, reference, 60))
    plain.retune(model.kernel, 0.1, shift=0.0)
    for user in range(30):
        assert_bounds_hold(plain, reference, user)
        (mean, _), (fresh, _) = plain.predict(user), model.predict(user)
        assert np.all(np.abs(mean - fresh) <= plain.error_bound(user) + model.error_bound(user) + TINY)
        assert np.all(plain.error_bound(user) <= 0.1 * reference.prior_std(user) * (1 + TINY))
    plain.update(3, 1, 2.0)
    reference.update(3, 1, 2.0)
    assert_bounds_hold(plain, reference, 3)


def test_a_retuned_model_takes_a_shift_and_another_noise() -> None:
    model, reference = make_pair(ct.make_graph("sbm", 20, seed=1), 0.5, 0.5)
    list(play(model, reference, 40))
    model.retune(model.kernel, 0.4, shift=1.5)
    reference.retune(reference.kernel, 0.4, shift=1.5)
    for user in range(20):
        assert_bounds_hold(model, reference, user)


@pytest.mark.parametrize(("own", "common"), PARTS)
def test_the_gain_is_a_lower_bound_and_the_evidence_close(own: float, common: float) -> None:
    model, reference = make_pair(ct.make_graph("sbm", 40, seed=1), own, common, ridge=0.5)
    list(play(model, reference, 60))
    assert 0.9 * reference.info_gain < model.info_gain <= reference.info_gain
    assert model.log_marginal_likelihood == pytest.approx(reference.log_marginal_likelihood, rel=0.05)
    model.rebuild()
    assert 0.6 * reference.info_gain < model.info_gain <= reference.info_gain
    assert model.log_marginal_likelihood == pytest.approx(reference.log_marginal_likelihood, rel=0.15)


@pytest.mark.parametrize(("own", "common"), PARTS)
@pytest.mark.parametrize("as_if_many", [False, True])
def test_nothing_drifts_and_damage_is_mended(own: float, common: float, as_if_many: bool) -> None:
    model, reference = make_pair(ct.make_graph("sbm", 20, seed=1), own, common, as_if_many=as_if_many)
    list(play(model, reference, 200))
    drift = model.check()
    assert drift.mean < 1e-8
    assert drift.variance < 1e-8
    assert not drift.healed
    model._residual.weights[4] += 1.0
    assert model.check().healed
    for user in range(20):
        assert_bounds_hold(model, reference, user)


@pytest.mark.parametrize(("own", "common"), PARTS)
def test_a_state_gives_the_same_model_to_the_bit(own: float, common: float) -> None:
    model, reference = make_pair(ct.make_graph("sbm", 30, seed=1), own, common, max_work=30)
    for user in play(model, reference, 30):
        model.predict(user)
    other = restore_model(_copied(model.state()), model.kernel)
    for each in (model, other):
        each.update(3, 1, 1.0)
    for user in range(30):
        np.testing.assert_array_equal(model.predict(user), other.predict(user))
    assert other.explain() == model.explain()


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value


def test_many_rewards_of_one_user_stay_within_the_bounds() -> None:
    model, reference = make_pair(ct.make_graph("ring", 12), 0.5, 1.0)
    rng = np.random.default_rng(0)
    rounds = [(0, int(rng.integers(N_ARMS)), float(rng.normal())) for _ in range(1000)]
    for one in rounds:
        model.learn(*one)
    reference.update_many(*zip(*rounds, strict=True))
    for user in (0, 1, 6):
        assert_bounds_hold(model, reference, user)
    assert model.check().variance < 1e-8


def test_what_is_waited_for_is_said() -> None:
    few, _ = make_pair(ct.make_graph("sbm", 20, seed=1), 0.0, 1.0)
    many, _ = make_pair(ct.make_graph("sbm", 20, seed=1), 0.0, 1.0, as_if_many=True)
    assert "What all have in common may be off" not in few.explain()
    assert "What all have in common may be off by more" in many.explain()


@pytest.mark.parametrize(("own", "common"), PARTS)
def test_what_is_called_certain_is_what_the_exact_belief_chooses(own: float, common: float) -> None:
    model, reference = make_pair(ct.make_graph("sbm", 30, seed=1), own, common, ridge=1.0, eps=0.01)
    certain = 0
    for user in play(model, reference, 60):
        found = model.read_certain(user, np.arange(N_ARMS), 1.0)
        mean, std = reference.predict(user)
        low, high = model.variance_bounds(user)
        assert np.all(low <= std**2 * (1 + TINY))
        assert np.all(high >= std**2 * (1 - TINY))
        certain += found.certain
        if found.certain:
            assert np.argmax(found.mean + found.std) == np.argmax(mean + std)
    assert certain > 0


@pytest.mark.parametrize("normalised", [False, True])
def test_all_is_compiled_when_the_model_is_made(normalised: bool) -> None:
    model, reference = make_pair(ct.make_graph("sbm", 30, seed=1), 0.5, 0.5, normalised=normalised)

    def compiled() -> list[int]:
        functions: list[Any] = [
            push.push_local,
            push.repair,
            rows.times_all,
            rows.precondition_all,
            own_rows.whole_rows,
        ]
        return [len(each.signatures) for each in functions]

    before = compiled()
    for user in play(model, reference, 20):
        model.predict(user)
    assert compiled() == before


@pytest.mark.parametrize(("own", "common"), PARTS)
def test_means_of_everybody_are_those_of_each_and_follow_rewards(own: float, common: float) -> None:
    model, reference = make_pair(ct.make_graph("sbm", 30, seed=1), own, common)
    for _ in play(model, reference, 20):
        together = model.read_means(np.arange(30), np.arange(N_ARMS))
        alone = np.array([model.peek(user, np.arange(N_ARMS))[0] for user in range(30)])
        np.testing.assert_allclose(together, alone, atol=1e-9)


def test_what_all_share_makes_stds_small_among_many() -> None:
    """The bound does not go by the largest eigenvalue of what is known of the common weights."""
    graph, rng = ct.make_graph("ring", 1200), np.random.default_rng(0)
    features = rng.normal(size=(12, 6)) * np.array(
        [1.0, 1.0, 1.0, 1.0, 1.0, 1e-3]
    )  # of the last direction nothing is known
    model = SparseModel(GraphKernel(graph, features, laplacian_ridge=1.0, own=1e-3, common=100.0), noise_var=0.1)
    users, arms = rng.integers(1200, size=4000), rng.integers(12, size=4000)
    model.update_many(users, arms, features[arms].sum(axis=1) + 0.3 * rng.normal(size=4000))
    for user in (3, 4, 700):
        graph_part = float(np.sqrt(0.45)) * np.linalg.norm(features, axis=1)  # 1 / sqrt(5) is a ring's, ridge 1
        assert (model.predict(user)[1] < 1.5 * graph_part + 0.1).all()


@pytest.mark.parametrize(("own", "common"), PARTS)
def test_a_fit_that_is_interrupted_leaves_the_bounds_as_they_were(own: float, common: float) -> None:
    def interrupt(*_: float) -> None:
        raise KeyboardInterrupt

    model, reference = make_pair(ct.make_graph("ring", 6), own, common)
    for _ in play(model, reference, 5):
        pass
    rows = model.checked_batch(list(range(6)) * 20, [0, 1, 2, 3] * 30, [1.0] * 120)
    with pytest.raises(KeyboardInterrupt):
        model.fit(rows, interrupt)
    for user in range(6):
        assert np.all(model.predict(user)[1] >= reference.predict(user)[1] * (1 - TINY))
