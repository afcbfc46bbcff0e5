"""What a study on logs says, in numbers and in words: what the graph added, by how much, and for whom."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import Array
from coterie.runs.entries import COMMON
from coterie.runs.report.trial_means import TrialMean, counted, trial_means
from coterie.runs.results import LogResults, Results

WINDOWS = 20
FEWEST_ROUNDS = 200  # for a point of the curve by visits: a rate of 0.2 is then known to 0.03
SAME_LOG = "All trials of a replay read the same log, so no interval is known; `coterie evaluate` gives intervals."
CONTROLS = {"permuted": "with users permuted", "rewired": "rewired"}
BLIND = frozenset(
    {
        *("per-user-linucb", "per-user-lints", "per-user-gp-ucb", "per-user-gp-ts", "pooled-linucb", "pooled-lints"),
        *("gp-ucb", "gp-ts", "exchangeable-gp-ucb", "exchangeable-gp-ts", "popularity", "random"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What one policy got more than another in the same rounds.

    Attributes:
        mine: The mean reward of the one.
        other: That of the other.
        gap: Their difference, paired by trial; without an interval in a replay.
    """

    mine: float
    other: float
    gap: TrialMean

    @property
    def ratio(self) -> float:
        """How many times as much."""
        return self.mine / self.other if self.other > 0 else np.nan


def rate(world: LogResults, policy: str) -> TrialMean:
    """Returns the mean reward of a round."""
    return _over_trials(world, world.means(policy))


def _over_trials(world: LogResults, samples: Array) -> TrialMean:
    """Returns a mean over trials; those of a replay read the same log, and do not show how uncertain it is."""
    (found,) = trial_means(samples[None])
    return replace(found, std_err=None, interval=None) if world.replays else found


def by_rate(world: LogResults) -> list[str]:
    """Returns the policies, the best first."""
    return sorted(world.rewards, key=lambda policy: -float(world.means(policy).mean()))


def gain(world: LogResults, policy: str, other: str) -> Gain | None:
    """Returns what a policy got more than another in the trials that both played; nothing if there are none."""
    return gain_where(world, policy, other, lambda trial: np.ones(len(world.visits[trial]), dtype=bool))


def gain_where(world: LogResults, policy: str, other: str, where: Callable[[int], NDArray[np.bool_]]) -> Gain | None:
    """Returns the same in some of the rounds of each trial."""
    trials = world.trials(policy, other)
    if not trials:
        return None
    pair = np.array([[_mean(world.rewards[each][trial][where(trial)]) for trial in trials] for each in (policy, other)])
    mine, theirs = pair.mean(axis=1)
    return Gain(mine=float(mine), other=float(theirs), gap=_over_trials(world, pair[0] - pair[1]))


def _mean(rewards: Array) -> float:
    known = rewards[~np.isnan(rewards)]
    return float(known.mean()) if len(known) else 0.0


def thirds(world: LogResults, policy: str, other: str, kind: str) -> list[tuple[str, Gain]]:
    """Returns the gain in the rounds of users with few, some and many neighbours (or visits so far).

    Bounds are such that each third has about a third of the rounds; where bounds fall together there are fewer.
    """
    values = world.degrees if kind == "degree" else world.visits
    together = np.concatenate([values[trial] for trial in world.trials(policy, other)])
    inner = np.quantile(together, [1 / 3, 2 / 3]).astype(int)
    bounds = sorted({int(together.min()), *(int(each) + 1 for each in inner if each < together.max())})
    ends = [*(bound - 1 for bound in bounds[1:]), int(together.max())]
    out = []
    for low, high in zip(bounds, ends, strict=True):

        def inside(trial: int, low: int = low, high: int = high) -> NDArray[np.bool_]:
            return np.asarray((values[trial] >= low) & (values[trial] <= high))

        found = gain_where(world, policy, other, inside)
        if found is not None:
            met = together[(together >= low) & (together <= high)] + (kind != "degree")  # visits count from 1
            name = f"{met.min()}" if met.min() == met.max() else f"{met.min()} to {met.max()}"
            out.append((name, found))
    return out


