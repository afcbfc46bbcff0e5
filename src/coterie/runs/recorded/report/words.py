"""A study on logs in words: whether the graph helped, by how much, and for whom."""

from collections.abc import Mapping

from coterie.runs.recorded.outcome import LogWorld, Outcome
from coterie.runs.recorded.report.numbers import Gain, by_rate, gain, rate, thirds
from coterie.runs.report.numbers import Estimate
from coterie.runs.report.words import counted

CONTROLS = {"permuted": "with users permuted", "rewired": "rewired"}


def answer(outcome: Outcome) -> str:
    """Returns a sentence for each world: did the graph help, by how much, and for whom; before it, what is missing."""
    return " ".join([*_cautions(outcome), *(verdict(outcome, world) for world in outcome.worlds)])


def _cautions(outcome: Outcome) -> list[str]:
    study, said = outcome.study, []
    if study.quick:
        said.append(f"A quick run, {counted(study.trials, 'trial')}: it shows the direction, not how sure it is.")
    missing = unplayed(outcome)
    if missing:
        said.append(f"Unfinished: {missing} of {wanted(outcome)} runs are missing.")
    return said


def wanted(outcome: Outcome) -> int:
    """Returns how many runs of a policy the study has in all."""
    study = outcome.study
    return sum(len(study.playing(each.name)) for each in study.worlds) * study.trials


def unplayed(outcome: Outcome) -> int:
    """Returns how many runs are missing; one that could not be is not."""
    trials = outcome.study.trials
    done = sum(len(played) for world in outcome.worlds for played in world.rewards.values())
    could_not = sum(trials * len(set(world.failed) - set(world.rewards)) for world in outcome.worlds)
    return wanted(outcome) - done - could_not


def verdict(outcome: Outcome, world: LogWorld) -> str:
    """Returns the sentence for one world."""
    policy, setting = outcome.study.reference, world.setting.capitalize()
    alone = outcome.without_graph(policy)
    found = gain(world, policy, alone) if alone else None
    if alone is None or found is None:
        return f"{setting}: nobody can say, for {policy} did not play both with and without the graph."
    controls = _controls(outcome, world)
    helped = f"{_helped(policy, found, controls)}{_told(controls, found)}{_whom(world, policy, alone, found)}"
    return f"{setting}: {helped}.{_best(world, policy)}"


def _best(world: LogWorld, policy: str) -> str:
    """Returns who got more than the policy that is spoken of, if anybody did."""
    best = by_rate(world)[0]
    if best == policy:
        return f" No policy got more than {policy}."
    return f" The best was {best}, {rate(world, best).mean:.3f} a round."


def _helped(policy: str, found: Gain, controls: Mapping[str, Gain]) -> str:
    rates = f"{found.mine:.3f} a round with it and {found.other:.3f} without"
    size = f"{found.gap.mean:+.3f}{_sure(found.gap)}, {found.ratio:.2f} times"
    match direction(found.gap):
        case 1 if "rewired" in controls and direction(controls["rewired"].gap) <= 0:
            return f"how many friends users have helped {policy}, not who they are: {rates} ({size})"
        case 1:
            return f"the graph helped {policy}: {rates} ({size})"
        case -1:
            return f"the graph hurt {policy}: {rates} ({size})"
        case _:
            return f"the graph made no difference to {policy} that could be told from chance: {rates} ({size})"


def direction(gap: Estimate) -> int:
    """Returns 1 if more, -1 if less, 0 if it may be chance; with too few trials for an interval, the sign.

    Examples:
        >>> direction(Estimate(mean=0.1, std_err=0.1, interval=(-0.1, 0.3), n_trials=5))
        0
    """
    low, high = gap.interval or (gap.mean, gap.mean)
    return int(low > 0) - int(high < 0)


def _sure(gap: Estimate) -> str:
    if gap.interval is None:
        return f", {counted(gap.n_trials, 'trial')}, too few to say whether by chance"
    return f" [{gap.interval[0]:.3f}, {gap.interval[1]:.3f}]"


def _controls(outcome: Outcome, world: LogWorld) -> dict[str, Gain]:
    """Returns the gains over wrong graphs: users permuted, and rewired with everyone's number of friends kept."""
    policy = outcome.study.reference
    labels = {graph: outcome.variant(policy, graph) for graph in CONTROLS}
    tried = {graph: gain(world, policy, label) for graph, label in labels.items() if label}
    return {graph: against for graph, against in tried.items() if against is not None}


def _told(controls: Mapping[str, Gain], found: Gain) -> str:
    """Returns what wrong graphs did, in words."""
    if not controls:
        return ""
    told = " and ".join(f"{against.other:.3f} {CONTROLS[graph]}" for graph, against in controls.items())
    return f"; as controls, {told}{_what_wrong_graphs_had(controls, found)}"


def _what_wrong_graphs_had(controls: Mapping[str, Gain], found: Gain) -> str:
    """Returns what is left of a gain once wrong graphs are looked at, where that is not all."""
    if direction(found.gap) <= 0 or ("rewired" in controls and direction(controls["rewired"].gap) <= 0):
        return ""
    if min(each.gap.mean for each in controls.values()) < found.gap.mean / 2:
        return ", so that most of it comes with a wrong graph too"
    return ""


def _whom(world: LogWorld, policy: str, alone: str, found: Gain) -> str:
    """Returns for whom the difference was largest, by neighbours and by visits so far."""
    if direction(found.gap) == 0:
        return ""
    sign = 1 if found.gap.mean > 0 else -1
    told = []
    for kind, words in (("degree", "users with {} friends"), ("visits", "visits {} of a user")):
        parts = thirds(world, policy, alone, kind)
        if len(parts) > 1:
            name, most = max(parts, key=lambda part: sign * part[1].gap.mean)
            _, least = min(parts, key=lambda part: sign * part[1].gap.mean)
            told.append(f"{words.format(name)} ({most.gap.mean:+.3f}; the least {least.gap.mean:+.3f})")
    return f"; most for {' and at '.join(told)}" if told else ""
