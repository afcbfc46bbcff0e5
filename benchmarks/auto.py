"""Learned against tuned hyperparameters: docs/auto.md from the studies auto, auto-hindsight and auto-true-kernel.

python -m benchmarks.auto RUN RUN RUN reads their folders and stores the final regrets in docs/auto.json, from which it
writes docs/auto.md and draws its picture; without folders it does so from the stored regrets.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coterie.runs.report.figures import draw_finals
from coterie.runs.report.style import save_figure
from coterie.runs.results import Results, results_of
from coterie.runs.store import Store

DOCS = Path(__file__).parent.parent / "docs"
KINDS = {"linear": "linear", "gp": "GP draw", "representer": "representer"}
NINE = [f"{kind}-{level}" for kind in KINDS for level in ("easy", "medium", "hard")]
RIDGE_TUNED = "graph-ucb (ridge tuned)"
LINEAR = ("gob-lin", "graph-ucb", RIDGE_TUNED, "per-user-linucb", "pooled-linucb")
Array = NDArray[np.float64]
Finals = Mapping[str, Mapping[str, Sequence[float]]]  # world -> policy -> final regret of each trial


def read(folder: Path) -> Finals:
    """Returns the final regrets of a finished study."""
    results = results_of(Store(folder))
    return {w: {p: results.final(w, p).round(4).tolist() for p in results.policies(w)} for w in results.worlds}


def page(record: Mapping[str, Finals]) -> str:
    """Returns the page of these results, by study."""
    main, hindsight = record["auto"], record["auto-hindsight"]
    true = {world: _true(record["auto-true-kernel"][world]) for world in NINE}
    tuned, permuted = _ratios(main, "auto-ucb", "lk-gp-ucb"), _ratios(main, *PERMUTED)
    rows = [
        _verdict("auto-ucb / lk-gp-ucb tuned in a pilot, geometric mean of nine", _geometric(tuned), 0.85),
        _verdict("the same, worst environment", max(tuned), 1.15),
        *_spread("auto-ucb / lk-gp-ucb tuned in hindsight", _ratios(hindsight, "auto-ucb", "lk-gp-ucb"), 0.95, 1.15),
        _verdict("auto-ucb, users permuted / no graph, worst", max(permuted), 1.05),
        _verdict("independent users: auto-ucb / per-user-gp-ucb", _ratio(main["independent"], "per-user-gp-ucb"), 1.05),
        _verdict("identical users: auto-ucb / gp-ucb (pooled)", _ratio(main["identical"], "gp-ucb"), 1.3),
        _verdict("linear: auto-ucb / best tuned linear baseline, worst", max(_against_linear(main)), 1.15),
        _verdict("auto-ts / lk-gp-ts tuned in a pilot, geometric mean", _geometric(_ratios(main, *SAMPLED)), 1.0),
    ]
    bar = _geometric([float(np.mean(true[world]) / np.mean(main[world]["lk-gp-ucb"])) for world in NINE])
    return TEXT.format(
        asked=_table(("regret of", "ratio", "target", "met"), rows),
        bar=f"{bar:.3f}",
        got=f"{_geometric(tuned):.3f}",
        linear=", ".join(f"{each:.2f}" for each in _against_linear(main)),
        permuted=f"{max(permuted):.3f}",
        worst=_named(NINE[int(np.argmax(permuted))]),
        permuted_mean=f"{_geometric(permuted):.3f}",
        cells=_cells(main, true),
        hindsight=_hindsight(hindsight),
        others=_others(main),
    )


PERMUTED = ("auto-ucb (permuted)", "auto-ucb (no graph)")
SAMPLED = ("auto-ts", "lk-gp-ts")

TEXT = """# Learned against tuned hyperparameters: `auto-ucb` and `auto-ts`

    make auto                  # in a clone: three studies, then this page

Final regret on the paper's nine environments (20 users, preset `paper-literal`), in 20 trials, the same for every
policy. `auto-*` has no pilot and no setting. lk-gp-ucb and the baselines are tuned in a pilot of 5 trials on the
paper's grids. There the linear baselines keep a ridge of 1, which does not suit the noise of these environments, so
graph-ucb is also run with its ridge in the grid. A ratio below 1 means that `auto-*` has less regret.

{asked}

The first target is missed: {got} instead of 0.85. There is little room below it: even a policy that is given the true
kernel and noise from the start, and so has no hyperparameters to learn, reaches {bar} (the column "true kernel"). Where
the rewards are GP draws, a pilot-tuned lk-gp-ucb is already as good as that. The gap between the two is the price of
learning eight hyperparameters from the rewards, most of it in the first few hundred rounds.

These were tried and not kept, since none gained: fits at every fourth root of two; the posterior mean of the
hyperparameters (64 weighted draws) instead of the mode; a wider bonus for arms that nobody has tried; a width that
grows with log t; other centres of the prior. With the true kernel, information-directed sampling and a one-step value
of information were no better than UCB of width 1.

