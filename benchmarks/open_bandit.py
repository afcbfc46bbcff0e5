"""Two loggers on one shop: what each log says of the other's policy, beside what that policy truly earned.

python -m benchmarks.open_bandit FOLDER converts the sample of the Open Bandit Dataset in that folder, evaluates it from
the command line, and keeps in docs/open_bandit.json what came out, how long it took and how much memory. The uniform
logger's policy is `random`. That of the Thompson logger changed as it learned, and its log has the probability of what
was chosen only, so it stands there as its average: the share of each item among its choices.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from coterie.logs import read_log
from coterie.product.evaluation import Sample, estimate
from coterie.product.evaluation.material import Material, material_of

OUT = Path(__file__).parent.parent / "docs" / "open_bandit.json"
LOGGERS = {"uniform": "random", "Thompson": "bts"}
WEIGHTED = ("replay", "ips", "snips")
ONLY = [word for name in WEIGHTED for word in ("--estimator", name)]
POLICIES = ("random", "popularity", "auto-ucb", "auto-ts")


def command(*arguments: object) -> dict[str, float]:
    """Returns how long `coterie` with these arguments computed, in seconds, and its memory at the most, in MiB."""
    started = subprocess.Popen([sys.executable, "-m", "coterie", *map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(started.pid, 0)
    if status:
        raise SystemExit(f"coterie {arguments} failed")
    return {"seconds": round(used.ru_utime + used.ru_stime, 1), "MiB": round(used.ru_maxrss / 1024)}


def evaluated(folder: Path, out: Path, *options: str) -> Any:
    """Returns what `coterie evaluate` writes, and what it took."""
    took = command("evaluate", folder, *options, "--out", out)
    return json.loads(out.read_text(encoding="utf-8")) | {"took": took}


def average_policy(of: Material, on: Material) -> Any:
    """Returns the share of each arm among the choices of one log, for every decision of another."""
    arms = [of.arms.ids[row] for row in of.logged.arms.tolist()]
    shares = np.array([arms.count(arm) for arm in on.arms.ids]) / len(arms)
    return shares[on.logged.candidates]


def line(log: str, policy: str, found: Any, truth: Any) -> dict[str, Any]:
    """Returns what one log says of a policy, beside what the other says of its own."""
    names = ("value", "low", "high", "ess")
    estimates = {name: {key: each[key] for key in names} for name, each in found["estimates"].items()}
    known = {"n_decisions": found["n_decisions"], "n_fitted": found["n_fitted"], "warnings": found["warnings"]}
    return {"log": log, "policy": policy, "truth": truth, "estimates": estimates, **known}


def plain(found: Any) -> dict[str, Any]:
    """Returns an evaluation as JSON has it."""
    estimates = {name: {key: getattr(each, key) for key in each.__slots__} for name, each in found.estimates.items()}
    logger = {key: getattr(found.logger, key) for key in found.logger.__slots__}
    about = {"n_decisions": found.n_decisions, "n_fitted": found.n_fitted, "warnings": list(found.warnings)}
    return {"estimates": estimates, "logger": logger, **about}


def measured(source: Path, work: Path) -> dict[str, Any]:
    """Returns everything that is kept."""
    folders = {name: work / name for name in LOGGERS}
    took = {
        name: command("data", "convert", "open-bandit", source, folders[name], "--logger", LOGGERS[name])
        for name in LOGGERS
    }
    logs = {name: material_of(read_log(folder)) for name, folder in folders.items()}
    whole = {name: evaluated(folders[name], work / f"{name}.json", *QUICK)["policies"][0] for name in LOGGERS}
    earned = {name: {key: whole[name]["logger"][key] for key in ("value", "low", "high")} for name in LOGGERS}
    later = evaluated(folders["Thompson"], work / "later.json", "--policy", "random")
    uniform = logs["uniform"]
    sample = Sample(uniform.logged, average_policy(logs["Thompson"], uniform))
    lines = [
        line("Thompson", "uniform", whole["Thompson"], earned["uniform"]),
        line("Thompson", "uniform", later["policies"][0], earned["uniform"]),
        line("uniform", "Thompson, average", plain(estimate(sample, WEIGHTED)), earned["Thompson"]),
    ]
    options = [word for name in POLICIES for word in ("--policy", name)]
    both = {name: evaluated(folders[name], work / f"{name}-all.json", *options) for name in LOGGERS}
    clicks = {name: int(each.logged.rewards.sum()) for name, each in logs.items()}
    return {"converted": took, "clicks": clicks, "earned": earned, "crossed": lines, "policies": both}


# `random` needs no fit, so nearly the whole log judges it.
QUICK = ["--policy", "random", "--fit-share", "0.0001", *ONLY]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of the original files")
    source = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as work:
        kept = measured(source, Path(work))
    for each in kept["policies"].values():
        del each["log"]  # a folder that is gone
    OUT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
