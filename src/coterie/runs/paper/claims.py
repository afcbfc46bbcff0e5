"""The paper's claims about its experiments, each judged from stored results: holds, holds partly, does not hold."""

from collections.abc import Iterator, Mapping

from coterie.runs.paper.experiments.experiment import Record, finding, verdict_of
from coterie.runs.paper.summary import StudySummary, cells, within_ten_percent

OURS = ["lk-gp-ucb", "lk-gp-ts"]
BASELINES = ["coop-kernel-ucb", "gob-lin", "graph-ucb", "gp-ucb", "pooled-linucb", "per-user-linucb"]
EIGHT = [*OURS, *BASELINES]
LEVELS = ["easy", "medium", "hard"]
REGIMES = ["linear", "gp-draw", "representer"]
WITH_CONTROLS = [*REGIMES, "graphs", "table-n-literal", "table-n"]
KERNELS = ["laplacian_inv", "heat", "spectral_rbf", "all_ones", "learned_mmd"]
TUNED_RIDGE = "graph-ucb (ridge tuned)"
CONTROLS = {
    "per-user-gp-ucb": "a GP for each user alone",
    "exchangeable-gp-ucb": "a GP that shares with everybody alike",
    "lk-gp-ucb (permuted)": "the same graph with users permuted",
    "greedy": "the same model without exploration, not tuned",
    TUNED_RIDGE: "graph-ucb with its ridge tuned as well, which the paper holds at 1",
}
READINGS = {"table-n-literal": "as the paper says", "table-n": "in the reading that fits, noise 0.4"}
CLOSE, NEAR, SUBLINEAR, MOST = 1.10, 1.25, 0.9, 0.8

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
        representer = summaries["representer"]
        yield _top("In the representer worlds LK-GP-UCB and LK-GP-TS are the best choices", representer, LEVELS)
        yield _ours_sublinear(representer)
        yield _others_linear(representer)
    if "coop-kernels" in summaries:
        yield _inverse_best(summaries["coop-kernels"])
        yield _learned_close(summaries["coop-kernels"])
    if "graphs" in summaries:
        graphs = summaries["graphs"]
        yield _top("On every family of graphs they are on top (the paper's figure)", graphs, graphs.worlds)
    if "table-n-literal" in summaries:
        yield _table_figures(summaries["table-n-literal"])
    for name in [each for each in READINGS if each in summaries]:
        yield _least_at_every_n(summaries[name], READINGS[name])


def judge_controls(summaries: Summaries) -> list[Record]:
    """Returns for each control how lk-gp-ucb did against it, world by world; no claim of the paper."""
    found = []
    for control, words in CONTROLS.items():
        places = _against(summaries, control)
        if any(places.values()):
            cases = "; ".join(f"{outcome}: {', '.join(each) or 'nowhere'}" for outcome, each in places.items())
            claim = f"Against {words} ({control}; in brackets its regret over lk-gp-ucb's)"
            found.append(finding(claim, None, f"{cases}."))
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
        f"Of {len(places)} tuned widths {low} lie at the lower end of their grid and {high} at its upper end: where "
        "many lie at an end, a wider grid might have changed the comparison."
    )


def _against(summaries: Summaries, control: str) -> dict[str, list[str]]:
    """Returns the worlds where lk-gp-ucb clearly has less regret than a control, about the same, and clearly more."""
    out: dict[str, list[str]] = {
        "lk-gp-ucb clearly has less regret": [],
        "no clear difference": [],
        "the control clearly has less regret": [],
    }
    less, level, more = out.values()
    for regime in [each for each in WITH_CONTROLS if each in summaries]:
        summary = summaries[regime]
        for world in [each for each in summary.worlds if control in summary.policies(each)]:
            place = f"{regime} {world} ({_ratio(summary, world, control, 'lk-gp-ucb'):.2f})"
            if _less(summary, world, "lk-gp-ucb", control):
                less.append(place)
            else:
                (more if _less(summary, world, control, "lk-gp-ucb") else level).append(place)
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
    cases, held = [], 0
    for place, summary, world in _nine(summaries):
        best = summary.ranked(world, EIGHT)[0]
        ratios = [_ratio(summary, world, each, best) for each in OURS]
        held += max(ratios) <= NEAR
        cases.append(f"{place} {ratios[0]:.2f} and {ratios[1]:.2f}")
    rule = f"Regret of LK-GP-UCB and of LK-GP-TS over the best of the paper's eight (called robust up to {NEAR:g})"
    claim = "LK-GP-UCB and LK-GP-TS are robust in all nine environments"
    return finding(claim, verdict_of(held, 9), f"{rule}: {', '.join(cases)}; both in {held} of 9.")


