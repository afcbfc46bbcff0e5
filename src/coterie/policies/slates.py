"""Slates: places that are filled one after another, each by a decision among the candidates that are left.

So the probability of a slate is the product of its places' propensities, each given the places before it. Each place is
a decision with a number, and so with randomness, of its own.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from coterie.contracts import Choice, Index, UserId
from coterie.errors import CandidatesError, ParameterError
from coterie.errors.checks import check_whole
from coterie.policies.policy import Policy
from coterie.policies.rules.scores import Prospects, Scored


class OpenPlaces:
    """The candidates of a slate that are left, place by place.

    What is believed of them is read once for all places, unless it changes from place to place: where the effect of
    places is learned, where pending decisions count, and with policies that read for each decision.

    Args:
        policy: What decides.
        row: The user's row.
        arms: The candidates as the model knows them, at place 1.

    Attributes:
        left: Which of the candidates are left, by their position.
        place: Which place is next, from 1.
    """

    def __init__(self, policy: Policy, row: int, arms: Any) -> None:
        self._policy, self._row, self._arms = policy, row, arms
        self._prospects: Prospects | None = None
        self.left: Index = np.arange(len(arms))
        self.place = 1

    @property
    def arms(self) -> Any:
        """The candidates that are left, as the model knows them at this place."""
        return self._policy.at_place(self._arms[self.left], self.place)

    def consider(self) -> Scored:
        """Returns what the decision of this place is made from, and counts it."""
        policy = self._policy
        if self._prospects is None or policy.has_places or policy.pending_model is not None:
            self._prospects = policy.prospects(self._row, policy.at_place(self._arms, self.place))
        known = None if self._prospects is None else self._prospects.among(self.left)
        return policy.consider_rows(self._row, self.arms if known is None else known.arms, known)

    def take(self, position: int) -> int:
        """Fills the place with one of those left; returns its position among all candidates."""
        taken = int(self.left[position])
        self.left, self.place = np.delete(self.left, position), self.place + 1
        return taken


def rank(policy: Policy, user: UserId, candidates: Any = None, k: int = 5, *, context: Any = None) -> list[Choice]:
    """Returns an ordered slate of k choices for a user, each among the candidates that the places before it left.

    Each is a decision of its own: `index` is the position among all candidates. A reward is one of an arm, as for
    `select`; where the policy was made with places="learned", `update` takes its place.

    Args:
        policy: Made by `make_policy`.
        user: One of `graph.users`.
        candidates: As for `Policy.select`.
        k: How many places there are; at most as many as candidates.
        context: As for `Policy.select`.

    Examples:
        >>> from coterie import ArmPool, UserGraph, make_policy
        >>> graph = UserGraph.from_edges([("ana", "bo")])
        >>> arms = ArmPool([[0.0], [1.0], [3.0]], ids=["tea", "ale", "gin"])
        >>> policy = make_policy("lk-gp-ucb", graph=graph, arms=arms)
        >>> policy.update("ana", "gin", 5.0), policy.update("ana", "tea", 1.0)
        (None, None)
        >>> [choice.arm for choice in rank(policy, "ana", k=2)]
        ['gin', 'ale']
    """
    if not isinstance(policy, Policy):
        rule = "it is one of make_policy"
        raise ParameterError(f"policy is a {type(policy).__name__}", rule, "Pass one; a Bandit has bandit.rank(...)")
    row, arms = policy._user_row(user), policy._candidates(candidates)
    check_slate(k, len(arms))
    places = OpenPlaces(policy, row, policy.in_context(arms, context))
    out = []
    for _ in range(int(k)):
        number, shown, found = policy.n_decisions, places.left, places.consider()
        choice = policy._record(row, arms[shown], found, number)
        out.append(replace(choice, index=places.take(found.best)))
    return out


def check_slate(k: Any, n_candidates: int) -> None:
    """Raises unless k is a whole number from 1 to the number of candidates.

    Examples:
        >>> check_slate(3, 2)
        Traceback (most recent call last):
        coterie.errors.CandidatesError: k is 3 with 2 candidates; each place has another one. Lower k, or name more.
    """
    check_whole("k", k)
    if k > n_candidates:
        what, remedy = f"k is {k} with {n_candidates} candidates", "Lower k, or name more"
        raise CandidatesError(what, "each place has another one", remedy)
