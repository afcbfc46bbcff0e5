"""Users and arms by the caller's own ids, as rows and vectors that a model knows."""

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

import numpy as np

from coterie.contracts import ArmId, Choice, UserId
from coterie.errors import CandidatesError, UnknownArmError, UnknownUserError, listed, or_similar
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.models import Model


class Naming:
    """Reads ids, and raises before anything has changed if one is unknown or given twice."""

    graph: UserGraph
    arms: ArmPool | None
    _model: Model
    _user_index: Mapping[UserId, int]
    _arm_index: Mapping[ArmId, int]

    def _user_row(self, user: UserId) -> int:
        try:
            return self._user_index[user]
        except (KeyError, TypeError):
            remedy = "Add the user to the graph, make a policy on it and replay the rewards with update_many"
            raise UnknownUserError(
                f"user {user!r} is unknown",
                f"the graph's users are {listed(self.graph.users)}",
                or_similar(user, self.graph.users, remedy),
            ) from None

    def _arm_row(self, arm: Any) -> int:
        try:
            return self._arm_index[arm]
        except (KeyError, TypeError):
            if isinstance(arm, Choice):
                raise UnknownArmError(
                    "the arm is a whole Choice", "an arm is named by its id", "Pass choice.arm"
                ) from None
            assert self.arms is not None
            return self.arms.index_of(arm)

    def _candidates(self, candidates: Any) -> Any:
        """Returns the candidates as the model knows them: rows of the pool, or vectors."""
        if self.arms is None:
            return self._vectors(candidates)
        if candidates is None:
            return np.arange(len(self.arms))
        ids = as_list("candidates", candidates)
        if not ids:
            raise CandidatesError("there are no candidates", "at least one is needed", "Pass arm ids, or None for all")
        try:
            rows = itemgetter(*ids)(self._arm_index) if len(ids) > 1 else (self._arm_index[ids[0]],)
        except (KeyError, TypeError):
            rows = [self._arm_row(arm) for arm in ids]
        if len(set(rows)) < len(rows):
            repeated = next(arm for i, arm in enumerate(ids) if arm in ids[:i])
            raise CandidatesError(f"candidate {repeated!r} is given twice", "candidates are distinct", "Drop one")
        return np.array(rows, dtype=np.intp)

    def _vectors(self, candidates: Any) -> Any:
        if isinstance(candidates, Iterator):
            candidates = list(candidates)
        if candidates is not None and np.size(candidates) == 0:
            raise CandidatesError(
                "there are no candidates", "at least one is needed", "Pass an array with one row each"
            )
        rows = self._model.checked_arms(candidates)
        if len({row.tobytes() for row in rows}) < len(rows):
            raise CandidatesError("a candidate vector is given twice", "candidates are distinct", "Drop repeated rows")
        return rows


def as_list(what: str, values: Any) -> list[Any]:
    """Returns the values of any iterable but a string, which is one id, and a mapping, half of which would be lost."""
    if type(values) is list:  # by far the most common, and candidates are read at every decision
        return values
    if isinstance(values, Mapping):
        keys = listed(values) or "nothing"
        raise CandidatesError(f"{what} are a mapping, with keys {keys}", "they are a list", "Pass a list of its keys")
    if what == "candidates" and isinstance(values, set | frozenset):
        rule = "their order decides ties, and a set has none"
        raise CandidatesError(f"{what} are a {type(values).__name__}", rule, "Pass a list, such as sorted(...)")
    scalar = isinstance(values, np.ndarray) and values.ndim == 0
    if isinstance(values, str | bytes) or scalar or not isinstance(values, Iterable):
        raise CandidatesError(f"{what} are {values!r}", "they are a list", f"Pass [{values!r}]")
    return list(values)
