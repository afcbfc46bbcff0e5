"""Runs a study: pilot, then trials, in as many processes as asked, each unit stored as soon as it is done."""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import log2
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from coterie.errors import CoterieError, LearnerError, StoreError
from coterie.policies.factory.recipes import RECIPES
from coterie.runs.entries import LearnerSettings
from coterie.runs.store import Store, Tried, Unit
from coterie.runs.study import Study, study_from
from coterie.runs.trial import FINAL, PILOT, Trial
from coterie.runs.workers import MEMORY_LIMIT, Work, Workers, limit_memory

UNITS_A_PROCESS = 4  # a log is read once for these
FIRST_ROUNDS = 200  # enough for engine "local" to come to what a decision costs it later on

OnUnit = Callable[[Unit, int, float, float], None]
OnPlan = Callable[[list[Unit]], None]


class Crew(Protocol):
    """Who does the units of a study."""

    def run(self, units: Sequence[Unit]) -> Iterator[Unit]:
        """Yields each unit when it is done and stored."""


class Place(Protocol):
    """Where units are done; the results are the same bytes wherever that is."""

    @property
    def size(self) -> int:
        """How many units are done at a time."""

    def crew(self, study: Study, store: Store) -> AbstractContextManager[Crew]:
        """Returns those who do the units of a study, as long as the context lasts."""


@dataclass(frozen=True, slots=True)
class Processes:
    """Processes of this machine, each with one BLAS thread.

    Attributes:
        size: How many.
    """

    size: int = 1

    def crew(self, study: Study, store: Store) -> AbstractContextManager[Crew]:
        """Returns processes that write to the store themselves."""
        given, here = (study.as_dict(), str(store.folder)), UnitRunner(study, store).run
        return Workers(self.size, most=units_a_process(study), here=here, make=unit_runner, given=given)


def run_study(
    study: Study,
    out: Path,
    *,
    place: Place = Processes(),  # noqa: B008 - it cannot be changed
    resume: bool = False,
    on_unit: OnUnit | None = None,
    on_plan: OnPlan | None = None,
) -> Store:
    """Runs what is missing of a study and returns its store.

    Args:
        study: What to run.
        out: The folder of its results.
        place: Where the units are done, by default in this process.
        resume: Whether `out` may hold a part of this very study already; finished units are never run again.
        on_unit: Called after each unit with the unit, units left, cost done and cost in all.
        on_plan: Called once with what will be run, and the cost of each.
    """
    study.check()
    store = Store(out)
    with store.locked():
        if resume and (out / "manifest.json").exists():
            stored = store.open()
            _check_same(study, stored, out)
            if study.trials > stored.trials:
                store.extend(study)
        else:
            store.create(study)
        _run_missing(study, store, place, on_unit, on_plan)
    return store


def _run_missing(study: Study, store: Store, place: Place, on_unit: OnUnit | None, on_plan: OnPlan | None) -> None:
    with place.crew(study, store) as crew:
        timings = list(_missing_timings(study, store))
        _run_phase(crew, timings, on_unit, total=float(len(timings)))
        pilots, trials = missing_units(study, store)
        if on_plan is not None:
            on_plan([*pilots, *trials])
        total = sum(unit.cost for unit in [*pilots, *trials])
        _run_phase(crew, pilots, on_unit, total=total, after=len(trials))
        if study.tuning is not None:
            store.write_tuned(_tuned(study, store))
        _run_phase(crew, trials, on_unit, total=total, before=sum(unit.cost for unit in pilots))


def _run_phase(
    crew: Crew,
    units: list[Unit],
    on_unit: OnUnit | None,
    *,
    total: float,
    before: float = 0.0,
    after: int = 0,
) -> None:
    done, left = before, len(units) + after
    for unit in crew.run(units):
        done, left = done + unit.cost, left - 1
        if on_unit is not None:
            on_unit(unit, left, done, total)


def units_a_process(study: Study) -> int | None:
    """Returns after how many units a process gives way to a new one; None for any number."""
    return UNITS_A_PROCESS if ends_early(study) else None


def ends_early(study: Study) -> bool:
    """Whether processes end after a few units.

    A policy that fits in a thread leaves its last fit waiting there, with a model of the size of the log.
    """
    return study.of_logs and any(each.policy in RECIPES and RECIPES[each.policy].auto for each in study.policies)


