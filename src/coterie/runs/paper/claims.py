"""The paper's claims about its experiments, each judged from stored results: holds, holds partly, does not hold."""

from collections.abc import Iterator, Mapping

from coterie.runs.paper.record import Record, finding, verdict_of
from coterie.runs.paper.summary import StudySummary
from coterie.runs.paper.table import cells, within_ten_percent

OURS = ["lk-gp-ucb", "lk-gp-ts"]
BASELINES = ["coop-kernel-ucb", "gob-lin", "graph-ucb", "gp-ucb", "pooled-linucb", "per-user-linucb"]
EIGHT = [*OURS, *BASELINES]
LEVELS = ["easy", "medium", "hard"]
REGIMES = ["linear", "gp-draw", "representer"]
KERNELS = ["laplacian_inv", "heat", "spectral_rbf", "all_ones", "learned_mmd"]
CONTROLS = {
    "per-user-gp-ucb": "a GP for each user alone",
    "exchangeable-gp-ucb": "a GP that shares with everybody alike",
    "lk-gp-ucb (permuted)": "the same graph with users permuted",
    "greedy": "the same model without exploration, not tuned",
}
READINGS = {"table-n-literal": "as the paper says", "table-n": "in the reading that fits, noise 0.4"}
CLOSE, NEAR, SUBLINEAR = 1.10, 1.25, 0.9

Summaries = Mapping[str, StudySummary]


def judge(summaries: Summaries) -> list[Record]:
    """Returns a finding for every claim whose studies are there."""
    return list(_judged(summaries))


def _judged(summaries: Summaries) -> Iterator[Record]:
    if all(regime in summaries for regime in REGIMES):
        yield _robust(summaries)
        yield _better_than_coop(summaries)
    if "linear" in summaries:
        yield _beats_most(summaries["linear"])
    if "gp-draw" in summaries:
        yield _top("In the GP-draw worlds LK-GP-UCB and LK-GP-TS are always on top", summaries["gp-draw"], LEVELS)
    if "representer" in summaries:
        yield _sublinear(summaries["representer"])
    if "coop-kernels" in summaries:
        yield _inverse_best(summaries["coop-kernels"])
        yield _learned_close(summaries["coop-kernels"])
    if "graphs" in summaries:
        graphs = summaries["graphs"]
        yield _top("On every family of graphs LK-GP-UCB and LK-GP-TS are on top", graphs, graphs.worlds)
    for name in [each for each in READINGS if each in summaries]:
        yield _table_figures(summaries[name], READINGS[name])
        yield _least_at_every_n(summaries[name], READINGS[name])


def judge_controls(summaries: Summaries) -> list[Record]:
    """Returns for each control how lk-gp-ucb did against it, world by world; no claim of the paper."""
    found = []
    for control, words in CONTROLS.items():
        places = _against(summaries, control)
        if any(places.values()):
            told = "; ".join(f"{outcome}: {', '.join(each) or 'nowhere'}" for outcome, each in places.items())
            claim = f"Against {words} ({control}; in brackets its regret over lk-gp-ucb's)"
            found.append(finding(claim, None, f"{told}."))
    return found


def judge_pilot(summaries: Summaries) -> str:
    """Returns in words how often the pilot chose a width at the edge of the paper's grid."""
    places = [
        policy["width_at"]
        for summary in summaries.values()
        for world in summary.record["worlds"].values()
        for policy in world["policies"].values()
        if policy["width_at"]
    ]
    low, high = places.count("low"), places.count("high")
    return (
        f"Of {len(places)} tuned widths {low} lie at the lower end of the paper's grid and {high} at its upper end: "
        "where many lie at an end, a wider grid would have changed the comparison."
    )


def _against(summaries: Summaries, control: str) -> dict[str, list[str]]:
    """Returns the worlds where lk-gp-ucb is clearly ahead of a control, level with it, and clearly behind it."""
    out: dict[str, list[str]] = {
        "lk-gp-ucb clearly has less regret": [],
        "no clear difference": [],
        "the control clearly has less regret": [],
    }
    ahead, level, behind = out.values()
    for regime in [each for each in REGIMES if each in summaries]:
        summary = summaries[regime]
        for world in [each for each in summary.worlds if control in summary.policies(each)]:
            place = f"{regime} {world} ({_ratio(summary, world, control, 'lk-gp-ucb'):.2f})"
            if _less(summary, world, "lk-gp-ucb", control):
                ahead.append(place)
            else:
                (behind if _less(summary, world, control, "lk-gp-ucb") else level).append(place)
    return out


def _less(summary: StudySummary, world: str, policy: str, than: str) -> bool:
    """Whether the 95 % interval of the paired difference says that the first has less regret."""
    interval = summary.excess(world, than, policy).interval
    return interval is not None and interval[0] > 0


def _ratio(summary: StudySummary, world: str, policy: str, over: str) -> float:
    return summary.mean(world, policy) / summary.mean(world, over)


def _means(summary: StudySummary, world: str, policies: list[str]) -> str:
    return ", ".join(f"{each} {summary.mean(world, each):.0f}" for each in policies)


def _nine(summaries: Summaries) -> Iterator[tuple[str, StudySummary, str]]:
    for regime in REGIMES:
        for world in LEVELS:
            yield f"{regime} {world}", summaries[regime], world


