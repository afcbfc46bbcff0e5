"""One shape for every computation of the paper: settings, a record measured with them, findings and pictures from it.

A record is plain rounded numbers, fit for JSON: findings and pictures are made from it alone, so a stored one is drawn
again without being measured again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from coterie.contracts import Array
from coterie.runs.report.style import BLACK, BLUE, GREEN, OLIVE, ORANGE, PINK, SKY, VERMILLION, WINE, Picture

Report = Callable[[str], None]  # is given a line on what is being computed
Record = dict[str, Any]
Verdict = Literal["holds", "holds partly", "does not hold"]

# For lines that are not policies. The shades go from dark to light, for lines in an order.
SHADES = ("#440154", "#3b528b", "#21918c", "#5ec962", "#c8b400", "#d55e00")
MANY = (BLUE, VERMILLION, GREEN, PINK, SKY, BLACK, ORANGE, WINE, OLIVE)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)), (0, (3, 1)), (0, (6, 2, 2, 2)))


class Experiment(Protocol):
    """A module of this folder."""

    FULL: Any
    QUICK: Any

    def measure(self, settings: Any, report: Report) -> Record:
        """Returns the data that these settings give."""
        ...

    def findings(self, record: Record) -> list[Record]:
        """Returns what settings and data say."""
        ...

    def draw(self, record: Record, folder: Path) -> list[Picture]:
        """Returns the pictures, written as PNG and SVG."""
        ...


@dataclass(frozen=True, slots=True)
class Computation:
    """Experiments with one record: each by its name, or a single one without a name, whose record is the whole."""

    study: str
    parts: Mapping[str, Experiment]

    def run(self, quick: bool, report: Report, settings: Mapping[str, Any] | None = None) -> Record:
        """Returns the record of all parts, and all findings.

        Args:
            quick: Whether to measure with few repeats, to see that it works.
            report: Is given what is being computed.
            settings: Of parts by name, in the place of their own.
        """
        chosen = {name: part.QUICK if quick else part.FULL for name, part in self.parts.items()} | dict(settings or {})
        found = {name: _measured(part, chosen[name], report) for name, part in self.parts.items()}
        findings = [each for name, part in self.parts.items() for each in part.findings(found[name])]
        whole = found.get("") or found | {"settings": {name: found[name]["settings"] for name in found}}
        return {"study": self.study, **whole, "findings": findings}

    def draw(self, record: Record, folder: Path) -> list[Picture]:
        """Returns the pictures of all parts."""
        parts = self.parts.items()
        return [drawn for name, part in parts for drawn in part.draw(record[name] if name else record, folder)]


def _measured(part: Experiment, settings: Any, report: Report) -> Record:
    record: Record = plain({"settings": asdict(settings), **part.measure(settings, report)})
    return record


def plain(value: Any) -> Any:
    """Returns the same thing in lists, dicts and floats of 6 significant digits, fit for JSON.

    Examples:
        >>> plain({"gain": np.array([1.23456789, 2.0]), "n": np.int64(3)})
        {'gain': [1.23457, 2.0], 'n': 3}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}")
    return int(value) if isinstance(value, np.integer) else value


def finding(claim: str, verdict: Verdict | None, evidence: str) -> Record:
    """Returns one finding; without a verdict it says what was seen and judges no claim."""
    judged = {} if verdict is None else {"verdict": verdict}
    return {"claim": claim, **judged, "evidence": evidence}


def verdict_of(held: int, asked: int) -> Verdict:
    """Returns the verdict on a claim that held in so many of the cells asked.

    Examples:
        >>> verdict_of(4, 4), verdict_of(2, 4), verdict_of(0, 4)
        ('holds', 'holds partly', 'does not hold')
    """
    if held == asked:
        return "holds"
    return "holds partly" if held else "does not hold"


def slope(x: Array | Sequence[float], y: Array | Sequence[float]) -> float:
    """Returns the least-squares slope of log y against log x.

    Examples:
        >>> round(slope([1, 10, 100], [5, 50, 500]), 12)
        1.0
    """
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def slope_and_error(x: Sequence[float], rows: Array, *, resamples: int = 400) -> tuple[float, float]:
    """Returns the log-log slope of the mean of `rows` (a trial each) against x, and its bootstrap standard error.

    The trials of each x are resampled apart, since they are different worlds: the intervals of a report resample whole
    trials (`report.trial_means`).
    """
    rng = np.random.default_rng(0)
    picks = rng.integers(len(rows), size=(resamples, *rows.shape))
    means = np.take_along_axis(rows[None], picks, axis=1).mean(axis=1)
    return slope(x, rows.mean(axis=0)), float(np.std([slope(x, mean) for mean in means], ddof=1))


def mean_and_error(values: Array) -> tuple[float, float]:
    """Returns mean and standard error over repeats; the error of a single repeat is 0."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(values.mean()), float(error)


def span(values: Sequence[float] | Array, form: str = ".3g") -> str:
    """Returns the least and the largest value in words.

    Examples:
        >>> span([1.5, 0.25, 3.0])
        '0.25 to 3'
    """
    return f"{min(values):{form}} to {max(values):{form}}"


def log_axis(axis: Any) -> None:
    """Makes an axis logarithmic with plain numbers at 1, 2 and 5, or at powers of 10 where they are many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    numticks = 6 if axis.axis_name == "x" else 9
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 150 else (1,), numticks=numticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}" if 1e-3 <= value < 1e5 else f"{value:.0e}"))
    axis.set_minor_formatter(NullFormatter())


def draw_lines(axes: Any, x: Sequence[float], lines: Mapping[str, Sequence[float]]) -> None:
    """Draws labelled lines on logarithmic axes, no two of them alike."""
    for (label, values), colour, marker, dashes in zip(lines.items(), MANY, MARKERS, DASHES, strict=False):
        axes.plot(x, values, label=label, color=colour, marker=marker, linestyle=dashes, markersize=4)
    log_axis(axes.xaxis)
    log_axis(axes.yaxis)


def legend_below(figure: Any, axes: Any, *, columns: int) -> None:
    """Writes the legend of these axes under the whole figure, where it covers no data."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
