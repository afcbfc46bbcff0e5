"""Families of graphs, random and regular, by function or by name.

Every family has the users 0, 1, ..., n_users - 1. The random ones take a `seed`, an int or a generator, and
`connected`: "keep" takes the first draw as it is, "retry" draws until the graph is connected, "error"
refuses a first draw that is not.
"""

import inspect
from collections.abc import Callable
from functools import partial
from math import inf, isqrt
from typing import Literal, TypeAlias

import numpy as np
from scipy.spatial import cKDTree

from coterie.errors import GraphError, ParameterError, UnknownNameError, listed
from coterie.errors.checks import is_number, is_whole
from coterie.graphs.adjacency import Floats, Indices, from_pairs
from coterie.graphs.graph import UserGraph
from coterie.graphs.random_pairs import Pairs, block_pairs, preferential_pairs, random_pairs, rewired_pairs

Seed: TypeAlias = int | np.random.Generator
Connected: TypeAlias = Literal["retry", "keep", "error"]

MAX_DRAWS = 1000


def erdos_renyi(n_users: int, *, edge_prob: float = 0.2, seed: Seed = 0, connected: Connected = "keep") -> UserGraph:
    """Returns a graph in which each pair is joined with probability `edge_prob`; O(users + edges).

    Examples:
        >>> erdos_renyi(20, seed=1, connected="retry").is_connected
        True
    """
    _whole("n_users", n_users, 1)
    _number("edge_prob", edge_prob, 0, 1)
    draw = partial(random_pairs, n_users, edge_prob)
    return _drawn(n_users, draw, seed, connected, f"erdos-renyi with n_users={n_users}, edge_prob={edge_prob}")


def rbf(
    n_users: int,
    *,
    latent_dim: int = 4,
    scale: float = 0.1,
    threshold: float = 0.1,
    seed: Seed = 0,
    connected: Connected = "keep",
) -> UserGraph:
    """Returns a graph of normal latent points z with weights exp(-scale |z - z'|^2), if at least `threshold`.

    Costs O(edges) beyond a k-d tree; a low threshold keeps nearly all pairs.

    Examples:
        >>> min(weight for _, _, weight in rbf(20, threshold=0.3).edges()) >= 0.3
        True
    """
    _whole("n_users", n_users, 1)
    _whole("latent_dim", latent_dim, 1)
    _number("scale", scale, 0, np.inf, open_low=True)
    _number("threshold", threshold, 0, 1, open_low=True)
    draw = partial(_latent_pairs, n_users, latent_dim, scale, threshold)
    about = f"rbf with n_users={n_users}, latent_dim={latent_dim}, scale={scale}, threshold={threshold}"
    return _drawn(n_users, draw, seed, connected, about)


def stochastic_block_model(
    n_users: int,
    *,
    n_blocks: int = 4,
    inside: float = 0.6,
    across: float = 0.05,
    seed: Seed = 0,
    connected: Connected = "keep",
) -> UserGraph:
    """Returns a graph of contiguous, nearly equal blocks, dense inside and sparse across; O(users + edges).

    Examples:
        >>> stochastic_block_model(8, n_blocks=2, inside=1.0, across=0.0).component_labels.tolist()
        [0, 0, 0, 0, 1, 1, 1, 1]
    """
    _whole("n_users", n_users, 1)
    _whole("n_blocks", n_blocks, 1, n_users)
    _number("inside", inside, 0, 1)
    _number("across", across, 0, 1)
    draw = partial(block_pairs, n_users, n_blocks, inside, across)
    about = f"sbm with n_users={n_users}, n_blocks={n_blocks}, inside={inside}, across={across}"
    return _drawn(n_users, draw, seed, connected, about)


