"""Coterie in the same protocol: one user, classes as arms without features, nothing set but the seed."""

from typing import Any

import coterie as ct
from benchmarks.context.data import Labelled
from benchmarks.context.protocol import Learner, Method


class Served:
    """Bandits behind `decide` and `learn`; a row is a bandit, one of its users, and a context."""

    def __init__(self, n_classes: int) -> None:
        self._names = [f"class {place}" for place in range(n_classes)]
        self._place = {name: place for place, name in enumerate(self._names)}

    def bandit(self, graph: ct.UserGraph, seed: int) -> Any:
        """Returns a bandit with the classes as its arms."""
        arms: Any = self._names
        return ct.Bandit(graph=graph, arms=arms, seed=seed)

    def choose(self, bandit: Any, user: Any, context: Any) -> tuple[int, float]:
        """Decides; the propensity is not asked for, since nothing here needs it."""
        self._bandit, self._decision = bandit, bandit.decide(user, context=context)
        return self._place[self._decision.arm], 1.0

    def learn(self, row: Any, arm: int, propensity: float, reward: float) -> None:  # noqa: ARG002 - the decision is known
        self._bandit.reward(self._decision.id, reward)


class OneUser(Served):
    """A bandit of one user, whoever comes."""

    def __init__(self, n_classes: int, seed: int) -> None:
        super().__init__(n_classes)
        self._one = self.bandit(ct.UserGraph.from_edges([], users=["one"]), seed)

    def decide(self, row: Any) -> tuple[int, float]:
        return self.choose(self._one, "one", row)


def _one_user(data: Labelled, seed: int) -> Learner:
    return OneUser(data.n_classes, seed)


OURS = Method("coterie", "auto-ucb", _one_user, Labelled.contexts, patient=True)
