"""What came out of an evaluation, and its words."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite, isnan
from typing import Any

from coterie.errors import counted

MEANINGS = {
    "replay": "decisions accepted as the target's",
    "ips": "rewards weighted by propensity",
    "snips": "the same, weights summing to 1",
    "dm": "the reward model alone",
    "dr": "model, corrected by weighted rewards",
    "switch": "dr without the largest weights",
    "switch-ips": "ips, the model for large weights",
}
TRUSTED = ("dr", "snips", "ips", "replay", "switch")  # the first that is there is the answer


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a policy would have earned per decision, by one estimator.

    Attributes:
        value: The estimate; nan where the log says nothing.
        low: The interval's lower end.
        high: The interval's upper end.
        ess: How many decisions of weight 1 it is as good as.
        gain: How much more than the logger earned in the same decisions.
        gain_low: The lower end of its interval.
        gain_high: The upper end of its interval.
    """

    value: float
    low: float
    high: float
    ess: float
    gain: float
    gain_low: float
    gain_high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What a log says about a policy. Printed, it says so in words.

    Attributes:
        policy: Its name.
        learning: Whether it learned as it was replayed.
        n_fitted: How many of the earlier decisions it was fitted on.
        n_decisions: How many later ones it was judged by.
        confidence: That of the intervals.
        logger: What the logger earned in these.
        estimates: By the name of the estimator.
        warnings: Reasons to mistrust them, a sentence or two each.
        model: What the reward model was, if there was one.
    """

    policy: str = "the target"
    learning: bool = False
    n_fitted: int = 0
    n_decisions: int
    confidence: float
    logger: Estimate
    estimates: Mapping[str, Estimate]
    warnings: tuple[str, ...] = ()
    model: str = ""

    def __str__(self) -> str:
        return in_words(self)


def in_words(evaluation: Evaluation, *, leave_out: Collection[str] = ()) -> str:
    """Returns an evaluation as a table, the answer in a sentence, and the warnings but some."""
    lines = [_opening(evaluation), "", *_table(evaluation), "", answer(evaluation)]
    if {"dm", "dr", "switch", "switch-ips"} & set(evaluation.estimates):
        lines.append(f"Reward model: {evaluation.model}. The interval of dm leaves out the model's own error.")
    return "\n".join([*lines, *warned(each for each in evaluation.warnings if each not in leave_out)])


def warned(warnings: Iterable[str]) -> list[str]:
    """Returns a line for each warning, after an empty one if there is any."""
    lines = [f"Warning: {each}" for each in warnings]
    return ["", *lines] if lines else []


def answer(evaluation: Evaluation) -> str:
    """Returns in a sentence whether the policy would have earned more than the logger."""
    names = trusted(evaluation)
    if not names:
        return "The log does not say what this policy would have earned."
    best = evaluation.estimates[names[0]]
    more = "more" if best.gain_low > 0 else "less" if best.gain_high < 0 else ""
    gap = f"{best.gain:+.4g}, {best.gain_low:+.4g} to {best.gain_high:+.4g}"
    if not more:
        return f"By {names[0]}, it is not clear whether it would have earned more or less than the log ({gap})."
    if evaluation.warnings:
        return f"By {names[0]}, it seems that it would have earned {more} than the log ({gap}); but see the warnings."
    return f"By {names[0]}, it would have earned {more} than the log ({gap} per decision)."


def trusted(evaluation: Evaluation) -> list[str]:
    """Returns the estimators that have an estimate and may answer, the most trusted first."""
    return [name for name in TRUSTED if name in evaluation.estimates and evaluation.estimates[name].ess > 0]


def _opening(evaluation: Evaluation) -> str:
    n = counted(evaluation.n_decisions, "decision")
    if evaluation.learning:
        return f"{evaluation.policy}, learning as it is replayed, on {n}."
    fitted = counted(evaluation.n_fitted, "decision")
    return f"{evaluation.policy}, frozen after {fitted}, on the {evaluation.n_decisions} after them."


def _table(evaluation: Evaluation) -> Iterator[str]:
    yield f"{'':12}{'per decision':>14}{f'{100 * evaluation.confidence:g}% interval':>26}{'effective n':>13}"
    for name, each in {"the log": evaluation.logger, **evaluation.estimates}.items():
        if isnan(each.value):
            yield f"{name:12}{'unknown':>14}{'':26}{each.ess:13.0f}  {MEANINGS.get(name, '')}".rstrip()
            continue
        ends = f"{each.low:.4g} to {each.high:.4g}"
        yield f"{name:12}{each.value:14.4g}{ends:>26}{each.ess:13.0f}  {MEANINGS.get(name, '')}".rstrip()


@dataclass(frozen=True, slots=True)
class Gap:
    """By how much the best policy is ahead of another, on the same draws of the bootstrap.

    Attributes:
        behind: The other policy.
        value: How much more the best would have earned per decision.
        low: The interval's lower end.
        high: The interval's upper end.
    """

    behind: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a log says about several policies. Printed, it says so in words.

    Attributes:
        evaluations: One for each policy, in the order in which they were given.
        by: The estimator that orders them; empty where no estimator has an estimate of each.
        best: The policy that would have earned the most; empty where nothing is known.
        gaps: How far it is ahead of each of the others.
    """

    evaluations: tuple[Evaluation, ...]
    by: str = ""
    best: str = ""
    gaps: tuple[Gap, ...] = ()

    def __str__(self) -> str:
        if len(self.evaluations) == 1:
            return str(self.evaluations[0])
        first, *others = self.evaluations
        of_all = [each for each in first.warnings if all(each in other.warnings for other in others)]
        tables = [in_words(each, leave_out=of_all) for each in self.evaluations]
        return "\n\n".join([*tables, "\n".join([*_summary(self), *warned(of_all)])])


def _summary(found: Comparison) -> Iterator[str]:
    """Yields a line for each policy, and the answer in a sentence."""
    if not found.best:
        yield "The log does not say which of them would have earned the most."
        return
    first = found.evaluations[0]
    ends = f"{100 * first.confidence:g}% interval"
    width = max(len(each.policy) for each in found.evaluations) + 2
    yield f"{f'By {found.by}':{width}}{'per decision':>14}{'more than the log':>20}{ends:>26}{'effective n':>13}"
    for each in found.evaluations:
        one = each.estimates[found.by]
        gap = f"{one.gain_low:+.4g} to {one.gain_high:+.4g}"
        yield f"{each.policy:{width}}{one.value:14.4g}{one.gain:+20.4g}{gap:>26}{one.ess:13.0f}"
    yield ""
    yield f"By {found.by}, {found.best} would have earned the most; {', '.join(map(_ahead, found.gaps))}."


def _ahead(gap: Gap) -> str:
    sure = "ahead of" if gap.low > 0 else "not clearly ahead of"
    ends = "" if isnan(gap.low) else f", {gap.low:+.4g} to {gap.high:+.4g}"
    return f"{sure} {gap.behind} ({gap.value:+.4g}{ends})"


def known(value: Any) -> Any:
    """Returns tables and lists as JSON takes them: a number that is not known is None.

    Examples:
        >>> known({"value": float("nan"), "ends": (0.0, float("inf"))})
        {'value': None, 'ends': [0.0, None]}
    """
    if isinstance(value, dict):
        return {key: known(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [known(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value
