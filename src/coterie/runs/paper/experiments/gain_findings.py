"""What the data of figure 1 say of the paper's claims."""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import Array
from coterie.runs.paper.experiments.experiment import Record, finding, slope, span, verdict_of

NEARLY = 0.05


def findings(record: Record) -> list[Record]:
    """Returns the findings of figure 1, every figure in them computed from the record."""
    return [
        _operator(record["gain"]),
        _operator_uniform(record["gain"]),
        _regular_bounds(record["gain"]),
        _regular_is_sharp(record["gain"]),
        _growth_in_rounds(record),
        _falls_with_users(record),
        _proposition(record["proposition"]),
        _flat_in_users(record),
        _needed_constant(record["proposition"]),
    ]


def _ratios(cells: Iterable[Record], over: str, under: str = "iid") -> list[float]:
    return [cell[over] / cell[under] for cell in cells]


def _operator(cells: list[Record]) -> Record:
    ratios = _ratios(cells, "operator")
    return finding(
        "The operator expression is an approximate upper bound on the information gain, conservative for finite T.",
        verdict_of(sum(r >= 1 for r in ratios), len(ratios)),
        f"On the complete graph it lies above the mean i.i.d. gain in {sum(r >= 1 for r in ratios)} of {len(ratios)} "
        f"cells (n, T, lambda), by a factor of {span(ratios)}.",
    )


def _operator_uniform(cells: list[Record]) -> Record:
    ratios = _ratios(cells, "operator_uniform")
    return finding(
        "Where the looseness of the operator expression comes from",
        None,
        "Users are uniform, so the operator's eigenvalues are lambda_i nu_j / n, and the printed expression lacks the "
        f"1/n. With it the expression is {span(ratios)} times the mean i.i.d. gain (median {np.median(ratios):.3g}), "
        f"above it in {sum(r >= 1 for r in ratios)} of {len(ratios)} cells, as it must be in the mean, log det being "
        "concave.",
    )


def _regular_bounds(cells: list[Record]) -> Record:
    ratios = _ratios(cells, "regular")
    above = sum(r >= 1 for r in ratios)
    clear = sum(_gap_in_errors(cell) > 2 for cell in cells)
    return finding(
        "The regular-design expression is a sharper upper bound on the i.i.d. gain.",
        verdict_of(above, len(ratios)),
        f"It lies above the mean i.i.d. gain in {above} of {len(ratios)} cells and below it in {len(ratios) - above} "
        f"(in {clear} by more than two standard errors); it is {span(ratios)} times the gain. Common arms for all "
        "users repeat what is known; an i.i.d. design sees more of the arms.",
    )


def _gap_in_errors(cell: Record) -> float:
    error = float(np.hypot(cell["iid_error"], cell["regular_error"]))
    gap = float(cell["iid"] - cell["regular"])
    return gap / error if error > 0 else np.inf * np.sign(gap)


def _regular_is_sharp(cells: list[Record]) -> Record:
    near = [abs(r - 1) <= NEARLY for r in _ratios(cells, "regular")]
    many = [cell["horizon"] / cell["n_users"] for cell, close in zip(cells, near, strict=True) if not close]
    uniform = sum(abs(r - 1) <= NEARLY for r in _ratios(cells, "operator_uniform"))
    least = min(_ratios(cells, "regular"))
    return finding(
        "The regular-design expression is nearly exact for the i.i.d. design.",
        verdict_of(sum(near), len(near)),
        f"It is within {NEARLY:.0%} of the i.i.d. gain in {sum(near)} of {len(near)} cells; all others have at most "
        f"{max(many, default=0):.3g} rounds a user, the worst is {1 - least:.0%} too low. The operator expression with "
        f"1/n, which needs no design, is within {NEARLY:.0%} in {uniform}.",
    )


def _growth_in_rounds(record: Record) -> Record:
    dimension, horizons = record["settings"]["dimension"], np.array(record["settings"]["dim_horizons"])
    slopes = {
        graph: [slope(np.log(horizons) ** dimension, line["dim"]) for line in _lines(record, graph)]
        for graph in ("empty", "complete")
    }
    every = [value for values in slopes.values() for value in values]
    return finding(
        f"With the SE kernel the effective dimension grows as (log T)^d, d = {dimension}, or slower.",
        verdict_of(sum(value <= 1 for value in every), len(every)),
        f"The log-log slope of d-tilde against (log T)^{dimension} over T = {horizons[0]} to {horizons[-1]} is "
        f"{span(slopes['empty'])} on the empty graph and {span(slopes['complete'])} on the complete one, "
        "where a straight line has 1.",
    )


