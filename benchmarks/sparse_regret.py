"""What `sparse` costs in regret on the paper's worlds: certified and default choices beside the exact ones.

Run by hand: python -m benchmarks.sparse_regret [--write]. All three meet the same rounds, with the same seed.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from coterie.policies import Policy, make_policy
from coterie.problems.settings import world_settings
from coterie.runs.trial import Trial
from coterie.runs.worlds import DrawnWorld

OUT = Path(__file__).parent.parent / "docs" / "sparse_regret.json"
LEVELS = ("easy", "medium", "hard")
KINDS = ("linear-gob", "gp-draw", "representer")
ENGINES: Mapping[str, dict[str, Any]] = {
    "exact": {"engine": "exact"},
    "certified": {"engine": "sparse", "engine_options": {"certified": True}},
    "default": {"engine": "sparse"},
}
NOISE_VAR, RIDGE = 0.01, 0.1
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Row:
    """What came out on one kind of world.

    Attributes:
        kind: Which.
        level: How hard.
        trials: How many.
        rounds: How many in each.
        certain: The share of certified decisions that said they were certain.
        same_trials: In how many trials all certified choices were the exact ones.
        certified: Ratio of final regret to the exact one's, and its paired 95 % interval.
        default: The same at default settings.
    """

    kind: str
    level: str
    trials: int
    rounds: int
    certain: float
    same_trials: int
    certified: tuple[float, float, float]
    default: tuple[float, float, float]


def played(trial: Trial, options: Mapping[str, Any]) -> tuple[list[Any], float, list[bool | None]]:
    """Returns the arms chosen, the regret, and what the choices said of being certain."""
    world = trial.world
    policy: Policy = make_policy(
        "lk-gp-ucb", graph=world.graph, arms=world.arms, noise_var=NOISE_VAR, laplacian_ridge=RIDGE, **options
    )
    arms, regret, certain = [], 0.0, []
    for shown in trial.rounds:
        choice = policy.select(shown.user, shown.candidates)
        reward, lost = world.judge(shown, choice.arm)
        policy.update(shown.user, choice.arm, reward)
        arms.append(choice.arm)
        certain.append(choice.certain)
        regret += lost
    return arms, regret, certain


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Returns the ratio of means, and its 95 % interval from the paired differences.

    Examples:
        >>> paired_ratio([1.0, 2.0], [1.0, 2.0])
        (1.0, 1.0, 1.0)
    """
    a, b = np.array(ours), np.array(theirs)
    ratio = float(a.mean() / b.mean())
    error = float((a - ratio * b).std(ddof=1) / (np.sqrt(len(a)) * b.mean()))
    wide = float(stats.t.ppf(0.975, len(a) - 1)) * error
    return ratio, ratio - wide, ratio + wide


def measure(kind: str, *, trials: int, rounds: int, level: str, seed: int) -> Row:
    settings = world_settings({"preset": "paper-text", "kind": kind, "level": level})
    regrets: dict[str, list[float]] = {name: [] for name in ENGINES}
    shares, same = [], 0
    for number in range(trials):
        results = {
            name: played(Trial(DrawnWorld(settings=settings), seed=seed, number=number, rounds=rounds), options)
            for name, options in ENGINES.items()
        }
        for name, (_, regret, _) in results.items():
            regrets[name].append(regret)
        shares.append(np.mean([bool(each) for each in results["certified"][2]]))
        same += results["certified"][0] == results["exact"][0]
    ratios = [paired_ratio(regrets[name], regrets["exact"]) for name in ("certified", "default")]
    return Row(kind, level, trials, rounds, float(np.mean(shares)), same, *ratios)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--level", choices=LEVELS, nargs="+", default=LEVELS[:2])
    parser.add_argument("--seed", type=int, default=2, help="0 and 1 were used to choose the default settings")
    parser.add_argument("--kind", choices=KINDS, nargs="+", default=KINDS)
    parser.add_argument("--write", action="store_true", help=f"keep the figures in {OUT.name} of the documentation")
    asked = parser.parse_args()
    rows = []
    print("| world | level | trials x rounds | certain | same choices | certified / exact | default / exact |")
    print("|---|---|---|---|---|---|---|")
    for level, kind in product(asked.level, asked.kind):
        row = measure(kind, trials=asked.trials, rounds=asked.rounds, level=level, seed=asked.seed)
        rows.append(asdict(row))
        shown = ["{:.4f} ({:.4f} to {:.4f})".format(*each) for each in (row.certified, row.default)]
        size = f"{row.trials} x {row.rounds} | {row.certain:.4f} | {row.same_trials}"
        print(f"| {kind} | {level} | {size} | {' | '.join(shown)} |", flush=True)
        if asked.write:
            OUT.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