def over_time(world: LogResults, policy: str) -> tuple[Array, Array]:
    """Returns the ends of windows of rounds, and the mean reward in each over all trials."""
    rewards = np.array([world.rewards[policy][trial] for trial in world.trials(policy)])
    parts = np.array_split(np.arange(rewards.shape[1]), min(WINDOWS, rewards.shape[1]))
    return np.array([part[-1] + 1.0 for part in parts]), np.array([_mean(rewards[:, part]) for part in parts])


def by_visit(world: LogResults, policy: str) -> tuple[Array, Array]:
    """Returns the numbers of visits from 1, and the mean reward at a user's visit of that number.

    Visits with too few rewards are left out: fewer than 200, or in a short log than half as many as the first visit
    has. A short replay may use no user's first visit at all, and then has no curve.
    """
    trials = world.trials(policy)
    visits = np.concatenate([world.visits[trial] for trial in trials])
    rewards = np.concatenate([world.rewards[policy][trial] for trial in trials])
    known = ~np.isnan(rewards)
    counts = np.bincount(visits[known], minlength=1)
    enough = np.flatnonzero((2 * counts >= min(2 * FEWEST_ROUNDS, counts[0])) & (counts > 0) & (counts[0] > 0))
    sums = np.bincount(visits[known], weights=rewards[known], minlength=1)
    return enough.astype(float) + 1.0, sums[enough] / counts[enough]


def without_graph(results: Results, label: str) -> str | None:
    """Returns the label of the same policy without a graph, if it played; nothing for that one itself."""
    return variant(results, label, "none")


def variant(results: Results, label: str, graph: str) -> str | None:
    """Returns the label of the same policy on another graph, if it played."""
    policies = {each["label"]: each for each in results.settings["policies"]}
    mine = _recipe(policies[label])
    others = (name for name, each in policies.items() if each["graph"] == graph and name != label)
    return next((name for name in others if _recipe(policies[name]) == mine), None)