def _lines(record: Record, graph: str, **where: float) -> list[Record]:
    return [
        line
        for line in record["dimension"]
        if line["graph"] == graph and all(line[key] == value for key, value in where.items())
    ]


def _falls_with_users(record: Record) -> Record:
    dims = _steps(record, lambda line: np.array(line["dim"]))
    gains = _steps(record, lambda line: np.array(line["gain"]))
    cases = []
    for noise_var in record["settings"]["noise_vars"]:
        lines = _lines(record, "complete", noise_var=noise_var)
        ratio = np.array(lines[-1]["dim"]) / np.array(lines[0]["dim"])
        cases.append(f"{span(ratio)} at lambda = {noise_var:g}")
    few, many = min(record["settings"]["dim_users"]), max(record["settings"]["dim_users"])
    spread = [line["max_variance"] for line in _lines(record, "complete")]
    return finding(
        "On the complete graph the effective dimension decreases slightly as n increases.",
        verdict_of(int(dims.sum()), dims.size),
        f"From one n to the next it falls in {int(dims.sum())} of {dims.size} steps (over T and lambda); the gain "
        f"itself falls in {int(gains.sum())}. From n = {few} to {many}, over T, d-tilde changes by a factor of "
        f"{'; '.join(cases)}. Part of this is the scale: K_max falls from {max(spread):.3g} to {min(spread):.3g} on "
        f"the complete graph and stays at {_lines(record, 'empty')[0]['max_variance']:.3g} on the empty one.",
    )


def _steps(record: Record, value: Callable[[Record], Array]) -> NDArray[np.bool_]:
    """Returns whether the value falls from one n to the next on the complete graph, for each T and lambda."""
    falls = []
    for noise_var in record["settings"]["noise_vars"]:
        lines = _lines(record, "complete", noise_var=noise_var)
        falls.append(np.diff([value(line) for line in lines], axis=0) < 0)
    return np.array(falls)


def _proposition(cells: list[Record]) -> Record:
    below = [cell["regular"] <= cell["bound"] and cell["iid"] <= cell["bound"] for cell in cells]
    cases = [
        f"{span([c['bound'] / c['iid'] for c in cells if c['noise_var'] == noise_var])} at lambda = {noise_var:g}"
        for noise_var in sorted({cell["noise_var"] for cell in cells})
    ]
    return finding(
        "In the regime T <= C n on a complete graph the gain is at most C / lambda (1 / rho + 1), regular design.",
        verdict_of(sum(below), len(below)),
        f"It holds in {sum(below)} of {len(below)} cells, and for the i.i.d. design as well: gain <= trace / lambda = "
        f"T K_max / lambda for every design. Bound over i.i.d. gain: {'; '.join(cases)}.",
    )


def _flat_in_users(record: Record) -> Record:
    most, cases, flat = max(record["settings"]["clique_users"]), [], []
    for noise_var in record["settings"]["noise_vars"]:
        growth = [_last_doubling(record, each, noise_var) for each in record["settings"]["rounds_per_user"]]
        flat += [value <= 1 + NEARLY for value in growth]
        cases.append(f"{span(growth)} at lambda = {noise_var:g}")
    return finding(
        "In the regime T = C n the gain on a complete graph grows with neither n nor T.",
        verdict_of(sum(flat), len(flat)),
        f"From the last n but one to n = {most} the i.i.d. gain grows by a factor of {'; '.join(cases)}. It levels off "
        "only where n is well above 1 / lambda: the tail is at most (n - 1) C log(1 + 1 / ((n + rho) lambda)), "
        "which grows with n until then.",
    )


def _last_doubling(record: Record, each: int, noise_var: float) -> float:
    cells = [c for c in record["proposition"] if c["rounds_per_user"] == each and c["noise_var"] == noise_var]
    return float(cells[-1]["iid"] / cells[-2]["iid"])


def _needed_constant(cells: list[Record]) -> Record:
    needed = [cell["iid"] / cell["bound"] for cell in cells]
    hadamard = [cell["hadamard"] / cell["iid"] for cell in cells]
    return finding(
        "Which constant the proposition needs",
        None,
        "By the trace it is alpha^2 = max K_x(x, x), here 1; the largest share of the bound that any cell needs is "
        f"{max(needed):.3g}. T log(1 + K_max / lambda), which also holds for every design, is {span(hadamard)} times "
        "the i.i.d. gain. Under the regular design many users need C / lambda for the tail and at most "
        "C log(1 + 1 / (rho lambda)) for the head, not C / (rho lambda).",
    )
