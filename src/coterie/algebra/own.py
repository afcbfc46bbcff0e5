"""What a local solve says of each user's whole weights, where a part of them is nobody else's; compiled."""

from typing import Any

from coterie.algebra.push import LACKING, compiled


@compiled
def whole_rows(
    nodes: Any, count: int, solution: Any, wanted: Any, slot: Any, covariance: Any, own: float, out: Any
) -> None:
    """Writes solution rows times covariance / own, for users who are wanted.

    Those of users without data stay as they are, and those of users whose covariance is `LACKING` become nothing.
    """
    width = solution.shape[1]
    for here in range(count):
        user = nodes[here]
        if wanted[user] < 0:
            continue
        block = slot[user]
        for k in range(width):
            if block < 0:
                out[here, k] = 0.0 if block == LACKING else solution[here, k]
                continue
            total = 0.0
            for j in range(width):
                total += covariance[block, k, j] * solution[here, j]
            out[here, k] = total / own