def barabasi_albert(n_users: int, *, attach: int = 2, seed: Seed = 0, connected: Connected = "keep") -> UserGraph:
    """Returns a graph grown by newcomers who join `attach` users in proportion to degree; O(n attach).

    It starts from a star of attach + 1 users and is always connected.

    Examples:
        >>> barabasi_albert(10, attach=2).n_edges
        16
    """
    _whole("n_users", n_users, 2)
    _whole("attach", attach, 1, n_users - 1)
    draw = partial(preferential_pairs, n_users, attach)
    return _drawn(n_users, draw, seed, connected, f"barabasi-albert with n_users={n_users}, attach={attach}")


def watts_strogatz(
    n_users: int, *, k: int = 4, rewire: float = 0.1, seed: Seed = 0, connected: Connected = "keep"
) -> UserGraph:
    """Returns a ring of users joined to the k nearest, each edge moved with probability `rewire`; O(n k).

    Examples:
        >>> watts_strogatz(6, k=2, rewire=0.0) == ring(6)
        True
    """
    _whole("n_users", n_users, 3)
    _whole("k", k, 2, n_users - 1)
    if k % 2:
        raise ParameterError(f"k = {k} is odd", "half of the k neighbours stand on either side", "Pass an even k")
    _number("rewire", rewire, 0, 1)
    draw = partial(rewired_pairs, n_users, k, rewire)
    return _drawn(n_users, draw, seed, connected, f"watts-strogatz with n_users={n_users}, k={k}, rewire={rewire}")


def grid(n_rows: int, n_cols: int) -> UserGraph:
    """Returns a grid in which each user meets those above, below, left and right; users run along the rows.

    Examples:
        >>> grid(2, 3).neighbours(1)
        {0: 1.0, 2: 1.0, 4: 1.0}
    """
    _whole("n_rows", n_rows, 1)
    _whole("n_cols", n_cols, 1)
    users = np.arange(n_rows * n_cols).reshape(n_rows, n_cols)
    rows = np.concatenate([users[:, :-1].ravel(), users[:-1].ravel()])
    cols = np.concatenate([users[:, 1:].ravel(), users[1:].ravel()])
    return _graph(n_rows * n_cols, rows, cols)


def ring(n_users: int) -> UserGraph:
    """Returns a ring; two users share one edge and one has none.

    Examples:
        >>> ring(5).neighbours(0)
        {1: 1.0, 4: 1.0}
    """
    _whole("n_users", n_users, 1)
    users = np.arange(n_users if n_users > 2 else n_users - 1)
    return _graph(n_users, users, (users + 1) % n_users)


def complete(n_users: int) -> UserGraph:
    """Returns the graph in which every pair is joined; O(n^2).

    Examples:
        >>> complete(4).n_edges
        6
    """
    _whole("n_users", n_users, 1)
    return _graph(n_users, *np.triu_indices(n_users, k=1))


def empty(n_users: int) -> UserGraph:
    """Returns the graph without edges.

    Examples:
        >>> empty(3)
        UserGraph(n_users=3, n_edges=0)
    """
    _whole("n_users", n_users, 1)
    none = np.empty(0, dtype=np.int64)
    return _graph(n_users, none, none)


