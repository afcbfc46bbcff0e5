"""The loop: each round is shown, judged and learned before the next, and the truth is asked for after the choice."""

from collections.abc import Iterable
from typing import Any

import coterie as ct
from coterie.problems import Round, WorldSettings
from coterie.runs.trial import Trial, play
from coterie.runs.worlds import DrawnWorld

WORLD = DrawnWorld(settings=WorldSettings(n_users=6, n_arms=5, n_candidates=3, dimension=2, horizon=12))


class Recorder:
    """Picks the candidate at one place, whatever it learns, and keeps all that it was told."""

    def __init__(self, place: int = 0) -> None:
        self.place = place
        self.shown: list[tuple[Any, tuple[Any, ...]]] = []
        self.learned: list[tuple[Any, Any, float]] = []

    def select(self, user: Any, candidates: Any) -> ct.Choice:
        self.shown.append((user, candidates))
        return ct.Choice(user, candidates[self.place], self.place, 0.0, 1.0, 0.0, len(self.shown) - 1)

    def update(self, user: Any, arm: Any, reward: float) -> None:
        self.learned.append((user, arm, reward))


def test_play_shows_each_round_pays_its_reward_and_yields_its_regret() -> None:
    trial, learner = Trial(WORLD, seed=0, number=0), Recorder(place=1)
    rows = list(play(learner, trial.world, trial.rounds))
    assert learner.shown == [(shown.user, shown.candidates) for shown in trial.rounds]
    arms = [shown.candidates[1] for shown in trial.rounds]
    judged = [trial.world.judge(shown, arm) for shown, arm in zip(trial.rounds, arms, strict=True)]
    assert rows == [(arm, *paid) for arm, paid in zip(arms, judged, strict=True)]
    users = [shown.user for shown in trial.rounds]
    assert learner.learned == [(u, a, paid) for u, a, (paid, _) in zip(users, arms, judged, strict=True)]


def test_play_waits_until_it_is_asked() -> None:
    trial, learner = Trial(WORLD, seed=0, number=0), Recorder()
    steps = play(learner, trial.world, trial.rounds)
    assert learner.shown == []
    next(steps)
    assert len(learner.shown) == len(learner.learned) == 1


def test_a_learner_learns_of_a_round_before_it_sees_the_next() -> None:
    trial, learner = Trial(WORLD, seed=0, number=0), Recorder()

    def checked(rounds: Iterable[Round]) -> Iterable[Round]:
        for number, shown in enumerate(rounds):
            assert len(learner.learned) == len(learner.shown) == number
            yield shown

    assert len(list(play(learner, trial.world, checked(trial.rounds)))) == 12


def test_trials_differ_and_the_same_trial_does_not() -> None:
    first, again, second = (Trial(WORLD, seed=0, number=number) for number in (0, 0, 1))
    assert first.rounds == again.rounds
    assert first.rounds != second.rounds
    assert (first.world.arms.features == again.world.arms.features).all()
    assert (first.world.arms.features != second.world.arms.features).any()
