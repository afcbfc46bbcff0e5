"""The units of a study on logs: how long each policy takes, and then each policy in each trial."""

import gc
from collections.abc import Iterator
from contextlib import suppress
from math import log2
from time import perf_counter, process_time
from typing import Any

import numpy as np

from coterie.errors import CoterieError
from coterie.problems.recorded import OnePositive
from coterie.runs.entries import LearnerSettings
from coterie.runs.recorded.memory import peak_memory
from coterie.runs.recorded.parts import Part, Parts
from coterie.runs.recorded.settings import LogSettings
from coterie.runs.recorded.sources import log_of
from coterie.runs.recorded.trial import RecordedTrial, play_log, recorded_trial
from coterie.runs.store import Store
from coterie.runs.study import Study, StudyWorld

FIRST_ROUNDS = 200  # enough for engine "local" to come to what a decision costs it later on
MEMORY_LIMIT = 8 * 2**30  # of addresses; what is held is less. Beyond it a policy is told so, not the machine


def timed_worlds(study: Study) -> dict[str, StudyWorld]:
    """Returns for each world the one whose first rounds say how long policies take there: the first alike."""
    alike: dict[tuple[Any, ...], StudyWorld] = {}
    for each in study.worlds:
        alike.setdefault(_kind(each), each)
    return {each.name: alike[_kind(each)] for each in study.worlds}


def _kind(world: StudyWorld) -> tuple[Any, ...]:
    settings = world.settings
    assert isinstance(settings, LogSettings)
    return settings.data, settings.folder, settings.protocol, settings.n_candidates, settings.online_features


def missing_estimates(study: Study, store: Store) -> Iterator[tuple[str, str]]:
    """Yields world and label of what nobody has timed yet."""
    parts = Parts(store)
    for name in dict.fromkeys(each.name for each in timed_worlds(study).values()):
        for policy in study.playing(name):
            if not parts.estimate(name, policy.label):
                yield name, policy.label


def missing_parts(study: Study, store: Store) -> Iterator[tuple[Part, float]]:
    """Yields the policies and trials that are not there, with the seconds that each will take."""
    parts, timed = Parts(store), timed_worlds(study)
    for world in study.worlds:
        for policy in study.playing(world.name):
            seconds = parts.estimate(timed[world.name].name, policy.label)
            cost = _cost(
                world.settings.horizon, **{key: seconds.get(key, 0.0) for key in ("make", "round", "at_times")}
            )
            for number in range(study.trials):
                part = Part(world.name, number, policy.label)
                if not parts.has(part):
                    yield part, cost


def _cost(horizon: int, *, make: float, round: float, at_times: float) -> float:
    """Returns the seconds of a whole trial: what is done anew from time to time is done each time rounds double."""
    return make + horizon * round + at_times * log2(max(horizon, 2)) / log2(FIRST_ROUNDS)


def estimate(study: Study, store: Store, world: str, label: str) -> None:
    """Plays the first rounds of a trial that the study itself never plays, and stores how long they took."""
    seconds: dict[str, Any]
    try:
        seconds = _timed(_trial(study, world, study.trials), _policy(study, label))
    except (CoterieError, MemoryError) as error:
        seconds = {"failed": _reason(error)}
    Parts(store).write_estimate(world, label, seconds)


def _timed(trial: RecordedTrial, policy: LearnerSettings) -> dict[str, float]:
    start = perf_counter()
    learner = trial.learner(policy, {})
    made = perf_counter()
    moments = [perf_counter() for _ in play_log(learner, trial.problem, trial.rounds[:FIRST_ROUNDS])]
    usual = float(np.median(np.diff([made, *moments])))  # refits and what is compiled are not usual
    return {"make": made - start, "round": usual, "at_times": max(moments[-1] - made - usual * len(moments), 0.0)}


def run_part(study: Study, store: Store, part: Part) -> None:
    """Plays one policy in one trial and stores it; what cannot run at this size is stored as such."""
    parts = Parts(store)
    failed = parts.estimate(timed_worlds(study)[part.world].name, part.label).get("failed")
    if failed:
        parts.write_failure(part, failed)
        return
    trial = _trial(study, part.world, part.number)
    parts.write_facts(part.world, facts(trial, study.world(part.world)))
    gc.collect()  # what an earlier policy held is not this one's
    try:
        with peak_memory() as peak:
            start = process_time()
            played = trial.play(_policy(study, part.label))
            memory, seconds = peak(), process_time() - start
    except (CoterieError, MemoryError) as error:
        parts.write_failure(part, _reason(error))
        return
    parts.write(part, trial, played, memory=memory, core_seconds=seconds)


def facts(trial: RecordedTrial, world: StudyWorld) -> dict[str, Any]:
    """Returns what a log holds, for the report."""
    problem, settings = trial.problem, world.settings
    assert isinstance(settings, LogSettings)
    found = {
        "n_users": problem.graph.n_users,
        "n_edges": problem.graph.n_edges,
        "n_arms": len(problem.arms),
        "dimension": problem.arms.dimension,
        "rounds": len(trial.rounds),
        "left_out": dict(log_of(settings.data, settings.folder).left_out),
    }
    if isinstance(problem, OnePositive):
        return {**found, "n_served": len(problem.served), "n_short": problem.n_short}
    return found


def _trial(study: Study, world: str, number: int) -> RecordedTrial:
    settings = study.world(world).settings
    assert isinstance(settings, LogSettings)
    return recorded_trial(settings, study.seed, number)


def _policy(study: Study, label: str) -> LearnerSettings:
    return next(each for each in study.policies if each.label == label)


def _reason(error: BaseException) -> str:
    return str(error) or f"out of memory ({MEMORY_LIMIT / 2**30:g} GiB)"


def limit_memory() -> None:
    """Lets this process have so much memory and no more, where the system knows such limits."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, hard))
