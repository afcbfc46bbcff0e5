"""Runs a study: pilot, then trials, in as many processes as asked, each unit stored as soon as it is done."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from coterie.errors import LearnerError, StoreError
from coterie.runs.extras import require_extra
from coterie.runs.play import Trial
from coterie.runs.recorded.parts import Part
from coterie.runs.recorded.settings import LogSettings
from coterie.runs.recorded.working import estimate, limit_memory, missing_estimates, missing_parts, run_part
from coterie.runs.slots import Slots
from coterie.runs.store import Store
from coterie.runs.study import Study, study_from
from coterie.runs.tuning import choose, play_pilot, tuned_for

UNITS_A_PROCESS = 4  # a log is read once for these
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit of work: a trial of the pilot or of the study itself, with its rough cost in seconds.

    On a log it is one policy of a trial, or with `timing` a look at how long that policy takes.
    """

    pilot: bool
    world: str
    number: int
    cost: float
    policy: str = ""
    timing: bool = False


OnUnit = Callable[[Unit, int, float, float], None]
OnPlan = Callable[[list[Unit]], None]


def run_study(
    study: Study,
    out: Path,
    *,
    jobs: int = 1,
    resume: bool = False,
    on_unit: OnUnit | None = None,
    on_plan: OnPlan | None = None,
) -> Store:
    """Runs what is missing of a study and returns its store.

    Args:
        study: What to run.
        out: The folder of its results.
        jobs: Processes; each has one BLAS thread. The results are the same bytes whatever their number.
        resume: Whether `out` may hold a part of this very study already; finished trials are never run again.
        on_unit: Told after each unit: the unit, units left, cost done and cost in all.
        on_plan: Told once what will be run, with the cost of each.
    """
    store = Store(out)
    with store.locked():
        if resume and (out / "manifest.json").exists():
            stored = store.open()
            _check_same(study, stored, out)
            if study.trials > stored.trials:
                store.extend(study)
        else:
            store.create(study)
        _run_missing(study, store, jobs, on_unit, on_plan)
    return store


def _run_missing(study: Study, store: Store, jobs: int, on_unit: OnUnit | None, on_plan: OnPlan | None) -> None:
    with _Workers(study, store, jobs) as workers:
        timings = list(_timings(study, store))
        _run_phase(workers, timings, on_unit, total=float(len(timings)))
        pilots, trials = missing_units(study, store)
        if on_plan is not None:
            on_plan([*pilots, *trials])
        total = sum(unit.cost for unit in [*pilots, *trials])
        _run_phase(workers, pilots, on_unit, total=total, after=len(trials))
        if study.tuning is not None:
            store.write_tuned(_tuned(study, store))
        _run_phase(workers, trials, on_unit, total=total, before=sum(unit.cost for unit in pilots))


def _run_phase(
    workers: "_Workers",
    units: list[Unit],
    on_unit: OnUnit | None,
    *,
    total: float,
    before: float = 0.0,
    after: int = 0,
) -> None:
    done, left = before, len(units) + after
    for unit in workers.run(units):
        done, left = done + unit.cost, left - 1
        if on_unit is not None:
            on_unit(unit, left, done, total)


def _timings(study: Study, store: Store) -> Iterator[Unit]:
    """Yields what to look at first on a log: how long each policy takes."""
    if study.of_logs:
        for world, label in missing_estimates(study, store):
            yield Unit(False, world, 0, 1.0, label, timing=True)


def missing_units(study: Study, store: Store) -> tuple[list[Unit], list[Unit]]:
    """Returns the pilot trials and the trials that are not finished yet, the dearest first."""
    pilots, trials = [], []
    if study.of_logs:
        parts = [Unit(False, part.world, part.number, cost, part.label) for part, cost in missing_parts(study, store)]
        return [], sorted(parts, key=lambda unit: (unit.number, -unit.cost))  # what is there of it can be compared
    for each in study.worlds:
        settings = each.settings
        assert not isinstance(settings, LogSettings)
        pairs = settings.n_users * settings.n_arms
        second = 2e-5 + 2e-10 * pairs**2 / 5  # of a round, roughly: reading a belief, and updating one of this size
        if study.tuning is not None:
            tried = sum(len(grid) for grid in study.grids(each.name).values())
            cost = tried * min(study.tuning.horizon, settings.horizon) * second
            numbers = [i for i in range(study.tuning.trials) if tried and not store.has_pilot(each.name, i)]
            pilots += [Unit(True, each.name, i, cost) for i in numbers]
        cost = len(study.playing(each.name)) * settings.horizon * second
        trials += [Unit(False, each.name, i, cost) for i in range(study.trials) if not store.has_trial(each.name, i)]
    return sorted(pilots, key=_dearest), sorted(trials, key=_dearest)


