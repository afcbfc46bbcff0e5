"""A study on logs in a few kilobytes: what the page of real data is made of."""

from typing import Any

import numpy as np

from coterie.runs.recorded.outcome import LogWorld, Outcome
from coterie.runs.recorded.report.numbers import Gain, best_without_graph, by_rate, gain, over_time, rate, thirds
from coterie.runs.recorded.report.words import answer, verdict
from coterie.runs.report.numbers import Estimate

FORMAT = 1
DATA = "DIR"  # where data lie on somebody's machine is nobody else's business


def summary_of(outcome: Outcome) -> dict[str, Any]:
    """Returns what the page of real data says of a study, as plain values."""
    study = outcome.study
    quick = " --quick" if study.quick else ""
    named = str(outcome.worlds[0].settings["data"])
    source = f"{study.name} --data {DATA}" if named != "plain" else DATA
    return {
        "format": FORMAT,
        "name": study.name,
        "title": study.title,
        "command": f"coterie run {source}{quick} --trials {study.trials} --seed {study.seed}",
        "trials": study.trials,
        "quick": study.quick,
        "left_out": list(study.left_out),
        "reference": study.reference,
        "versions": dict(outcome.versions),
        "answer": answer(outcome),
        "core_seconds": sum(world.core_seconds for world in outcome.worlds),
        "peak_memory": max((bytes_ for world in outcome.worlds for bytes_ in world.memory.values()), default=0),
        "worlds": [_world(outcome, world) for world in outcome.worlds],
    }


def _world(outcome: Outcome, world: LogWorld) -> dict[str, Any]:
    policy = outcome.study.reference
    alone, best = outcome.without_graph(policy), best_without_graph(outcome, world)
    return {
        "name": world.name,
        "setting": world.setting,
        "facts": dict(world.facts),
        "online_features": list(world.settings["online_features"]),
        "verdict": verdict(outcome, world),
        "policies": [_policy(outcome, world, each) for each in by_rate(world)],
        "best_without_graph": best,
        "against_best_without_graph": _gain(gain(world, policy, best)) if best and policy in world.rewards else None,
        "thirds": {
            kind: [{"which": name, **(_gain(found) or {})} for name, found in thirds(world, policy, alone, kind)]
            for kind in ("degree", "visits")
            if alone and world.trials(policy, alone)
        },
        "failed": dict(world.failed),
    }


def _policy(outcome: Outcome, world: LogWorld, policy: str) -> dict[str, Any]:
    alone = outcome.without_graph(policy)
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


def _estimate(found: Estimate) -> dict[str, Any]:
    interval = None if found.interval is None else list(found.interval)
    return {"mean": found.mean, "std_err": found.std_err, "interval": interval, "trials": found.n_trials}
