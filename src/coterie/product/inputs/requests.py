"""What a call asks for, read before anything changes: candidates and contexts, and what is new in them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from coterie.contracts import ArmId, Array, Index
from coterie.errors import CandidatesError, ContextError, counted, listed
from coterie.kernels import ArmPool
from coterie.kernels.input_space import InputSpace
from coterie.kernels.schema import ContextSchema
from coterie.policies import Policy
from coterie.policies.auto.context_policy import ContextPolicy
from coterie.product.decisions import GUEST, Ledger
from coterie.product.inputs.arm_inputs import with_arms
from coterie.product.inputs.candidates import Candidates, read_candidates
from coterie.product.learned import Learned


class Shown(NamedTuple):
    """Candidates that were read.

    Attributes:
        columns: As the model knows them: rows of the pool, or inputs.
        ids: Their ids.
        rows: Their rows in the pool; `GUEST` for arms of one request only.
    """

    columns: Any
    ids: list[ArmId]
    rows: Index

    def place_of(self, arm: ArmId) -> int:
        """Returns where an arm stands among the candidates, or raises LookupError."""
        if arm not in self.ids:
            raise LookupError(f"arm {arm!r} is none of the candidates")
        return self.ids.index(arm)

    def input_at(self, place: int) -> Array | None:
        """Returns a copy of an input, which does not keep those of all candidates; None where there are no contexts."""
        return self.columns[place].copy() if np.ndim(self.columns) == 2 else None

    def guest_at(self, place: int) -> ArmId | None:
        """Returns the id of an arm that is not of the pool; None for others."""
        return self.ids[place] if self.rows[place] == GUEST else None


class Requests:
    """The requests of one call, read one after another; nothing changes before `take`.

    Args:
        learned: What was learned so far.
        ledger: The decisions that wait for a reward.
        learns: Whether the first context says what further ones hold; a reader does not.

    Attributes:
        policy: Who knows the requests: another than before if the first context is among them.
    """

    def __init__(self, learned: Learned, ledger: Ledger, *, learns: bool = True) -> None:
        self._learned, self._ledger, self._learns = learned, ledger, learns
        self.policy: Policy = learned.policy
        self._inputs = self.policy.inputs if isinstance(self.policy, ContextPolicy) else None
        self._arms, self._n_read = learned.arms, 0

    def read(self, candidates: Any, context: Any = None, *, keep: bool = False) -> Shown:
        """Returns the candidates as the model knows them in a context, or raises.

        Args:
            candidates: Ids; or a mapping from ids to features, or to None.
            context: In which they are shown.
            keep: Whether arms that are new join the pool.
        """
        self.see(context)
        self._n_read += 1
        if isinstance(candidates, Mapping):
            return self._of_mapping(candidates, context, keep=keep)
        rows = self.policy.rows_of(candidates)
        ids = list(map(self.policy.arm_ids.__getitem__, rows.tolist()))
        if self._inputs is None:
            return Shown(rows, ids, rows)
        row, self._inputs = self._inputs.encoded(context)
        return Shown(self._inputs.rows(self._inputs.of_arms(rows), row), ids, rows)

    def see(self, context: Any) -> None:
        """Learns from the first context what contexts hold, where nobody has said; raises if it is too late."""
        if context is not None and (self._inputs is None or not self._inputs.schema.fields):
            self._learn_schema(context)

    def take(self, change: Callable[..., None]) -> None:
        """Lets the bandit know what was new: what contexts hold, their categories, and arms that stay.

        Args:
            change: Called with `arms` where arms have joined the pool.
        """
        policy, inputs = self.policy, self._inputs
        if not isinstance(policy, ContextPolicy) or inputs is None:
            if self._arms is not self._learned.arms:
                change(arms=self._arms)
            return
        if policy is not self._learned.policy:
            self._learned.take_policy(policy)
        before, policy.inputs = policy.inputs, replace(inputs, arms=policy.inputs.arms)
        if inputs.arms is not before.arms:
            change(arms=inputs.arms)

    def _learn_schema(self, context: Any) -> None:
        """Learns from the first context what contexts hold; raises where rewards without any have come."""
        schema, rewards, waiting = ContextSchema.learned(context), len(self._learned.events), len(self._ledger)
        policy = self._learned.with_schema(schema)
        if not self._learns:
            rule = "the first one that comes with a decision or a reward says what contexts hold"
            raise ContextError("a context was given, and none has come", rule, "Decide first, or state context_schema")
        if rewards or waiting or self._n_read:
            had = f"{counted(rewards, 'reward')} and {counted(waiting + self._n_read, 'decision')}"
            raise ContextError(
                f"a context was given, and {had} have come without any",
                "all have one, or none",
                "Leave it out, or begin anew with contexts",
            )
        self.policy, self._inputs = policy, policy.inputs

    def _of_mapping(self, candidates: Mapping[Any, Any], context: Any, *, keep: bool) -> Shown:
        """Returns what `read` does, of a mapping from ids to features."""
        if self._inputs is None:
            return self._joining(candidates, keep=keep)
        found = read_candidates(self._inputs, candidates, keep=keep)
        if keep:
            pool = _joined(self._inputs.arms, found)
            rows = _rows_in(pool, found)
            self._inputs = replace(self._inputs, arms=pool)
            found = found._replace(rows=rows, features=self._inputs.of_arms(rows))
        row, self._inputs = self._inputs.encoded(context)
        return Shown(self._inputs.rows(found.features, row, found.of_request), found.ids, found.rows)

    def _joining(self, candidates: Mapping[Any, Any], *, keep: bool) -> Shown:
        """Returns candidates where there are no contexts: those that are new join the pool, or are refused."""
        if not keep:
            what, rule = f"candidates are a mapping, with keys {listed(candidates)}", "this bandit knows its pool alone"
            remedy = "Pass ids, let new arms join with keep=True, or state request_features or context_schema"
            raise CandidatesError(what, rule, f"{remedy} at the start")
        found = read_candidates(InputSpace(self._arms), candidates, keep=True)
        self._arms = _joined(self._arms, found)
        rows = _rows_in(self._arms, found)
        return Shown(rows, found.ids, rows)


def _joined(arms: ArmPool, found: Candidates) -> ArmPool:
    """Returns the pool after the candidates that are new have joined it; the same one if none is."""
    new = np.flatnonzero(found.rows == GUEST)
    if not len(new):
        return arms
    ids = [found.ids[place] for place in new.tolist()]
    if not arms.has_features:
        return with_arms(arms, ArmPool.without_features(ids))
    return with_arms(arms, ArmPool(found.features[new], ids=ids, feature_names=arms.feature_names))


def _rows_in(arms: ArmPool, found: Candidates) -> Index:
    return np.array([arms.index[arm] for arm in found.ids], dtype=np.intp)
