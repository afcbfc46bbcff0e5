"""The results of a study as they lie in memory: what the comparison, the figures and the report read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import Array
from coterie.errors import StoreError
from coterie.runs.store import Store, Unit
from coterie.runs.study import Study, study_from

Ints = NDArray[np.int64]
NEGATIVES = {"uniform": "others drawn uniformly", "popularity": "others drawn by popularity"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogResults:
    """What came of one log: a round has a reward, and a user of so many neighbours and visits.

    Attributes:
        name: The world's name.
        settings: Its settings, as plain values.
        facts: What the log holds.
        rewards: Policy -> trial -> one reward a round; NaN where a replay did not use the row.
        visits: Trial -> which visit of its user each round is, from 0.
        degrees: Trial -> how many neighbours the user of each round has.
        seconds: Policy -> trial -> seconds of a round.
        core_seconds: What all of it took on a core.
        memory: Policy -> the most bytes held in any trial.
        failed: Policy -> why it could not run.
        fits: Policy -> trial -> what it learned of its hyperparameters, fit by fit.
    """

    name: str
    settings: Mapping[str, Any]
    facts: Mapping[str, Any]
    rewards: Mapping[str, Mapping[int, Array]]
    visits: Mapping[int, Ints]
    degrees: Mapping[int, Ints]
    seconds: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    core_seconds: float = 0.0
    memory: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    fits: Mapping[str, Mapping[int, list[dict[str, float]]]] = field(default_factory=dict)

    @property
    def replays(self) -> bool:
        """Whether logged choices were replayed."""
        return self.settings.get("protocol") == "replay"

    @property
    def setting(self) -> str:
        """What is shown, in words."""
        return "logged candidates" if self.replays else NEGATIVES[str(self.settings["negatives"])]

    def trials(self, *policies: str) -> list[int]:
        """Returns the trials that all these policies have played."""
        played = [set(self.rewards.get(policy, ())) for policy in policies]
        return sorted(set.intersection(*played)) if played else []

    def means(self, policy: str) -> Array:
        """Returns the mean reward of a policy, one number a trial; hits in a round where rewards are 0 and 1."""
        return np.array([np.nanmean(self.rewards[policy][trial]) for trial in self.trials(policy)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What came of a study, trial by trial: the regrets of drawn worlds, or the rewards of logs.

    Attributes:
        name: The study's short name, fit for a file name.
        title: The study's title, for people.
        settings: The study with every default written out.
        versions: What it ran on: coterie, Python, NumPy, SciPy.
        regrets: World -> policy -> one row a trial, one column a round.
        seconds: World -> policy -> seconds per round in each trial; empty where timings are lost.
        tuned: World -> policy -> the settings that the pilot chose; empty where nothing was tuned.
        pilot: World -> policy -> one record a setting of the grid: its values and its mean pilot regret.
        logs: World -> what came of it, where worlds are logs.

    Examples:
        >>> results = Results(name="tiny", title="A tiny study", settings={}, versions={},
        ...                   regrets={"easy": {"random": np.ones((2, 5))}})
        >>> results.cum_regret("easy", "random")[:, -1]
        array([5., 5.])
    """

    name: str
    title: str
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    regrets: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    seconds: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    tuned: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    pilot: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]] = field(default_factory=dict)
    logs: Mapping[str, LogResults] = field(default_factory=dict)

    @property
    def worlds(self) -> list[str]:
        """The worlds, in the study's order."""
        return list(self.logs or self.regrets)

    def policies(self, world: str) -> list[str]:
        """Returns the policies that played this world, in the study's order."""
        return list(self.regrets[world])

    def n_trials(self, world: str) -> int:
        """Returns how many trials of this world are finished."""
        return len(next(iter(self.regrets[world].values())))

    def cum_regret(self, world: str, policy: str) -> Array:
        """Returns the cumulative regret, one row a trial."""
        return np.cumsum(self.regrets[world][policy], axis=1)

    def final(self, world: str, policy: str) -> Array:
        """Returns the regret at the end, one number a trial."""
        return np.asarray(self.regrets[world][policy].sum(axis=1))


