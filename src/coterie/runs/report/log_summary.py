"""A study on logs in a few kilobytes: what the page of real data is made of."""

from typing import Any

import numpy as np

from coterie.runs.report.reward import (
    Gain,
    answer,
    best_without_graph,
    by_rate,
    gain,
    over_time,
    rate,
    sentence,
    thirds,
    without_graph,
)
from coterie.runs.report.trial_means import TrialMean
from coterie.runs.results import LogResults, Results

FORMAT = 1
DATA = "DIR"  # where data lie on somebody's machine is nobody else's business


def summary_of(results: Results) -> dict[str, Any]:
    """Returns what the page of real data says of a study, as plain values."""
    study, worlds = results.settings, list(results.logs.values())
    quick = " --quick" if study["quick"] else ""
    named = str(worlds[0].settings["data"])
    source = f"{results.name} --data {DATA}" if named != "plain" else DATA
    return {
        "format": FORMAT,
        "name": results.name,
        "title": results.title,
        "command": f"coterie run {source}{quick} --trials {study['trials']} --seed {study['seed']}",
        "trials": study["trials"],
        "quick": study["quick"],
        "left_out": list(study.get("left_out", ())),
        "reference": study["reference"],
        "versions": dict(results.versions),
        "answer": answer(results),
        "core_seconds": sum(world.core_seconds for world in worlds),
        "peak_memory": max((bytes_ for world in worlds for bytes_ in world.memory.values()), default=0),
        "worlds": [_world(results, world) for world in worlds],
    }


def _world(results: Results, world: LogResults) -> dict[str, Any]:
    policy = results.settings["reference"]
    alone, best = without_graph(results, policy), best_without_graph(results, world)
    return {
        "name": world.name,
        "setting": world.setting,
        "facts": dict(world.facts),
        "online_features": list(world.settings["online_features"]),
        "verdict": sentence(results, world),
        "policies": [_policy(results, world, each) for each in by_rate(world)],
        "best_without_graph": best,
        "against_best_without_graph": _gain(gain(world, policy, best)) if best and policy in world.rewards else None,
        "thirds": {
            kind: [{"which": name, **(_gain(found) or {})} for name, found in thirds(world, policy, alone, kind)]
            for kind in ("degree", "visits")
            if alone and world.trials(policy, alone)
        },
        "failed": dict(world.failed),
    }


def _policy(results: Results, world: LogResults, policy: str) -> dict[str, Any]:
    alone = without_graph(results, policy)
    seconds = list(world.seconds.get(policy, {}).values())
    rewards = [world.rewards[policy][trial] for trial in world.trials(policy)]
    return {
        "policy": policy,
        "rate": _estimate(rate(world, policy)),
        "in_all": float(np.mean([np.nansum(each) for each in rewards])),
        "used": float(np.mean([np.count_nonzero(~np.isnan(each)) for each in rewards])),
        "over_time": [round(float(each), 4) for each in over_time(world, policy)[1]],
        "against_none": _gain(gain(world, policy, alone)) if alone else None,
        "milliseconds": 1e3 * float(np.median(seconds)) if seconds else None,
        "memory": world.memory.get(policy),
    }


def _gain(found: Gain | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"mine": found.mine, "other": found.other, "times": found.ratio, "gap": _estimate(found.gap)}


def _estimate(found: TrialMean) -> dict[str, Any]:
    interval = None if found.interval is None else list(found.interval)
    return {"mean": found.mean, "std_err": found.std_err, "interval": interval, "trials": found.n_trials}
