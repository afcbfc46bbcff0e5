"""What was decided, and what was believed when it was."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from coterie.contracts import ArmId, UserId
from coterie.errors import DecisionError
from coterie.errors.checks import is_whole
from coterie.policies.rules.propensity import Propensities
from coterie.policies.rules.scores import Scored


class Decision:
    """What was decided, to be shown to the user and rewarded later.

    Attributes:
        id: The decision's number, from 0; with the seed it fixes the decision's randomness.
        user: The user it was made for.
        arm: The arm chosen.
        mean: The believed reward: a probability of 1 where the likelihood is "bernoulli".
        std: The uncertainty of the belief, without noise.
        score: What the policy compared.
        explored: Whether uniform exploration chose the arm.
        certain: Whether the exact belief is proven to choose the same; None where nobody asked (`certified`), or where
            uniform exploration chose.
    """

    __slots__ = (
        "_found",
        "_scored",
        "_seed",
        "_share",
        "_shown",
        "arm",
        "certain",
        "explored",
        "id",
        "mean",
        "score",
        "std",
        "user",
    )

    def __init__(
        self,
        *,
        number: int,
        user: UserId,
        shown: list[ArmId],
        place: int,
        mean: float,
        std: float,
        score: float,
        explored: bool,
        share: float,
        scored: "Scored | Callable[[], Scored]",
        seed: int,
        certain: bool | None = None,
    ) -> None:
        self.id, self.user, self.arm = number, user, shown[place]
        self.mean, self.std, self.score, self.explored = mean, std, score, explored
        self.certain = certain
        self._shown, self._share, self._scored, self._seed = shown, share, scored, seed
        self._found: Propensities | None = None

    def __repr__(self) -> str:
        return (
            f"Decision(id={self.id}, user={self.user!r}, arm={self.arm!r}, propensity={self.propensity}, "
            f"mean={self.mean:.4g}, std={self.std:.4g})"
        )

    @property
    def propensity(self) -> float | None:
        """The probability with which this arm was to be chosen; none where it is not known."""
        found = self._propensities()
        return None if found is None else float(found.probabilities[self._shown.index(self.arm)])

    @property
    def propensity_error(self) -> float | None:
        """The standard error of the propensity where it was simulated (joint Thompson sampling)."""
        found = self._propensities()
        if found is None or found.standard_errors is None:
            return None
        return float(found.standard_errors[self._shown.index(self.arm)])

    @property
    def candidates(self) -> dict[ArmId, "Candidate"]:
        """What was believed of every candidate when the decision was made."""
        found = self._propensities()
        known = [None] * len(self._shown) if found is None else found.probabilities.tolist()
        means, stds = self._believed().shown
        together = zip(self._shown, means.tolist(), stds.tolist(), known, strict=True)
        return {arm: Candidate(mean, std, propensity) for arm, mean, std, propensity in together}

    def _believed(self) -> Scored:
        """Returns what was believed then."""
        return self._scored if isinstance(self._scored, Scored) else self._scored()

    def _propensities(self) -> Propensities | None:
        """Returns the propensities, computed when they are first asked for, from what was believed then."""
        if self._found is None:
            found = self._believed().propensities(np.random.default_rng([self._seed, self.id]))
            self._found = None if found is None else found.with_exploration(self._share)
        return self._found


def decision_number(decision: Any) -> int:
    """Returns the id of a decision as a plain number, or raises if it is none.

    Examples:
        >>> decision_number(np.int64(3))
        3
    """
    if is_whole(decision):
        return int(decision)
    what, remedy = f"decision {decision!r} is unknown", "Pass the id of a Decision"
    if isinstance(decision, Decision):
        what, remedy = "the decision is a whole Decision", "Pass decision.id"
    raise DecisionError(what, "decisions are numbered from 0", remedy)


class Candidate(NamedTuple):
    """What was believed of a candidate when a decision was made."""

    mean: float
    std: float
    propensity: float | None
