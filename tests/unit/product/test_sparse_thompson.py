"""Thompson sampling on `sparse`: choice probabilities within 0.02 total variation of the exact ones, as stated."""

import numpy as np
import pytest

import coterie as ct
from coterie.kernels import PoolKernel
from coterie.kernels.graph import graph_kernel
from coterie.models import Model, SparseModel, make_model
from coterie.product.chances.propensity import joint_thompson_probabilities, thompson_probabilities

pytest.importorskip("numba")

ARMS: dict[str, ct.ArmKernel] = {"linear": ct.Linear(offset=0.5), "se": ct.SquaredExponential(1.0)}
STATED = {"eps": 0.1, "accuracy": 0.002, "max_work": 2_000_000}
N_USERS, N_ARMS, SHOWN, ROUNDS, DRAWS = 60, 12, 6, 120, 10_000


def both_models(family: str, arms: str, ridge: float, *, normalised: bool) -> tuple[SparseModel, Model]:
    graph = ct.make_graph(family, N_USERS, seed=1)
    pool = ct.ArmPool(np.random.default_rng(3).normal(size=(N_ARMS, 2)))
    kernel = graph_kernel(graph, ARMS[arms], pool, laplacian_ridge=ridge, normalised=normalised)
    users = ct.Green(laplacian_ridge=ridge, normalised=normalised).matrix(graph)
    exact = make_model(PoolKernel(users, kernel.features @ kernel.features.T), noise_var=0.1, engine="grid")
    sparse = make_model(kernel, noise_var=0.1, engine="sparse", engine_options=STATED)
    assert isinstance(sparse, SparseModel)
    return sparse, exact


def independently(model: Model, user: int, shown: list[int]) -> np.ndarray:
    """By quadrature, of the law of each candidate alone."""
    return thompson_probabilities(*model.read(user, np.array(shown)))


def jointly(model: Model, user: int, shown: list[int]) -> np.ndarray:
    """By draws of the joint law, the same normals for every model."""
    arms = np.array(shown)
    mean, covariance = model.read(user, arms)[0], model.read_covariance(user, arms)
    scale = float(model.prior_std(user).max()) ** 2
    return joint_thompson_probabilities(mean, covariance, 1.0, np.random.default_rng(7), DRAWS, scale=scale)[0]


@pytest.mark.parametrize("ridge", [0.1, 1.0])
@pytest.mark.parametrize(
    ("family", "arms", "normalised"),
    [("sbm", "linear", False), ("erdos-renyi", "se", False), ("barabasi-albert", "se", True)],
)
def test_choice_probabilities_are_within_two_hundredths(family: str, arms: str, ridge: float, normalised: bool) -> None:
    sparse, exact = both_models(family, arms, ridge, normalised=normalised)
    rng = np.random.default_rng(0)
    taste = rng.normal(size=(N_USERS, N_ARMS))
    for number in range(ROUNDS):
        user, shown = int(rng.integers(N_USERS)), rng.choice(N_ARMS, size=SHOWN, replace=False).tolist()
        rules = [independently, jointly] if number % 20 == 0 else [independently]
        for rule in rules:
            apart = np.abs(rule(sparse, user, shown) - rule(exact, user, shown)).sum() / 2
            assert apart <= 0.02
        arm = int(rng.choice(shown))
        reward = float(taste[user, arm] + 0.3 * rng.normal())
        sparse.learn(user, arm, reward)
        exact.learn(user, arm, reward)
