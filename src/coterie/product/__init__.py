"""What people keep: the Bandit, its pending decisions, propensities, saving and explaining."""

from coterie.product.bandit import Bandit
from coterie.product.decision import Decision
from coterie.product.explaining import Explanation
from coterie.product.replaying import replay

__all__ = ["Bandit", "Decision", "Explanation", "replay"]
