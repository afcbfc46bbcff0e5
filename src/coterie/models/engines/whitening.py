"""When a belief over pairs can be conditioned on something that is said of users, for all arms at once."""

import numpy as np

from coterie.contracts import Array
from coterie.kernels.links import Link

RANK = 1e-12
SMALLEST = 1e-5
STEEPEST = 1e5
FEW = 64


def arm_whitener(arm_cov: Array) -> Array | None:
    """Returns P with P'K_x P = I on what K_x spans; none if K_x is so close to singular that P would lose digits.

    Twin arms, or more arms than features, are no trouble: the directions that K_x does not have are left out.

    Examples:
        >>> np.abs(arm_whitener(np.array([[4.0, 4.0], [4.0, 4.0]]))).round(3)
        array([[0.25],
               [0.25]])
    """
    values, vectors = np.linalg.eigh(arm_cov)
    kept = values > RANK * values[-1]
    if not kept.any() or values[kept][0] < SMALLEST * values[-1]:
        return None
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def is_gentle(link: Link, whitener: Array, n_pairs: int) -> bool:
    """Whether conditioning on the link is cheaper than a rebuild and loses no digits to very heavy edges."""
    if link.combinations.shape[1] * whitener.shape[1] > max(FEW, n_pairs // 8):
        return False
    ratio = link.spread.diagonal() / link.noise.diagonal()
    return bool((ratio <= STEEPEST).all())
