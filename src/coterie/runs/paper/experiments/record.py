"""What every study of the theory hands back: plain rounded numbers, findings with a verdict, and slopes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from coterie.contracts import Array

Tell = Callable[[str], None]
Record = dict[str, Any]
Verdict = Literal["holds", "holds partly", "does not hold"]


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
    told: Record = {"claim": claim, "evidence": evidence}
    return told if verdict is None else {"claim": claim, "verdict": verdict, "evidence": evidence}


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
