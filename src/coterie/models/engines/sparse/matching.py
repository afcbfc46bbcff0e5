"""Whether weights, blocks and bounds are those of the rows that they claim to be of: one product with all of them."""

from math import inf

import numpy as np

from coterie.algebra.gaps import gap_of_matrices
from coterie.contracts import Array
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models.engines.sparse.global_solve import PosteriorPrecision
from coterie.models.engines.sparse.posterior_weights import PosteriorWeights, add_targets
from coterie.models.engines.sparse.user_blocks import DataBlocks, MarginalBlocks

NEARLY = 1e-6
FINE = 1e4  # residuals are small beside what they are left of, and kept to far more digits


def mismatch_of(kernel: GraphKernel, data: DataBlocks, residual: PosteriorWeights, marginals: MarginalBlocks) -> float:
    """Returns the largest difference from what rows and kernel give, relative. O((edges + rows) x features).

    Upper bounds of covariances are only looked at for what none is: one that is not symmetric, or beyond the prior.
    """
    everywhere = PosteriorPrecision(kernel, data)
    targets = add_targets(kernel, data, np.zeros_like(residual.weights))
    terms = np.abs(everywhere.times(residual.weights)) + np.abs(targets)
    probe = np.random.default_rng(0).standard_normal(residual.weights.shape)
    return max(
        FINE * gap_of_matrices(residual.recomputed(data), residual.left, float(terms.max(initial=0.0))),
        _gap_of_inverses(kernel, data, everywhere, probe),
        _oddness(marginals.matrix[: len(marginals)], 2 / kernel.ridge),
    )


def _gap_of_inverses(kernel: GraphKernel, data: DataBlocks, everywhere: PosteriorPrecision, probe: Array) -> float:
    solved = np.zeros_like(probe)
    solved[data.users] = np.einsum("bij,bj->bi", data.inverse[: len(data)], probe[data.users])
    again = kernel.diagonal[:, None] * solved + everywhere.blocks_times(solved)
    return gap_of_matrices(again[data.users], probe[data.users])


def _oddness(bounds: Array, most: float) -> float:
    """Returns how far matrices are from symmetric; infinity if one is no covariance, or one beyond the most."""
    variances = np.einsum("bii->bi", bounds)
    if not np.all((variances > 0) & (variances <= (1 + NEARLY) * most)):
        return inf
    return gap_of_matrices(bounds, bounds.transpose(0, 2, 1))
