"""docs/scale.md from the stored runs: tables with their targets, and the pictures."""

import json
from pathlib import Path
from typing import Any

from benchmarks.large.cases import CASES, CERTAIN, EPS, KINDS, RIDGES, SIZES, certain_key, play_key
from benchmarks.large.pictures import draw_all
from benchmarks.large.store import Kept

REGRET = Path(__file__).parent.parent.parent / "docs" / "sparse_regret.json"
DEFAULTS = REGRET.with_name("default.json")
TARGETS = {case.key: case.targets for case in CASES}
INTRO = """# Large graphs

Written by `make bench-scale` from `docs/scale.json`. Engine `sparse` on one core: 32 features, a pool of 1,000 arms, 20
candidates, noise variance 0.1, mean degree 10, rewards on 2,000 users. Communities of 100 users with a tenth of the
edges across, or Barabasi-Albert. Each number is the median of {runs} runs (fewer where there is no target, one
where a run takes minutes), each in a process of its own. The target is in brackets behind a number; a number that
misses its target is bold.

{machine}
"""


TINY = "**These runs are tiny, of other sizes than stated: they only show that it works.**\n"


def write_page(kept: Kept, folder: Path, *, quick: bool = False) -> Path:
    """Writes the page and its pictures into a folder; what was not measured is left out."""
    counts = [len(kept.runs(case.key)) for case in CASES if kept.runs(case.key) and case.targets and not case.once]
    counts = counts or [5]
    runs = f"{max(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    parts = [INTRO.format(runs=runs, machine=kept.machine), TINY if quick else ""]
    drawn = draw_all(kept, folder / "pictures")
    parts += [_played(kept, eps) for eps in EPS]
    if "scale-reward.png" in drawn:
        parts.append("![Milliseconds of a reward over the number of users](pictures/scale-reward.png)\n")
    parts += [
        _growth(kept),
        _certain(kept),
        _fitted(kept),
        _regret(),
        _peers(kept),
        _memory(kept),
        _errors(kept, "scale-error.png" in drawn),
        _drift(kept),
        defaults_table(json.loads(DEFAULTS.read_text(encoding="utf-8"))["sizes"]) if DEFAULTS.exists() else "",
    ]
    path = folder / "scale.md"
    path.write_text("\n".join(part for part in parts if part), encoding="utf-8")
    return path


def _table(title: str, note: str, head: list[str], rows: list[list[str]]) -> str:
    if not rows:
        return ""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join([f"## {title}", "", note, "", *(f"| {' | '.join(line)} |" for line in lines), ""])


def defaults_table(sizes: list[dict[str, Any]]) -> str:
    """Returns the table of what the policies cost with default settings."""
    rows = []
    for each in sizes:
        if each["users"] >= SIZES[0] and not each["clicks"]:
            calls = [each[call][name] for call in ("decide", "reward") for name in ("p50", "p99", "longest")]
            numbers = [f"{value:.3g}" for value in (*calls, each["round_ms"], each["more_mib"])]
            rows.append([f"{each['users']:,}", each["policy"], *numbers])
    note = (
        "`Bandit(graph=..., arms=..., policy=...)` with nothing else set, 1,000 arms of 20 features, 20 candidates, "
        "the first 2,500 rounds in a loop without pauses, communities of 50 users. Calls are in milliseconds of the "
        "calling thread's processor time, a round in milliseconds of wall-clock time, fits included. Memory is the "
        "growth of the process. Measured by `make bench-default`."
    )
    head = ["users", "policy", "decide p50", "p99", "longest", "reward p50", "p99", "longest", "a round", "MiB"]
    return _table("Default settings", note, head, rows)


def _with_target(value: float, target: float | None) -> str:
    text = f"{value:.3g}"
    if target is None:
        return text
    return f"{text} ({target:g})" if value <= target else f"**{text}** ({target:g})"


def _played(kept: Kept, eps: float) -> str:
    names = ["reward_p50", "reward_p99", "decide_p50", "decide_p99", "built"]
    rows = []
    for kind in KINDS:
        for ridge in RIDGES:
            for n_users in SIZES:
                key = play_key(kind, n_users, ridge, eps)
                found = kept.median(key)
                if found:
                    numbers = [_with_target(found[name], TARGETS[key].get(name)) for name in names]
                    rows.append([kind, f"{ridge:g}", f"{n_users:,}", *numbers, f"{found['waiting']:.0f}"])
    title = f"A reward and a decision at eps = {eps:g}" + (", the fast setting" if eps == 1 else ", the default")
    note = (
        "Milliseconds, and seconds to build the model from a given graph. Decisions use cached variances. "
        "`waiting`: users whose residual was still above the threshold at the end."
    )
    head = ["graph", "rho", "users", "reward p50", "p99", "decide p50", "p99", "built, s", "waiting"]
    return _table(title, note, head, rows)


def _growth(kept: Kept) -> str:
    rows = []
    for kind in KINDS:
        for ridge in RIDGES[1:]:
            for eps in EPS:
                few, many = (kept.median(play_key(kind, n, ridge, eps)) for n in (SIZES[0], SIZES[-1]))
                if few and many:
                    ratio = many["reward_p50"] / few["reward_p50"]
                    rows.append([kind, f"{ridge:g}", f"{eps:g}", _with_target(ratio, 2.0)])
    note = "The median time of a reward at n = 10^6, divided by that at n = 10^4."
    return _table("Does it grow with the graph?", note, ["graph", "rho", "eps", "ratio (at most 2)"], rows)