def _dearest(unit: Unit) -> float:
    return -unit.cost


def run_unit(study: Study, store: Store, unit: Unit) -> None:
    """Runs one unit and stores it."""
    with _told(unit):
        _run_unit(study, store, unit)


@contextmanager
def _told(unit: Unit) -> Iterator[None]:
    """Says in which trial a learner failed."""
    try:
        yield
    except LearnerError as error:
        where = f"{'pilot ' if unit.pilot else ''}trial {unit.number} of {unit.world!r}"
        raise LearnerError(f"{error.problem}, in {where}", error.rule, error.remedy) from error.__cause__


def _run_unit(study: Study, store: Store, unit: Unit) -> None:
    if unit.timing:
        estimate(study, store, unit.world, unit.policy)
        return
    if unit.policy:
        run_part(study, store, Part(unit.world, unit.number, unit.policy))
        return
    if unit.pilot:
        store.write_pilot(unit.world, unit.number, play_pilot(study, unit.world, unit.number))
        return
    settings = study.world(unit.world).settings
    assert not isinstance(settings, LogSettings)
    trial = Trial(settings, seed=study.seed, number=unit.number)
    tuned = tuned_for(study, store.read_tuned(), unit.world)
    played = {each.label: trial.play(each, tuned.get(each.label)) for each in study.playing(unit.world)}
    store.write_trial(unit.world, unit.number, trial.users, played)


def _tuned(study: Study, store: Store) -> dict[str, Any]:
    assert study.tuning is not None
    numbers = range(study.tuning.trials)
    return {
        each.name: choose([store.read_pilot(each.name, i) for i in numbers])
        for each in study.worlds
        if study.grids(each.name)
    }


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
                "Choose another --out, or run with the settings it was begun with",
            )


def one_blas_thread() -> Any:
    """Returns a context in which BLAS has one thread: on small matrices a second one waits more than it works."""
    with require_extra("lab", "running a study"):
        from threadpoolctl import threadpool_limits
    return threadpool_limits(limits=1, user_api="blas")


def ends_early(study: Study) -> bool:
    """Whether processes end after a few units.

    A policy that fits in a thread leaves its last fit waiting there, with a model of the size of the log.
    """
    return study.of_logs and any(each.policy.startswith("auto-") for each in study.policies)


class _Workers:
    """Runs units here or in processes, and yields each as it ends."""

    def __init__(self, study: Study, store: Store, jobs: int) -> None:
        self.study, self.store, self.jobs = study, store, jobs
        ends = ends_early(study)
        self._slots: Slots[Unit] | None = None
        if jobs > 1 or ends:
            self._slots = Slots(jobs, most=UNITS_A_PROCESS if ends else None, start=self._process)

    def _process(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start_worker,
            initargs=(self.study.as_dict(), str(self.store.folder)),
        )

    def __enter__(self) -> "_Workers":
        return self

    def __exit__(self, kind: object, _error: object, _trace: object) -> None:
        if self._slots is not None:
            self._slots.end(at_once=kind is not None)

    def run(self, units: list[Unit]) -> Iterator[Unit]:
        if self._slots is None:
            with one_blas_thread():
                for unit in units:
                    run_unit(self.study, self.store, unit)
                    yield unit
            return
        with _one_thread_in_children():
            for unit, future in self._slots.run(_work, units):
                try:
                    future.result()
                except BrokenProcessPool:
                    raise StoreError(
                        "a process of the study died, out of memory perhaps",
                        "finished trials are stored",
                        "Go on with --resume and fewer --jobs",
                    ) from None
                yield unit


@contextmanager
def _one_thread_in_children() -> Iterator[None]:
    """Lets processes that are started inside have one BLAS thread each."""
    before = {name: os.environ.get(name) for name in BLAS_THREADS}
    os.environ.update(dict.fromkeys(BLAS_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


_HERE: dict[str, Any] = {}


def _start_worker(study: dict[str, Any], folder: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides; a unit under way is dropped, never half written
    Thread(target=_end_with_parent, daemon=True).start()
    _HERE["study"], _HERE["store"] = study_from(study), Store(Path(folder))
    if _HERE["study"].of_logs:
        limit_memory()


def _end_with_parent() -> None:
    """Ends this process when the parent is gone, killed perhaps, so that no worker is left behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(unit: Unit) -> None:
    run_unit(_HERE["study"], _HERE["store"], unit)
