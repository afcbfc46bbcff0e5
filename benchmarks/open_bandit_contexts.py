"""Do user features as contexts help on the Open Bandit sample? What logs of two loggers say of `auto-*`.

python -m benchmarks.open_bandit_contexts FOLDER evaluates the sample of the Open Bandit Dataset in that folder, keeps
what came out in docs/open_bandit_contexts.json, and writes docs/context-open-bandit.md. Started again it goes on
with what is missing. A policy is judged by the later half of a log after it learned the earlier one, and by the whole
log after it learned the whole log of the other logger.
"""

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.evaluation_page import written
from coterie.logs import Contexts, load_open_bandit
from coterie.product.evaluation import Asked, Logged, Target
from coterie.product.evaluation.evaluating import Measured, measured
from coterie.product.evaluation.material import Material, material_of

DOCS = Path(__file__).parent.parent / "docs"
OUT, PAGE = DOCS / "open_bandit_contexts.json", DOCS / "context-open-bandit.md"
MARK = "open bandit contexts"
LOGGERS = {"uniform": "random", "Thompson": "bts"}
OTHER = {"uniform": "Thompson", "Thompson": "uniform"}
EARLIER = "its earlier half"
SHOWN = ("replay", "ips", "snips", "dm", "dr")
PAIRED = ("snips", "dr")
NONE, FEATURES, PLACES = "none", "user features", "user features and position"
POLICIES = ("auto-ucb", "auto-ts")
CONTEXTS: dict[str, dict[str, Any]] = {NONE: {"context_schema": None}, FEATURES: {}, PLACES: {"places": "learned"}}
Row = dict[str, Any]


def targets() -> list[Target]:
    """Returns the policies that are judged where everybody is one user."""
    made = [Target(name, options, f"{name}, {shown}") for name in POLICIES for shown, options in CONTEXTS.items()]
    return [Target.of("random"), *made]


def units() -> list[Row]:
    """Returns what is to be judged: by which log, learned from what, with whom as a user."""
    found = [{"log": log, "learned": learned, "users": "one"} for log in LOGGERS for learned in (EARLIER, OTHER[log])]
    return [*found, *({"log": log, "learned": EARLIER, "users": "by features"} for log in LOGGERS)]


def joined(first: Logged, second: Logged) -> Logged:
    """Returns two logs as one, the second after the first."""
    both = [first, second]
    contexts = [each.contexts[row] for each in both if each.contexts is not None for row in range(len(each))]
    columns = {name: np.concatenate([getattr(each, name) for each in both]) for name in COLUMNS}
    starts = np.concatenate([first.starts, second.starts[1:] + first.starts[-1]])
    return Logged(starts=starts, contexts=Contexts.of(contexts) if contexts else None, **columns)


COLUMNS = ("users", "candidates", "arms", "rewards", "propensities", "shown_at")


def material(source: Path, unit: Row) -> Material:
    """Returns the decisions of a unit; the earlier half is what is learned."""
    one = unit["users"] == "one"
    users: Any = "one" if one else "features"
    found = material_of(load_open_bandit(source, logger=_logger(unit["log"]), users=users, contexts=one))
    if unit["learned"] == EARLIER:
        return found
    other = material_of(load_open_bandit(source, logger=_logger(unit["learned"]), users=users, contexts=one))
    if other.arms.ids != found.arms.ids:
        raise SystemExit("the two logs have other items")
    return Material(joined(other.logged.in_order(), found.logged.in_order()), found.graph, found.arms)


def _logger(name: str) -> Any:
    return LOGGERS[name]


def judged(source: Path, unit: Row) -> Row:
    """Returns what a log says of each policy, and of each with contexts against itself without."""
    given, started = material(source, unit), process_time()
    some = targets() if unit["users"] == "one" else [Target.of(name) for name in ("random", *POLICIES)]
    found = list(measured(given.logged, some, graph=given.graph, arms=given.arms, asked=Asked(estimators=SHOWN)))
    drawn = {each.about["policy"]: each.bootstrapped(n_draws=1000, seed=0) for each in found}
    policies = [_row(each, drawn[each.about["policy"]]) for each in found]
    gains = [
        {"policy": name, "contexts": shown, "by": by}
        | _gain(drawn[f"{name}, {shown}"][by].gain_over(drawn[f"{name}, {NONE}"][by], *found[0].ends(0.95)))
        for name in POLICIES
        for shown in (FEATURES, PLACES)
        for by in PAIRED
        if f"{name}, {shown}" in drawn
    ]
    log, learned = found[0].log, given.logged.in_order().rewards[: found[0].about["n_fitted"]]
    counts = {"judged": len(log), "clicks": int(log.rewards.sum()), "learned_from": len(learned)}
    counts["clicks_learned"] = int(learned.sum())
    return unit | counts | {"policies": policies, "gains": gains, "seconds": round(process_time() - started, 1)}


