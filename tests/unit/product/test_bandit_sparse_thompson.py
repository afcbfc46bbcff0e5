"""Thompson sampling on `sparse`: choice probabilities within 0.02 total variation of the exact ones, as stated.

Among a hundred users or fewer at default settings but for `max_work`, beyond that with a finer accuracy: where many
neighbours and a small ridge let a block's solve run out of work, its variances stay above the exact ones.
"""

import numpy as np
import pytest

import coterie as ct
from coterie.kernels import PoolKernel
from coterie.kernels.graph_kernel import graph_kernel
from coterie.models import Model, SparseModel, make_model
from coterie.policies.rules.propensity import joint_thompson_probabilities, thompson_probabilities

pytest.importorskip("numba")

ARMS: dict[str, ct.ArmKernel] = {"linear": ct.Linear(offset=0.5), "se": ct.SquaredExponential(1.0)}
STATED: dict[int, dict[str, float]] = {60: {"max_work": 2_000_000}, 120: {"accuracy": 0.002, "max_work": 2_000_000}}
N_ARMS, SHOWN, ROUNDS, DRAWS = 12, 6, 60, 10_000


def both_models(n_users: int, family: str, arms: str, ridge: float, *, normalised: bool) -> tuple[SparseModel, Model]:
    graph = ct.make_graph(family, n_users, seed=1)
    pool = ct.ArmPool(np.random.default_rng(3).normal(size=(N_ARMS, 2)))
    kernel = graph_kernel(graph, ARMS[arms], pool, laplacian_ridge=ridge, normalised=normalised)
    users = ct.Green(laplacian_ridge=ridge, normalised=normalised).matrix(graph)
    exact = make_model(PoolKernel(users, kernel.features @ kernel.features.T), noise_var=0.1, engine="grid")
    sparse = make_model(kernel, noise_var=0.1, engine="sparse", engine_options=STATED[n_users])
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
    ("n_users", "family", "arms", "normalised"),
    [
        (60, "sbm", "linear", False),
        pytest.param(60, "erdos-renyi", "se", False, marks=pytest.mark.slow),
        (60, "barabasi-albert", "se", True),
        (120, "barabasi-albert", "se", True),
    ],
)
def test_choice_probabilities_are_within_two_hundredths(
    n_users: int, family: str, arms: str, ridge: float, normalised: bool
) -> None:
    sparse, exact = both_models(n_users, family, arms, ridge, normalised=normalised)
    rng = np.random.default_rng(0)
    taste = rng.normal(size=(n_users, N_ARMS))
    for number in range(ROUNDS):
        user, shown = int(rng.integers(n_users)), rng.choice(N_ARMS, size=SHOWN, replace=False).tolist()
        rules = [independently, jointly] if number % 20 == 19 else [independently]
        for rule in rules:
            apart = np.abs(rule(sparse, user, shown) - rule(exact, user, shown)).sum() / 2
            assert apart <= 0.02
        arm = int(rng.choice(shown))
        reward = float(taste[user, arm] + 0.3 * rng.normal())
        sparse.learn(user, arm, reward)
        exact.learn(user, arm, reward)
