"""The posterior on a large sparse graph: local solves, and an error bound that is stated.

In the order of imports: `compiling` loads compiled functions; `reward_table` is the history in columns; `user_blocks`
are matrices of single users; `local_solve` pushes residuals from one user outwards; `global_solve` is the precision of
all weights and its conjugate gradients; `deflation` moves all users along the null vector; `posterior_weights` keeps
weights and residual; `variance_bounds` and `error_bounds` bound what is believed of one user; `certify` refines these
until a choice is proven; `model` holds one of each.
"""

from coterie.models.engines.sparse.model import SparseModel

__all__ = ["SparseModel"]