def _row(found: Measured, drawn: Any) -> Row:
    answer = found.judged(drawn, 0.95)
    name, _, shown = answer.policy.partition(", ")
    estimates = {by: {key: getattr(each, key) for key in KEPT} for by, each in answer.estimates.items()}
    logger = {key: getattr(answer.logger, key) for key in ("value", "low", "high")}
    about = {"policy": name, "contexts": shown or NONE, "logger": logger, "warnings": list(answer.warnings)}
    return about | {"estimates": estimates}


KEPT = ("value", "low", "high", "ess", "gain", "gain_low", "gain_high")


def _gain(found: tuple[float, float, float]) -> Row:
    return dict(zip(("value", "low", "high"), found, strict=True))


def page(kept: list[Row]) -> Iterator[str]:
    """Yields the tables, and what they say."""
    names = ("log", "learned from", "users", "policy", "contexts", "by dr", "by snips")
    yield f"| {' | '.join([*names, 'more than the logger, by dr', 'effective n', 'warnings'])} |"
    yield "|---" * 10 + "|"
    for unit in kept:
        for each in unit["policies"]:
            dr, snips = each["estimates"]["dr"], each["estimates"]["snips"]
            where = f"| {unit['log']} | {_learned(unit)} | {unit['users']} | `{each['policy']}` | {each['contexts']} "
            gain = f"{dr['gain']:+.4f} ({dr['gain_low']:+.4f} to {dr['gain_high']:+.4f})"
            counts = f"{dr['ess']:,.0f} | {len(each['warnings'])}"
            yield f"{where}| {_ends(dr)} | {_ends(snips)} | {gain} | {counts} |"
    yield ""
    yield "| log | learned from | policy | contexts | by | more than without contexts |"
    yield "|---" * 6 + "|"
    for unit in kept:
        for each in unit["gains"]:
            what = f"| {unit['log']} | {_learned(unit)} | `{each['policy']}` | {each['contexts']} | `{each['by']}` "
            yield f"{what}| {each['value']:+.4f} ({each['low']:+.4f} to {each['high']:+.4f}) |"
    yield ""
    yield from _said(kept)


def _learned(unit: Row) -> str:
    return str(unit["learned"]) if unit["learned"] == EARLIER else f"the {unit['learned']} log"


def _said(kept: list[Row]) -> Iterator[str]:
    """Yields what the tables say, and on how little."""
    ones = [unit for unit in kept if unit["users"] == "one"]
    counts = [f"{unit['clicks']} in {unit['judged']:,} decisions" for unit in ones]
    yield f"- Clicks that judge: {', '.join(counts)}. Clicks that are learned: {_listed(ones, 'clicks_learned')}."
    by_dr = [each["estimates"]["dr"] for unit in kept for each in unit["policies"] if each["policy"] in POLICIES]
    against = [(each["gain_low"], each["gain_high"]) for each in by_dr]
    yield f"- `auto-*` against the logger, by dr: {_around(against)}."
    few = [each["ess"] for each in by_dr]
    yield f"- These rest on {min(few):,.0f} to {max(few):,.0f} effective decisions."
    for by in PAIRED:
        gains = [(each["low"], each["high"]) for unit in kept for each in unit["gains"] if each["by"] == by]
        yield f"- `auto-*` with contexts against itself without, by {by}: {_around(gains)}."
    same = [each for unit in kept for each in unit["gains"] if each["by"] == "dr" and not (each["low"] or each["high"])]
    names = ", ".join(f"`{name}` {sum(each['policy'] == name for each in same)}" for name in POLICIES)
    yield f"- Times that a policy chooses the same with contexts as without: {names}, of {2 * len(ones)} each."
    yield f"- All of it took {sum(unit['seconds'] for unit in kept) / 60:.1f} minutes of one core."


def _listed(some: list[Row], name: str) -> str:
    return ", ".join(str(unit[name]) for unit in some)


def _around(ends: Iterable[tuple[float, float]]) -> str:
    """Returns how many intervals hold 0, and how many lie on either side of it."""
    given = list(ends)
    above, below = sum(low > 0 for low, _ in given), sum(high < 0 for _, high in given)
    return f"of {len(given)} intervals {len(given) - above - below} hold 0, {above} lie above and {below} below"


def _ends(each: Row) -> str:
    return f"{each['value']:.4f} ({each['low']:.4f} to {each['high']:.4f})"


def write(kept: list[Row], part: Path = PAGE) -> None:
    """Writes the section of the page between its marks."""
    text = part.read_text(encoding="utf-8") if part.exists() else f"<!-- {MARK} -->\n<!-- end {MARK} -->\n"
    part.write_text(written(text, MARK, page(kept)), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of the original files")
    parser.add_argument("--out", type=Path, default=OUT, help="where to keep what came out (default: %(default)s)")
    given = parser.parse_args()
    kept: list[Row] = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else []
    for unit in units():
        if any(unit.items() <= each.items() for each in kept):
            continue
        print(unit, flush=True)
        kept.append(judged(given.folder, unit))
        given.out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    write(kept)


if __name__ == "__main__":
    main()