def results_of(store: Store) -> Results:
    """Returns what is stored of a study; a world without anything finished is left out."""
    manifest = store.manifest
    study = study_from(manifest["study"])
    trials = {each.name: _whole_trials(study, store, each.name) for each in study.worlds if not each.is_log}
    found = [_log_results(study, store, each) for each in manifest["study"]["worlds"] if each["name"] not in trials]
    logs = {each.name: each for each in found if each.rewards}
    units = {world: _units(study, world, done) for world, done in trials.items() if done}
    if not units and not logs:
        what = "policy" if study.of_logs else "trial"
        raise StoreError(
            f"{str(store.folder)!r} holds no finished {what}", "there is nothing to show", "Go on with --resume"
        )
    tuned = store.read_tuned()
    return Results(
        name=study.name,
        title=study.title,
        settings=manifest["study"],
        versions=manifest["versions"],
        regrets={w: {p: _stacked(store, _regrets, each) for p, each in units[w].items()} for w in units},
        seconds={w: {p: _stacked(store, _seconds, each) for p, each in units[w].items()} for w in units},
        tuned={w: {p: record["chosen"] for p, record in each.items()} for w, each in tuned.items()},
        pilot={w: {p: record["grid"] for p, record in each.items()} for w, each in tuned.items()},
        logs=logs,
    )


def _whole_trials(study: Study, store: Store, world: str) -> list[int]:
    """Returns the trials that every policy has finished: only these can be compared."""
    labels = [each.label for each in study.playing(world)]
    return [i for i in range(study.trials) if all(store.has(Unit(world, i, label)) for label in labels)]


def _units(study: Study, world: str, trials: list[int]) -> dict[str, list[Unit]]:
    """Returns the units of these trials, by policy."""
    return {each.label: [Unit(world, i, each.label) for i in trials] for each in study.playing(world)}


def _stacked(store: Store, read: Callable[[Store, Unit], Any], units: list[Unit]) -> Array:
    """Returns what is read of these units, one row or number a trial."""
    return np.array([read(store, unit) for unit in units])


def _regrets(store: Store, unit: Unit) -> Array:
    return np.asarray(store.rows(unit, ["regret"])["regret"].to_numpy())


def _seconds(store: Store, unit: Unit) -> float:
    """Returns the seconds of a round; NaN where timings are lost."""
    try:
        timing = store.timing(unit)
        return float(timing["seconds"] / timing["rounds"])
    except (OSError, ValueError, KeyError):
        return float("nan")


def _log_results(study: Study, store: Store, given: Mapping[str, Any]) -> LogResults:
    name = given["name"]
    rewards: dict[str, dict[int, Array]] = {}
    seconds: dict[str, dict[int, float]] = {}
    memory: dict[str, int] = {}
    fits: dict[str, dict[int, list[dict[str, float]]]] = {}
    failed, visits, degrees, core_seconds = {}, {}, {}, 0.0
    for policy in study.playing(name):
        for number in range(study.trials):
            unit = Unit(name, number, policy.label)
            timing, rows = store.timing(unit), store.rows(unit, ["user", "degree", "reward"])
            if "failed" in timing:
                failed[policy.label] = timing["failed"]
            if rows is None:
                continue
            rewards.setdefault(policy.label, {})[number] = rows["reward"].to_numpy()
            if number not in visits:
                visits[number] = visits_of(rows["user"].to_numpy(zero_copy_only=False))
                degrees[number] = rows["degree"].to_numpy().astype(np.int64)
            if "fits" in timing:
                fits.setdefault(policy.label, {})[number] = timing["fits"]
            if "seconds" in timing:
                seconds.setdefault(policy.label, {})[number] = timing["seconds"] / timing["rounds"]
                core_seconds += timing.get("core_seconds", 0.0)
                memory[policy.label] = max(memory.get(policy.label, 0), timing["peak_memory"])
    return LogResults(
        name=name,
        settings=given,
        facts=store.facts(name),
        rewards=rewards,
        visits=visits,
        degrees=degrees,
        seconds=seconds,
        core_seconds=core_seconds,
        memory=memory,
        failed=failed,
        fits=fits,
    )


def visits_of(users: NDArray[Any]) -> Ints:
    """Returns which visit of its user each round is, from 0.

    Examples:
        >>> visits_of(np.array(["ana", "bo", "ana", "ana"])).tolist()
        [0, 0, 1, 2]
    """
    _, codes = np.unique(users.astype(str), return_inverse=True)
    order = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes))])
    out = np.empty(len(codes), dtype=np.int64)
    out[order] = np.arange(len(codes)) - starts[codes[order]]
    return out
