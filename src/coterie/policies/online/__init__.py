"""What a learner sees of its own past: hits of an arm so far, and hits of it among a user's friends."""

from coterie.policies.online.hits import MostHits
from coterie.policies.online.learner import OnlineFeatures
from coterie.policies.online.levels import Levels, levelled_pool

__all__ = ["Levels", "MostHits", "OnlineFeatures", "levelled_pool"]
