"""The belief on a large sparse graph: local solves, and an error that is stated."""

from coterie.models.engines.sparse.model import SparseModel

__all__ = ["SparseModel"]
