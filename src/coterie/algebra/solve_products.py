"""What a local solve says of mean and variance, read in one pass; compiled where numba is there."""

from typing import Any

from coterie.algebra.push import compiled


@compiled
def read_solution(
    nodes: Any, count: int, solution: Any, residual: Any, left: Any, reach: Any
) -> tuple[float, float, float, float]:
    """Returns <z, r>, <r, r>, <z, R> and sum_v |r_v| reach_v over the users that a solve has reached.

    z and r are rows of `solution` and `residual`, the users of which `nodes` names; R is `left`, a row for each user.
    """
    width = solution.shape[1]
    cross = rest = shift = mass = 0.0
    for here in range(count):
        user = nodes[here]
        square = 0.0
        for k in range(width):
            cross += solution[here, k] * residual[here, k]
            shift += solution[here, k] * left[user, k]
            square += residual[here, k] * residual[here, k]
        rest += square
        mass += square**0.5 * reach[user]
    return cross, rest, shift, mass