The linear target is missed at the easy level: the regret of auto-ucb, divided by that of graph-ucb with width and ridge
tuned, is {linear} at the three levels. That policy knows from the start that rewards are linear, and has
20 settings to choose from. Against linear baselines with the paper's ridge of 1, auto-ucb has the least regret
everywhere.

Users permuted against no graph: {permuted} in the worst environment ({worst}), where the standard errors below are
a tenth of the means; {permuted_mean} in the geometric mean of the nine.

## Every cell

Mean final regret ± standard error over trials.

![Final regret of every policy in every world, with 95 % intervals](pictures/auto-final-regret.png)

{cells}

## Against the best setting in hindsight

Here lk-gp-ucb has the best of all 20 settings, chosen on these same trials.

{hindsight}

## Other worlds

Independent users: no two have anything in common. Identical users: all have the same taste. The widths of the linear
baselines are tuned, and the ridge of one of them too.

{others}
"""


def _true(world: Mapping[str, Sequence[float]]) -> Sequence[float]:
    return next(iter(world.values()))


def _ratio(world: Mapping[str, Sequence[float]], other: str, policy: str = "auto-ucb") -> float:
    return float(np.mean(world[policy]) / np.mean(world[other]))


def _ratios(finals: Finals, policy: str, other: str) -> list[float]:
    return [_ratio(finals[world], other, policy) for world in NINE]


def _against_linear(finals: Finals) -> list[float]:
    worlds = [finals[world] for world in NINE if world.startswith("linear")]
    return [max(_ratio(world, each) for each in LINEAR) for world in worlds]


def _geometric(values: Sequence[float] | list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def _verdict(what: str, value: float, target: float) -> tuple[str, ...]:
    return (what, f"{value:.3f}", f"<= {target:g}", "yes" if value <= target else "**no**")


def _spread(what: str, values: list[float], mean: float, worst: float) -> list[tuple[str, ...]]:
    return [
        _verdict(f"{what}, geometric mean of nine", _geometric(values), mean),
        _verdict("the same, worst environment", max(values), worst),
    ]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.1f}"


def _named(world: str) -> str:
    kind, level = world.split("-")
    return f"{KINDS[kind]}, {level}"


def _cells(main: Finals, true: Mapping[str, Sequence[float]]) -> str:
    policies = ("auto-ucb", "lk-gp-ucb", "auto-ts", "lk-gp-ts", *PERMUTED)
    head = ("world", *policies, "true kernel", "auto-ucb / lk-gp-ucb", "auto-ts / lk-gp-ts")
    rows = [
        (
            _named(world),
            *(_cell(main[world][each]) for each in policies),
            _cell(true[world]),
            f"{_ratio(main[world], 'lk-gp-ucb'):.2f}",
            f"{_ratio(main[world], *SAMPLED[::-1]):.2f}",
        )
        for world in NINE
    ]
    return _table(head, rows)


def _hindsight(finals: Finals) -> str:
    rows = [
        (_named(w), *(_cell(finals[w][p]) for p in ("auto-ucb", "lk-gp-ucb")), f"{_ratio(finals[w], 'lk-gp-ucb'):.2f}")
        for w in NINE
    ]
    return _table(("world", "auto-ucb", "lk-gp-ucb", "ratio"), rows)


def _others(main: Finals) -> str:
    worlds = ["independent", "identical", *(world for world in NINE if world.startswith("linear"))]
    peers = ("per-user-gp-ucb", "gp-ucb", *LINEAR)
    rows = [
        (
            world if "-" not in world else _named(world),
            _cell(main[world]["auto-ucb"]),
            ", ".join(f"{peer} {_cell(main[world][peer])}" for peer in peers if peer in main[world]),
        )
        for world in worlds
    ]
    return _table(("world", "auto-ucb", "tuned peers"), rows)


def picture(finals: Finals) -> Results:
    """Returns the final regrets as results whose trials are one round long: all that the picture of them needs."""
    regrets = {w: {p: np.reshape(values, (-1, 1)) for p, values in played.items()} for w, played in finals.items()}
    return Results(name="auto", title="auto", settings={}, versions={}, regrets=regrets)


def main(folders: Sequence[str]) -> None:
    kept = DOCS / "auto.json"
    if folders:
        names = ("auto", "auto-hindsight", "auto-true-kernel")
        record = {name: read(Path(folder)) for name, folder in zip(names, folders, strict=True)}
        kept.write_text(json.dumps(record, separators=(",", ":")) + "\n", encoding="utf-8")
    record = json.loads(kept.read_text(encoding="utf-8"))
    (DOCS / "auto.md").write_text(page(record), encoding="utf-8")
    _, drawn = save_figure(draw_finals(picture(record["auto"])), DOCS / "pictures" / "auto-final-regret")
    drawn.unlink()  # the page shows the PNG


if __name__ == "__main__":
    main(sys.argv[1:])
