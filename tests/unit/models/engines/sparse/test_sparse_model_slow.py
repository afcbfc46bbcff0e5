"""`sparse` among more than a thousand users, be their number x ridge small or large: eps is kept once nothing waits."""

from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.contracts import Array
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models import SparseModel

pytest.importorskip("numba")

N_USERS, NOISE = 1100, 0.1
FEATURES = np.random.default_rng(3).normal(size=(12, 4)) / 2
FAMILIES: dict[str, dict[str, Any]] = {
    "barabasi-albert": {"attach": 4},
    "watts-strogatz": {"k": 6},  # a long way round
    "sbm": {},
}


def make_kernel(family: str, **settings: Any) -> GraphKernel:
    graph = ct.make_graph(family, N_USERS, seed=1, **FAMILIES[family])
    return GraphKernel(graph, FEATURES, **settings)


def user_covariance(kernel: GraphKernel) -> Array:
    """The prior of all users' weights, written out."""
    return np.asarray(np.linalg.inv(np.diag(kernel.diagonal) - kernel.weights.toarray()))


class Rewards:
    """Rewards as they came, and the exact means of all users by them."""

    def __init__(self, kernel: GraphKernel, seed: int = 0) -> None:
        self.rng, self.prior = np.random.default_rng(seed), user_covariance(kernel)
        self.users: list[int] = []
        self.arms: list[int] = []
        self.values: list[float] = []

    def teach(self, model: SparseModel, n_rewards: int) -> None:
        for _ in range(n_rewards):
            user = int(self.rng.integers(model.n_users if self.rng.random() < 0.7 else min(20, model.n_users)))
            arm = int(self.rng.integers(len(FEATURES)))
            value = float(1.0 + FEATURES[arm].sum() * (1 if user % 2 else 2) + self.rng.normal())
            model.update(user, arm, value)
            self.users.append(user)
            self.arms.append(arm)
            self.values.append(value)

    def means(self) -> Array:
        rows, between = FEATURES[self.arms], self.prior[:, self.users]
        gram = between[self.users] * (rows @ rows.T) + NOISE * np.eye(len(rows))
        return np.asarray(between @ (rows * np.linalg.solve(gram, self.values)[:, None]) @ FEATURES.T)


def assert_eps_is_kept(model: SparseModel, rewards: Rewards) -> None:
    """The bound is true; once nothing waits, within eps but for the hundredth of users with the highest degrees."""
    everybody, arms = np.arange(model.n_users), np.arange(len(FEATURES))
    off = np.abs(model.read_means(everybody, arms) - rewards.means())
    stds = np.sqrt(np.outer(rewards.prior.diagonal(), model.kernel.arm_diag(arms)))
    bounds = np.array([model.error_bound(user) for user in range(model.n_users)])
    assert np.all(off <= bounds * (1 + 1e-9))
    assert model.n_waiting == 0 or not model._posterior.solves_globally
    assert model.n_waiting > 0 or np.mean(np.all(bounds <= model.eps * stds * (1 + 1e-9), axis=1)) >= 0.99


@pytest.mark.parametrize("ridge", [0.02, 0.5, 2.0])
@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_mean_is_within_eps_and_the_bound_says_so(family: str, ridge: float, normalised: bool) -> None:
    kernel = make_kernel(family, laplacian_ridge=ridge, normalised=normalised)
    model, rewards = SparseModel(kernel, noise_var=NOISE), Rewards(kernel)
    assert model._posterior.solves_globally == (ridge < 0.9)
    for n_rewards in (1, 60, 150):
        rewards.teach(model, n_rewards)
        assert_eps_is_kept(model, rewards)


@pytest.mark.parametrize("normalised", [False, True])
def test_a_smaller_eps_is_kept_too_and_many_rewards_at_once_are_within_it(normalised: bool) -> None:
    kernel = make_kernel("watts-strogatz", laplacian_ridge=0.1, normalised=normalised)
    model, rewards = SparseModel(kernel, noise_var=NOISE, eps=0.01), Rewards(kernel)
    rewards.teach(model, 80)
    assert_eps_is_kept(model, rewards)
    model.fit(model.history)
    rewards.users, rewards.arms, rewards.values = 2 * rewards.users, 2 * rewards.arms, 2 * rewards.values
    assert_eps_is_kept(model, rewards)
    rewards.teach(model, 20)
    assert_eps_is_kept(model, rewards)


@pytest.mark.parametrize("ridge", [0.1, 3.0])
@pytest.mark.parametrize("normalised", [False, True])
def test_eps_is_kept_when_users_and_edges_join(ridge: float, normalised: bool) -> None:
    graph = ct.make_graph("barabasi-albert", 990, attach=4, seed=1)
    fixed: dict[str, Any] = {"laplacian_ridge": ridge, "normalised": normalised}
    kernel = GraphKernel(graph, FEATURES, **fixed)
    model, rewards = SparseModel(kernel, noise_var=NOISE), Rewards(kernel)
    rewards.teach(model, 20)
    assert model._posterior.solves_globally
    grown = graph.add_users({f"new {each}": {each: 1.0, 500 + each: 2.0} for each in range(20)})[0]
    difference = grown.changes_since(graph)
    assert difference is not None
    model.regraph(difference)
    assert model._posterior.solves_globally == (ridge < 0.9)
    rewards.prior = user_covariance(GraphKernel(grown, FEATURES, **fixed))
    assert_eps_is_kept(model, rewards)
    rewards.teach(model, 20)
    assert_eps_is_kept(model, rewards)


def test_the_residual_is_computed_anew_before_rounding_could_matter() -> None:
    kernel = make_kernel("barabasi-albert", laplacian_ridge=0.1)
    model, rewards = SparseModel(kernel, noise_var=NOISE), Rewards(kernel)
    rewards.teach(model, 10)
    model._posterior._rounding = 0.1 * model._posterior.threshold
    rewards.teach(model, 1)
    assert model._posterior.rounding < 1e-4 * model._posterior.threshold
    assert_eps_is_kept(model, rewards)
