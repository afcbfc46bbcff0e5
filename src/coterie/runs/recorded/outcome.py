"""What came of a study on logs, as it lies in memory: what the report reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import Array
from coterie.errors import StoreError
from coterie.runs.recorded.parts import Part, Parts
from coterie.runs.store import Store
from coterie.runs.study import Study, study_from

Ints = NDArray[np.int64]
NEGATIVES = {"uniform": "others drawn uniformly", "popularity": "others drawn by popularity"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogWorld:
    """What came of one world.

    Attributes:
        name: Its name.
        settings: Its settings, as plain values.
        facts: What the log holds.
        rewards: Policy -> trial -> one reward a round; NaN where a replay did not use the row.
        visits: Trial -> the how-many-eth visit of the user each round is, from 0.
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

    def means(self, policy: str, trials: list[int] | None = None) -> Array:
        """Returns the mean reward of a policy, one number a trial; hits in a round where rewards are 0 and 1."""
        held = self.rewards[policy]
        return np.array([np.nanmean(held[trial]) for trial in (self.trials(policy) if trials is None else trials)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What came of a study on logs."""

    study: Study
    versions: Mapping[str, str]
    worlds: tuple[LogWorld, ...]

    def without_graph(self, label: str) -> str | None:
        """Returns the label of the same policy without a graph, if it played; nothing for that one itself."""
        return self.variant(label, "none")

    def variant(self, label: str, graph: str) -> str | None:
        """Returns the label of the same policy on another graph, if it played."""
        mine = next(each for each in self.study.policies if each.label == label)
        alike = (
            each.label
            for each in self.study.policies
            if (each.policy, each.options, each.graph) == (mine.policy, mine.options, graph) and each.label != label
        )
        return next(alike, None)


def outcome_of(store: Store) -> Outcome:
    """Returns what is stored of a study on logs; a world without anything is left out."""
    manifest = store.manifest
    study = study_from(manifest["study"])
    found = (_world(study, Parts(store), each) for each in manifest["study"]["worlds"])
    worlds = tuple(each for each in found if each.rewards)
    if not worlds:
        rule = "there is nothing to show"
        raise StoreError(f"{str(store.folder)!r} holds no finished policy", rule, "Go on with --resume")
    return Outcome(study=study, versions=manifest["versions"], worlds=worlds)


def _world(study: Study, parts: Parts, given: Mapping[str, Any]) -> LogWorld:
    name = given["name"]
    rewards: dict[str, dict[int, Array]] = {}
    seconds: dict[str, dict[int, float]] = {}
    memory: dict[str, int] = {}
    fits: dict[str, dict[int, list[dict[str, float]]]] = {}
    failed, visits, degrees, core_seconds = {}, {}, {}, 0.0
    for policy in study.playing(name):
        for number in range(study.trials):
            part = Part(name, number, policy.label)
            timing, rows = parts.timing(part), parts.rows(part)
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
    return LogWorld(
        name=name,
        settings=given,
        facts=parts.facts(name),
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
