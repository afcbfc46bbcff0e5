"""Exact near the user, low-rank beyond: the engine "local"."""

from coterie.models.engines.local.model import LocalModel

__all__ = ["LocalModel"]
