"""Synthetic worlds: linear rewards smoothed along the graph, GP draws, representer draws, and what bends them."""

from collections.abc import Callable

import numpy as np

from coterie.contracts import Array
from coterie.errors import ParameterError
from coterie.graphs import UserGraph, make_graph
from coterie.kernels import ArmKernel, ArmPool, Green, SquaredExponential, UserKernel
from coterie.problems.large import smooth_draw, smoothed
from coterie.problems.random import random_world
from coterie.problems.rounds import Round, stream
from coterie.problems.settings import MOST_DENSE, WorldSettings, check_mirrored
from coterie.problems.world import World


def draw_world(settings: WorldSettings, seed: np.random.SeedSequence) -> World:
    """Returns the world of a trial; graph, pool, truth and shown graph have streams of their own.

    O(n_users^3) for up to 2,000 users; beyond, solves of O(edges) a step, and the table of users x arms.

    Examples:
        >>> world = draw_world(WorldSettings(n_users=6, n_arms=8), np.random.SeedSequence(0))
        >>> world.graph.n_users, world.arms.ids[-1]
        (6, 'arm-07')
    """
    if settings.kind == "random":
        return _numbered_world(settings, stream(seed, "shown-graph"))
    graph = drawn_graph(settings, stream(seed, "graph"))
    arms = sphere_pool(settings.n_arms, settings.dimension, seed=stream(seed, "pool"))
    rng = stream(seed, "truth")
    return World(
        graph=shown_graph(settings, graph, stream(seed, "shown-graph")),
        arms=arms,
        truth=draw_truth(settings, graph, arms, rng),
        noise_std=settings.noise_std,
        noise=settings.noise,
        rewards=settings.rewards,
        later=draw_truth(settings, graph, arms, rng) if settings.drift else None,
        turn=np.pi / 2 * settings.drift / settings.horizon,
    )


def drawn_graph(settings: WorldSettings, rng: np.random.Generator) -> UserGraph:
    """Returns the graph that a truth is drawn on."""
    family, n_users = settings.graph, settings.n_users
    return make_graph(family, n_users, seed=rng, connected=settings.connected, **settings.graph_options)


def _numbered_world(settings: WorldSettings, rng: np.random.Generator) -> World:
    """Returns the world of a number; only the graph that learners see may differ from trial to trial."""
    drawn = random_world(settings.number)
    return World(
        graph=shown_graph(settings, drawn.graph, rng),
        arms=drawn.arms,
        truth=drawn.truth,
        noise_std=drawn.noise_std,
        rewards=settings.rewards,
        chances=drawn.chances,
    )


def draw_rounds(settings: WorldSettings, world: World, seed: np.random.SeedSequence) -> list[Round]:
    """Returns the rounds of a trial, the same for every policy; users, candidates and noise have streams of their own.

    Horizon, candidates and late users are the settings'; users, arms and noise are the world's.

    Examples:
        >>> settings, seed = WorldSettings(n_users=6, horizon=4), np.random.SeedSequence(0)
        >>> [len(shown.candidates) for shown in draw_rounds(settings, draw_world(settings, seed), seed)]
        [5, 5, 5, 5]
    """
    rounds = world.rounds(
        settings.horizon,
        n_candidates=settings.n_candidates,
        seed=seed,
        late_share=settings.late_share,
        late_after=settings.late_after,
    )
    return list(rounds)


def sphere_pool(n_arms: int, dimension: int, *, seed: int | np.random.Generator) -> ArmPool:
    """Returns arms with normal features scaled to length 1, as in the paper.

    Examples:
        >>> pool = sphere_pool(4, 3, seed=0)
        >>> np.linalg.norm(pool.features, axis=1).round(12)
        array([1., 1., 1., 1.])
        >>> pool.ids
        ('arm-00', 'arm-01', 'arm-02', 'arm-03')
    """
    features = np.random.default_rng(seed).standard_normal((n_arms, dimension))
    digits = max(2, len(str(n_arms - 1)))
    ids = [f"arm-{i:0{digits}}" for i in range(n_arms)]
    return ArmPool(features / np.linalg.norm(features, axis=1, keepdims=True), ids=ids)


def shown_graph(settings: WorldSettings, graph: UserGraph, rng: np.random.Generator) -> UserGraph:
    """Returns the graph that learners see: the true one, or one that misleads them."""
    match settings.shown_graph:
        case "true":
            return graph
        case "permuted":
            return graph.permuted(rng)
        case "rewired":
            return graph.rewired(settings.rewired_share, rng, least=0.5)


def draw_truth(settings: WorldSettings, graph: UserGraph, arms: ArmPool, rng: np.random.Generator) -> Array:
    """Returns one draw of the table of expected rewards, before it drifts or becomes a probability.

    Up to 2,000 users it comes from a matrix over them, O(n_users^3); beyond it has the same law, without one.
    """
    if graph.n_users > MOST_DENSE:
        truth = large_truth(settings, graph, arms, rng)
    elif settings.kind == "linear-gob":
        truth = linear_truth(_filtered(settings, graph, lambda x: 1 / (1 + settings.homophily * x)), arms, rng)
    else:
        kernel = Green(laplacian_ridge=settings.laplacian_ridge, power=settings.power)
        user_cov = _filtered(settings, graph, kernel.transfer)
        arm_cov = SquaredExponential(settings.lengthscale).gram(arms.features)
        draw = gp_truth if settings.kind == "gp-draw" else representer_truth
        truth = draw(user_cov, arm_cov, rng)
    return spread_to_one(truth) if settings.unit_spread else truth


