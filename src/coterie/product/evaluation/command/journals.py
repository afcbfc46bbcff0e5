"""A bandit's journal as decisions to judge other policies by: each is made again, with its propensities."""

from collections.abc import Iterator
from math import inf
from pathlib import Path

from coterie.errors import InputError
from coterie.product.bandit import Bandit
from coterie.product.decision import Decision
from coterie.product.evaluation.command.material import Material, without_edges
from coterie.product.evaluation.logged import Logged
from coterie.product.files.journal import Steady
from coterie.product.files.replaying import JournalLines
from coterie.product.files.saving import load_bandit


def material_of_journal(snapshot: Path, journal: Path, *, graph: bool = True) -> Material:
    """Returns the rewarded decisions of a bandit since it was saved, with the propensities of all candidates.

    Graph and arms are those that the bandit has at the end of the journal. Takes as long as the decisions took, and
    their propensities.

    Args:
        snapshot: A file that `Bandit.save` wrote before the decisions.
        journal: The file that was given to the bandit as `journal`.
        graph: Whether to keep the edges.
    """
    lines, clock = JournalLines(journal), Steady(lambda: inf, stands=True)
    rewards, bandit = lines.rewards(), load_bandit(snapshot, clock=clock)
    made = [(each, _chances(each)) for some in lines.made_again(bandit, clock) for each in some if each.id in rewards]
    kept = [(each, chances) for each, chances in made if each.user in bandit.graph.index]
    if not kept:
        rule = "a policy is judged by decisions and what came of them"
        raise InputError(f"{str(journal)!r} has no rewarded decision since the snapshot", rule, "Use an earlier one")
    logged = Logged.of(
        [bandit.graph.index_of(each.user) for each, _ in kept],
        [[bandit.arms.index_of(arm) for arm in chances] for _, chances in kept],
        [bandit.arms.index_of(each.arm) for each, _ in kept],
        [rewards[each.id] for each, _ in kept],
        [chances[each.arm] for each, chances in kept],
        chances=[list(chances.values()) for _, chances in kept],
    )
    people = bandit.graph if graph else without_edges(bandit.graph)
    return Material(logged, people, bandit.arms, tuple(_notes(bandit, len(rewards), len(made), len(kept))))


def _chances(decision: Decision) -> dict[object, float]:
    """Returns the probability of each candidate, as it was when the decision was made."""
    told = {arm: each.propensity for arm, each in decision.candidates.items()}
    known = {arm: chance for arm, chance in told.items() if chance is not None}
    if len(known) < len(told):
        problem, rule = f"decision {decision.id} has no propensities", "each candidate has one"
        raise InputError(problem, rule, "Decide by a policy whose choice probabilities are known, such as lk-gp-ts")
    return known


def _notes(bandit: Bandit, n_rewards: int, n_made: int, n_kept: int) -> Iterator[str]:
    if bandit.n_decisions > n_rewards:
        yield f"Of {bandit.n_decisions} decisions {n_rewards} have a reward in the journal; the others tell nothing."
    if n_made > n_kept:
        yield f"{n_made - n_kept} decisions for users who are gone since are left out."
    if n_rewards > n_made:
        yield f"{n_rewards - n_made} decisions before the snapshot are left out."
