"""Every problem, drawn or recorded: judged by two numbers, the same rounds for all, and a truth out of reach."""

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import isnan
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, get_args

import numpy as np
import pytest

from coterie import problems
from coterie.errors import CandidatesError
from coterie.graphs import FAMILIES, UserGraph
from coterie.kernels import ArmPool
from coterie.logs import Log, Ragged, write_log
from coterie.policies import list_policies
from coterie.problems import (
    LEVELS,
    PRESETS,
    ContextSettings,
    ContextWorld,
    Problem,
    Round,
    World,
    context_settings,
    contexts,
    recorded,
    rounds,
    settings,
    world_settings,
)
from coterie.runs.entries import learner_settings
from coterie.runs.trial import Trial
from coterie.runs.worlds import Data, DrawnWorld, LogSettings, LogWorld, Protocol, StudyWorld
from recorded import small_log

ROUNDS = 25
SMALL = {"n_users": 9, "n_arms": 6, "n_candidates": 3, "dimension": 3, "horizon": 60}
KINDS, SHOWN, NOISES, REWARDS = (
    get_args(each) for each in (settings.Kind, settings.ShownGraph, rounds.NoiseKind, rounds.RewardKind)
)


def drawn_subjects() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields every kind, preset, level, family of graphs, shown graph and law of rewards, as the settings name them."""
    for kind in KINDS:
        yield f"kind {kind}", {"kind": kind, **({"number": 3, "horizon": 60} if kind == "random" else SMALL)}
    for preset, level in product(PRESETS, LEVELS):
        yield f"{preset} {level}", {"preset": preset, "level": level, "horizon": 60}
    for family in FAMILIES:
        yield f"graph {family}", {**SMALL, "graph": family, "connected": "keep"}
    for shown in SHOWN:
        yield f"shown {shown}", {**SMALL, "shown_graph": shown}
    for noise in NOISES:
        yield f"noise {noise}", {**SMALL, "noise": noise}
    for rewards in REWARDS:
        yield f"rewards {rewards}", {**SMALL, "rewards": rewards}
    yield "drift", {**SMALL, "drift": 1.0, "rewards": "binary"}
    yield "late users", {**SMALL, "late_share": 0.5}
    yield "heterophily", {**SMALL, "heterophily": True}


def context_subjects() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields every kind of contexts that matter, partly or not, with and without features of arms."""
    names = get_args(contexts.Contexts), get_args(contexts.Matter), (True, False)
    for kind, matter, features in product(*names):
        shown = {"contexts": kind, "matter": matter, "arm_features": features}
        yield f"contexts {kind} {matter} {'' if features else 'no '}features", {**SMALL, **shown}


