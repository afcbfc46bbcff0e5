"""What `sparse` is measured against: the blocked graph-linear update, its plain form, and a global solve each round."""

from time import perf_counter

import numpy as np

from benchmarks.large.world import N_ARMS, NOISE_VAR, WIDTH, World, play
from coterie.contracts import Array, Index
from coterie.kernels import Green, PoolKernel
from coterie.models import History, LinearModel, Model
from coterie.models.engines.sparse.solves import PosteriorPrecision

BLOCK = 128  # rounds of `linear`, so that its pending updates are paid for


class RankOne:
    """The same belief as a full rank-one update of the inverse design matrix in NumPy."""

    def __init__(self, world: World, ridge: float) -> None:
        self._features = world.features
        self.cov = np.kron(Green(laplacian_ridge=ridge).matrix(world.graph), np.eye(WIDTH))
        self.weights = np.zeros(len(self.cov))

    def round(self, user: int, arms: Index, rewards: Array) -> None:
        place, shown = slice(user * WIDTH, (user + 1) * WIDTH), self._features[arms]
        variance = np.einsum("ij,ij->i", shown @ self.cov[place, place], shown)
        best = int(np.argmax(shown @ self.weights[place] + np.sqrt(np.maximum(variance, 0.0))))
        column = self.cov[:, place] @ shown[best]
        scale = NOISE_VAR + shown[best] @ column[place]
        self.weights += column * ((rewards[best] - shown[best] @ self.weights[place]) / scale)
        self.cov -= np.outer(column, column / scale)


def against_linear(seed: int, *, rounds: int, plain_rounds: int) -> dict[str, float]:
    """Milliseconds of a round, decision and reward, at n = 300, rho = 1, eps = 0.1, on three forms of one belief."""
    world = World("communities", 300, seed=seed, n_active=300)
    ours = _round(world, world.model(1.0, 0.1), rounds)
    pool = PoolKernel(Green(laplacian_ridge=1.0).matrix(world.graph), world.features @ world.features.T)
    linear = _round(world, LinearModel(pool, noise_var=NOISE_VAR), min(rounds, BLOCK))
    plain = RankOne(world, 1.0)
    start = perf_counter()
    for user, arms, rewards in world.rounds(plain_rounds):
        plain.round(user, arms, rewards)
    return {"ours": ours, "linear": linear, "rank_one": 1e3 * (perf_counter() - start) / plain_rounds}


def _round(world: World, model: Model, rounds: int) -> float:
    times = play(world, model, BLOCK, rounds)
    return 1e3 * float(np.mean(times.decide) + np.mean(times.reward))


def against_global(seed: int, *, ridge: float, rounds: int, solves: int = 3) -> dict[str, float]:
    """Milliseconds of a reward at n = 10^4, eps = 0.1, and of conjugate gradients from zero to the same threshold."""
    world = World("communities", 10_000, seed=seed)
    model = world.model(ridge, 0.1)
    ours = play(world, model, rounds // 5, rounds).reward
    precision = PosteriorPrecision(model.kernel, model._data)
    right = right_side(model.history, world)
    start = perf_counter()
    for _ in range(solves):
        precision.solve(right.copy(), model._posterior.threshold)
    return {"ours": 1e3 * float(np.mean(ours)), "cg": 1e3 * (perf_counter() - start) / solves}


def right_side(history: History, world: World) -> Array:
    """The sum of reward x features / noise of each user."""
    out = np.zeros((world.n_users, WIDTH))
    amounts = history.count_array() * history.mean_array() / NOISE_VAR
    np.add.at(out, history.user_array(), amounts[:, None] * world.features[history.arm_array() % N_ARMS])
    return out
