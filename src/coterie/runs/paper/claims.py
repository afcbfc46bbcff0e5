"""The paper's claims about its experiments, each judged from stored results: holds, holds partly, does not hold."""

from collections.abc import Mapping
from typing import Any

from coterie.runs.paper.record import Record, finding, verdict_of
from coterie.runs.paper.summary import StudySummary
from coterie.runs.paper.table import cells, within_ten_percent

OURS = ["lk-gp-ucb", "lk-gp-ts"]
BASELINES = ["coop-kernel-ucb", "gob-lin", "graph-ucb", "gp-ucb", "pooled-linucb", "per-user-linucb"]
EIGHT = [*OURS, *BASELINES]
LEVELS = ["easy", "medium", "hard"]
REGIMES = ["linear", "gp-draw", "representer"]
CONTROLS = {
    "per-user-gp-ucb": "a GP for each user alone",
    "exchangeable-gp-ucb": "sharing with everybody alike",
    "lk-gp-ucb (permuted)": "the same graph with users permuted",
}
CLOSE, SUBLINEAR = 1.10, 0.9

Summaries = Mapping[str, StudySummary]


def judge(summaries: Summaries) -> list[Record]:
    """Returns a finding for every claim whose studies are there."""
    found: list[Record] = []
    if all(regime in summaries for regime in REGIMES):
        found += [_robust(summaries), _better_than_coop(summaries)]
    if "linear" in summaries:
        found.append(_beats_most(summaries["linear"]))
    if "gp-draw" in summaries:
        found.append(
            _always_top(
                summaries["gp-draw"],
                LEVELS,
                "In the GP-draw worlds LK-GP-UCB and LK-GP-TS are always the top algorithms",
            )
        )
    if "representer" in summaries:
        found.append(_sublinear(summaries["representer"]))
    if "coop-kernels" in summaries:
        found += [_inverse_best(summaries["coop-kernels"]), _learned_close(summaries["coop-kernels"])]
    if "graphs" in summaries:
        graphs = summaries["graphs"]
        found.append(
            _always_top(
                graphs, graphs.worlds, "On every family of graphs LK-GP-UCB and LK-GP-TS are the top algorithms"
            )
        )
    for name, reading in (("table-n-literal", "as the paper says"), ("table-n", "in the reading that fits, noise 0.4")):
        if name in summaries:
            found += [_table_figures(summaries[name], reading), _lowest_at_every_n(summaries[name], reading)]
    return found


def judge_controls(summaries: Summaries) -> list[Record]:
    """Returns for each control how lk-gp-ucb did against it, world by world; no claim of the paper."""
    found = []
    for control, words in CONTROLS.items():
        ahead, level, behind = [], [], []
        for regime in [each for each in REGIMES if each in summaries]:
            summary = summaries[regime]
            for world in [each for each in summary.worlds if control in summary.policies(each)]:
                place = f"{regime} {world} ({summary.mean(world, control) / summary.mean(world, 'lk-gp-ucb'):.2f}x)"
                (
                    ahead
                    if _less(summary, world, "lk-gp-ucb", control)
                    else behind
                    if _less(summary, world, control, "lk-gp-ucb")
                    else level
                ).append(place)
        if ahead or level or behind:
            told = "; ".join(
                f"{name}: {', '.join(places) or 'nowhere'}"
                for name, places in (
                    ("lk-gp-ucb has less regret", ahead),
                    ("no clear difference", level),
                    ("the control has less regret", behind),
                )
            )
            found.append(
                finding(f"Against {words} (`{control}`; in brackets its regret over lk-gp-ucb's)", None, f"{told}.")
            )
    return found


def _less(summary: StudySummary, world: str, policy: str, than: str) -> bool:
    """Whether the 95 % interval of the paired difference says that the first has less regret."""
    interval = summary.excess(world, than, policy).interval
    return interval is not None and interval[0] > 0


def _robust(summaries: Summaries) -> Record:
    held, told = 0, []
    for regime in REGIMES:
        for world in LEVELS:
            summary = summaries[regime]
            best = summary.ranked(world, EIGHT)[0]
            ratio = min(summary.mean(world, each) for each in OURS) / summary.mean(world, best)
            held += ratio <= CLOSE
            told.append(f"{regime} {world} {ratio:.2f}")
    evidence = f"The better of the two over the best of the paper's eight: {', '.join(told)}; at most {CLOSE:g} in {held} of 9."
    return finding("LK-GP-UCB and LK-GP-TS are robust in all nine environments", verdict_of(held, 9), evidence)


def _better_than_coop(summaries: Summaries) -> Record:
    clear, lower, told = 0, 0, []
    for regime in REGIMES:
        for world in LEVELS:
            summary = summaries[regime]
            ratio = summary.mean(world, "coop-kernel-ucb") / summary.mean(world, "lk-gp-ucb")
            clear += _less(summary, world, "lk-gp-ucb", "coop-kernel-ucb")
            lower += ratio > 1
            told.append(f"{regime} {world} {ratio:.2f}")
    evidence = (
        f"Regret of Coop-KernelUCB over LK-GP-UCB's: {', '.join(told)}; above 1 in {lower} of 9, clearly in {clear}."
    )
    return finding("LK-GP-UCB is consistently better than Coop-KernelUCB", verdict_of(lower, 9), evidence)


