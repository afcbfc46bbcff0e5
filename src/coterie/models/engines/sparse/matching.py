"""Whether weights, blocks and bounds are those of the rows that they claim to be of: one product with all of them."""

from math import inf

import numpy as np

from coterie.algebra.gaps import gap_of_matrices, gap_of_sums
from coterie.contracts import Array
from coterie.kernels.graph import GraphKernel
from coterie.models.engines.sparse.blocks import DataBlocks, MarginalBlocks
from coterie.models.engines.sparse.common import Common
from coterie.models.engines.sparse.everywhere import Everywhere
from coterie.models.engines.sparse.own import OwnParts
from coterie.models.engines.sparse.residual import Residual, add_targets

NEARLY = 1e-6
FINE = 1e4  # residuals are small beside what they are left of, and kept to far more digits


def mismatch_of(
    kernel: GraphKernel,
    data: DataBlocks,
    residual: Residual,
    own: OwnParts | None,
    marginals: MarginalBlocks,
    common: Common | None,
) -> float:
    """Returns the largest difference from what rows and kernel give, relative. O((edges + rows) x features).

    Upper bounds of covariances are only looked at for what none is: one that is not symmetric, or beyond the prior.
    """
    everywhere = Everywhere(kernel, data)
    targets = add_targets(kernel, data, np.zeros_like(residual.weights))
    terms = np.abs(everywhere.times(residual.weights)) + np.abs(targets)
    probe = np.random.default_rng(0).standard_normal(residual.weights.shape)
    found = [
        FINE * gap_of_matrices(residual.recomputed(data), residual.left, float(terms.max(initial=0.0))),
        _gap_of_inverses(kernel, data, everywhere, probe),
        _oddness(marginals.matrix[: len(marginals)], 2 * (1 / kernel.ridge + kernel.own + kernel.common)),
    ]
    if own is not None:
        left = own.own * (probe - own.own * everywhere.blocks_times(probe))
        found.append(gap_of_matrices(_times(own.covariance[: len(own)], probe[own.users]), left[own.users]))
        found.append(gap_of_matrices(own.moment[: len(own)], targets[own.users]))
    if common is not None:
        found.append(_oddness(np.stack([common.covariance, *common.halves]), kernel.common))
        found.append(gap_of_sums(float(np.linalg.eigvalsh(common.covariance)[-1]), common.size, common.size))
        together = everywhere.blocks_times(np.tile(probe[0], (len(probe), 1))).sum(axis=0)
        found.append(gap_of_matrices(common.total @ probe[0], together))
    return max(found)


def _gap_of_inverses(kernel: GraphKernel, data: DataBlocks, everywhere: Everywhere, probe: Array) -> float:
    solved = np.zeros_like(probe)
    solved[data.users] = _times(data.inverse[: len(data)], probe[data.users])
    again = kernel.diagonal[:, None] * solved + everywhere.blocks_times(solved)
    return gap_of_matrices(again[data.users], probe[data.users])


def _times(matrices: Array, rows: Array) -> Array:
    return np.asarray(np.einsum("bij,bj->bi", matrices, rows))


def _oddness(bounds: Array, most: float) -> float:
    """Returns how far matrices are from symmetric; infinity if one is no covariance, or one beyond the most."""
    variances = np.einsum("bii->bi", bounds)
    if not np.all((variances > 0) & (variances <= (1 + NEARLY) * most)):
        return inf
    return gap_of_matrices(bounds, bounds.transpose(0, 2, 1))
