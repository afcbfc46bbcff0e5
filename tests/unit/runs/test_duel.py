"""The runner: every policy of a trial meets the same rounds, and one seed fixes everything."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.graphs import make_graph
from coterie.policies import Policy
from coterie.problems import Round, World, gp_world
from coterie.runs.duel import Duel, play, run_duel


class Recorder(Policy):
    """Picks the candidate at one place, whatever it learns, and keeps all that it was told."""

    def __init__(self, place: int = 0) -> None:
        self.place = place
        self.shown: list[tuple[Any, tuple[Any, ...]]] = []
        self.learned: list[tuple[Any, Any, float]] = []

    def select(self, user: Any, candidates: Any = None) -> ct.Choice:
        self.shown.append((user, candidates))
        return ct.Choice(user, candidates[self.place], self.place, 0.0, 1.0, 0.0, len(self.shown) - 1)

    def update(self, user: Any, arm: Any, reward: float) -> None:
        self.learned.append((user, arm, reward))


def small_world(seed: int) -> World:
    rng = np.random.default_rng(seed)
    return gp_world(
        graph=make_graph("erdos-renyi", 6, edge_prob=0.5, seed=rng),
        arms=ct.ArmPool(rng.normal(size=(5, 2)), ids="abcde"),
        user_kernel=ct.Green(),
        arm_kernel=ct.SquaredExponential(1.0),
        noise_std=0.2,
        seed=seed,
    )


def learner(world: World, seed: int, name: str = "lk-gp-ts") -> Policy:
    return ct.make_policy(name, graph=world.graph, arms=world.arms, noise_var=0.04, seed=seed)


def recorded_duel(names: Iterable[str], **changes: Any) -> tuple[Duel, dict[str, list[Recorder]]]:
    """Runs a duel of recorders, each picking at another place; returns it and the recorders of each trial."""
    made: dict[str, list[Recorder]] = {name: [] for name in names}

    def make(_world: World, _seed: int, name: str) -> Policy:
        made[name].append(Recorder(place=list(made).index(name)))
        return made[name][-1]

    settings: dict[str, Any] = {"trials": 3, "horizon": 25, "n_candidates": 3, "seed": 5}
    policies = {name: partial(make, name=name) for name in made}
    return run_duel(make_world=small_world, policies=policies, **(settings | changes)), made


def test_play_shows_each_round_pays_its_reward_and_yields_its_regret() -> None:
    world = small_world(0)
    rounds = list(world.rounds(12, n_candidates=3, seed=1))
    policy = Recorder(place=1)
    regrets = list(play(policy, world, rounds))
    assert policy.shown == [(shown.user, shown.candidates) for shown in rounds]
    arms = [shown.candidates[1] for shown in rounds]
    assert policy.learned == [(s.user, arm, world.reward(s, arm)) for s, arm in zip(rounds, arms, strict=True)]
    assert regrets == [world.regret(shown, arm) for shown, arm in zip(rounds, arms, strict=True)]


def test_play_waits_until_it_is_asked() -> None:
    world, policy = small_world(0), Recorder()
    steps = play(policy, world, world.rounds(10, n_candidates=2, seed=0))
    assert policy.shown == []
    next(steps)
    assert len(policy.shown) == len(policy.learned) == 1


def test_a_policy_learns_of_a_round_before_it_sees_the_next() -> None:
    world = small_world(0)
    policy = Recorder()

    def checked(rounds: Iterable[Round]) -> Iterable[Round]:
        for number, shown in enumerate(rounds):
            assert len(policy.learned) == len(policy.shown) == number
            yield shown

    assert len(list(play(policy, world, checked(world.rounds(10, n_candidates=2, seed=0))))) == 10


def test_all_policies_of_a_trial_meet_the_same_rounds() -> None:
    _, made = recorded_duel(["first", "second", "third"])
    for first, second, third in zip(*made.values(), strict=True):
        assert len(first.shown) == 25
        assert first.shown == second.shown == third.shown
        assert first.learned != second.learned  # they picked different arms of the same rounds


def test_policies_that_choose_alike_are_paid_alike() -> None:
    """The noise belongs to the round, not to the policy."""
    made: list[Recorder] = []

    def make(_world: World, _seed: int) -> Policy:
        made.append(Recorder())
        return made[-1]

    run_duel(
        make_world=small_world, policies={"one": make, "other": make}, trials=1, horizon=30, n_candidates=3, seed=0
    )
    assert made[0].learned == made[1].learned


def test_trials_differ() -> None:
    duel, made = recorded_duel(["only"])
    rounds = [recorder.shown for recorder in made["only"]]
    assert rounds[0] != rounds[1] != rounds[2] != rounds[0]
    assert len({float(row.sum()) for row in duel.regrets["only"]}) == 3


def test_policies_of_a_trial_get_one_seed_and_one_world() -> None:
    met: list[tuple[World, int]] = []

    def make(world: World, seed: int) -> Policy:
        met.append((world, seed))
        return Recorder()

    run_duel(make_world=small_world, policies={"a": make, "another": make}, trials=2, horizon=3, n_candidates=2, seed=0)
    worlds, seeds = zip(*met, strict=True)
    assert worlds[0] is worlds[1]
    assert worlds[2] is worlds[3]
    assert worlds[0] is not worlds[2]
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]


def test_the_seed_fixes_the_result_and_more_trials_or_policies_change_no_other() -> None:
    def run(trials: int, names: tuple[str, ...], seed: int = 2) -> Duel:
        policies = {name: partial(learner, name=name) for name in names}
        return run_duel(make_world=small_world, policies=policies, trials=trials, horizon=40, n_candidates=3, seed=seed)

    small, again = (run(2, ("lk-gp-ts",)) for _ in range(2))
    large, other = run(3, ("gp-ucb", "lk-gp-ts")), run(2, ("lk-gp-ts",), seed=3)
    np.testing.assert_array_equal(small.regrets["lk-gp-ts"], again.regrets["lk-gp-ts"])
    np.testing.assert_array_equal(small.regrets["lk-gp-ts"], large.regrets["lk-gp-ts"][:2])
    assert not np.array_equal(small.regrets["lk-gp-ts"], other.regrets["lk-gp-ts"])


def test_a_duel_keeps_one_row_a_trial_and_one_column_a_round() -> None:
    steps: list[tuple[str, int]] = []
    duel, _ = recorded_duel(["a", "b"], on_step=lambda name, trial: steps.append((name, trial)))
    assert duel.horizon == 25
    assert duel.names == ["a", "b"]
    assert duel.cum_regret("a").shape == (3, 25)
    assert np.all(np.diff(duel.cum_regret("a"), axis=1) >= 0)
    assert steps == [(name, trial) for trial in range(3) for name in ("a", "b")]


def test_final_is_the_mean_and_its_standard_error() -> None:
    duel = Duel(3, {"a": [np.array([1.0, 0.0, 2.0]), np.array([0.0, 0.0, 1.0]), np.array([2.0, 2.0, 4.0])]})
    np.testing.assert_array_equal(duel.cum_regret("a"), [[1, 1, 3], [0, 0, 1], [2, 4, 8]])
    mean, error = duel.final("a")
    assert mean == pytest.approx(4.0)
    assert error == pytest.approx(np.std([3, 1, 8], ddof=1) / np.sqrt(3))


def test_one_trial_has_no_standard_error() -> None:
    mean, error = Duel(2, {"a": [np.array([1.0, 2.0])]}).final("a")
    assert mean == 3.0
    assert np.isnan(error)
