"""Users who are one and the same to a kernel, so that a belief need hold them once."""

import numpy as np

from coterie.kernels.joint import PoolKernel


def merged(kernel: PoolKernel) -> tuple[list[int], PoolKernel]:
    """Returns the kind of each user, and the kernel with one user of each kind. O(n^2).

    Users whose rows of the covariance are equal are perfectly correlated. Pooled users are all of one kind, clustered
    ones of one kind for each cluster; mostly each user is a kind alone, and the kernel is the one given.

    Examples:
        >>> kinds, smaller = merged(PoolKernel(np.ones((3, 3)), np.eye(2)))
        >>> kinds, smaller.n_pairs
        ([0, 0, 0], 2)
    """
    firsts: dict[bytes, int] = {}
    heads: list[int] = []
    kinds: list[int] = []
    for user, row in enumerate(kernel.user_cov + 0.0):  # -0.0 and 0.0 are the same number and not the same bytes
        kind = firsts.setdefault(row.tobytes(), len(heads))
        kinds.append(kind)
        if kind == len(heads):
            heads.append(user)
    if len(heads) == kernel.n_users:
        return kinds, kernel
    return kinds, PoolKernel(kernel.user_cov[np.ix_(heads, heads)], kernel.arm_cov)
