"""Small logs with everything that a log can have."""

from typing import Any

import numpy as np

from coterie.graphs import make_graph
from coterie.kernels import ArmPool
from coterie.logs.log import Events, Log, Pairs


def small_log(n_users: int = 12, n_arms: int = 40, liked: int = 12, seed: int = 0, **parts: Any) -> Log:
    """Returns a log in which everybody liked some arms, disliked three more, and had two more besides."""
    rng = np.random.default_rng(seed)
    dealt = np.array([rng.permutation(n_arms)[: liked + 5] for _ in range(n_users)])
    user = np.repeat(np.arange(n_users), liked + 3)
    reward = np.tile(np.r_[np.ones(liked), np.zeros(3)], n_users)
    events = Events(user=user, arm=dealt[:, : liked + 3].ravel(), reward=reward, **parts)
    had = Pairs(user=np.repeat(np.arange(n_users), 2), arm=dealt[:, liked + 3 :].ravel())
    pool = ArmPool(rng.standard_normal((n_arms, 3)), ids=[f"song-{i}" for i in range(n_arms)])
    return Log(graph=make_graph("ring", n_users), arms=pool, events=events, had=had)