def _recipe(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the policy and its options, whatever its graph and its label."""
    return {key: value for key, value in policy.items() if key == "policy" or key not in COMMON}


def best_without_graph(results: Results, world: LogResults) -> str | None:
    """Returns the best policy that sees no graph."""
    policies = results.settings["policies"]
    blind = {each["label"] for each in policies if each["graph"] == "none" or each["policy"] in BLIND}
    return next((policy for policy in by_rate(world) if policy in blind), None)


def answer(results: Results) -> str:
    """Returns a sentence for each world: did the graph help, by how much, and for whom; before it, what is missing."""
    return " ".join([*_cautions(results), *(sentence(results, world) for world in results.logs.values())])


def _cautions(results: Results) -> list[str]:
    said = []
    if results.settings["quick"]:
        trials = counted(results.settings["trials"], "trial")
        said.append(f"A quick run, {trials}: it shows the direction, not how sure it is.")
    missing = unplayed(results)
    if missing:
        said.append(f"Unfinished: {missing} of {wanted(results)} runs are missing.")
    return said


def wanted(results: Results) -> int:
    """Returns how many runs of a policy the study has in all."""
    worlds = [each["name"] for each in results.settings["worlds"]]
    played = [each.get("worlds") or worlds for each in results.settings["policies"]]
    return sum(len(each) for each in played) * int(results.settings["trials"])


def unplayed(results: Results) -> int:
    """Returns how many runs are missing; one that could not be is not."""
    trials = int(results.settings["trials"])
    done = sum(len(played) for world in results.logs.values() for played in world.rewards.values())
    could_not = sum(trials * len(set(world.failed) - set(world.rewards)) for world in results.logs.values())
    return wanted(results) - done - could_not


def sentence(results: Results, world: LogResults) -> str:
    """Returns the sentence for one world."""
    policy, setting = results.settings["reference"], world.setting.capitalize()
    alone = without_graph(results, policy)
    found = gain(world, policy, alone) if alone else None
    if alone is None or found is None:
        return f"{setting}: nobody can say, for {policy} did not play both with and without the graph."
    controls = _controls(results, world)
    helped = (
        f"{_helped(world, policy, found, controls)}{_other_graphs(controls, found)}{_whom(world, policy, alone, found)}"
    )
    why = f" {SAME_LOG}" if world.replays else ""
    return f"{setting}: {helped}.{_best(world, policy)}{why}"


def _best(world: LogResults, policy: str) -> str:
    """Returns who got more than the policy that is spoken of, if anybody did."""
    best = by_rate(world)[0]
    if best == policy:
        return f" No policy got more than {policy}."
    return f" The best was {best}, {rate(world, best).mean:.3f} a round."


def _helped(world: LogResults, policy: str, found: Gain, controls: Mapping[str, Gain]) -> str:
    rates = f"{found.mine:.3f} a round with it and {found.other:.3f} without"
    size = f"{found.gap.mean:+.3f}{'' if world.replays else _sure(found.gap)}, {found.ratio:.2f} times"
    match direction(found.gap):
        case 1 if "rewired" in controls and direction(controls["rewired"].gap) <= 0:
            return f"how many friends users have helped {policy}, not who they are: {rates} ({size})"
        case 1:
            return f"the graph helped {policy}: {rates} ({size})"
        case -1:
            return f"the graph hurt {policy}: {rates} ({size})"
        case _ if found.gap.interval is None:
            when = "cannot be judged here" if world.replays else "cannot be judged yet"
            return f"whether the graph helped {policy} {when}: {rates} ({size})"
        case _:
            return f"the graph made no difference to {policy} beyond chance: {rates} ({size})"


def direction(gap: TrialMean) -> int:
    """Returns 1 if more, -1 if less, 0 if it may be chance, as anything may with too few trials for an interval.

    Examples:
        >>> direction(TrialMean(mean=0.1, std_err=0.1, interval=(-0.1, 0.3), n_trials=5))
        0
    """
    low, high = gap.interval or (0.0, 0.0)
    return int(low > 0) - int(high < 0)


def _sure(gap: TrialMean) -> str:
    if gap.interval is None:
        return f", {counted(gap.n_trials, 'trial')}, too few to say whether by chance"
    return f" [{gap.interval[0]:.3f}, {gap.interval[1]:.3f}]"


def _controls(results: Results, world: LogResults) -> dict[str, Gain]:
    """Returns the gains over wrong graphs: users permuted, and rewired with everyone's number of friends kept."""
    policy = results.settings["reference"]
    labels = {graph: variant(results, policy, graph) for graph in CONTROLS}
    tried = {graph: gain(world, policy, label) for graph, label in labels.items() if label}
    return {graph: against for graph, against in tried.items() if against is not None}


def _other_graphs(controls: Mapping[str, Gain], found: Gain) -> str:
    """Returns what wrong graphs did, in words."""
    if not controls:
        return ""
    rates = " and ".join(f"{against.other:.3f} {CONTROLS[graph]}" for graph, against in controls.items())
    return f"; as controls, {rates}{_what_wrong_graphs_had(controls, found)}"


def _what_wrong_graphs_had(controls: Mapping[str, Gain], found: Gain) -> str:
    """Returns what is left of a gain once wrong graphs are looked at, where that is not all."""
    if direction(found.gap) <= 0 or ("rewired" in controls and direction(controls["rewired"].gap) <= 0):
        return ""
    if min(each.gap.mean for each in controls.values()) < found.gap.mean / 2:
        return ", so that most of it comes with a wrong graph too"
    return ""


def _whom(world: LogResults, policy: str, alone: str, found: Gain) -> str:
    """Returns for whom the difference was largest, by neighbours and by visits so far."""
    if direction(found.gap) == 0:
        return ""
    sign = 1 if found.gap.mean > 0 else -1
    groups = []
    for kind, words in (("degree", "users with {} friends"), ("visits", "visits {} of a user")):
        parts = thirds(world, policy, alone, kind)
        if len(parts) > 1:
            name, most = max(parts, key=lambda part: sign * part[1].gap.mean)
            _, least = min(parts, key=lambda part: sign * part[1].gap.mean)
            groups.append(f"{words.format(name)} ({most.gap.mean:+.3f}; the least {least.gap.mean:+.3f})")
    return f"; most for {' and at '.join(groups)}" if groups else ""