def missing_units(study: Study, store: Store) -> tuple[list[Unit], list[Unit]]:
    """Returns what is not finished of the pilot and of the trials: trial by trial, the dearest first."""
    found = [unit for unit in (*_pilot_units(study), *_trial_units(study, store)) if not store.has(unit)]
    found.sort(key=lambda unit: (unit.number, -unit.cost))  # whole trials can be compared before the rest is there
    return [unit for unit in found if unit.kind == "pilot"], [unit for unit in found if unit.kind == "trial"]


def _pilot_units(study: Study) -> Iterator[Unit]:
    if study.tuning is None:
        return
    for world in study.worlds:
        seconds = min(study.tuning.horizon, world.horizon) * (world.round_seconds or 0.0)
        for number in range(study.tuning.trials):
            for label, grid in study.grids(world.name).items():
                yield Unit(world.name, number, label, "pilot", len(grid) * seconds)


def _trial_units(study: Study, store: Store) -> Iterator[Unit]:
    timed = timed_worlds(study)
    for world in study.worlds:
        for number in range(study.trials):
            for policy in study.playing(world.name):
                usual = {"round": world.round_seconds}
                seconds = store.estimate(timed[world.name], policy.label) if world.name in timed else usual
                yield Unit(world.name, number, policy.label, cost=_cost(world.n_rounds, seconds))


def timed_worlds(study: Study) -> dict[str, str]:
    """Returns for each world that is timed the one whose first rounds are: the first that costs the same."""
    first: dict[tuple[Any, ...], str] = {}
    timed = [each for each in study.worlds if each.round_seconds is None]
    return {each.name: first.setdefault(each.cost_key, each.name) for each in timed}


def _missing_timings(study: Study, store: Store) -> Iterator[Unit]:
    """Yields the first rounds of policies that nobody has timed yet, in a trial that the study never plays."""
    for name in dict.fromkeys(timed_worlds(study).values()):
        for policy in study.playing(name):
            unit = Unit(name, study.trials, policy.label, "timing", 1.0)
            if not store.has(unit):
                yield unit


def _cost(horizon: int, seconds: Mapping[str, Any]) -> float:
    """Returns the seconds of a whole trial: what is done from time to time is done each time rounds double."""
    make, usual, at_times = (seconds.get(key, 0.0) for key in ("make", "round", "at_times"))
    return float(make + horizon * usual + at_times * log2(max(horizon, 2)) / log2(FIRST_ROUNDS))


def unit_runner(study: dict[str, Any], folder: str) -> Work[Unit]:
    """Returns what runs a unit in a process of its own, which has so much memory and no more if it reads a log."""
    given = study_from(study)
    if given.of_logs:
        limit_memory()
    return UnitRunner(given, Store(Path(folder))).run


class UnitRunner:
    """Runs units of a study and stores each; what is drawn for a trial is drawn once for its policies.

    Args:
        study: The study.
        store: Where its results go.
    """

    def __init__(self, study: Study, store: Store) -> None:
        self._study, self._store = study, store
        self._trial = lru_cache(maxsize=2 if study.of_logs else 1)(self._draw)  # policies of two logs take turns

    def run(self, unit: Unit) -> None:
        """Runs one unit and stores it."""
        policy = self._study.policy(unit.policy)
        with _located(unit):
            if unit.kind == "timing":
                self._time(unit, policy)
            elif unit.kind == "pilot":
                self._store.write_pilot(unit, self._try(unit, policy))
            else:
                self._play(unit, policy)

    def _draw(self, world: str, number: int, kind: int = FINAL, rounds: int | None = None) -> Trial:
        return Trial(self._study.world(world), seed=self._study.seed, number=number, kind=kind, rounds=rounds)

    def _try(self, unit: Unit, policy: LearnerSettings) -> Tried:
        """Returns the regret of every setting of a policy's grid, on a trial that the study plays only if asked."""
        tuning = self._study.tuning
        assert tuning is not None
        trial = self._trial(unit.world, unit.number, FINAL if tuning.hindsight else PILOT, tuning.horizon)
        grid = self._study.grids(unit.world)[unit.policy]
        return [(values, float(trial.play(policy, values).regrets.sum())) for values in grid]

    def _play(self, unit: Unit, policy: LearnerSettings) -> None:
        """Plays a policy; on a log what cannot run at its size is stored as such, on a drawn world it is a defect."""
        timed = timed_worlds(self._study).get(unit.world)
        if timed and (failed := self._store.estimate(timed, unit.policy).get("failed")):
            self._store.write_failure(unit, failed)
            return
        trial = self._trial(unit.world, unit.number)
        tuned = tuned_for(self._study, self._store.read_tuned(), unit.world).get(unit.policy)
        if self._study.of_logs:
            self._store.write_facts(unit.world, trial.facts())
            gc.collect()  # what an earlier policy held is not this one's
        try:
            played = trial.play(policy, tuned)
        except (CoterieError, MemoryError) as error:
            if not self._study.of_logs:
                raise
            self._store.write_failure(unit, _reason(error))
        else:
            self._store.write_played(unit, trial, played)

    def _time(self, unit: Unit, policy: LearnerSettings) -> None:
        """Plays the first rounds of a trial, and stores how long they took."""
        seconds: Mapping[str, Any]
        try:
            seconds = first_rounds(self._trial(unit.world, unit.number), policy)
        except (CoterieError, MemoryError) as error:
            seconds = {"failed": _reason(error)}
        self._store.write_estimate(unit.world, unit.policy, seconds)