def _better_than_coop(summaries: Summaries) -> Record:
    ratios, clear = {}, 0
    for place, summary, world in _nine(summaries):
        ratios[place] = _ratio(summary, world, "coop-kernel-ucb", "lk-gp-ucb")
        clear += _less(summary, world, "lk-gp-ucb", "coop-kernel-ucb")
    held = sum(ratio > 1 for ratio in ratios.values())
    cases = ", ".join(f"{place} {ratio:.2f}" for place, ratio in ratios.items())
    evidence = f"Regret of Coop-KernelUCB over LK-GP-UCB's: {cases}; above 1 in {held} of 9, clearly in {clear}."
    return finding("LK-GP-UCB is consistently better than Coop-KernelUCB", verdict_of(held, 9), evidence)


def _beats_most(summary: StudySummary) -> Record:
    held, cases = 0, []
    for world in LEVELS:
        beaten = {each: [other for other in BASELINES if _less(summary, world, each, other)] for each in OURS}
        held += sum(len(others) > len(BASELINES) / 2 for others in beaten.values())
        counts = ", ".join(f"{each} {summary.mean(world, each):.0f} ({len(beaten[each])} of 6)" for each in OURS)
        cases.append(f"{world}: {counts}; baselines {_means(summary, world, summary.ranked(world, BASELINES))}")
    claim = "In the linear worlds LK-GP-UCB and LK-GP-TS beat most baselines with clear gaps"
    evidence = f"In brackets how many baselines are clearly beaten. {'. '.join(cases)}. {_tuned_ridge(summary)}"
    return finding(claim, verdict_of(held, 2 * len(LEVELS)), evidence.strip())


def _tuned_ridge(summary: StudySummary) -> str:
    """Returns what the linear baseline does when its ridge is tuned like the kernel methods'; nothing if not run."""
    worlds = [world for world in LEVELS if TUNED_RIDGE in summary.policies(world)]
    ratios = ", ".join(f"{world} {_ratio(summary, world, TUNED_RIDGE, 'lk-gp-ucb'):.2f}" for world in worlds)
    said = "The linear baselines have a constant ridge of 1, as the paper's table calls for"
    return f"{said}; graph-ucb with ridge and width tuned regrets, over LK-GP-UCB: {ratios}." if worlds else ""


def _top(claim: str, summary: StudySummary, worlds: list[str]) -> Record:
    orders = {world: summary.ranked(world, EIGHT) for world in worlds}
    held = sum(set(order[:2]) == set(OURS) for order in orders.values())
    cases = "; ".join(f"{world}: {_means(summary, world, order[:4])}" for world, order in orders.items())
    return finding(claim, verdict_of(held, len(worlds)), f"The four least of the paper's eight: {cases}.")


def _ours_sublinear(summary: StudySummary) -> Record:
    growth = {world: [summary.growth(world, each) for each in OURS] for world in LEVELS}
    held = sum(max(values) <= SUBLINEAR for values in growth.values())
    cases = "; ".join(f"{world}: {first:.2f} and {second:.2f}" for world, (first, second) in growth.items())
    claim = "In the representer worlds LK-GP-UCB and LK-GP-TS have sublinear regret"
    rule = f"Exponent g of regret ~ t^g over the second half (called sublinear up to {SUBLINEAR:g})"
    return finding(claim, verdict_of(held, len(LEVELS)), f"{rule}: {cases}.")