def _beats_most(summary: StudySummary) -> Record:
    held, told = 0, []
    for world in LEVELS:
        beaten = [each for each in BASELINES if _less(summary, world, "lk-gp-ucb", each)]
        held += len(beaten) > len(BASELINES) / 2
        ahead = [
            f"{each} ({summary.mean(world, each):.0f})"
            for each in BASELINES
            if summary.mean(world, each) < summary.mean(world, "lk-gp-ucb")
        ]
        told.append(
            f"{world}: clearly ahead of {len(beaten)} of 6 with {summary.mean(world, 'lk-gp-ucb'):.0f}; behind {', '.join(ahead) or 'none'}"
        )
    return finding(
        "In the linear worlds LK-GP-UCB beats most baselines with clear gaps",
        verdict_of(held, 3),
        f"{'; '.join(told)}.",
    )


def _always_top(summary: StudySummary, worlds: list[str], claim: str) -> Record:
    held, told = 0, []
    for world in worlds:
        order = summary.ranked(world, EIGHT)
        held += set(order[:2]) == set(OURS)
        told.append(f"{world}: " + ", ".join(f"{each} {summary.mean(world, each):.0f}" for each in order[:4]))
    return finding(claim, verdict_of(held, len(worlds)), f"Least regret of the paper's eight: {'; '.join(told)}.")


def _sublinear(summary: StudySummary) -> Record:
    held, told = 0, []
    for world in LEVELS:
        ours = [summary.growth(world, each) for each in OURS]
        theirs = {each: summary.growth(world, each) for each in BASELINES}
        linear = sum(value > SUBLINEAR for value in theirs.values())
        held += max(ours) <= SUBLINEAR and linear > len(BASELINES) / 2
        told.append(
            f"{world}: ours {ours[0]:.2f} and {ours[1]:.2f}, baselines "
            + ", ".join(f"{k} {v:.2f}" for k, v in theirs.items())
        )
    evidence = f"Exponent g of regret ~ t^g over the second half (sublinear: at most {SUBLINEAR:g}): {'; '.join(told)}."
    return finding(
        "In the representer worlds ours are sublinear while most baselines are not", verdict_of(held, 3), evidence
    )


def _kernel_means(summary: StudySummary) -> tuple[dict[str, float], str]:
    kinds = ["laplacian_inv", "heat", "spectral_rbf", "all_ones", "learned_mmd"]
    means = {kind: summary.mean("medium", kind) for kind in summary.ranked("medium", kinds)}
    return means, ", ".join(f"{kind} {mean:.0f}" for kind, mean in means.items())


def _inverse_best(summary: StudySummary) -> Record:
    means, told = _kernel_means(summary)
    best = next(iter(means))
    clear = all(_less(summary, "medium", "laplacian_inv", each) for each in means if each != "laplacian_inv")
    held = 2 if best == "laplacian_inv" and clear else 1 if best == "laplacian_inv" else 0
    evidence = f"Mean regret: {told}; laplacian_inv is {'clearly ' if clear else ''}{'the best' if held else 'not the best'}{'' if clear or not held else ', not clearly'}."
    return finding("Of the five user kernels the inverse Laplacian is the best", verdict_of(held, 2), evidence)


def _learned_close(summary: StudySummary) -> Record:
    means, told = _kernel_means(summary)
    ratio = means["learned_mmd"] / min(means.values())
    alone = means["learned_mmd"] / summary.mean("medium", "per-user-gp-ucb")
    held = 2 if ratio <= CLOSE else 1 if ratio <= 1.25 else 0
    evidence = (
        f"learned_mmd regrets {ratio:.2f} times the best and {alone:.2f} times a GP for each user alone ({told})."
    )
    return finding("The learned MMD kernel is close to the best", verdict_of(held, 2), evidence)


def _table_figures(summary: StudySummary, reading: str) -> Record:
    held, asked = within_ten_percent(summary)
    ratios = [ratio for _, _, _, ratio in cells(summary)]
    evidence = f"Within 10 % of the paper's figure in {held} of {asked} cells; ours over the paper's from {min(ratios):.2f} to {max(ratios):.2f}."
    return finding(f"The figures of the table over n ({reading})", verdict_of(held, asked), evidence)


def _lowest_at_every_n(summary: StudySummary, reading: str) -> Record:
    claim = f"LK-GP-UCB has the least regret of the eight at every n ({reading})"
    firsts = {world: summary.ranked(world, EIGHT)[:2] for world in summary.worlds}
    held = sum(order[0] == "lk-gp-ucb" for order in firsts.values())
    told = "; ".join(
        f"{w}: " + ", ".join(f"{p} {summary.mean(w, p):.0f}" for p in order) for w, order in firsts.items()
    )
    return finding(claim, verdict_of(held, len(firsts)), f"The two least: {told}.")


def as_rows(findings: list[Record]) -> list[list[Any]]:
    """Returns findings as rows of a table: claim, verdict, evidence."""
    return [[each["claim"], each.get("verdict", "-"), each["evidence"]] for each in findings]
