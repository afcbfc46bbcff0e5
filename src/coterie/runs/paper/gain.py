"""Figure 1 of the paper: the information gain, its two expressions, the effective dimension, and the proposition."""

from coterie.runs.paper.experiments.gain import run
from coterie.runs.paper.experiments.gain_figures import draw

__all__ = ["draw", "run"]
