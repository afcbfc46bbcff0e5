"""Whether a graph is one for `sparse`, by sizes alone, before anything of the size users x users is made."""

from dataclasses import dataclass

from coterie.errors.extras import how_to_install, is_installed, missing_extra
from coterie.models.costs import exact_cost, grid_cost, linear_cost, sparse_cost, user_matrix_cost
from coterie.models.engines.grid import grid_bytes
from coterie.models.requirements import available_memory

# Below so many users x ridge, what all users have in common decays too slowly for local solves.
LEAST_SPREAD = 1000
# It is not exact, so it has to be worth it.
WORTH_IT = 2.0
ROUNDS_IF_UNKNOWN = 10_000
MATRICES = 4  # the user covariance, its factor, its inverse and a copy


@dataclass(frozen=True, slots=True)
class GraphSizes:
    """What a choice of engine depends on.

    Attributes:
        n_users: How many users.
        n_edges: How many edges, each counted once.
        n_arms: How many arms in the pool.
        n_features: How many features they have, at most.
        ridge: The paper's rho.
        diagonal: The mean of the diagonal of L_rho.
    """

    n_users: int
    n_edges: int
    n_arms: int
    n_features: int
    ridge: float
    diagonal: float


@dataclass(frozen=True, slots=True)
class SparseChoice:
    """Whether it is to be `sparse`, and what `describe()` adds to its reason; nothing where that is no question."""

    sparse: bool
    why: str


def choose_sparse(
    sizes: GraphSizes, *, expected_rounds: int | None = None, memory_limit: int | None = None
) -> SparseChoice:
    """Returns whether `engine="auto"` means `sparse`: where all else does not fit, or costs at least twice as much.

    Not so where users x ridge is below 1000 and something else fits, nor without numba, which is said. Where nothing
    else fits and numba is missing it raises MissingExtraError.

    Examples:
        >>> choose_sparse(GraphSizes(200, 1_000, 50, 10, 0.1, 10.1)).sparse
        False
        >>> choose_sparse(GraphSizes(20_000, 100_000, 50, 10, 0.01, 10.0), memory_limit=2**40).why
        "; 'sparse' would be cheaper, but users x ridge = 200 is below 1000, where local solves take too long"
    """
    allowed = available_memory() if memory_limit is None else memory_limit
    if not _matrix_fits(sizes, allowed):
        return _nothing_else(sizes, allowed)
    rounds = ROUNDS_IF_UNKNOWN if expected_rounds is None else expected_rounds
    costs = _other_costs(sizes, rounds, allowed)
    cheapest = min(costs, key=lambda engine: costs[engine], default="none")
    least, ours = costs.get(cheapest, float("inf")), _sparse_cost(sizes, rounds)
    if WORTH_IT * ours > least:
        return SparseChoice(sparse=False, why="")
    spread = sizes.n_users * sizes.ridge
    if spread < LEAST_SPREAD and costs:
        problem = f"users x ridge = {spread:.3g} is below {LEAST_SPREAD}, where local solves take too long"
        return SparseChoice(sparse=False, why=f"; 'sparse' would be cheaper, but {problem}")
    if not is_installed("numba") and costs:
        remedy = f"which is not installed: {how_to_install('scale')}"
        return SparseChoice(sparse=False, why=f"; 'sparse' would be cheaper, but needs 'numba', {remedy}")
    _require_numba(sizes, allowed)
    beside = f"{least:.2g} on {cheapest!r}, the cheapest exact engine" if costs else "no other engine would fit"
    return SparseChoice(
        sparse=True,
        why=f"; {rounds} rounds for {sizes.n_users} users and {sizes.n_edges} edges cost about as many "
        f"multiply-adds as {ours:.2g} on it and {beside}",
    )


def _nothing_else(sizes: GraphSizes, allowed: int) -> SparseChoice:
    _require_numba(sizes, allowed)
    needed, have = (f"{size / 2**30:.1f}" for size in (_matrix_bytes(sizes), allowed))
    why = f"a covariance of all {sizes.n_users} users would need {needed} GiB and {have} are allowed"
    return SparseChoice(sparse=True, why=f"; {why}")


def _require_numba(sizes: GraphSizes, allowed: int) -> None:
    if not is_installed("numba"):
        problem = f"{sizes.n_users} users need engine 'sparse', for nothing else fits in {allowed / 2**30:.1f} GiB"
        raise missing_extra("scale", f"{problem}, and 'numba' is not installed")


def _matrix_bytes(sizes: GraphSizes) -> int:
    return MATRICES * 8 * sizes.n_users**2


def _matrix_fits(sizes: GraphSizes, allowed: int) -> bool:
    return _matrix_bytes(sizes) <= allowed


def _sparse_cost(sizes: GraphSizes, rounds: int) -> float:
    neighbours = 2 * sizes.n_edges / sizes.n_users
    return sparse_cost(sizes.n_features, neighbours, sizes.diagonal / sizes.ridge, rounds)


def _other_costs(sizes: GraphSizes, rounds: int, allowed: int) -> dict[str, float]:
    """Returns what each engine that fits would cost, the covariance of all users included."""
    n_pairs, n_weights = sizes.n_users * sizes.n_arms, sizes.n_users * sizes.n_features
    costs = {}
    if 4 * min(rounds, n_pairs) ** 2 <= allowed:
        costs["exact"] = exact_cost(n_pairs, rounds)
    if grid_bytes(n_pairs) <= allowed:
        costs["grid"] = grid_cost(n_pairs, rounds)
    if 2 * sizes.n_features <= sizes.n_arms and grid_bytes(n_weights) <= allowed:
        costs["linear"] = linear_cost(n_weights, n_pairs, rounds)
    return {engine: cost + user_matrix_cost(sizes.n_users) for engine, cost in costs.items()}
