"""What a run costs on each engine, so that `auto` can choose."""

# The unit of cost is one multiply-add at matrix-matrix speed. Measured in it: what a round costs before any arithmetic,
# what one entry of a new matrix costs, and how much dearer a multiply-add is in a solve with few right-hand sides. The
# dimension of the features plays no part: on a pool K_x is computed once.
GRID_ROUND = 6e5
LINEAR_ROUND = 1e6
EXACT_ROUND = 2e6
NEW_ENTRY = 100
THIN_SOLVE = 2
CANDIDATES = 5
SPARSE_ROUND = 1e6
PUSHED = 600  # for each edge and feature that a reward is pushed along, as measured at eps 0.1
OVERHEAD = 12  # of a push, in features


def grid_cost(n_pairs: int, rounds: int, refresh_every: int | None = None) -> float:
    """Returns the cost of `rounds` rounds on `grid`: the matrix, then N^2 / 2 multiply-adds each.

    A rebuild, if there is one every so many rounds, costs as much for each distinct pair seen by then.
    """
    square = float(n_pairs) ** 2
    rebuilds = sum(NEW_ENTRY * square + seen * square / 2 for seen in _seen_at_rebuilds(n_pairs, rounds, refresh_every))
    return NEW_ENTRY * square + rounds * (square / 2 + GRID_ROUND) + rebuilds


def linear_cost(n_weights: int, n_pairs: int, rounds: int, refresh_every: int | None = None) -> float:
    """Returns the cost of `rounds` rounds on `linear`: as `grid`, on users x features instead of users x arms."""
    square = float(n_weights) ** 2
    rebuilds = sum(NEW_ENTRY * square + seen * square / 2 for seen in _seen_at_rebuilds(n_pairs, rounds, refresh_every))
    return NEW_ENTRY * square + rounds * (square / 2 + LINEAR_ROUND) + rebuilds


def exact_cost(n_pairs: int, rounds: int, refresh_every: int | None = None) -> float:
    """Returns the cost of `rounds` rounds on `exact`: candidates * k^2 / 2 each, with k <= N distinct pairs.

    A rebuild factors a k x k matrix.
    """
    growing = min(rounds, n_pairs)
    squares = growing**3 / 3 + (rounds - growing) * float(n_pairs) ** 2
    rebuilds = sum(NEW_ENTRY * seen**2 / 2 + seen**3 / 3 for seen in _seen_at_rebuilds(n_pairs, rounds, refresh_every))
    return THIN_SOLVE * CANDIDATES * squares / 2 + rounds * EXACT_ROUND + rebuilds


def sparse_cost(n_features: int, neighbours: float, reach: float, rounds: int) -> float:
    """Returns the cost of `rounds` rounds on `sparse`, for any number of users.

    A reward is pushed along the edges of as many users as its `reach`, the mean of the diagonal of L_rho over rho.
    """
    return rounds * (SPARSE_ROUND + PUSHED * (n_features + OVERHEAD) * reach * max(neighbours, 1.0))


def user_matrix_cost(n_users: int) -> float:
    """Returns the cost of the covariance of all users, an inverse."""
    return float(n_users) ** 3


def _seen_at_rebuilds(n_pairs: int, rounds: int, refresh_every: int | None) -> list[int]:
    """Returns how many distinct pairs have been seen, at most, at each rebuild."""
    return [] if refresh_every is None else [min(t, n_pairs) for t in range(refresh_every, rounds + 1, refresh_every)]
