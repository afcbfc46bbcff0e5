"""A study on logs as tables of plain text, which the terminal and the page show alike."""

from collections.abc import Iterator

import numpy as np

from coterie.runs.recorded.outcome import LogWorld, Outcome
from coterie.runs.recorded.report.numbers import Gain, by_rate, gain, rate, thirds
from coterie.runs.report.numbers import FEWEST
from coterie.runs.report.tables import Table
from coterie.runs.report.words import MISSING, signed, with_error

DIGITS = 3


def tables(outcome: Outcome) -> Iterator[Table]:
    """Yields all tables: what each policy got in each world, and for whom the graph did what."""
    for world in outcome.worlds:
        yield rates(outcome, world)
    yield from whom(outcome)
    for world in outcome.worlds:
        yield from learned(outcome, world)
    if any(world.failed for world in outcome.worlds):
        yield failures(outcome)


def rates(outcome: Outcome, world: LogWorld) -> Table:
    """Returns what each policy got, the best first: a round, in all, against itself without a graph; and its cost."""
    rows = tuple(_row(outcome, world, policy) for policy in by_rate(world))
    used = ("rows used",) if world.replays else ()
    note = (
        "Mean ± one standard error over trials. Against none: minus the same policy without a graph, paired by trial, "
        f"with a 95 % bootstrap interval (none with fewer than {FEWEST} trials). Time to decide and learn, memory of "
        "the process at most."
    )
    columns = ("policy", "a round", "in all", *used, "against none", "ms a round", "MiB")
    return Table(title=f"Reward: {world.setting}", columns=columns, rows=rows, note=note)


def _row(outcome: Outcome, world: LogWorld, policy: str) -> tuple[str, ...]:
    rewards = [world.rewards[policy][trial] for trial in world.trials(policy)]
    used = (f"{np.mean([np.count_nonzero(~np.isnan(each)) for each in rewards]):.0f}",) if world.replays else ()
    alone = outcome.without_graph(policy)
    found = gain(world, policy, alone) if alone else None
    seconds = list(world.seconds.get(policy, {}).values())
    return (
        policy,
        with_error(rate(world, policy), DIGITS),
        f"{np.mean([np.nansum(each) for each in rewards]):.0f}",
        *used,
        MISSING if found is None else signed(found.gap, DIGITS),
        f"{1e3 * np.median(seconds):.2f}" if seconds else MISSING,
        f"{world.memory[policy] / 2**20:.0f}" if policy in world.memory else MISSING,
    )


def whom(outcome: Outcome) -> Iterator[Table]:
    """Yields for whom the graph did what: by number of neighbours and by visits so far, each in thirds."""
    policy = outcome.study.reference
    alone = outcome.without_graph(policy)
    if alone is None:
        return
    for kind, title in (("degree", "number of neighbours"), ("visits", "visit of the user")):
        rows = tuple(
            _whom_row(world, name, found)
            for world in outcome.worlds
            if world.trials(policy, alone)
            for name, found in thirds(world, policy, alone, kind)
        )
        if rows:
            columns = ("shown", title, "with", "without", "difference", "times")
            note = f"{policy} with the graph and without, in thirds of the rounds; intervals as above."
            yield Table(title=f"For whom: by {title}", columns=columns, rows=rows, note=note, words=frozenset({0, 1}))


def _whom_row(world: LogWorld, name: str, found: Gain) -> tuple[str, ...]:
    numbers = (f"{found.mine:.{DIGITS}f}", f"{found.other:.{DIGITS}f}", signed(found.gap, DIGITS), f"{found.ratio:.2f}")
    return (world.setting, name, *numbers)


def learned(outcome: Outcome, world: LogWorld) -> Iterator[Table]:
    """Yields what the policy that is spoken of learned of its hyperparameters, fit by fit, in its first trial."""
    policy = outcome.study.reference
    for trial, fits in sorted(world.fits.get(policy, {}).items())[:1]:
        shares = ("graph", "own", "common", "linear")
        rest = ("ridge", "lengthscale", "noise")
        rows = tuple(
            (f"{fit['rewards']:.0f}", *(f"{fit[name]:.0%}" for name in shares), *(f"{fit[name]:.3g}" for name in rest))
            for fit in fits
        )
        note = (
            f"{policy}, trial {trial + 1}. Of what users' tastes vary by: the part that follows the graph, is a user's "
            "own, is common to all; how much of it is linear in the features; ridge, length-scale, noise variance."
        )
        title = f"What was learned: {world.setting}"
        yield Table(title=title, columns=("rewards", *shares, *rest), rows=rows, note=note)


def failures(outcome: Outcome) -> Table:
    """Returns what could not run at this size, and why."""
    rows = tuple(
        (world.name, policy, reason) for world in outcome.worlds for policy, reason in sorted(world.failed.items())
    )
    words = frozenset({0, 1, 2})
    return Table(title="What could not run", columns=("world", "policy", "reason"), rows=rows, words=words)
