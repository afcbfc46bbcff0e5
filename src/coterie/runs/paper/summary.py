"""A study in a few kilobytes: final regrets, thinned curves, what the pilot chose; and the paper's own table."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.runs.paper.experiments.experiment import plain
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


SIZES = (20, 50, 100, 200)

# Table 1 of the paper: final cumulative regret, mean and standard error, at n = 20, 50, 100, 200.
PAPER: dict[str, tuple[tuple[float, float], ...]] = {
    "lk-gp-ucb": ((627.22, 32.98), (892.43, 21.73), (1062.69, 18.29), (1157.74, 23.02)),
    "lk-gp-ts": ((634.46, 22.78), (943.41, 19.56), (1176.23, 15.77), (1260.35, 16.23)),
    "coop-kernel-ucb": ((730.06, 31.02), (1015.35, 22.18), (1273.28, 17.36), (1358.48, 14.22)),
    "gob-lin": ((1092.86, 71.70), (1203.32, 18.57), (1370.51, 16.78), (1432.48, 18.72)),
    "graph-ucb": ((1105.20, 68.54), (1192.30, 22.12), (1360.02, 15.32), (1453.21, 17.81)),
    "gp-ucb": ((2222.20, 90.26), (1964.65, 61.40), (1641.43, 37.43), (1444.83, 36.33)),
    "pooled-linucb": ((2360.95, 70.55), (1909.81, 49.49), (1723.27, 40.23), (1438.74, 26.44)),
    "per-user-linucb": ((1117.87, 72.04), (1221.99, 22.03), (1432.89, 18.81), (1527.04, 17.61)),
}

Cell = tuple[str, int, float, float]


def cells(summary: StudySummary) -> list[Cell]:
    """Returns policy, n, our mean regret, and ours over the paper's, for every cell that was run."""
    found = []
    for policy, row in PAPER.items():
        for size, (paper, _) in zip(SIZES, row, strict=True):
            world = f"n={size}"
            if world in summary.worlds and policy in summary.policies(world):
                mean = summary.mean(world, policy)
                found.append((policy, size, mean, mean / paper))
    return found


def within_ten_percent(summary: StudySummary) -> tuple[int, int]:
    """Returns in how many cells ours is within 10 % of the paper's figure, and of how many."""
    ratios = [ratio for _, _, _, ratio in cells(summary)]
    return sum(abs(ratio - 1) <= 0.1 for ratio in ratios), len(ratios)


def table_rows(summary: StudySummary) -> list[list[str]]:
    """Returns the table: in each cell ours with its standard error, the paper's with its, and the ratio."""
    rows = []
    for policy, row in PAPER.items():
        cell_texts = []
        for size, (paper, error) in zip(SIZES, row, strict=True):
            ours = summary.estimate(f"n={size}", policy)
            spread = "-" if ours.std_err is None else f"{ours.std_err:.0f}"
            cell_texts += [f"{ours.mean:.0f} ± {spread}", f"{paper:.0f} ± {error:.0f}", f"{ours.mean / paper:.2f}"]
        rows.append([policy, *cell_texts])
    return rows