def first_rounds(trial: Trial, policy: LearnerSettings) -> dict[str, float]:
    """Returns the seconds to make a policy, of a usual round, and of what is done from time to time."""
    start = perf_counter()
    learner = trial.learner(policy)
    made = perf_counter()
    moments = [perf_counter() for _ in islice(trial.steps(policy, learner), FIRST_ROUNDS)]
    usual = float(np.median(np.diff([made, *moments])))  # refits and what is compiled are not usual
    return {"make": made - start, "round": usual, "at_times": max(moments[-1] - made - usual * len(moments), 0.0)}


def _reason(error: BaseException) -> str:
    return str(error) or f"out of memory ({MEMORY_LIMIT / 2**30:g} GiB)"


@contextmanager
def _located(unit: Unit) -> Iterator[None]:
    """Says in which trial a learner failed."""
    try:
        yield
    except LearnerError as error:
        where = f"{'pilot ' if unit.kind == 'pilot' else ''}trial {unit.number} of {unit.world!r}"
        raise LearnerError(f"{error.problem}, in {where}", error.rule, error.remedy) from error.__cause__


def _tuned(study: Study, store: Store) -> dict[str, Any]:
    """Returns what the pilot chose, by world and policy."""
    assert study.tuning is not None
    out: dict[str, Any] = {}
    for world in study.worlds:
        for label in study.grids(world.name):
            pilots = [Unit(world.name, number, label, "pilot") for number in range(study.tuning.trials)]
            out.setdefault(world.name, {})[label] = choose([store.read_pilot(each) for each in pilots])
    return out


def choose(pilots: list[Tried]) -> dict[str, Any]:
    """Returns the setting of least mean regret over pilot trials, the first of equals, and the whole grid.

    Examples:
        >>> one, two = [({"width": 1.0}, 5.0), ({"width": 2.0}, 7.0)], [({"width": 1.0}, 9.0), ({"width": 2.0}, 6.0)]
        >>> choose([one, two])["chosen"]
        {'width': 2.0}
    """
    means = np.mean([[regret for _, regret in tried] for tried in pilots], axis=0)
    settings = [values for values, _ in pilots[0]]
    grid = [{**values, "mean_regret": float(mean)} for values, mean in zip(settings, means, strict=True)]
    return {"chosen": settings[int(np.argmin(means))], "grid": grid}


def tuned_for(study: Study, tuned: Mapping[str, Any], world: str) -> dict[str, Mapping[str, Any]]:
    """Returns the frozen settings for a world: its own pilot's, or those of the world it is tuned on."""
    records = tuned.get(study.world(world).tuned_on, {})
    return {label: record["chosen"] for label, record in records.items()}


def _check_same(study: Study, stored: Study, out: Path) -> None:
    """Raises if the folder holds another study."""
    mine, theirs = study.as_dict(), stored.as_dict()
    if study.trials >= stored.trials:
        theirs["trials"] = study.trials
    for key in mine.keys() | theirs.keys():
        if mine.get(key) != theirs.get(key):
            raise StoreError(
                f"{str(out)!r} holds a study with another {key!r}",
                "only the same study can be resumed",
                "Choose another --out, or run with the settings it was started with",
            )
