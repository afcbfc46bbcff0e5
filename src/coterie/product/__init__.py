"""What people keep: the Bandit, its pending decisions, propensities, saving and explaining."""

from coterie.product.bandit import Bandit, Decision
from coterie.product.explaining import Explanation

__all__ = ["Bandit", "Decision", "Explanation"]