def _robust(summaries: Summaries) -> Record:
    ratios = {}
    for place, summary, world in _nine(summaries):
        best = summary.ranked(world, EIGHT)[0]
        ratios[place] = min(_ratio(summary, world, each, best) for each in OURS)
    held = sum(ratio <= CLOSE for ratio in ratios.values())
    told = ", ".join(f"{place} {ratio:.2f}" for place, ratio in ratios.items())
    evidence = f"The better of the two over the best of the paper's eight: {told}; at most {CLOSE:g} in {held} of 9."
    return finding("LK-GP-UCB and LK-GP-TS are robust in all nine environments", verdict_of(held, 9), evidence)


def _better_than_coop(summaries: Summaries) -> Record:
    ratios, clear = {}, 0
    for place, summary, world in _nine(summaries):
        ratios[place] = _ratio(summary, world, "coop-kernel-ucb", "lk-gp-ucb")
        clear += _less(summary, world, "lk-gp-ucb", "coop-kernel-ucb")
    held = sum(ratio > 1 for ratio in ratios.values())
    told = ", ".join(f"{place} {ratio:.2f}" for place, ratio in ratios.items())
    evidence = f"Regret of Coop-KernelUCB over LK-GP-UCB's: {told}; above 1 in {held} of 9, clearly in {clear}."
    return finding("LK-GP-UCB is consistently better than Coop-KernelUCB", verdict_of(held, 9), evidence)


def _beats_most(summary: StudySummary) -> Record:
    held, told = 0, []
    for world in LEVELS:
        beaten = [each for each in BASELINES if _less(summary, world, "lk-gp-ucb", each)]
        held += len(beaten) > len(BASELINES) / 2
        better = [each for each in BASELINES if summary.mean(world, each) < summary.mean(world, "lk-gp-ucb")]
        ours, behind = _means(summary, world, OURS), _means(summary, world, better) or "none"
        told.append(f"{world}: {ours}; LK-GP-UCB clearly ahead of {len(beaten)} of 6, behind {behind}")
    claim = "In the linear worlds LK-GP-UCB beats most baselines with clear gaps"
    return finding(claim, verdict_of(held, len(LEVELS)), f"{'. '.join(told)}.")


def _top(claim: str, summary: StudySummary, worlds: list[str]) -> Record:
    orders = {world: summary.ranked(world, EIGHT) for world in worlds}
    held = sum(set(order[:2]) == set(OURS) for order in orders.values())
    told = "; ".join(f"{world}: {_means(summary, world, order[:4])}" for world, order in orders.items())
    return finding(claim, verdict_of(held, len(worlds)), f"The four least of the paper's eight: {told}.")


def _sublinear(summary: StudySummary) -> Record:
    held, told = 0, []
    for world in LEVELS:
        growth = {each: summary.growth(world, each) for each in EIGHT}
        linear = sum(growth[each] > SUBLINEAR for each in BASELINES)
        held += max(growth[each] for each in OURS) <= SUBLINEAR and linear > len(BASELINES) / 2
        told.append(f"{world}: " + ", ".join(f"{each} {value:.2f}" for each, value in growth.items()))
    claim = "In the representer worlds ours are sublinear while most baselines are not"
    rule = f"Exponent g of regret ~ t^g over the second half (called sublinear up to {SUBLINEAR:g})"
    return finding(claim, verdict_of(held, len(LEVELS)), f"{rule}: {'; '.join(told)}.")


def _inverse_best(summary: StudySummary) -> Record:
    order = summary.ranked("medium", KERNELS)
    first = order[0] == "laplacian_inv"
    clear = all(_less(summary, "medium", "laplacian_inv", each) for each in order if each != "laplacian_inv")
    verdict = "clearly the best" if first and clear else "the best, not clearly" if first else "not the best"
    evidence = f"Mean regret: {_means(summary, 'medium', order)}; laplacian_inv is {verdict}."
    return finding(
        "Of the five user kernels the inverse Laplacian is the best", verdict_of(first + (first and clear), 2), evidence
    )


def _learned_close(summary: StudySummary) -> Record:
    order = summary.ranked("medium", KERNELS)
    ratio = _ratio(summary, "medium", "learned_mmd", order[0])
    alone = _ratio(summary, "medium", "learned_mmd", "per-user-gp-ucb")
    evidence = f"It regrets {ratio:.2f} times the best ({order[0]}) and {alone:.2f} times a GP for each user alone."
    return finding(
        "The learned MMD kernel is close to the best", verdict_of((ratio <= CLOSE) + (ratio <= NEAR), 2), evidence
    )


def _table_figures(summary: StudySummary, reading: str) -> Record:
    held, asked = within_ten_percent(summary)
    ratios = [ratio for _, _, _, ratio in cells(summary)]
    spread = f"ours over the paper's from {min(ratios):.2f} to {max(ratios):.2f}"
    evidence = f"Within 10 % of the paper's figure in {held} of {asked} cells; {spread}."
    return finding(f"The figures of the table over n ({reading})", verdict_of(held, asked), evidence)


def _least_at_every_n(summary: StudySummary, reading: str) -> Record:
    orders = {world: summary.ranked(world, EIGHT)[:2] for world in summary.worlds}
    held = sum(order[0] == "lk-gp-ucb" for order in orders.values())
    told = "; ".join(f"{world}: {_means(summary, world, order)}" for world, order in orders.items())
    claim = f"LK-GP-UCB has the least regret of the eight at every n ({reading})"
    return finding(claim, verdict_of(held, len(orders)), f"The two least: {told}.")
