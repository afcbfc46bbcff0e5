"""What people keep: the Bandit, its pending decisions, propensities, saving and explaining."""

from coterie.product.bandit import Bandit
from coterie.product.decisions import Decision
from coterie.product.files.replaying import replay
from coterie.product.files.saving import kept
from coterie.product.inputs.rewards import read_rewards
from coterie.product.insight.explaining import Explanation
from coterie.product.scoring import score_all
from coterie.product.slates import Slate

__all__ = ["Bandit", "Decision", "Explanation", "Slate", "kept", "read_rewards", "replay", "score_all"]
