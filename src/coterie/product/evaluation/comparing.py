"""Several policies judged by the same decisions: which would have earned the most, and is that sure?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from coterie.errors import ParameterError
from coterie.graphs import UserGraph
from coterie.product.evaluation.asked import Asked, Progress, Target, silent
from coterie.product.evaluation.evaluating import measured
from coterie.product.evaluation.judging import Measured
from coterie.product.evaluation.logged import Logged
from coterie.product.evaluation.report import Evaluation, in_words, trusted, warned
from coterie.product.inputs.arm_inputs import as_arm_pool


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
        by: The estimator that orders them; empty where the log tells nothing of any.
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


def compare(
    logged: Logged,
    targets: Sequence[Target],
    *,
    graph: UserGraph,
    arms: Any,
    asked: Asked | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Returns what policies would have earned on a log, each fitted on the same part and judged by the same decisions.

    Args:
        logged: The decisions.
        targets: The policies.
        graph: Who is near whom.
        arms: The pool, as a Bandit takes it.
        asked: How they are to be judged; none means as `Asked` has it.
        progress: Told what is done, how much of it, and of how much.

    Examples:
        >>> graph = UserGraph.from_edges([("ana", "bo")])
        >>> log = Logged.of([0, 1] * 200, [[0, 1]] * 400, [0, 0, 1, 1] * 100, [0.0, 0.0, 1.0, 1.0] * 100, [0.5] * 400)
        >>> targets = [Target.of("random"), Target.of("greedy")]
        >>> found = compare(log, targets, graph=graph, arms=[[0.0], [1.0]], asked=Asked(estimators=["snips"]))
        >>> found.best, found.gaps[0].behind, round(found.gaps[0].value, 2)
        ('greedy', 'random', 0.5)
    """
    how, pool = asked or Asked(), as_arm_pool(arms)
    _check(targets)
    found = list(measured(logged, targets, graph=graph, arms=pool, asked=how, progress=progress))
    settings: dict[str, Any] = {"confidence": how.confidence, "n_draws": how.n_draws, "seed": how.seed}
    return ordered(found, tuple(each.judged(**settings) for each in found), settings)


def ordered(found: Sequence[Measured], told: tuple[Evaluation, ...], settings: dict[str, Any]) -> Comparison:
    """Returns which policy is the best, by the first estimator that tells of all of them, and how far ahead it is."""
    common = [name for name in trusted(told[0]) if all(name in trusted(each) for each in told)]
    if not common:
        return Comparison(told)
    by = common[0]
    best = max(told, key=lambda each: each.estimates[by].value).policy
    made = {each.policy: each.uncertain(n_draws=settings["n_draws"], seed=settings["seed"])[by] for each in found}
    rewards = found[0].log.rewards
    ends = settings["confidence"], float(rewards.min()), float(rewards.max())
    gaps = (Gap(name, *made[best].ahead_of(other, *ends)) for name, other in made.items() if name != best)
    return Comparison(told, by, best, tuple(gaps))


def _check(targets: Sequence[Target]) -> None:
    labels = [target.label for target in targets]
    if not labels:
        raise ParameterError("there is no policy", "at least one is judged", "Name one, such as lk-gp-ucb")
    again = next((label for place, label in enumerate(labels) if label in labels[:place]), None)
    if again is not None:
        raise ParameterError(f"policy {again!r} is given twice", "each is judged once", "Drop one, or change an option")


def _summary(found: Comparison) -> Iterator[str]:
    """Yields a line for each policy, and the answer in a sentence."""
    if not found.best:
        yield "The log does not tell which of them would have earned the most."
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