def _others_linear(summary: StudySummary) -> Record:
    growth = {world: {each: summary.growth(world, each) for each in BASELINES} for world in LEVELS}
    counts = {bar: [sum(g > bar for g in each.values()) for each in growth.values()] for bar in (0.75, SUBLINEAR, 0.95)}
    held = sum(count > len(BASELINES) / 2 for count in counts[SUBLINEAR])
    swing = "; ".join(f"above {bar:g}: {', '.join(map(str, each))} of 6" for bar, each in counts.items())
    cases = "; ".join(
        f"{world}: " + ", ".join(f"{k} {v:.2f}" for k, v in each.items()) for world, each in growth.items()
    )
    claim = "In the representer worlds most baselines hardly achieve sublinear regret"
    evidence = (
        f"Exponents: {cases}. By the bar that is set, at the three levels: {swing}; the verdict is at {SUBLINEAR:g}."
    )
    return finding(claim, verdict_of(held, len(LEVELS)), evidence)


def _inverse_best(summary: StudySummary) -> Record:
    order = summary.ranked("medium", KERNELS)
    first = order[0] == "laplacian_inv"
    clear = all(_less(summary, "medium", "laplacian_inv", each) for each in order if each != "laplacian_inv")
    beaten = any(_less(summary, "medium", each, "laplacian_inv") for each in order)
    verdict = "clearly the best" if first and clear else "clearly beaten" if beaten else "not clearly the best"
    evidence = f"Mean regret: {_means(summary, 'medium', order)}; laplacian_inv is {verdict}."
    held = 2 if first and clear else 0 if beaten else 1
    return finding("Of the five user kernels the inverse Laplacian is the best", verdict_of(held, 2), evidence)


def _learned_close(summary: StudySummary) -> Record:
    order = summary.ranked("medium", KERNELS)
    ratio = _ratio(summary, "medium", "learned_mmd", order[0])
    alone = _ratio(summary, "medium", "learned_mmd", "per-user-gp-ucb")
    evidence = f"It regrets {ratio:.2f} times the best ({order[0]}) and {alone:.2f} times a GP for each user alone."
    return finding(
        "The learned MMD kernel is close to the best", verdict_of((ratio <= CLOSE) + (ratio <= NEAR), 2), evidence
    )


def _table_figures(summary: StudySummary) -> Record:
    held, asked = within_ten_percent(summary)
    ratios = [ratio for _, _, _, ratio in cells(summary)]
    spread = f"ours over the paper's from {min(ratios):.2f} to {max(ratios):.2f}"
    random = "; ".join(f"{world} {summary.mean(world, 'random'):.0f}" for world in summary.worlds)
    evidence = (
        f"Within 10 % of the paper's figure in {held} of {asked} cells; {spread}. A random policy regrets {random}."
    )
    grade = 2 if held >= MOST * asked else 0 if held <= (1 - MOST) * asked else 1
    return finding("The figures of the table over n, read as the paper says", verdict_of(grade, 2), evidence)


def _least_at_every_n(summary: StudySummary, reading: str) -> Record:
    orders = {world: summary.ranked(world, EIGHT)[:2] for world in summary.worlds}
    least = sum(order[0] == "lk-gp-ucb" for order in orders.values())
    beaten = sum(any(_less(summary, world, each, "lk-gp-ucb") for each in EIGHT) for world in orders)
    cases = "; ".join(f"{world}: {_means(summary, world, order)}" for world, order in orders.items())
    grade = 2 if least == len(orders) else 0 if beaten == len(orders) else 1
    claim = f"LK-GP-UCB has the least regret of the eight at every n ({reading})"
    return finding(
        claim,
        verdict_of(grade, 2),
        f"The two least: {cases}. It is clearly beaten at {beaten} of {len(orders)} sizes.",
    )
