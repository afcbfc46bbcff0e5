"""What contexts cost and gain in regret: worlds of `problems/contexts.py`, bounded engine against exact, shown or not.

Run by hand: python -m benchmarks.contexts_regret [--seeds 3] [--write]. It goes on where it stopped: every run is a
line of build/contexts_regret.jsonl. All learners are `auto-ucb` at default settings and meet the same rounds.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from benchmarks.sparse_regret import paired_ratio
from coterie.models.engines.local.model import NEAR_INPUTS
from coterie.policies import make_policy
from coterie.problems import ContextSettings, context_settings, draw_context_world, draw_rounds
from coterie.runs.trial import play

ROOT = Path(__file__).parent.parent
RUNS, PAGE = ROOT / "build" / "contexts_regret.jsonl", ROOT / "docs" / "context.md"
BEGIN, END = "<!-- contexts_regret: begin -->", "<!-- contexts_regret: end -->"
KINDS, MATTERS = ("smooth", "linear", "categorical"), ("yes", "partly", "no")
ROUNDS = {1: 600, 20: 1000}  # by the number of users
LEARNERS: dict[str, dict[str, Any]] = {
    "local": {"shown": True},
    "bounded": {"shown": True, "engine": "local", "engine_options": {"exact_rows": NEAR_INPUTS}},
    "exact": {"shown": True, "engine": "exact"},
    "not shown": {"shown": False},
}
SIZES = {"n_arms": 12, "n_candidates": 5, "dimension": 4, "noise_std": 0.3, "laplacian_ridge": 0.1, "power": 1.0}


class Case(NamedTuple):
    """A world of the family."""

    kind: str
    matter: str
    features: bool
    users: int
    seed: int

    def settings(self) -> ContextSettings:
        """Returns what it is; with one user there is no edge."""
        truth = "linear-gob" if self.kind == "linear" else "gp-draw"
        shown = {"contexts": self.kind, "matter": self.matter, "arm_features": self.features, "kind": truth}
        sizes = {"n_users": self.users, "horizon": ROUNDS[self.users]}
        return context_settings({**SIZES, **shown, **sizes})


class Run(NamedTuple):
    """What a learner lost in a world.

    Attributes:
        case: The world.
        learner: Which learner.
        regret: Over all rounds.
        seconds: A round.
    """

    case: Case
    learner: str
    regret: float
    seconds: float


def cases(seeds: int) -> Iterator[Case]:
    """Yields every world of the family, seed after seed."""
    for seed, kind, matter, features, users in product(range(seeds), KINDS, MATTERS, (True, False), ROUNDS):
        yield Case(kind, matter, features, users, seed)


def played(case: Case, learner: str) -> Run:
    """Returns what a learner loses in a world."""
    settings, seed = case.settings(), np.random.SeedSequence(case.seed)
    world = draw_context_world(settings, seed)
    rounds = draw_rounds(settings, world, seed)
    options = dict(LEARNERS[learner])
    if options.pop("shown"):
        options["context_schema"] = world.context_schema
    policy = make_policy("auto-ucb", graph=world.graph, arms=world.arms, seed=case.seed, **options)
    start = perf_counter()
    regret = sum(lost for _, _, lost in play(policy, world, rounds))
    return Run(case, learner, regret, (perf_counter() - start) / len(rounds))


def read(path: Path) -> list[Run]:
    """Returns the runs that are finished."""
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Run(Case(*case), learner, regret, seconds) for case, learner, regret, seconds in lines]


def run_all(path: Path, seeds: int) -> list[Run]:
    """Returns all runs; those that are missing are made, and each is kept as soon as it has ended."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = read(path)
    known = {(each.case, each.learner) for each in done}
    for case, learner in product(cases(seeds), LEARNERS):
        if (case, learner) in known:
            continue
        done.append(played(case, learner))
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(done[-1]) + "\n")
        print(*case, learner, f"{done[-1].regret:.1f} {1e3 * done[-1].seconds:.1f} ms", flush=True)
    return [each for each in done if each.case.seed < seeds]


