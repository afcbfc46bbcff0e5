"""A duel: several policies meet the same rounds of the same worlds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from coterie.contracts import Array
from coterie.policies import Policy
from coterie.problems import Round, World

MakePolicy = Callable[[World, int], Policy]
MakeWorld = Callable[[int], World]


def play(policy: Policy, world: World, rounds: Iterable[Round]) -> Iterator[float]:
    """Yields the regret of each round. This loop is the whole method."""
    for shown in rounds:
        choice = policy.select(shown.user, shown.candidates)
        policy.update(shown.user, choice.arm, world.reward(shown, choice.arm))
        yield world.regret(shown, choice.arm)


@dataclass(slots=True)
class Duel:
    """The regrets of a duel: for each policy, one row a trial and one column a round."""

    horizon: int
    regrets: dict[str, list[Array]] = field(default_factory=dict)

    @property
    def n_trials(self) -> int:
        """How many worlds were played."""
        return len(next(iter(self.regrets.values()), []))

    @property
    def names(self) -> list[str]:
        """The policies, in the order they were given."""
        return list(self.regrets)

    def cum_regret(self, name: str) -> Array:
        """Returns the cumulative regret of a policy, one row a trial."""
        return np.cumsum(np.array(self.regrets[name]), axis=1)

    def final(self, name: str) -> tuple[float, float]:
        """Returns mean and standard error of the final cumulative regret."""
        last = self.cum_regret(name)[:, -1]
        error = float(last.std(ddof=1) / np.sqrt(len(last))) if len(last) > 1 else float("nan")
        return float(last.mean()), error


def run_duel(
    *,
    make_world: MakeWorld,
    policies: Mapping[str, MakePolicy],
    trials: int,
    horizon: int,
    n_candidates: int,
    seed: int = 0,
    on_step: Callable[[str, int], None] = lambda _name, _trial: None,
) -> Duel:
    """Returns the regrets of all policies over all trials; a trial is one seed, one world, one sequence of rounds.

    Args:
        make_world: Makes the world of a trial from its seed.
        policies: How to make each policy from a world and a seed; it sees the world's graph and arms only by habit
            of its maker, never its truth, which `World` keeps private.
        trials: How many worlds.
        horizon: Rounds of each.
        n_candidates: Arms shown in a round.
        seed: The seed of all.
        on_step: Called after each policy of each trial, for progress.
    """
    duel = Duel(horizon, {name: [] for name in policies})
    for trial, child in enumerate(np.random.SeedSequence(seed).spawn(trials)):
        world_seed, round_seed, policy_seed = (int(s) for s in child.generate_state(3))
        world = make_world(world_seed)
        rounds = list(world.rounds(horizon, n_candidates=n_candidates, seed=round_seed))
        for name, make in policies.items():
            regrets = play(make(world, policy_seed), world, rounds)
            duel.regrets[name].append(np.fromiter(regrets, float, horizon))
            on_step(name, trial)
    return duel
