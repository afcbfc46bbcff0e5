"""The reproduction page: a function of the stored summaries and nothing else."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coterie.runs.paper.claims import CONTROLS, EIGHT, REGIMES, as_rows, judge, judge_controls
from coterie.runs.paper.record import Record
from coterie.runs.paper.summary import StudySummary
from coterie.runs.paper.table import PAPER, SIZES, table_rows

THEORY = {
    "figure-1": "Information gain and effective dimension (figure 1)",
    "theory": "The theory",
    "scaling": "Cost of each engine, and effective dimension by family of graphs",
}
TITLES = {
    "linear": "Linear-GOB",
    "gp-draw": "Laplacian kernel, GP draw",
    "representer": "Laplacian kernel, representer draw",
}


def read_summaries(folder: Path) -> dict[str, Record]:
    """Returns the stored summaries of a folder by name."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def write_page(records: Mapping[str, Record], *, pictures: str = "pictures") -> str:
    """Returns the page in Markdown.

    Args:
        records: Summaries of studies and records of the theory, by name.
        pictures: Where the pictures lie, seen from the page.
    """
    studies = {name: StudySummary(record) for name, record in records.items() if "worlds" in record}
    theory = {name: record for name, record in records.items() if "findings" in record}
    parts = [_head(studies), _verdicts(studies, theory), _environments(studies, pictures), _controls(studies)]
    parts += [_table_n(studies), _coop(studies, pictures), _graphs(studies, pictures), _factors(studies, pictures)]
    parts += [_theory(name, record, pictures) for name, record in theory.items()]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(studies: Mapping[str, StudySummary]) -> str:
    trials = sorted({each.record["trials"] for each in studies.values()})
    versions = next((each.record["versions"] for each in studies.values()), {})
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        "# Reproduction: what holds of the paper\n\n"
        "Written by `coterie reproduce all` from its stored results (`docs/results/`); no figure is typed in by hand. "
        f"Trials: {', '.join(map(str, trials))}; every policy tuned on a pilot of its own trials, as in the appendix. "
        f"Versions: {told}.\n\n"
        "Regret is the pseudo-regret: the best candidate's expected reward minus the chosen one's. All policies of a "
        'trial meet the same users, candidates and noise. `x ± y` is mean and standard error. "Clearly" means that the '
        "95 % bootstrap interval of the paired difference leaves out zero. Where the paper leaves a setting open or "
        "contradicts itself, the presets `paper-literal`, `paper-text` and `paper-table` say which reading was taken "
        "(`docs/studies.md`)."
    )


def _verdicts(studies: Mapping[str, StudySummary], theory: Mapping[str, Record]) -> str:
    findings = judge(studies) + [each for record in theory.values() for each in record["findings"] if "verdict" in each]
    counts = {
        verdict: sum(each["verdict"] == verdict for each in findings)
        for verdict in ("holds", "holds partly", "does not hold")
    }
    told = ", ".join(
        f"{count} {verdict.replace('holds', 'hold') if count != 1 and verdict != 'does not hold' else ('do not hold' if count != 1 and verdict == 'does not hold' else verdict)}"
        for verdict, count in counts.items()
    )
    return f"## Claim by claim\n\nOf {len(findings)} claims {told}.\n\n" + _table(
        ["claim", "verdict", "what we measured"], as_rows(findings)
    )


def _environments(studies: Mapping[str, StudySummary], pictures: str) -> str:
    parts = ["## The nine environments"]
    for regime in [each for each in REGIMES if each in studies]:
        parts += [
            f"### {TITLES[regime]}",
            f"`coterie reproduce {regime}`",
            _finals(studies[regime]),
            _picture(pictures, f"{regime}-regret", TITLES[regime]),
        ]
    return "\n\n".join(parts) if len(parts) > 1 else ""