def _certain(kept: Kept) -> str:
    rows = []
    for n_users, ridge, eps in CERTAIN:
        key = certain_key(n_users, ridge, eps)
        found = kept.median(key)
        if found:
            numbers = [_with_target(found[name], TARGETS[key][name]) for name in ("decide_p50", "decide_p99")]
            rows.append([f"{ridge:g}", f"{eps:g}", f"{n_users:,}", *numbers, f"{found['certain']:.2f}"])
    note = "Communities. Milliseconds, and the share of decisions that are proven to be those of the exact posterior."
    head = ["rho", "eps", "users", "decide p50", "p99", "certain"]
    return _table("Certified decisions", note, head, rows)


def _fitted(kept: Kept) -> str:
    found = kept.median("fit")
    if not found:
        return ""
    seconds = _with_target(found["seconds"], TARGETS["fit"]["seconds"])
    return (
        f"## A table at once\n\n{found['pairs']:,.0f} pairs of 10^6 users, rho 0.1, eps 0.1, communities: {seconds} "
        f"seconds, {found['steps']:.0f} steps of conjugate gradients, {found['peak']:.2f} GiB at most.\n"
    )


def _regret() -> str:
    rows = []
    for row in json.loads(REGRET.read_text(encoding="utf-8")) if REGRET.exists() else []:
        gaps = ["{:.3f} ({:.3f} to {:.3f})".format(*row[name]) for name in ("certified", "default")]
        size = f"{row['trials']} x {row['rounds']:,}"
        rows.append([row["kind"], row["level"], size, f"{row['certain']:.4f}", f"{row['same_trials']}", *gaps])
    note = (
        "`python -m benchmarks.sparse_regret --write`: lk-gp-ucb on `sparse` against the exact engine, same rounds: "
        "the ratio of final regrets and its paired 95 % interval. Worlds of the paper's text, default settings of the "
        "policy. The accuracy of `sparse` among 200 users or fewer was chosen on trials of other seeds."
    )
    head = ["world", "level", "trials x rounds", "certain", "same choices", "certified / exact", "default / exact"]
    return _table("Regret on the paper's worlds", note, head, rows)


def _peers(kept: Kept) -> str:
    rows = []
    found = kept.median("against linear")
    if found:
        what = "n = 300, rho 1, a round"
        for name, peer, target in (("linear", "`linear`, blocked", 5), ("rank_one", "rank-one updates in NumPy", 50)):
            rows.append(_ratio(what, found["ours"], found[name], peer, target))
    for ridge in RIDGES[1:]:
        found = kept.median(f"against global rho={ridge:g}")
        if found:
            peer = "conjugate gradients from zero, to the same threshold"
            rows.append(_ratio(f"n = 10,000, rho {ridge:g}, a reward", found["ours"], found["cg"], peer, 100))
    note = "Mean milliseconds at eps = 0.1 and the same features. A round is a decision among 20 and its reward."
    return _table("Against what it replaces", note, ["what", "ours", "peer", "times faster (at least)"], rows)


def _ratio(what: str, ours: float, theirs: float, peer: str, target: float) -> list[str]:
    ratio = theirs / ours
    text = f"{ratio:.1f}" if ratio >= target else f"**{ratio:.1f}**"
    return [what, f"{ours:.3g}", f"{theirs:.4g} ({peer})", f"{text} ({target:g})"]


def _memory(kept: Kept) -> str:
    rows = []
    for name in ("learned only", "decided and learned"):
        found = kept.median(f"memory, {name}")
        if found:
            peak = _with_target(found["peak"], TARGETS[f"memory, {name}"]["peak"])
            rows.append([name, f"{found['users']:,.0f}", peak, f"{found['held']:.2f}", f"{found['seconds']:,.0f}"])
    note = (
        "10^6 rewards on 10^5 users of a graph of 10^6, rho 1, eps 1: the largest resident size of the whole process, "
        "graph and history included, in GiB. Users with a decision have a cached variance."
    )
    return _table("Memory", note, ["", "users with data", "peak (at most)", "posterior", "seconds"], rows)


def _errors(kept: Kept, drawn: bool) -> str:
    rows = []
    for case in CASES:
        found = kept.median(case.key) if case.key.startswith("error ") else {}
        if found:
            _, ridge, eps = (text.split("=")[-1] for text in case.key.split())
            numbers = [f"{found[name]:.2g}" for name in ("median", "largest", "stated", "reward")]
            rows.append([ridge, eps, *numbers])
    note = (
        "n = 10,000, communities, 3,600 rewards: means of all arms for 500 users against a tight global solution, in "
        "units of the user's prior std. `bound` is the largest error bound among them."
    )
    head = ["rho", "eps", "median error", "largest", "bound", "ms a reward"]
    picture = "![Error over milliseconds of a reward, by eps](pictures/scale-error.png)\n" if drawn else ""
    return _table("Error, work and eps", note, head, rows) + ("\n" + picture if rows and drawn else "")


def _drift(kept: Kept) -> str:
    found = kept.median("drift")
    if not found:
        return ""
    share = found["gap"] / found["scale"]
    return (
        "## A million rewards\n\n"
        f"After a million rewards at n = 10,000 (rho 1, eps 1) the updated residual differs by {found['gap']:.2g} "
        f"from one computed from scratch, {share:.1g} of its scale (at most 1e-6).\n"
    )
