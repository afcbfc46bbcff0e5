"""What was hoped for on the known data sets before anything was run, and what came of it."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

MOST_LOST = 0.05
ABOVE = ("popularity", "gob-lin", "graph-ucb")
WITHOUT, PERMUTED = "auto-ucb, no graph", "auto-ucb, users permuted"


class Goal(NamedTuple):
    """What `auto-ucb` was to hit on Last.fm, and how many times the best without a graph."""

    rate: float
    times: float


LASTFM = {"uniform": Goal(0.35, 1.15), "popularity": Goal(0.19, 1.7)}
LOSSES = {"lastfm": PERMUTED, "deezer": "auto-ucb", "filmtrust": "auto-ucb"}


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
