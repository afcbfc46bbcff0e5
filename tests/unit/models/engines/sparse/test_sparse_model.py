"""`sparse`: its error bound is true at every step, its std never too small, and it keeps the contract of a model."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.algebra import iterative
from coterie.errors import KernelError, ParameterError
from coterie.kernels import PoolKernel
from coterie.kernels.graph_kernel import GraphKernel, graph_kernel
from coterie.models import DenseModel, SparseModel, make_model, restore_model
from engine_cases import limited
from strategies import graphs

pytest.importorskip("numba")

FAMILIES = ("erdos-renyi", "sbm", "barabasi-albert", "watts-strogatz", "ring", "rbf", "empty")
ARMS: dict[str, ct.ArmKernel] = {"linear": ct.Linear(offset=0.5), "se": ct.SquaredExponential(1.0)}
TINY = 1e-9


def make_case(
    graph: ct.UserGraph,
    *,
    arms: str = "linear",
    ridge: float = 0.1,
    normalised: bool = False,
    as_if_many: bool = False,
    engine: type[SparseModel] = SparseModel,
    **options: Any,
) -> tuple[SparseModel, DenseModel]:
    """The model, and the reference on the same prior; as if many, users are pushed to only, however few they are."""
    pool = ct.ArmPool(np.random.default_rng(3).normal(size=(8, 2)))
    kernel = graph_kernel(graph, ARMS[arms], pool, laplacian_ridge=ridge, normalised=normalised)
    users = ct.Green(laplacian_ridge=ridge, normalised=normalised).matrix(graph)
    reference = DenseModel(PoolKernel(users, kernel.features @ kernel.features.T), noise_var=0.1)
    model = engine(kernel, noise_var=0.1, **options)
    model._posterior.solves_globally = model._posterior.solves_globally and not as_if_many
    return model, reference


def play(model: SparseModel, reference: DenseModel, n_rounds: int, seed: int = 0) -> Any:
    """Feeds both the same rewards; yields after each."""
    rng = np.random.default_rng(seed)
    for _ in range(n_rounds):
        user, arm = int(rng.integers(model.n_users)), int(rng.integers(8))
        reward = float(rng.normal() * rng.choice([1.0, 5.0]))
        model.update(user, arm, reward)
        reference.update(user, arm, reward)
        yield int(rng.integers(model.n_users))


def assert_bounds_hold(model: SparseModel, reference: DenseModel, user: int) -> None:
    mean, std = model.predict(user)
    exact_mean, exact_std = reference.predict(user)
    assert np.all(np.abs(mean - exact_mean) <= model.error_bound(user) * (1 + TINY) + TINY)
    assert np.all(std >= exact_std * (1 - TINY))


@pytest.mark.parametrize("ridge", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("arms", "normalised"), [("linear", False), ("se", False), ("linear", True)])
@pytest.mark.parametrize("as_if_many", [False, True])
def test_the_bounds_are_true_at_every_step(
    family: str, ridge: float, arms: str, normalised: bool, as_if_many: bool
) -> None:
    graph = ct.make_graph(family, 25, seed=1)
    model, reference = make_case(graph, arms=arms, ridge=ridge, normalised=normalised, as_if_many=as_if_many)
    for user in play(model, reference, 30):
        assert_bounds_hold(model, reference, user)


@settings(max_examples=30)
@given(graph=graphs(), ridge=st.floats(0.01, 10.0), normalised=st.booleans(), cap=st.sampled_from([1, 20, 20_000]))
def test_the_bounds_are_true_on_any_graph_and_with_any_cap(
    graph: ct.UserGraph, ridge: float, normalised: bool, cap: int
) -> None:
    model, reference = make_case(graph, ridge=ridge, normalised=normalised, max_work=cap, as_if_many=True)
    for user in play(model, reference, 12):
        assert_bounds_hold(model, reference, user)


@pytest.mark.parametrize("ridge", [1e-3, 0.3])
@pytest.mark.parametrize("normalised", [False, True])
def test_among_few_users_the_error_is_at_most_eps_of_the_prior_std(ridge: float, normalised: bool) -> None:
    graph = ct.make_graph("sbm", 40, seed=1)
    model, reference = make_case(graph, ridge=ridge, normalised=normalised, eps=0.02)
    for user in play(model, reference, 40):
        assert model.n_waiting == 0
        assert np.all(model.error_bound(user) <= 0.02 * reference.prior_std(user) * (1 + TINY))


@pytest.mark.parametrize("ridge", [0.1, 1.0])
def test_the_std_is_close_to_the_exact_one(ridge: float) -> None:
    model, reference = make_case(ct.make_graph("erdos-renyi", 40, seed=1), ridge=ridge)
    ratios = [np.mean(model.predict(user)[1] / reference.predict(user)[1]) for user in play(model, reference, 80)]
    assert np.mean(ratios) < 1.1
    assert model.prior_std(3) == pytest.approx(reference.prior_std(3), rel=0.03)


def test_a_hub_does_not_set_the_threshold_for_all() -> None:
    edges = [(0, i) for i in range(1, 300)] + [(i, i + 1) for i in range(1, 299)]
    model, _ = make_case(ct.UserGraph.from_edges(edges), ridge=0.5)
    relative = np.array([(model.error_bound(user) / model.prior_std(user)).max() for user in range(0, 300, 10)])
    assert relative[0] > 0.1  # the hub's own
    assert np.all(relative[1:] <= 0.1)
    assert np.all(model.error_bound(0) <= 1.5 * model.error_bound(5))


def test_a_smaller_eps_comes_closer_and_costs_more() -> None:
    graph = ct.make_graph("sbm", 60, seed=1)
    gaps = []
    for eps in (1.0, 1e-6):
        model, reference = make_case(graph, ridge=0.5, eps=eps)
        users = list(play(model, reference, 40))
        gaps.append(max(np.abs(model.predict(user)[0] - reference.predict(user)[0]).max() for user in users))
    assert gaps[1] < 1e-4 * gaps[0]


def test_what_is_over_the_cap_waits_and_the_bound_says_so() -> None:
    graph = ct.make_graph("sbm", 60, seed=1)
    model, reference = make_case(graph, max_work=1, as_if_many=True)
    settled = make_case(graph)[0].error_bound(0).max()
    for user in play(model, reference, 30):
        assert_bounds_hold(model, reference, user)
    assert model.n_waiting > 0
    assert model.error_bound(0).max() > settled
    assert f"{model.n_waiting} users whose residual waits" in model.describe()


def test_it_says_what_the_features_miss() -> None:
    pool = ct.ArmPool(np.random.default_rng(3).normal(size=(40, 5)))
    kernel = graph_kernel(ct.make_graph("ring", 5), ct.SquaredExponential(1.0), pool, max_features=8)
    assert kernel.feature_error > 0.1
    assert f"8 features miss {kernel.feature_error:.2g} of" in SparseModel(kernel).describe()


def test_the_gain_is_a_lower_bound_and_close() -> None:
    model, reference = make_case(ct.make_graph("sbm", 40, seed=1), ridge=0.5)
    list(play(model, reference, 60))
    assert 0.95 * reference.info_gain < model.info_gain <= reference.info_gain
    assert model.log_marginal_likelihood == pytest.approx(reference.log_marginal_likelihood, rel=0.05)


def test_the_joint_covariance_is_that_of_the_std() -> None:
    model, reference = make_case(ct.make_graph("ring", 10))
    list(play(model, reference, 20))
    std = model.predict(4)[1]
    np.testing.assert_allclose(np.sqrt(model.covariance(4).diagonal()), std)


def test_a_look_leaves_no_trace() -> None:
    graph = ct.make_graph("ring", 10)
    looked, left = make_case(graph)[0], make_case(graph)[0]
    for model in (looked, left):
        model.update(0, 1, 2.0)
    looked.peek(3, np.arange(8))
    for model in (looked, left):
        model.update(1, 2, 1.0)
    np.testing.assert_array_equal(looked.predict(3), left.predict(3))


def test_many_rewards_at_once_give_the_same_belief_within_the_bounds() -> None:
    graph = ct.make_graph("sbm", 30, seed=1)
    model, reference = make_case(graph, ridge=0.5)
    users, arms, rewards = [0, 3, 3, 7, 3], [1, 2, 2, 0, 2], [1.0, -1.0, 2.0, 0.5, 3.0]
    model.update_many(users, arms, rewards)
    reference.update_many(users, arms, rewards)
    for user in range(30):
        assert_bounds_hold(model, reference, user)
    model.set_noise_var(0.5)
    reference.set_noise_var(0.5)
    for user in range(30):
        assert_bounds_hold(model, reference, user)


def test_the_kept_residual_does_not_drift() -> None:
    model, reference = make_case(ct.make_graph("sbm", 20, seed=1))
    list(play(model, reference, 300))
    drift = model.check()
    assert drift.mean < 1e-8
    assert drift.variance < 1e-8
    assert not drift.healed


def test_a_damaged_residual_is_found_and_mended() -> None:
    model, reference = make_case(ct.make_graph("sbm", 20, seed=1))
    list(play(model, reference, 30))
    model._posterior.weights[4] += 1.0
    assert model.check().healed
    for user in range(20):
        assert_bounds_hold(model, reference, user)


def test_a_state_gives_the_same_model_to_the_bit() -> None:
    model, reference = make_case(ct.make_graph("sbm", 30, seed=1), max_work=30)
    for user in play(model, reference, 30):
        model.predict(user)
    copied = {key: _copied(value) for key, value in model.state().items()}
    other = restore_model(copied, model.kernel)
    for each in (model, other):
        each.update(3, 1, 1.0)
    for user in range(30):
        np.testing.assert_array_equal(model.predict(user), other.predict(user))
    assert other.describe() == model.describe()


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value


def test_a_policy_chooses_as_the_exact_one_does() -> None:
    graph = ct.make_graph("sbm", 40, seed=2)
    arms = ct.ArmPool(np.random.default_rng(0).normal(size=(12, 3)))
    both = [
        ct.make_policy("lk-gp-ucb", graph=graph, arms=arms, arm_kernel=ct.Linear(), engine=engine, noise_var=0.1)
        for engine in ("sparse", "exact")
    ]
    rng, same = np.random.default_rng(1), 0
    for _ in range(60):
        user, reward = int(rng.integers(40)), float(rng.normal())
        choices = [policy.select(user) for policy in both]
        same += choices[0].arm == choices[1].arm
        for policy in both:
            policy.update(user, choices[1].arm, reward)
    assert same >= 54


def test_a_retuned_model_takes_another_kernel_noise_and_shift() -> None:
    graph = ct.make_graph("sbm", 20, seed=1)
    model, reference = make_case(graph)
    list(play(model, reference, 40))
    model.retune(make_case(graph, ridge=0.5)[0].kernel, 0.4, shift=1.5)
    reference.retune(make_case(graph, ridge=0.5)[1].kernel, 0.4, shift=1.5)
    for user in range(20):
        assert_bounds_hold(model, reference, user)


def test_means_of_everybody_are_those_of_each_and_follow_rewards() -> None:
    model, reference = make_case(ct.make_graph("sbm", 30, seed=1))
    for _ in play(model, reference, 20):
        together = model.read_means(np.arange(30), np.arange(8))
        alone = np.array([model.peek(user, np.arange(8))[0] for user in range(30)])
        np.testing.assert_allclose(together, alone, atol=1e-9)


def test_all_is_compiled_when_the_model_is_made() -> None:
    names = ("push_residuals", "apply_solution", "repair", "shrink_marginals")
    model, reference = make_case(ct.make_graph("sbm", 30, seed=1))

    def compiled() -> list[int]:
        return [len(getattr(iterative, name).signatures) for name in names]

    before = compiled()
    for user in play(model, reference, 40):
        model.predict(user)
    assert min(before) > 0
    assert compiled() == before


def test_the_covariance_of_all_users_is_never_made() -> None:
    kernel = GraphKernel(ct.make_graph("ring", 10), np.eye(2))
    with pytest.raises(KernelError, match="never writes it out"):
        _ = kernel.user_cov
    with pytest.raises(KernelError, match="graph stands for it"):
        SparseModel(kernel).set_user_cov(np.eye(10))


def test_other_kernels_are_refused() -> None:
    with pytest.raises(ParameterError, match="needs the graph itself"):
        make_model(PoolKernel(np.eye(2), np.eye(2)), engine="sparse")
    graph, arms = ct.make_graph("ring", 5), ct.ArmPool(np.eye(2))
    with pytest.raises(ParameterError, match="Green of power 1"):
        ct.make_policy("lk-gp-ucb", graph=graph, arms=arms, user_kernel=ct.Heat(), engine="sparse")


@pytest.mark.parametrize("name", ["eps", "accuracy", "max_work"])
def test_an_option_out_of_range_is_refused(name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        make_model(GraphKernel(ct.make_graph("ring", 5), np.eye(2)), engine="sparse", engine_options={name: 0})


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
def test_the_bounds_are_true_on_hostile_graphs(name: str, ridge: float, normalised: bool) -> None:
    model, reference = make_case(hostile(name), ridge=ridge, normalised=normalised, max_work=500, as_if_many=True)
    for user in play(model, reference, 25):
        assert_bounds_hold(model, reference, user)


@pytest.mark.parametrize("size", [1e6, 1e12, 1e18])
def test_the_bound_allows_for_rounding_of_huge_rewards(size: float) -> None:
    model, reference = make_case(ct.make_graph("sbm", 20, seed=1))
    for reward in (size, -size, 1.0, size / 3):
        model.update(3, 1, reward)
        model.update(5, 2, -reward)
        reference.update_many([3, 5], [1, 2], [reward, -reward])
    gap = np.abs(model.predict(4)[0] - reference.predict(4)[0])
    assert np.all(gap <= model.error_bound(4) + 1e-15 * size)


def test_many_rewards_of_one_user_stay_within_the_bounds() -> None:
    model, reference = make_case(ct.make_graph("ring", 12))
    rng = np.random.default_rng(0)
    rounds = [(0, int(rng.integers(8)), float(rng.normal())) for _ in range(2000)]
    for one in rounds:
        model.learn(*one)
    reference.update_many(*zip(*rounds, strict=True))
    for user in (0, 1, 6):
        assert_bounds_hold(model, reference, user)
    assert model.check().variance < 1e-8


def test_a_hub_with_more_neighbours_than_there_is_room_for_still_has_a_bound() -> None:
    graph = ct.UserGraph.from_edges([(0, i) for i in range(1, 400)], users=range(400))
    model, reference = make_case(graph, engine=limited(solve_bytes=1.0))
    users = list(range(400))
    model.update_many(users, [1] * 400, [1.0] * 400)
    reference.update_many(users, [1] * 400, [1.0] * 400)
    assert_bounds_hold(model, reference, 0)
    assert_bounds_hold(model, reference, 1)