def compared(runs: Sequence[Run], one: str, other: str, which: Callable[[Case], bool]) -> tuple[float, float, float]:
    """Returns the summed regret of a learner over another's in some worlds, and its paired 95 % interval."""
    lost = {(each.case, each.learner): each.regret for each in runs}
    chosen = [case for case, learner in lost if learner == one and (case, other) in lost and which(case)]
    if len(chosen) < 2:
        return float("nan"), float("nan"), float("nan")
    return paired_ratio([lost[case, one] for case in chosen], [lost[case, other] for case in chosen])


def _rows(runs: Sequence[Run]) -> Iterator[tuple[str, ...]]:
    """Yields a row for each kind of worlds, and for all of them."""
    for kind in (*KINDS, "all"):
        of_kind = [each for each in runs if kind in (each.case.kind, "all")]
        bounded = compared(of_kind, "bounded", "exact", lambda _: True)
        useless = compared(of_kind, "local", "not shown", lambda case: case.matter == "no")
        yes, partly = (
            compared(of_kind, "local", "not shown", lambda case, matter=matter: case.matter == matter)  # type: ignore[misc]
            for matter in MATTERS[:2]
        )
        yield kind, *(_cell(each) for each in (bounded, useless, yes, partly))


def _cell(ratio: tuple[float, float, float]) -> str:
    return "{:.3f} ({:.3f} to {:.3f})".format(*ratio)


def _detail(runs: Sequence[Run]) -> Iterator[tuple[str, ...]]:
    """Yields a row for each world: mean regret of each learner over the seeds."""
    for kind, matter, features, users in product(KINDS, MATTERS, (True, False), ROUNDS):
        here = [each for each in runs if each.case[:4] == (kind, matter, features, users)]
        means = {name: np.mean([each.regret for each in here if each.learner == name] or [np.nan]) for name in LEARNERS}
        ratios = means["bounded"] / means["exact"], means["local"] / means["not shown"]
        shown = (kind, matter, "yes" if features else "no", str(users))
        yield *shown, *(f"{each:.1f}" for each in means.values()), *(f"{each:.3f}" for each in ratios)


def _table(head: Sequence[str], rows: Iterator[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))


TEXT = """Cumulative regret of `auto-ucb`, nothing tuned, in worlds with contexts, which [studies](studies.md) can name:
{worlds} worlds, {seeds} seeds each. Of {n_arms} arms {n_candidates} are shown; noise is {noise_std:g}, rewards have
standard deviation 1. 600 rounds with one user, 1000 with 20 users on a graph. All meet the same rounds. A ratio is one
of summed regrets, with a 95 % interval from the paired differences. `local` is the default engine, which is exact in so
few rounds; `bounded` is the same with `exact_rows={near}`, so that all that comes later goes through its features, and
`exact` the unbounded one. Asked: at most 1.05 in the first two columns. Contexts take {seconds:.1f} ms a round
on `local`.

{summary}

World by world, mean regret over the seeds:

{detail}
"""


def section(runs: Sequence[Run]) -> str:
    """Returns the figures as text."""
    head = (
        "contexts",
        "`bounded` / `exact`",
        "tell nothing: shown / not",
        "matter: shown / not",
        "partly: shown / not",
    )
    detail = ("contexts", "matter", "features", "users", *LEARNERS, "`bounded` / `exact`", "shown / not")
    return TEXT.format(
        worlds=len({each.case[:4] for each in runs}),
        seeds=len({each.case.seed for each in runs}),
        seconds=1e3 * np.mean([each.seconds for each in runs if each.learner == "local"]),
        near=NEAR_INPUTS,
        summary=_table(head, _rows(runs)),
        detail=_table(detail, _detail(runs)),
        **SIZES,
    )


def write(text: str, page: Path = PAGE) -> None:
    """Puts the section between its markers, at the end of the page if there are none yet."""
    whole = page.read_text(encoding="utf-8") if page.exists() else "# Contexts\n"
    if BEGIN not in whole:
        whole += f"\n## Regret\n\n{BEGIN}\n{END}\n"
    before, rest = whole.split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{text}{END}{rest.split(END)[1]}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--runs", type=Path, default=RUNS, help="where finished runs are kept")
    parser.add_argument("--write", action="store_true", help=f"put the figures into {PAGE.name} of the documentation")
    asked = parser.parse_args()
    text = section(run_all(asked.runs, asked.seeds))
    print(text)
    if asked.write:
        write(text)


if __name__ == "__main__":
    main()
