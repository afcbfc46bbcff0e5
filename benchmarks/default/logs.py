"""`auto-ucb` as it comes on logs that a user has: hits, time and memory, a process each."""

import json
import resource
import sys
from pathlib import Path
from subprocess import run
from time import process_time
from typing import Any

import numpy as np

from coterie.runs.entries import learner_settings
from coterie.runs.trial import Trial
from coterie.runs.worlds import LogSettings, LogWorld

ROUNDS = 5_000
LOGS = {"lastfm": "hetrec2011-lastfm-2k", "delicious": "delicious", "filmtrust": "filmtrust"}


def measured(log: str, folder: str, negatives: str) -> dict[str, Any]:
    """Returns hits, milliseconds of processor time a round, and the peak of the memory."""
    settings = LogSettings(
        data="plain" if log == "delicious" else log, folder=folder, negatives=negatives, horizon=ROUNDS
    )
    trial = Trial(LogWorld(settings=settings), seed=0, number=0)
    start = process_time()
    played = trial.play(learner_settings({"policy": "auto-ucb"}, {}))
    ms = 1e3 * (process_time() - start) / ROUNDS
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"log": log, "negatives": negatives, "hits": float(np.mean(played.rewards)), "ms": ms, "mib": mib}


def rows(data: Path) -> list[dict[str, Any]]:
    """Returns what was measured on the logs that are there."""
    out = []
    for log, name in LOGS.items():
        for negatives in ("uniform", "popularity") if (data / name).exists() else ():
            command = [sys.executable, "-m", "benchmarks.default.logs", log, str(data / name), negatives]
            out.append(json.loads(run(command, check=True, capture_output=True, text=True).stdout))
            print(out[-1], flush=True)
    return out


if __name__ == "__main__":
    print(json.dumps(measured(*sys.argv[1:4])))
