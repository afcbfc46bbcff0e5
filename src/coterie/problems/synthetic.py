"""The paper's synthetic worlds: linear rewards smoothed along the graph, GP draws, representer draws."""

from dataclasses import dataclass

import numpy as np

from coterie.contracts import Array
from coterie.errors import ParameterError
from coterie.graphs import UserGraph
from coterie.kernels import ArmKernel, ArmPool, UserKernel, pool_kernel
from coterie.problems.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """How hard a task is: the pool, what is shown of it, the features and the rounds."""

    n_arms: int
    n_candidates: int
    dimension: int
    horizon: int


# The hard level has 5,000 rounds in the paper's text and 3,000 in its appendix; we take the text's.
LEVELS = {
    "easy": Level(n_arms=10, n_candidates=5, dimension=5, horizon=1000),
    "medium": Level(n_arms=20, n_candidates=5, dimension=10, horizon=3000),
    "hard": Level(n_arms=50, n_candidates=5, dimension=20, horizon=5000),
}


def sphere_pool(n_arms: int, dimension: int, *, seed: int | np.random.Generator) -> ArmPool:
    """Returns arms with normal features scaled to length 1, as in the paper.

    Examples:
        >>> pool = sphere_pool(4, 3, seed=0)
        >>> np.linalg.norm(pool.features, axis=1).round(12)
        array([1., 1., 1., 1.])
    """
    features = np.random.default_rng(seed).standard_normal((n_arms, dimension))
    return ArmPool(features / np.linalg.norm(features, axis=1, keepdims=True))


def linear_gob_world(
    *, graph: UserGraph, arms: ArmPool, homophily: float = 1.0, noise_std: float, seed: int | np.random.Generator
) -> World:
    """Returns a world of linear rewards x . theta_u with Theta = (I + homophily L)^-1 Theta_0, Theta_0 normal.

    Examples:
        >>> world = linear_gob_world(graph=UserGraph.from_edges([("ana", "bo")]), arms=ArmPool([[1.0]]),
        ...                          noise_std=0.1, seed=0)
        >>> world.graph.n_users
        2
    """
    if not (np.isfinite(homophily) and homophily >= 0):
        raise ParameterError(f"homophily is {homophily!r}", "it is a finite number >= 0", "The paper uses 1")
    start = np.random.default_rng(seed).standard_normal((graph.n_users, arms.dimension))
    smoothing = np.eye(graph.n_users) + homophily * graph.laplacian().toarray()
    weights = np.linalg.solve(smoothing, start)
    return World(graph=graph, arms=arms, truth=weights @ arms.features.T, noise_std=noise_std)


def gp_world(
    *,
    graph: UserGraph,
    arms: ArmPool,
    user_kernel: UserKernel,
    arm_kernel: ArmKernel,
    noise_std: float,
    seed: int | np.random.Generator,
    unit_spread: bool = False,
) -> World:
    """Returns a world whose truth is one draw of the Gaussian process on all pairs.

    Args:
        graph: The users.
        arms: The pool.
        user_kernel: The world's own, which need not be the learner's; Green(power=0.5) in the paper's figures.
        arm_kernel: The world's own.
        noise_std: Of the rewards.
        seed: Fixes the draw.
        unit_spread: Whether to scale the truth to standard deviation 1.

    Examples:
        >>> from coterie.kernels import Green, SquaredExponential
        >>> world = gp_world(graph=UserGraph.from_edges([("ana", "bo")]), arms=ArmPool([[0.0], [1.0]]),
        ...                  user_kernel=Green(), arm_kernel=SquaredExponential(1.0), noise_std=0.1, seed=0)
        >>> world.graph.n_users
        2
    """
    kernel = pool_kernel(user_kernel.matrix(graph), arm_kernel, arms)
    normal = np.random.default_rng(seed).standard_normal((kernel.n_users, kernel.n_arms))
    truth = symmetric_root(kernel.user_cov) @ normal @ symmetric_root(kernel.arm_cov)
    spread = float(truth.std())
    if unit_spread and spread > 0:
        truth = truth / spread
    return World(graph=graph, arms=arms, truth=truth, noise_std=noise_std)


def representer_world(
    *,
    graph: UserGraph,
    arms: ArmPool,
    user_kernel: UserKernel,
    arm_kernel: ArmKernel,
    noise_std: float,
    seed: int | np.random.Generator,
) -> World:
    """Returns a world with truth f(x, u) = sum over (x', u') of a(x', u') K((x, u), (x', u')), a normal.

    Examples:
        >>> from coterie.kernels import Green, SquaredExponential
        >>> world = representer_world(graph=UserGraph.from_edges([("ana", "bo")]), arms=ArmPool([[0.0], [1.0]]),
        ...                           user_kernel=Green(), arm_kernel=SquaredExponential(1.0), noise_std=0.1, seed=0)
        >>> world.graph.n_users
        2
    """
    kernel = pool_kernel(user_kernel.matrix(graph), arm_kernel, arms)
    normal = np.random.default_rng(seed).standard_normal((kernel.n_users, kernel.n_arms))
    return World(graph=graph, arms=arms, truth=kernel.user_cov @ normal @ kernel.arm_cov, noise_std=noise_std)


def symmetric_root(matrix: Array) -> Array:
    """Returns the symmetric square root of a positive semi-definite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