def large_truth(settings: WorldSettings, graph: UserGraph, arms: ArmPool, rng: np.random.Generator) -> Array:
    """Returns one draw of the table of expected rewards without a matrix over users, for a graph of any size.

    Normal coefficients smoothed by A^-p have covariance A^-2p: a representer draw is smooth by twice the power.

    Examples:
        >>> settings, graph = WorldSettings(kind="linear-gob"), UserGraph.from_edges([("ana", "bo")])
        >>> large_truth(settings, graph, sphere_pool(3, 10, seed=0), np.random.default_rng(0)).shape
        (2, 3)
    """
    check_mirrored(graph.n_users, heterophily=settings.heterophily)
    if settings.kind == "linear-gob":
        start = rng.standard_normal((graph.n_users, arms.dimension))
        return np.asarray(smoothed(graph, settings.homophily, start) @ arms.features.T)
    drawn = settings.kind == "gp-draw"
    kernel = Green(laplacian_ridge=settings.laplacian_ridge, power=settings.power * (1 if drawn else 2))
    arm_cov = SquaredExponential(settings.lengthscale).gram(arms.features)
    mixing = _symmetric_root(arm_cov) if drawn else arm_cov
    return np.asarray(smooth_draw(graph, kernel, len(arms), rng) @ mixing)


def _filtered(settings: WorldSettings, graph: UserGraph, transfer: Callable[[Array], Array]) -> Array:
    """Returns sum_i transfer(x_i) q_i q_i' over the eigenpairs of L; with heterophily, of (largest x) I - L.

    The mirrored Laplacian keeps the range of the frequencies and turns their order round: what neighbours share
    under the one, they differ in under the other.
    """
    spectrum = graph.spectrum()
    values = spectrum.values.max() - spectrum.values if settings.heterophily else spectrum.values
    return np.asarray((spectrum.vectors * transfer(values)) @ spectrum.vectors.T)


def linear_truth(smoothing: Array, arms: ArmPool, rng: np.random.Generator) -> Array:
    """Returns x . theta_u for every pair, Theta = smoothing Theta_0 with Theta_0 normal; (I + homophily L)^-1 smooths.

    Examples:
        >>> linear_truth(np.eye(2), ArmPool([[1.0], [2.0]]), np.random.default_rng(0)).shape
        (2, 2)
    """
    start = rng.standard_normal((len(smoothing), arms.dimension))
    return np.asarray(smoothing @ start @ arms.features.T)


def gp_truth(user_cov: Array, arm_cov: Array, rng: np.random.Generator) -> Array:
    """Returns one draw of the Gaussian process on all pairs, of covariance user_cov (x) arm_cov.

    Examples:
        >>> gp_truth(np.zeros((2, 2)), np.eye(3), np.random.default_rng(0)).any()
        np.False_
    """
    normal = rng.standard_normal((len(user_cov), len(arm_cov)))
    return np.asarray(_symmetric_root(user_cov) @ normal @ _symmetric_root(arm_cov))


def representer_truth(user_cov: Array, arm_cov: Array, rng: np.random.Generator) -> Array:
    """Returns f(x, u) = sum over (x', u') of a(x', u') K((x, u), (x', u')), the coefficients a normal.

    Examples:
        >>> representer_truth(np.eye(2), np.eye(3), np.random.default_rng(0)).shape
        (2, 3)
    """
    return np.asarray(user_cov @ rng.standard_normal((len(user_cov), len(arm_cov))) @ arm_cov)


def spread_to_one(truth: Array) -> Array:
    """Returns the truth scaled to standard deviation 1; one without spread stays as it is.

    Examples:
        >>> spread_to_one(np.array([[0.0, 4.0]]))
        array([[0., 2.]])
    """
    spread = float(truth.std())
    return truth / spread if spread > 0 else truth


def _symmetric_root(matrix: Array) -> Array:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _checked_green(kernel: UserKernel, graph: UserGraph) -> Green:
    if isinstance(kernel, Green):
        return kernel
    raise ParameterError(
        f"user_kernel is {kernel!r}, for {graph.n_users} users",
        f"beyond {MOST_DENSE} users it is a Green: others need a matrix over users",
        "Pass user_kernel=Green(...), or take fewer users",
    )


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
    """Returns a world with a graph, arms and kernels of your own, whose truth is one draw of the Gaussian process.

    Args:
        graph: The users.
        arms: The pool.
        user_kernel: The world's own, which need not be the learner's; Green(power=0.5) in the paper's figures. For
            more than 2,000 users it is a Green.
        arm_kernel: The world's own.
        noise_std: Of the rewards.
        seed: Fixes the draw.
        unit_spread: Whether to scale the truth to standard deviation 1.

    Examples:
        >>> world = gp_world(graph=UserGraph.from_edges([("ana", "bo")]), arms=ArmPool([[0.0], [1.0]]),
        ...                  user_kernel=Green(), arm_kernel=SquaredExponential(1.0), noise_std=0.1, seed=0)
        >>> world.graph.n_users
        2
    """
    arm_cov, rng = arm_kernel.resolve(arms.features).gram(arms.features), np.random.default_rng(seed)
    if graph.n_users > MOST_DENSE:
        truth = smooth_draw(graph, _checked_green(user_kernel, graph), len(arms), rng) @ _symmetric_root(arm_cov)
    else:
        truth = gp_truth(user_kernel.matrix(graph), arm_cov, rng)
    return World(graph=graph, arms=arms, truth=spread_to_one(truth) if unit_spread else truth, noise_std=noise_std)