def _finals(summary: StudySummary, policies: Sequence[str] | None = None) -> str:
    """Returns policies by worlds; the least regret of a world in bold."""
    names = policies or list(dict.fromkeys(p for w in summary.worlds for p in summary.policies(w)))
    rows = []
    for name in names:
        cells = []
        for world in summary.worlds:
            if name not in summary.policies(world):
                cells.append("-")
                continue
            found = summary.estimate(world, name)
            cell = f"{found.mean:.4g} ± {found.std_err or 0:.2g}"
            cells.append(f"**{cell}**" if name == summary.ranked(world)[0] else cell)
        rows.append([name, *cells])
    return _table(["policy", *summary.worlds], rows)


def _controls(studies: Mapping[str, StudySummary]) -> str:
    findings = judge_controls(studies)
    if not findings:
        return ""
    told = "\n\n".join(f"**{each['claim']}.** {each['evidence']}" for each in findings)
    names = ", ".join(f"`{name}`" for name in CONTROLS)
    return f"## Controls that the paper lacks\n\nDoes the graph itself help? {names}, each tuned like the others.\n\n{told}"


def _table_n(studies: Mapping[str, StudySummary]) -> str:
    parts = []
    for name, title, note in (
        (
            "table-n-literal",
            "Read literally: medium level, noise 0.1, T = 3000",
            "A reading under which the paper's figures are out of reach: compare the random policy.",
        ),
        (
            "table-n",
            "In the reading that gives its numbers",
            "The hard level, T = 5000, world ridge 0.1 and noise 0.4, with the graph, pool and truth redrawn in each trial. Level, horizon and noise were found by fit; noise 0.4 stands nowhere in the paper. Widths and lambda_base tuned at n = 20 and frozen.",
        ),
    ):
        if name in studies and all(f"n={size}" in studies[name].worlds for size in SIZES):
            summary = studies[name]
            head = ["policy", *(text for size in SIZES for text in (f"n={size} ours", "paper", "ratio"))]
            rows = table_rows(summary)
            rest = [p for p in summary.policies("n=20") if p not in PAPER]
            others = (
                "\n\nBeside it, ours only (a random policy's regret falls with n too: the world itself gets flatter):\n\n"
                + _finals(summary, rest)
            )
            parts.append(f"### {title}\n\n{note}\n\n{_table(head, rows)}{others}")
    return (
        "\n\n".join(["## The table over the number of users", "`coterie reproduce table-n`", *parts]) if parts else ""
    )


def _coop(studies: Mapping[str, StudySummary], pictures: str) -> str:
    return _study(studies, "coop-kernels", "## The five user kernels of Coop-KernelUCB", pictures)


def _graphs(studies: Mapping[str, StudySummary], pictures: str) -> str:
    return _study(studies, "graphs", "## Families of graphs", pictures)


def _factors(studies: Mapping[str, StudySummary], pictures: str) -> str:
    return _study(studies, "ablations", "## The two factors of the kernel, and wrong settings", pictures)


def _study(studies: Mapping[str, StudySummary], name: str, title: str, pictures: str) -> str:
    if name not in studies:
        return ""
    summary = studies[name]
    return "\n\n".join(
        [
            title,
            f"`coterie reproduce {name}`",
            _finals(summary),
            _picture(pictures, f"{name}-regret", summary.record["title"]),
        ]
    )


def _theory(name: str, record: Record, pictures: str) -> str:
    seen = [f"- {each['claim']}: {each['evidence']}" for each in record["findings"] if "verdict" not in each]
    drawn = [
        _picture(pictures, each["stem"], each["title"]) + f"\n\n{each['caption']}"
        for each in record.get("pictures", [])
    ]
    command = "ablations" if name == "scaling" else name
    return "\n\n".join(
        [f"## {THEORY.get(name, name)}", f"`coterie reproduce {command}`", *(["\n".join(seen)] if seen else []), *drawn]
    )


def _picture(folder: str, stem: str, title: str) -> str:
    return f"![{title}]({folder}/{stem}.png)"


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [list(head), ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def names_of_the_eight() -> list[str]:
    """Returns the paper's eight policies."""
    return list(EIGHT)
