"""A study in a few kilobytes: final regrets trial by trial, thinned curves, what the pilot chose."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.runs.paper.experiments.record import plain
from coterie.runs.report.regret import microseconds
from coterie.runs.report.trial_means import TrialMean, trial_means
from coterie.runs.results import Results

POINTS = 24


def summarise(results: Results) -> dict[str, Any]:
    """Returns what the reproduction page needs of a study, as plain values."""
    return {
        "name": results.name,
        "title": results.title,
        "reference": results.settings["reference"],
        "trials": results.settings["trials"],
        "versions": dict(results.versions),
        "worlds": {world: _world(results, world) for world in results.worlds},
    }


def _world(results: Results, world: str) -> dict[str, Any]:
    horizon = len(results.regrets[world][results.policies(world)[0]][0])
    rounds = np.unique(np.linspace(1, horizon, POINTS).astype(int))
    return {
        "horizon": horizon,
        "rounds": rounds.tolist(),
        "policies": {policy: _policy(results, world, policy, rounds) for policy in results.policies(world)},
    }


def _policy(results: Results, world: str, policy: str, rounds: Array) -> dict[str, Any]:
    curve = results.cum_regret(world, policy).mean(axis=0)
    return {
        "finals": plain(results.final(world, policy)),
        "curve": [float(f"{value:.4g}") for value in curve[rounds - 1]],
        "growth": plain(growth(curve)),
        "tuned": dict(results.tuned.get(world, {}).get(policy, {})),
        "width_at": _width_at(results, world, policy),
        "microseconds": plain(microseconds(results, world, policy)),
    }


def _width_at(results: Results, world: str, policy: str) -> str:
    """Returns where in its grid the chosen width lies: "low", "inside" or "high"; nothing where none was tuned."""
    tried = [each["width"] for each in results.pilot.get(world, {}).get(policy, []) if "width" in each]
    if len(set(tried)) < 2:
        return ""
    chosen = results.tuned[world][policy]["width"]
    return "low" if chosen == min(tried) else "high" if chosen == max(tried) else "inside"


def growth(curve: Array) -> float:
    """Returns the exponent g with which regret grows over the second half, R(t) ~ t^g: 1 is linear, 0.5 a square root.

    Examples:
        >>> growth(np.arange(1.0, 101.0))
        1.0
    """
    whole, half = curve[-1], curve[len(curve) // 2 - 1]
    return float(np.log(whole / half) / np.log(len(curve) / (len(curve) // 2))) if half > 0 else 0.0


@dataclass(frozen=True, slots=True)
class StudySummary:
    """A stored summary, and what the page asks of it."""

    record: dict[str, Any]

    @property
    def worlds(self) -> list[str]:
        """The worlds, in the study's order."""
        return list(self.record["worlds"])

    def policies(self, world: str) -> list[str]:
        """Returns who played this world."""
        return list(self.record["worlds"][world]["policies"])

    def finals(self, world: str, policy: str) -> Array:
        """Returns the final regrets, trial by trial."""
        return np.array(self.record["worlds"][world]["policies"][policy]["finals"])

    def mean(self, world: str, policy: str) -> float:
        """Returns the mean final regret."""
        return float(self.finals(world, policy).mean())

    def estimate(self, world: str, policy: str) -> TrialMean:
        """Returns the mean final regret with its standard error and interval."""
        return trial_means(self.finals(world, policy)[None])[0]

    def growth(self, world: str, policy: str) -> float:
        """Returns the exponent with which mean regret grows over the second half."""
        return float(self.record["worlds"][world]["policies"][policy]["growth"])

    def excess(self, world: str, policy: str, to: str) -> TrialMean:
        """Returns the final regret of a policy minus that of another, paired by trial."""
        return trial_means((self.finals(world, policy) - self.finals(world, to))[None])[0]

    def ranked(self, world: str, among: list[str] | None = None) -> list[str]:
        """Returns the policies of a world by mean final regret, the least first."""
        asked = self.policies(world) if among is None else [each for each in among if each in self.policies(world)]
        return sorted(asked, key=lambda policy: self.mean(world, policy))
