"""Numbers only: factor, append, rank-k update, solve, log-determinant."""

from coterie.algebra.block_weights import BlockWeights
from coterie.algebra.covariance import PendingCovariance
from coterie.algebra.factor import JitterLog, cholesky, log_det_of_factor, mirror, solve_lower
from coterie.algebra.failures import CoterieError, FactorisationError, NumericalError
from coterie.algebra.panels import PanelCholesky

__all__ = [
    "BlockWeights",
    "CoterieError",
    "FactorisationError",
    "JitterLog",
    "NumericalError",
    "PanelCholesky",
    "PendingCovariance",
    "cholesky",
    "log_det_of_factor",
    "mirror",
    "solve_lower",
]
