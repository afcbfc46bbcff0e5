"""The posterior on a large sparse graph: local solves, and an error bound that is stated.

In the order of imports: `compiling` loads compiled functions; `limits` has the sizes at which another way is taken;
`reward_table` is the history in columns; `user_blocks` are matrices of single users; `solves` has the local and the
global solve; `posterior_weights` keeps the mean, its residual and the deflation; `variance_bounds` bounds what is
believed of one user; `certify` refines bounds until a choice is proven; `model` holds one of each.
"""

from coterie.models.engines.sparse.model import SparseModel

__all__ = ["SparseModel"]
