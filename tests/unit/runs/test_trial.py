"""The loop: each round is shown, judged and learned before the next, and the truth is asked for after the choice."""

from collections.abc import Iterable
from typing import Any

import pytest

import coterie as ct
from coterie.problems import ContextSettings, Round, WorldSettings
from coterie.runs.entries import learner_settings
from coterie.runs.learners import make_learner, takes_contexts
from coterie.runs.trial import Trial, play
from coterie.runs.worlds import DrawnWorld

WORLD = DrawnWorld(settings=WorldSettings(n_users=6, n_arms=5, n_candidates=3, dimension=2, horizon=12))

WITH_CONTEXTS = DrawnWorld(
    settings=ContextSettings(contexts="smooth", n_users=6, n_arms=5, n_candidates=3, dimension=2, horizon=12)
)


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


class ContextRecorder(Recorder):
    """Keeps the contexts, too."""

    def __init__(self) -> None:
        super().__init__()
        self.contexts: list[Any] = []

    def select(self, user: Any, candidates: Any, *, context: Any = None) -> ct.Choice:
        self.contexts.append(context)
        return super().select(user, candidates)

    def update(self, user: Any, arm: Any, reward: float, *, context: Any = None) -> None:
        assert context == self.contexts[-1]
        super().update(user, arm, reward)


def test_a_learner_that_takes_contexts_is_shown_that_of_each_round() -> None:
    trial, learner = Trial(WITH_CONTEXTS, seed=0, number=0), ContextRecorder()
    assert len(list(play(learner, trial.world, trial.rounds))) == 12 == len(learner.learned)
    assert learner.contexts == [shown.context for shown in trial.rounds]
    assert None not in learner.contexts


def test_one_that_takes_none_is_shown_none() -> None:
    trial, learner = Trial(WITH_CONTEXTS, seed=0, number=0), Recorder()
    assert len(list(play(learner, trial.world, trial.rounds))) == 12 == len(learner.learned)


def test_where_rounds_have_no_context_nothing_is_said_of_one() -> None:
    trial, learner = Trial(WORLD, seed=0, number=0), ContextRecorder()
    list(play(learner, trial.world, trial.rounds))
    assert learner.contexts == [None] * 12


@pytest.mark.parametrize(("policy", "shown"), [("auto-ucb", True), ("auto-ts", True), ("lk-gp-ucb", False)])
def test_policies_that_learn_from_contexts_are_shown_them(policy: str, shown: bool) -> None:
    settings = learner_settings({"policy": policy}, {})
    with_contexts, without = (Trial(each, seed=0, number=0) for each in (WITH_CONTEXTS, WORLD))
    assert takes_contexts(with_contexts.learner(settings)) == shown
    assert not takes_contexts(without.learner(settings))
    assert len(with_contexts.play(settings).arms) == 12


def own_method(graph: Any, arms: Any, seed: int, context_schema: Any) -> Recorder:
    """A method of one's own that is told what a context holds."""
    assert graph.n_users == 6
    assert len(arms) == 5
    assert seed >= 0
    out = ContextRecorder()
    out.schema = context_schema  # type: ignore[attr-defined]
    return out


def test_a_method_of_ones_own_is_told_the_schema_if_it_asks() -> None:
    trial = Trial(WITH_CONTEXTS, seed=0, number=0)
    settings = learner_settings({"policy": f"{__name__}:own_method"}, {})
    learner: Any = trial.learner(settings)
    assert learner.schema == {f"number-{i}": "number" for i in (1, 2, 3)}
    assert make_learner(settings, graph=trial.world.graph, arms=trial.world.arms, horizon=1, seed=0, tuned={})
