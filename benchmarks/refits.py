"""What learning the hyperparameters costs in a trial, against the pilot that it replaces."""

from time import process_time
from typing import Any

import numpy as np

from benchmarks.timing import Row, at_most
from coterie.policies import make_policy
from coterie.policies.auto import AutoPolicy
from coterie.problems import World, draw_world, world_settings
from coterie.runs.entries import learner_settings
from coterie.runs.trial import Trial, play
from coterie.runs.worlds import DrawnWorld

SETTINGS, PILOTS, PILOT_ROUNDS = 20, 5, 1500
TRIALS = 3
MOST = 0.25


def refitting(trial: Trial) -> float:
    """Returns the seconds that auto-ucb spends on fits in a trial, the rebuilding of its belief included."""
    world = trial.world
    policy = make_policy("auto-ucb", graph=world.graph, arms=world.arms, expected_rounds=trial.horizon)
    assert isinstance(policy, AutoPolicy)
    inside, fit = [0.0], policy._refit

    def clocked(t: int) -> None:
        start = process_time()
        fit(t)
        inside[0] += process_time() - start

    policy._refit = clocked  # type: ignore[method-assign] # timed from outside, the policy stays as it is
    for _ in play(policy, world, trial.rounds):
        pass
    return inside[0]


def piloting(settings: Any) -> float:
    """Returns the seconds of a whole pilot of lk-gp-ucb: one trial of it, times settings and pilot trials."""
    learner = learner_settings({"policy": "lk-gp-ucb", "width": 1.0, "lambda_base": 0.01}, {})
    trial = Trial(DrawnWorld(settings=settings), seed=1, number=0, rounds=PILOT_ROUNDS)
    start = process_time()
    trial.play(learner)
    return (process_time() - start) * SETTINGS * PILOTS


def bounded() -> Row:
    """A fit and the belief after it on far more pairs than a fit looks at, against one at the limit."""
    small, large = (_one_fit(n_users) for n_users in (50, 200))
    return at_most("one fit, 6,000 observed pairs", large, small, None, per="one fit, 1,500 observed pairs")


def _one_fit(n_users: int) -> float:
    world: World = draw_world(
        world_settings({"preset": "paper-literal", "n_users": n_users, "n_arms": 30, "dimension": 5}),
        np.random.SeedSequence(0),
    )
    policy = make_policy("auto-ucb", graph=world.graph, arms=world.arms)
    assert isinstance(policy, AutoPolicy)
    rng = np.random.default_rng(0)
    users, arms = np.divmod(rng.permutation(n_users * 30), 30)
    policy._model.update_many(users.tolist(), arms.tolist(), rng.normal(size=len(users)).tolist())
    start = process_time()
    policy._refit(len(users))
    return process_time() - start


def rows() -> list[Row]:
    out = []
    for level in ("easy", "medium"):
        settings = world_settings({"preset": "paper-literal", "kind": "gp-draw", "level": level})
        mine = float(
            np.median([refitting(Trial(DrawnWorld(settings=settings), seed=0, number=i)) for i in range(TRIALS)])
        )
        theirs = float(np.median([piloting(settings) for _ in range(TRIALS)]))
        out.append(
            at_most(f"all fits of a trial, {level}", mine, theirs, MOST, per="a pilot of 20 settings x 5 trials")
        )
    return [*out, bounded()]