def recorded_subjects() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields every protocol, with every law of the other candidates and every online feature."""
    for protocol, negatives in product(get_args(Protocol), get_args(recorded.Negatives)):
        yield (
            f"{protocol} {negatives}",
            {"protocol": protocol, "negatives": negatives, "n_candidates": 4, "least_positives": 5, "horizon": 60},
        )


def a_log() -> Log:
    """Returns a small log with candidates, the logged arm among them."""
    log = small_log(n_arms=16, liked=6)
    lists = [[int(arm), *((int(arm) + step) % 16 for step in (1, 5, 9))] for arm in log.events.arm]
    return small_log(n_arms=16, liked=6, candidates=Ragged.of(lists))


DRAWN, RECORDED = {**dict(drawn_subjects()), **dict(context_subjects())}, dict(recorded_subjects())


@dataclass(frozen=True)
class Subject:
    """A world of a study, and two draws of its first rounds from one seed."""

    world: StudyWorld
    first: Trial
    again: Trial


@pytest.fixture(scope="module", params=[*DRAWN, *RECORDED])
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    if request.param in DRAWN:
        return made(drawn_world(request.param))
    folder = tmp_path_factory.mktemp("log")
    write_log(a_log(), folder / "log")
    return made(LogWorld(settings=LogSettings(folder=str(folder / "log"), **RECORDED[request.param])))


def drawn_world(name: str) -> DrawnWorld:
    values = DRAWN[name]
    return DrawnWorld(settings=context_settings(values) if "contexts" in values else world_settings(values))


def made(world: StudyWorld) -> Subject:
    first, again = (Trial(world, seed=5, number=2, rounds=ROUNDS) for _ in range(2))
    return Subject(world, first, again)


def classes(module: ModuleType) -> set[type]:
    """Returns the classes of a module that are problems: those with `judge`."""
    found = {value for value in vars(module).values() if isinstance(value, type) and hasattr(value, "judge")}
    return {each for each in found if each is not Problem}


def test_every_class_of_problem_and_every_source_of_logs_is_a_subject() -> None:
    known = classes(problems) | classes(recorded)
    assert known == {World, ContextWorld, recorded.OnePositive, recorded.Replay}
    assert "plain" in get_args(Data)


def test_rounds_come_from_the_seed_alone(subject: Subject) -> None:
    assert subject.first.rounds == subject.again.rounds
    other = Trial(subject.world, seed=6, number=2, rounds=ROUNDS)
    replays = isinstance(subject.first.world, recorded.Replay)
    assert (other.rounds == subject.first.rounds) == replays  # a replay has one order of rows


def test_a_round_shows_users_and_distinct_arms_of_the_problem(subject: Subject) -> None:
    problem = subject.first.world
    for number, shown in enumerate(subject.first.rounds):
        assert shown.t == number
        assert shown.user in problem.graph.index
        assert len(set(shown.candidates)) == len(shown.candidates) >= 1
        assert all(arm in problem.arms.index for arm in shown.candidates)


def test_every_round_has_a_context_where_the_world_has_contexts(subject: Subject) -> None:
    has_contexts = isinstance(subject.world.settings, ContextSettings)
    names = set(getattr(subject.first.world, "context_schema", ()))
    assert bool(names) == has_contexts
    for shown in subject.first.rounds:
        assert (shown.context is not None) == has_contexts
        assert set(shown.context or ()) == names


def test_it_judges_by_a_reward_and_a_regret_that_is_none_for_the_best(subject: Subject) -> None:
    problem = subject.first.world
    for shown in subject.first.rounds:
        judged = [problem.judge(shown, arm) for arm in shown.candidates]
        regrets = [regret for _, regret in judged]
        assert all(isinstance(reward, float) and isinstance(regret, float) for reward, regret in judged)
        if all(map(isnan, regrets)):
            assert sum(not isnan(reward) for reward, _ in judged) == 1  # of the logged arm alone
        else:
            assert not any(map(isnan, regrets))
            assert min(regrets) == 0.0
        np.testing.assert_array_equal(judged, [problem.judge(shown, arm) for arm in shown.candidates])


def test_it_refuses_an_arm_that_was_not_shown(subject: Subject) -> None:
    with pytest.raises(CandidatesError, match="was not shown"):
        subject.first.world.judge(subject.first.rounds[0], "nowhere")


def test_policies_meet_the_same_rounds_whatever_they_choose(subject: Subject) -> None:
    before = list(subject.first.rounds)
    for policy in ("random", "gob-lin", "auto-ucb"):
        subject.first.play(learner_settings({"policy": policy}, {}))
    assert subject.first.rounds == before == subject.again.rounds


def reachable(start: Any, most: int = 200_000) -> Iterator[Any]:
    """Yields everything that an object holds, and what that holds, but for modules, classes and functions' globals."""
    seen, left = {id(start)}, [start]
    while left and len(seen) < most:
        held = left.pop()
        yield held
        inside = [*held.__closure__] if isinstance(held, FunctionType) and held.__closure__ else []
        inside = inside if isinstance(held, FunctionType) else gc.get_referents(held)
        for each in inside:
            if id(each) not in seen and not isinstance(each, type | ModuleType):
                seen.add(id(each))
                left.append(each)


@cache
def playing() -> tuple[str, ...]:
    return tuple(name for name in list_policies() if name != "oracle")


def test_what_a_learner_is_given_does_not_lead_to_the_truth(subject: Subject) -> None:
    problem = subject.first.world
    hidden = hidden_in(problem)
    assert hidden
    given = [problem.graph, problem.arms, getattr(problem, "context_schema", None)]
    for part in (*given, *(shown.context for shown in subject.first.rounds)):
        assert not {id(each) for each in reachable(part)} & hidden


@pytest.mark.parametrize("policy", playing())
def test_no_policy_but_the_oracle_holds_the_truth(policy: str, tmp_path: Path) -> None:
    write_log(a_log(), tmp_path / "log")
    worlds: dict[str, Callable[[], StudyWorld]] = {
        "drawn": lambda: drawn_world("kind gp-draw"),
        "with contexts": lambda: drawn_world("contexts smooth yes features"),
        "recorded": lambda: LogWorld(
            settings=LogSettings(folder=str(tmp_path / "log"), **RECORDED["one-positive uniform"])
        ),
    }
    for make in worlds.values():
        trial = Trial(make(), seed=0, number=0, rounds=5)
        learner = trial.learner(learner_settings({"policy": policy}, {}))
        held = {id(each) for each in reachable(learner)}
        assert not held & (hidden_in(trial.world) | {id(trial.world)}), policy


def hidden_in(problem: Any) -> set[int]:
    """Returns what a problem keeps to itself: its private parts that are tables, arrays or problems of their own."""
    names = [name for each in type(problem).__mro__ for name in getattr(each, "__slots__", ())]
    private = [getattr(problem, name) for name in names if name.startswith("_")]
    return {id(each) for each in private if isinstance(each, dict | np.ndarray) or hasattr(each, "draw")}


def test_the_search_for_the_truth_finds_it_where_it_is() -> None:
    trial = Trial(DrawnWorld(settings=world_settings(SMALL)), seed=0, number=0, rounds=5)
    oracle = trial.learner(learner_settings({"policy": "oracle"}, {}))
    assert hidden_in(trial.world) <= {id(each) for each in reachable(oracle)}
    assert isinstance(trial.world.graph, UserGraph)
    assert isinstance(trial.world.arms, ArmPool)
    assert isinstance(trial.rounds[0], Round)
