"""What a study of drawn worlds says, in numbers and in words: final regrets, paired differences, ranks and time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from coterie.contracts import Array
from coterie.runs.report.trial_means import TrialMean, decimals, trial_means, with_error
from coterie.runs.results import Results

KNOWS_THE_TRUTH = frozenset({"oracle"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """How a policy stood among the others, over all trials of all worlds it played; the least regret has rank 1.

    Attributes:
        policy: The policy.
        mean_rank: Its mean rank; those with equal regret share theirs.
        wins: In how many trials nobody had less regret.
        n_trials: In how many trials it played.
    """

    policy: str
    mean_rank: float
    wins: int
    n_trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """Who had the least mean regret in a world, and by how much less than the next.

    Attributes:
        world: The world.
        winner: The policy with the least mean regret.
        regret: Its final regret.
        runner_up: The next; none if the winner played alone.
        margin: The regret of the next minus the winner's, trial by trial; none if the winner played alone.
    """

    world: str
    winner: str
    regret: TrialMean
    runner_up: str | None
    margin: TrialMean | None


def final_regrets(results: Results, world: str) -> dict[str, TrialMean]:
    """Returns the final regret of every policy that played this world, the least first.

    Examples:
        >>> results = Results(name="tiny", title="", settings={}, versions={},
        ...                   regrets={"easy": {"random": np.ones((2, 5)), "greedy": np.zeros((2, 5))}})
        >>> [(policy, found.mean) for policy, found in final_regrets(results, "easy").items()]
        [('greedy', 0.0), ('random', 5.0)]
    """
    policies = results.policies(world)
    found = dict(zip(policies, trial_means(_finals(results, world, policies)), strict=True))
    return dict(sorted(found.items(), key=lambda item: item[1].mean))


def by_regret(results: Results, world: str) -> list[str]:
    """Returns who played this world, the least mean final regret first."""
    return sorted(results.policies(world), key=lambda policy: float(results.final(world, policy).mean()))


def contenders(results: Results, world: str) -> list[str]:
    """Returns who competes in this world, the least mean final regret first: all but those that know the truth."""
    ranked = by_regret(results, world)
    return [policy for policy in ranked if policy not in KNOWS_THE_TRUTH] or ranked


def reference(results: Results, world: str) -> str:
    """Returns whom the others are compared with: the study's `reference` if it played, else the best of this world."""
    wanted = results.settings.get("reference")
    return wanted if wanted in results.policies(world) else contenders(results, world)[0]


def differences(results: Results, world: str, *, to: str) -> dict[str, TrialMean]:
    """Returns for each policy its final regret minus that of the policy `to`, paired by trial, the least first."""
    policies = results.policies(world)
    gaps = _finals(results, world, policies) - results.final(world, to)
    return dict(sorted(zip(policies, trial_means(gaps), strict=True), key=lambda item: item[1].mean))


def lead_in(results: Results, world: str) -> Lead:
    """Returns who had the least regret in this world, and by how much less than the next."""
    winner, *others = contenders(results, world)
    regret = final_regrets(results, world)[winner]
    if not others:
        return Lead(world=world, winner=winner, regret=regret, runner_up=None, margin=None)
    margin = differences(results, world, to=winner)[others[0]]
    return Lead(world=world, winner=winner, regret=regret, runner_up=others[0], margin=margin)


def ranks(studies: Sequence[Results]) -> list[Rank]:
    """Returns how each policy stood over all trials of all worlds, the best first."""
    rows: dict[str, list[Array]] = {}
    for results in studies:
        for world in results.worlds:
            policies = contenders(results, world)
            for policy, row in zip(policies, _standing(_finals(results, world, policies)), strict=True):
                rows.setdefault(policy, []).append(row)
    found = [_rank(policy, np.hstack(parts)) for policy, parts in rows.items()]
    return sorted(found, key=lambda rank: rank.mean_rank)


def _standing(finals: Array) -> Array:
    """Returns for each policy two rows, one column a trial: its rank, and whether nobody had less regret."""
    return np.stack([rankdata(finals, axis=0), finals == finals.min(axis=0)], axis=1)


def _rank(policy: str, rows: Array) -> Rank:
    standing, first = rows
    return Rank(policy=policy, mean_rank=float(standing.mean()), wins=int(first.sum()), n_trials=standing.size)


def microseconds(results: Results, world: str, policy: str) -> float | None:
    """Returns the time of one round in microseconds, the median over trials; none where it was not kept."""
    seconds = np.asarray(results.seconds.get(world, {}).get(policy, ()))
    return float(np.median(seconds)) * 1e6 if seconds.size else None


def _finals(results: Results, world: str, policies: list[str]) -> Array:
    return np.array([results.final(world, policy) for policy in policies])


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
    found = [lead_in(results, world) for world in results.worlds]
    if len(found) == 1:
        return _finding(found[0])
    wins = Counter(each.winner for each in found).most_common()
    claims = [_claim(policy, [each for each in found if each.winner == policy]) for policy, _ in wins]
    return f"Of {len(found)} worlds, {'; '.join(claims)}."


def _claim(winner: str, won: Sequence[Lead]) -> str:
    """Returns how many worlds a policy won, and the least lead that it had there."""
    start = f"{winner} had the least mean regret in {len(won)}"
    leads = sorted(((each.margin, each.regret) for each in won if each.margin), key=lambda lead: lead[0].mean)
    at_least = "at least " if len(leads) > 1 else ""
    return f"{start}, by {at_least}{_margin(*leads[0])}" if leads else start


def findings(results: Results) -> list[str]:
    """Returns one sentence a world: who had the least regret, and by how much."""
    return [_finding(lead_in(results, world)) for world in results.worlds]


def _finding(found: Lead) -> str:
    digits = decimals([found.regret.mean])
    regret = with_error(found.regret, digits) if found.regret.n_trials > 1 else f"{found.regret.mean:.{digits}f}"
    start = f"{found.world}: {found.winner} had the least regret, {regret}"
    if found.margin is None:
        return f"{start}; nobody else competed."
    return f"{start}, ahead of {found.runner_up} by {_margin(found.margin, found.regret)}."


def _margin(margin: TrialMean, regret: TrialMean) -> str:
    """Returns how far ahead the winner was, and whether that may be chance."""
    digits = decimals([regret.mean])
    if margin.interval is None:
        return f"{margin.mean:.{digits}f} (too few trials to say whether by chance)"
    low, high = margin.interval
    chance = "" if low > 0.0 else ", so it may be chance"
    return f"{margin.mean:.{digits}f} (95 % interval {low:.{digits}f} to {high:.{digits}f}{chance})"
