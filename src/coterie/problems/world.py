"""A world to learn in: users on a graph, arms, and a truth that only the runner may ask for."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coterie.contracts import ArmId, Array, UserId
from coterie.errors import CandidatesError, DimensionError, ParameterError, listed
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.kernels.joint import as_numbers


@dataclass(frozen=True, slots=True)
class Round:
    """What the world shows: a user, the candidates, and the noise that whatever is chosen will meet."""

    user: UserId
    candidates: tuple[ArmId, ...]
    noise: float


class World:
    """Users, arms and a hidden table of expected rewards.

    A learner is given `graph` and `arms`. The truth is asked for by the runner alone, after the choice: `reward` for
    what the learner gets to see, `regret` for the score.

    Examples:
        >>> world = World(graph=UserGraph.from_edges([("ana", "bo")]), arms=ArmPool([[0.0], [1.0]]),
        ...               truth=np.array([[1.0, 0.0], [0.0, 1.0]]), noise_std=0.0)
        >>> only = next(world.rounds(1, n_candidates=2, seed=0))
        >>> world.regret(only, arm=0) + world.regret(only, arm=1)
        1.0
    """

    __slots__ = ("_truth", "arms", "graph", "noise_std")

    def __init__(self, *, graph: UserGraph, arms: ArmPool, truth: Array, noise_std: float) -> None:
        truth = as_numbers(truth, what="truth")
        if truth.shape != (graph.n_users, len(arms)):
            raise DimensionError(
                f"a truth of shape {truth.shape}",
                f"it is ({graph.n_users}, {len(arms)})",
                "One row a user, one column an arm",
            )
        if not (isinstance(noise_std, int | float | np.number) and np.isfinite(noise_std) and noise_std >= 0):
            raise ParameterError(f"noise_std is {noise_std!r}", "it is a finite number >= 0", "Choose, say, 0.1")
        self.graph = graph
        self.arms = arms
        self.noise_std = noise_std
        self._truth = truth

    def rounds(self, horizon: int, *, n_candidates: int, seed: int) -> Iterator[Round]:
        """Returns `horizon` rounds, drawn when asked for: a uniform user, distinct candidates, and the noise.

        They depend on the seed alone, so every policy can meet the same ones.
        """
        if not 1 <= n_candidates <= len(self.arms):
            raise ParameterError(
                f"n_candidates is {n_candidates!r}",
                f"it lies between 1 and {len(self.arms)}",
                "Show fewer, or add arms",
            )
        if not isinstance(seed, int) or seed < 0:
            raise ParameterError(f"seed is {seed!r}", "it is a whole number >= 0", "Choose, say, 0")
        return self._draw_rounds(horizon, n_candidates, seed)

    def _draw_rounds(self, horizon: int, n_candidates: int, seed: int) -> Iterator[Round]:
        users, shown, noise = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3))
        for _ in range(horizon):
            rows = shown.choice(len(self.arms), size=n_candidates, replace=False)
            yield Round(
                user=self.graph.users[int(users.integers(self.graph.n_users))],
                candidates=tuple(self.arms.ids[row] for row in rows),
                noise=self.noise_std * float(noise.standard_normal()),
            )

    def reward(self, shown: Round, arm: ArmId) -> float:
        """Returns the noisy reward of the chosen arm."""
        return self._expected(shown.user, arm) + shown.noise

    def regret(self, shown: Round, arm: ArmId) -> float:
        """Returns how much the best candidate would have paid more, noise apart."""
        if arm not in shown.candidates:
            raise CandidatesError(
                f"arm {arm!r} was not shown", f"candidates were {listed(shown.candidates)}", "Choose one of these"
            )
        best = max(self._expected(shown.user, candidate) for candidate in shown.candidates)
        return best - self._expected(shown.user, arm)

    def _expected(self, user: UserId, arm: ArmId) -> float:
        return float(self._truth[self.graph.index[user], self.arms.index[arm]])
