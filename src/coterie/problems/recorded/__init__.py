"""Logs as problems: choose the one that was liked among many, or choose again what was logged."""

from coterie.problems.recorded.one_positive import Negatives, OnePositive
from coterie.problems.recorded.replay import Replay

__all__ = ["Negatives", "OnePositive", "Replay"]
