"""A study's numbers in words: how a figure is written, and one sentence a world."""

from collections import Counter
from collections.abc import Iterable, Sequence

from coterie.runs.report.numbers import Estimate, Verdict, verdict
from coterie.runs.results import Results

MISSING = "-"


def counted(number: int, noun: str) -> str:
    """Returns how many there are of a thing, in the singular if one.

    Examples:
        >>> counted(1, "trial"), counted(5, "trial")
        ('1 trial', '5 trials')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def decimals(values: Iterable[float]) -> int:
    """Returns how many decimals these values need beside each other: one for hundreds, four below one.

    Examples:
        >>> decimals([12.0, 640.0]), decimals([0.25])
        (1, 4)
    """
    largest = max((abs(value) for value in values), default=0.0)
    return 1 + sum(largest < limit for limit in (100, 10, 1))


def with_error(found: Estimate, digits: int) -> str:
    """Returns the mean and, where there are several trials, its standard error.

    Examples:
        >>> with_error(Estimate(mean=12.34, std_err=0.56, interval=None, n_trials=9), 1)
        '12.3 ± 0.6'
    """
    return f"{found.mean:.{digits}f} ± {MISSING if found.std_err is None else f'{found.std_err:.{digits}f}'}"


def signed(found: Estimate, digits: int) -> str:
    """Returns the mean with its sign and, where there are trials enough, its interval.

    Examples:
        >>> signed(Estimate(mean=12.34, std_err=0.56, interval=(-1.0, 25.0), n_trials=9), 1)
        '+12.3 [-1.0, 25.0]'
    """
    if found.interval is None:
        return f"{found.mean:+.{digits}f} [{MISSING}]"
    low, high = found.interval
    return f"{found.mean:+.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def unfinished(results: Results) -> str:
    """Returns how much of the study is missing, in a sentence; nothing if all of it is there.

    Examples:
        >>> import numpy as np
        >>> unfinished(Results(name="s", title="", settings={"trials": 3, "worlds": [{"name": "a"}, {"name": "b"}]},
        ...                    versions={}, regrets={"a": {"random": np.ones((2, 5))}}))
        'Unfinished: 2 of 6 trials are stored, none of b.'
    """
    names = [world["name"] for world in results.settings.get("worlds", [])]
    wanted = results.settings.get("trials", 0) * len(names)
    stored = sum(results.n_trials(world) for world in results.worlds)
    if stored >= wanted:
        return ""
    absent = ", ".join(name for name in names if name not in results.worlds)
    return f"Unfinished: {stored} of {wanted} trials are stored{f', none of {absent}' if absent else ''}."


def answer(results: Results) -> str:
    """Returns in a sentence or two who had the least mean final regret where, by how much, and what is missing."""
    quick = "A quick run, made small: it shows that everything works, and nothing else." if _quick(results) else ""
    return " ".join(part for part in (quick, unfinished(results), _winners(results)) if part)


def _quick(results: Results) -> bool:
    return bool(results.settings.get("quick"))


def _winners(results: Results) -> str:
    found = [verdict(results, world) for world in results.worlds]
    if len(found) == 1:
        return _finding(found[0])
    wins = Counter(each.winner for each in found).most_common()
    told = [_claim(policy, [each for each in found if each.winner == policy]) for policy, _ in wins]
    return f"Of {len(found)} worlds, {'; '.join(told)}."


def _claim(winner: str, won: Sequence[Verdict]) -> str:
    """Returns how many worlds a policy won, and the least lead that it had there."""
    start = f"{winner} had the least mean regret in {len(won)}"
    leads = sorted(((each.margin, each.regret) for each in won if each.margin), key=lambda lead: lead[0].mean)
    at_least = "at least " if len(leads) > 1 else ""
    return f"{start}, by {at_least}{_lead(*leads[0])}" if leads else start


def findings(results: Results) -> list[str]:
    """Returns one sentence a world: who had the least regret, and by how much."""
    return [_finding(verdict(results, world)) for world in results.worlds]


def _finding(found: Verdict) -> str:
    digits = decimals([found.regret.mean])
    regret = with_error(found.regret, digits) if found.regret.n_trials > 1 else f"{found.regret.mean:.{digits}f}"
    start = f"{found.world}: {found.winner} had the least regret, {regret}"
    if found.margin is None:
        return f"{start}; nobody else competed."
    return f"{start}, ahead of {found.runner_up} by {_lead(found.margin, found.regret)}."


def _lead(margin: Estimate, regret: Estimate) -> str:
    """Returns how far ahead the winner was, and whether that may be chance."""
    digits = decimals([regret.mean])
    if margin.interval is None:
        return f"{margin.mean:.{digits}f} (too few trials to say whether by chance)"
    low, high = margin.interval
    chance = "" if low > 0.0 else ", so it may be chance"
    return f"{margin.mean:.{digits}f} (95 % interval {low:.{digits}f} to {high:.{digits}f}{chance})"