def _square_grid(n_users: int) -> UserGraph:
    _whole("n_users", n_users, 1)
    n_rows = next(size for size in range(isqrt(n_users), 0, -1) if n_users % size == 0)
    return grid(n_rows, n_users // n_rows)


FAMILIES: dict[str, Callable[..., UserGraph]] = {
    "erdos-renyi": erdos_renyi,
    "rbf": rbf,
    "sbm": stochastic_block_model,
    "barabasi-albert": barabasi_albert,
    "watts-strogatz": watts_strogatz,
    "grid": _square_grid,
    "ring": ring,
    "complete": complete,
    "empty": empty,
}


def make_graph(
    family: str, n_users: int, *, seed: Seed = 0, connected: Connected = "keep", **options: float
) -> UserGraph:
    """Returns a graph of the family with this name; "grid" takes the most square shape with n_users places.

    Names and their options: "erdos-renyi" (edge_prob), "rbf" (latent_dim, scale, threshold), "sbm" (n_blocks, inside,
    across), "barabasi-albert" (attach), "watts-strogatz" (k, rewire), "grid", "ring", "complete", "empty".

    Regular families draw nothing: they ignore `seed`, and `connected` other than "keep" refuses a graph
    that is not connected.

    Examples:
        >>> make_graph("grid", 6) == grid(2, 3)
        True
        >>> make_graph("sbm", 40, n_blocks=2, seed=3).n_users
        40
    """
    if family not in FAMILIES:
        raise UnknownNameError(f"family {family!r} is unknown", f"families are {listed(FAMILIES, 9)}", "Pick one")
    maker = FAMILIES[family]
    names = set(inspect.signature(maker).parameters) - {"n_users", "seed", "connected"}
    for name in options.keys() - names:
        problem = f"{family} has no option {name!r}"
        raise ParameterError(problem, f"its options are {listed(sorted(names)) or 'none'}", "Remove the option")
    if "seed" in inspect.signature(maker).parameters:
        return maker(n_users, seed=seed, connected=connected, **options)
    _check_connected(connected)
    graph = maker(n_users)
    if connected != "keep" and not graph.is_connected:
        raise _not_connected(f"{family} with n_users={n_users}", graph, 1)
    return graph


def _graph(n_users: int, rows: Indices, cols: Indices, weights: Floats | None = None) -> UserGraph:
    values = np.ones(len(rows)) if weights is None else weights
    return UserGraph._wrap(tuple(range(n_users)), from_pairs(n_users, rows, cols, values))


def _latent_pairs(
    n_users: int, latent_dim: int, scale: float, threshold: float, rng: np.random.Generator
) -> tuple[Indices, Indices, Floats]:
    points = rng.standard_normal((n_users, latent_dim))
    # A little more than the radius at which the weight meets the threshold; the weight itself decides.
    radius = np.sqrt(-np.log(threshold) / scale) * (1 + 1e-9)
    rows, cols = cKDTree(points).query_pairs(radius, output_type="ndarray").T
    weights = np.exp(-scale * np.square(points[rows] - points[cols]).sum(axis=1))
    kept = weights >= threshold
    return rows[kept], cols[kept], weights[kept]


def _drawn(
    n_users: int,
    draw: Callable[[np.random.Generator], Pairs | tuple[Indices, Indices, Floats]],
    seed: Seed,
    connected: str,
    about: str,
) -> UserGraph:
    _check_connected(connected)
    rng = _generator(seed)
    allowed = MAX_DRAWS if connected == "retry" else 1
    for _ in range(allowed):
        graph = _graph(n_users, *draw(rng))
        if connected == "keep" or graph.is_connected:
            return graph
    raise _not_connected(about, graph, allowed)


def _not_connected(about: str, graph: UserGraph, n_draws: int) -> GraphError:
    problem = f"{about} has {graph.n_components} components after {n_draws} draws"
    return GraphError(problem, "the graph must be connected", "Make edges more likely, or pass connected='keep'")


def _check_connected(connected: str) -> None:
    names = ["retry", "keep", "error"]
    if connected not in names:
        raise UnknownNameError(f"connected = {connected!r} is unknown", f"it is one of {listed(names)}", "Pick one")


def _generator(seed: Seed) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    _whole("seed", seed, 0)
    return np.random.default_rng(seed)


def _whole(name: str, value: int, low: int, high: int | None = None) -> None:
    if not is_whole(value, low, inf if high is None else high):
        span = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise ParameterError(
            f"{name} = {value!r} is out of range", f"{name} is an integer {span}", f"Pass such a {name}"
        )


def _number(name: str, value: float, low: float, high: float, *, open_low: bool = False) -> None:
    if not is_number(value) or not low <= value <= high or (open_low and value == low):
        span = f"{'above' if open_low else 'from'} {low} and {'finite' if high == np.inf else f'at most {high}'}"
        raise ParameterError(f"{name} = {value!r} is out of range", f"{name} is a number {span}", f"Pass such a {name}")
