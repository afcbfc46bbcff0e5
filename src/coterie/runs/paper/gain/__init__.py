"""Figure 1 of the paper: the information gain, its two expressions, the effective dimension, and the proposition."""

from coterie.runs.paper.gain.figures import draw
from coterie.runs.paper.gain.measure import run

__all__ = ["draw", "run"]
