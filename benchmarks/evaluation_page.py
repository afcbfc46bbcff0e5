"""The tables of docs/evaluation.md, from docs/evaluation.json and docs/open_bandit.json.

python -m benchmarks.evaluation_page writes them, between the marks that name them.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"
SHOWN = ("replay", "ips", "snips", "dr", "switch", "switch-ips", "dm")
ASKED = ("replay", "ips", "snips", "dr")  # whose intervals are to hold the truth in 92 to 98 % of the logs
LEAST, MOST = 0.92, 0.98
Rows = list[dict[str, Any]]


def coverage(rows: Rows) -> Iterator[str]:
    """Yields the table of simulated truth, and what it says."""
    frozen = [row for row in rows if "learning" not in row["target"]]
    yield f"| rewards | logger | target | truth | {' | '.join(SHOWN)} |"
    yield "|---" * (4 + len(SHOWN)) + "|"
    for key in dict.fromkeys((row["rewards"], row["logger"], row["target"]) for row in frozen):
        some = {row["estimator"]: row for row in frozen if (row["rewards"], row["logger"], row["target"]) == key}
        cells = " | ".join(_cell(some[name]) for name in SHOWN)
        yield f"| {' | '.join(key)} | {some['dr']['truth']:.3f} | {cells} |"
    yield ""
    yield from _said(frozen)
    for row in (row for row in rows if "learning" in row["target"]):
        yield (
            f"- `learning=True`, {row['rewards']}, some {row['ess']:.0f} decisions accepted: {row['coverage']:.1%}, "
            f"bias {row['bias']:+.3f} ± {row['bias_error']:.3f}, compared with the mean of ten runs of the policy "
            "itself, which has an error too."
        )


def _cell(row: dict[str, Any]) -> str:
    return f"{row['coverage']:.1%}, {row['bias']:+.3f}, {row['rmse']:.3f}"


def _said(rows: Rows) -> Iterator[str]:
    asked = [row for row in rows if row["estimator"] in ASKED]
    names = "replay, IPS, SNIPS and DR"
    yield f"- The intervals of {names} hold the truth in {_span(asked, 'coverage')} of the logs; target: 92 to 98 %."
    odd = [row for row in asked if not LEAST <= row["coverage"] <= MOST]
    for row in odd:
        setting = f"{row['rewards']}, {row['logger']} logger, {row['target']}"
        warned = f"{row['warned']:.0%} warned of"
        yield f"- Outside of that: {row['estimator']} ({setting}), {row['coverage']:.1%}; {warned}."
    yield f"- Their intervals of the gain over the logger contain the true gain in {_span(asked, 'gain_coverage')}."
    shown = [_span([row for row in asked if row["logger"] == name], "warned") for name in WHO]
    of_whom = ", ".join(f"{span} of the {name} logger's logs" for span, name in zip(shown, WHO, strict=True))
    yield f"- At least one warning appeared in {of_whom}."
    model = _span([row for row in rows if row["estimator"] == "dm"], "coverage")
    yield f"- The interval of `dm` leaves out the error of the model ({model}) and should not be trusted."


WHO = ("uniform", "leaning", "sharp")


def _span(rows: Rows, name: str) -> str:
    values = [row[name] for row in rows]
    return f"{100 * min(values):.1f} to {100 * max(values):.1f} %"


def open_bandit(kept: dict[str, Any]) -> Iterator[str]:
    """Yields what each of two real logs says about the other's policy, and about further ones."""
    earned = {name: _ends(each) for name, each in kept["earned"].items()}
    clicks = ", ".join(f"{name} {earned[name]} ({kept['clicks'][name]} clicks)" for name in earned)
    yield f"Clicks per decision that each logger earned, with 95 % intervals: {clicks}."
    yield ""
    yield "| log | policy | decisions | what it truly earned | by | estimate | effective n |"
    yield "|---|---|---|---|---|---|---|"
    for each in kept["crossed"]:
        for name, one in each["estimates"].items():
            what = f"| {each['log']} | {each['policy']} | {each['n_decisions']:,} | {_ends(each['truth'])} "
            yield f"{what}| `{name}` | {_ends(one)} | {one['ess']:,.0f} |"
    yield ""
    yield "| log | policy | by dr | gain over the logger | effective n | warnings |"
    yield "|---|---|---|---|---|---|"
    for log, found in kept["policies"].items():
        for each in found["policies"]:
            one = each["estimates"]["dr"]
            gain = f"{one['gain']:+.4f} ({one['gain_low']:+.4f} to {one['gain_high']:+.4f})"
            yield f"| {log} | {each['policy']} | {_ends(one)} | {gain} | {one['ess']:,.0f} | {len(each['warnings'])} |"
    yield ""
    yield from _took(kept)


def _took(kept: dict[str, Any]) -> Iterator[str]:
    took = [found["took"] for found in kept["policies"].values()]
    seconds, memory = max(each["seconds"] for each in took), max(each["MiB"] for each in took)
    n = len(next(iter(kept["policies"].values()))["policies"])
    yield (
        f"`coterie evaluate` with these {n} policies took up to {seconds:.0f} s of one core and {memory:.0f} MiB: "
        "10,000 decisions, 80 candidates each."
    )


def _ends(each: dict[str, float]) -> str:
    return f"{each['value']:.4f} ({each['low']:.4f} to {each['high']:.4f})"


def written(page: str, name: str, lines: Iterator[str]) -> str:
    """Returns the page with these lines between the marks of this name."""
    block = f"<!-- {name} -->\n" + "\n".join(lines) + f"\n<!-- end {name} -->"
    return re.sub(f"<!-- {name} -->.*<!-- end {name} -->", lambda _: block, page, flags=re.DOTALL)


def whole(docs: Path = DOCS) -> str:
    """Returns the page with its tables written again."""
    page, rows, kept = (
        (docs / name).read_text(encoding="utf-8") for name in ("evaluation.md", "evaluation.json", "open_bandit.json")
    )
    return written(written(page, "coverage", coverage(json.loads(rows))), "open bandit", open_bandit(json.loads(kept)))


def main() -> None:
    (DOCS / "evaluation.md").write_text(whole(), encoding="utf-8")


if __name__ == "__main__":
    main()
