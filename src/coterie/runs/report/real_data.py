"""A study on logs in a few kilobytes, and docs/real-data.md: a function of such stored summaries and nothing else.

python -m coterie.runs.report.real_data docs/results/real docs/real-data.md
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
from coterie.runs.report.tables import markdown_table
from coterie.runs.report.trial_means import TrialMean
from coterie.runs.results import LogResults, Results

FORMAT = 1
DATA = "DIR"  # where data lie on somebody's machine is nobody else's business

ORDER = ("lastfm", "deezer", "filmtrust")
OPENING = """# Real data

Would the graph have helped? Each study plays every policy on the same rounds: a user comes, candidates are shown
of which the user liked one, the policy chooses. What a positive is stands in [data.md](data.md); how rounds are drawn,
and how to run a study on a log of your own, in [studies.md](studies.md). This page is made of stored results
(`docs/results/real/`) by `make real-data`. Times are those of the clock, on a machine that had
other work, and memory is that of a process that plays several policies; [default.md](default.md) has processes of their
own.

What was tuned: `auto-*` has no settings, but how it learns ([policies](policies.md#auto-nothing-to-tune)) was mended
while looking at rounds of these very studies: trials 1 to 3 of Last.fm, and the first 8,000 rounds of trials 1 and 2 of
Deezer and of trials 1 and 5 of FilmTrust. Only the other trials are unseen. The width and the noise
variance of `lk-gp-*`, `per-user-gp-ucb` and pooled `gp-ucb`, 0.1 each, and the ridge of `lk-gp-*`, 1, were found by
hand on Last.fm. Nothing else was: `gob-lin`, `graph-ucb`, `club` and the other linear policies play with their
defaults, width 1 and noise variance 1, so what `lk-gp-*` gain over them may be due to settings found by hand."""


# What was hoped for on the known data sets before anything was run.
MOST_LOST = 0.05
ABOVE = ("popularity", "gob-lin", "graph-ucb")
WITHOUT, PERMUTED = "auto-ucb, no graph", "auto-ucb, users permuted"


class Goal(NamedTuple):
    """What `auto-ucb` was to hit on Last.fm, and how many times the best without a graph."""

    rate: float
    times: float


LASTFM = {"uniform": Goal(0.35, 1.15), "popularity": Goal(0.19, 1.7)}
LOSSES = {"lastfm": PERMUTED, "deezer": "auto-ucb", "filmtrust": "auto-ucb"}


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
        "worlds": [_world_summary(results, world) for world in worlds],
    }


def _world_summary(results: Results, world: LogResults) -> dict[str, Any]:
    policy = results.settings["reference"]
    alone, best = without_graph(results, policy), best_without_graph(results, world)
    return {
        "name": world.name,
        "setting": world.setting,
        "facts": dict(world.facts),
        "online_features": list(world.settings["online_features"]),
        "verdict": sentence(results, world),
        "policies": [_policy_summary(results, world, each) for each in by_rate(world)],
        "best_without_graph": best,
        "against_best_without_graph": _as_gain(gain(world, policy, best)) if best and policy in world.rewards else None,
        "thirds": {
            kind: [{"which": name, **(_as_gain(found) or {})} for name, found in thirds(world, policy, alone, kind)]
            for kind in ("degree", "visits")
            if alone and world.trials(policy, alone)
        },
        "failed": dict(world.failed),
    }


def _policy_summary(results: Results, world: LogResults, policy: str) -> dict[str, Any]:
    alone = without_graph(results, policy)
    seconds = list(world.seconds.get(policy, {}).values())
    rewards = [world.rewards[policy][trial] for trial in world.trials(policy)]
    return {
        "policy": policy,
        "rate": _as_mean(rate(world, policy)),
        "in_all": float(np.mean([np.nansum(each) for each in rewards])),
        "used": float(np.mean([np.count_nonzero(~np.isnan(each)) for each in rewards])),
        "over_time": [round(float(each), 4) for each in over_time(world, policy)[1]],
        "against_none": _as_gain(gain(world, policy, alone)) if alone else None,
        "milliseconds": 1e3 * float(np.median(seconds)) if seconds else None,
        "memory": world.memory.get(policy),
    }


def _as_gain(found: Gain | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"mine": found.mine, "other": found.other, "times": found.ratio, "gap": _as_mean(found.gap)}


def _as_mean(found: TrialMean) -> dict[str, Any]:
    interval = None if found.interval is None else list(found.interval)
    return {"mean": found.mean, "std_err": found.std_err, "interval": interval, "trials": found.n_trials}


def page(summaries: Sequence[Mapping[str, Any]]) -> str:
    """Returns the page in Markdown.

    Examples:
        >>> print(page([]).splitlines()[-1])
        No results are stored yet.
    """
    parts = [part for each in sorted(summaries, key=_place) for part in _study(each)]
    return "\n\n".join([OPENING, *(parts or ["No results are stored yet."])]) + "\n"


def _place(summary: Mapping[str, Any]) -> tuple[int, str]:
    name = str(summary["name"])
    return (ORDER.index(name) if name in ORDER else len(ORDER)), name


def _study(summary: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {summary['title']}"
    yield f"    {summary['command']}"
    if summary["quick"]:
        gone = f" Left out, since too slow for it: {', '.join(summary['left_out'])}." if summary["left_out"] else ""
        yield f"**A quick run**: it shows the direction, not how sure it is.{gone}"
    yield "\n".join(f"- {world['verdict']}" for world in summary["worlds"])
    asked = list(goals(summary))
    if asked:
        yield "What was asked for beforehand, and what came of it in the mean of all trials:"
        yield markdown_table(("others drawn by", "asked", "found", "met"), asked)
    for world in summary["worlds"]:
        yield from _world(world)
    yield from _whom(summary)
    hours, memory = summary["core_seconds"] / 3600, summary["peak_memory"] / 2**30
    yield f"It took {hours:.1f} hours on one core, {memory:.1f} GiB in a process at most."


def _world(world: Mapping[str, Any]) -> Iterator[str]:
    facts = world["facts"]
    yield f"### {world['setting'].capitalize()}"
    people = f"{facts['n_users']:,} users, {facts['n_edges']:,} edges"
    yield f"{people}, {facts['n_arms']:,} arms of {facts['dimension']} features, {facts['rounds']:,} rounds."
    rows = [_policy(each) for each in world["policies"]]
    yield markdown_table(("policy", "reward a round", "against itself without a graph", "ms a round", "MiB"), rows)
    against = world["against_best_without_graph"]
    if against:
        best = world["best_without_graph"]
        yield f"The best without a graph is {best}; with it {against['times']:.2f} times as much."
    if world["failed"]:
        yield "\n".join(f"- {policy} could not run: {reason}" for policy, reason in sorted(world["failed"].items()))


def _policy(each: Mapping[str, Any]) -> tuple[str, ...]:
    rate, against = each["rate"], each["against_none"]
    error = "" if rate["std_err"] is None else f" ± {rate['std_err']:.3f}"
    return (
        each["policy"],
        f"{rate['mean']:.3f}{error}",
        _gap(against),
        "" if each["milliseconds"] is None else f"{each['milliseconds']:.2f}",
        "" if each["memory"] is None else f"{each['memory'] / 2**20:.0f}",
    )


def _gap(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    gap = found["gap"]
    between = "" if gap["interval"] is None else " [{:.3f}, {:.3f}]".format(*gap["interval"])
    return f"{gap['mean']:+.3f}{between}"


def _whom(summary: Mapping[str, Any]) -> Iterator[str]:
    titles = {"degree": "neighbours", "visits": "visit"}
    rows = [
        (world["setting"], titles[kind], each["which"], f"{each['mine']:.3f}", f"{each['other']:.3f}", _gap(each))
        for kind in titles
        for world in summary["worlds"]
        for each in world["thirds"].get(kind, [])
    ]
    if rows:
        yield f"For whom: {summary['reference']} with and without the graph, in thirds of the rounds."
        yield markdown_table(("shown", "by", "which", "with", "without", "difference"), rows)


def goals(summary: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yields which negatives, what was asked, what was found, and whether it was met, for a study that has goals."""
    for world in summary["worlds"]:
        rates = {each["policy"]: each["rate"]["mean"] for each in world["policies"]}
        mine = rates.get("auto-ucb")
        if mine is None or summary["name"] not in LOSSES or summary["quick"]:
            continue
        if summary["name"] == "lastfm" and world["name"] in LASTFM:
            yield from _of_lastfm(world, rates, mine)
        who = LOSSES[summary["name"]]
        if WITHOUT in rates and who in rates:
            lost = 1 - rates[who] / rates[WITHOUT]
            found = f"{rates[who]:.3f} for {rates[WITHOUT]:.3f}, {'loses' if lost > 0 else 'gains'} {abs(lost):.1%}"
            yield world["name"], f"`{who}` loses at most 5 % to `{WITHOUT}`", found, _met(lost <= MOST_LOST)


def _of_lastfm(
    world: Mapping[str, Any], rates: Mapping[str, float], mine: float
) -> Iterator[tuple[str, str, str, str]]:
    goal, against = LASTFM[world["name"]], world["against_best_without_graph"]
    yield world["name"], f"`auto-ucb` hits at least {goal.rate:g}", f"{mine:.3f}", _met(mine >= goal.rate)
    if against:
        best, times = f"`{world['best_without_graph']}`", against["times"]
        yield (
            world["name"],
            f"{goal.times:g} times the best without a graph",
            f"{times:.2f} ({best})",
            _met(times >= goal.times),
        )
    others = [name for name in ABOVE if name in rates]
    found = ", ".join(f"{rates[name]:.3f}" for name in others)
    yield (
        world["name"],
        f"above {', '.join(f'`{name}`' for name in others)}",
        found,
        _met(all(mine > rates[name] for name in others)),
    )


def _met(yes: bool) -> str:
    return "yes" if yes else "**no**"


def main(arguments: Sequence[str]) -> int:
    """Writes the page from a folder of summaries, and returns the exit code."""
    folder, path = map(Path, arguments)
    found = [json.loads(each.read_text(encoding="utf-8")) for each in sorted(folder.glob("*.json"))]
    path.write_text(page(found), encoding="utf-8")
    print(f"{path}: {len(found)} studies")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
