"""A policy that learns its own hyperparameters where arms have contexts, or users features."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from coterie.contracts import Array, UserId
from coterie.errors import CoterieError, DimensionError, ParameterError, listed
from coterie.errors.checks import as_list
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.kernels.input_space import InputSpace
from coterie.kernels.schema import ContextSchema
from coterie.models import History, Model
from coterie.policies.auto.auto_policy import AutoPolicy
from coterie.policies.auto.hyper import InputHyper
from coterie.policies.auto.input_context import InputFitContext
from coterie.policies.auto.likelihood import GaussianLikelihood


class ContextPolicy(AutoPolicy):
    """Chooses among arms in a context: the model knows inputs, which are rows of arm and context.

    Args:
        inputs: Makes rows of arms and contexts.
        **rest: As for `AutoPolicy`.

    Attributes:
        inputs: What the next context is checked by; categories that come are learned.
    """

    has_inputs = True
    hyper: InputHyper
    context: InputFitContext
    _fitting: InputFitContext

    def __init__(self, *, inputs: InputSpace, **rest: Any) -> None:
        super().__init__(**rest)
        self.inputs = inputs
        self.decides_together = False  # rows of contexts differ from decision to decision

    def in_context(self, arms: Any, context: Any, *, learn: bool = True) -> Array:
        """Returns the inputs of arms of the pool in a context; categories that are new in it are learned, or not."""
        return self.inputs_of(self.inputs.of_arms(np.asarray(arms)), context, learn=learn)

    def inputs_of(self, of_arms: Array, context: Any, of_request: Array | None = None, *, learn: bool = True) -> Array:
        """Returns the inputs of arms in a context, from their columns and the features that the request gives."""
        wanted, got = len(self.inputs.request_features), 0 if of_request is None else of_request.shape[1]
        if wanted != got:
            rule = f"it gives {wanted}: {listed(self.inputs.request_features, 20)}" if wanted else "none are declared"
            remedy = "Give every arm those that request_features names"
            raise DimensionError(f"a request gives {got} features of an arm", rule, remedy)
        row, inputs = self.inputs.encoded(context)
        if learn:
            self.inputs = inputs
        return inputs.rows(of_arms, row, of_request)

    def learn(self, row: int, column: Any, value: float) -> None:
        """Learns a reward of an input, which was checked already; the row that is kept is a copy."""
        super().learn(row, np.array(column), value)

    def update_many(
        self,
        users: Iterable[UserId],
        arms: Iterable[Any],
        rewards: Iterable[float],
        *,
        contexts: Iterable[Any] | None = None,
    ) -> None:
        """Learns many rewards, one after another, each in a context of its own; on an error nothing has changed."""
        rows = [self._user_row(user) for user in as_list("users", users)]
        columns, values = [self._arm_row(arm) for arm in as_list("arms", arms)], as_list("rewards", rewards)
        given = [None] * len(columns) if contexts is None else as_list("contexts", contexts)
        if not len(rows) == len(columns) == len(values) == len(given):
            what = f"{len(rows)} users, {len(columns)} arms, {len(values)} rewards and {len(given)} contexts"
            raise DimensionError(what, "there is one of each for a reward", "Pass columns of the same length")
        before = self.inputs
        try:
            inputs = [self.in_context([each], context)[0] for each, context in zip(columns, given, strict=True)]
            if inputs:
                self._learn_many(rows, inputs, values)
        except CoterieError:
            self.inputs = before
            raise

    def fit(self, batches: Iterable[Any], **_: Any) -> int:  # noqa: ARG002 - refused, whatever they are
        """Never possible: raises."""
        rule = "rewards in contexts are learned one after another"
        raise ParameterError(f"a fit was asked for with {self.name!r} and contexts", rule, "Use update_many")

    def take_arms(self, arms: ArmPool) -> bool:
        """Takes a pool with more arms after those there are; returns whether it is one, of arms with features."""
        before, n_arms = self.inputs.arms, len(self.inputs.arms)
        same = arms.ids[:n_arms] == before.ids and np.array_equal(arms.features[:n_arms], before.features)
        if not (before.has_features and arms.has_features and same):
            return False
        self.inputs, self.context = replace(self.inputs, arms=arms), self.context.with_arms(arms)
        self._fitting = self._fitting.with_arms(arms)
        self._take_hyper(self.hyper, self._scale)
        self.arms, self.arm_ids, self._arm_index = arms, arms.ids, dict(arms.index)
        return True

    def state(self) -> dict[str, Any]:
        """Returns what decisions depend on beside the settings, the schema included."""
        return super().state() | {"schema": self.inputs.schema.as_plain()}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes the state of a policy with the same settings, and its arrays; it then decides the same to the bit."""
        self.inputs = replace(self.inputs, schema=ContextSchema.from_plain(state["schema"]))
        super().restore(state)

    def describe(self) -> str:
        """Returns in words what this policy runs on and what it has learned, of contexts too."""
        shares = ", ".join(f"{name} {share:.0%}" for name, share in self.hyper.input_shares().items())
        unknown = self.inputs.schema.n_unknown
        counted = f" Unknown categories: {unknown}." if unknown else ""
        return f"{super().describe()} Inputs: {shares}.{counted}"


def make_context_policy(
    *,
    make: Callable[..., Model],
    graph: UserGraph,
    inputs: InputSpace,
    seed: int,
    traits: Array | None = None,
    **rest: Any,
) -> ContextPolicy:
    """Returns a policy at the prior's centre, for rewards of variance 1.

    Args:
        make: Makes a model on a kernel.
        graph: The users.
        inputs: Makes rows of arms and contexts.
        seed: As for `Policy`; also which rewards fits look at.
        traits: Features of users, a row each.
        **rest: As for `Policy`.
    """
    likelihood = GaussianLikelihood()
    context = InputFitContext(graph, inputs.arms, inputs.layout, traits=traits, seed=seed)
    hyper = likelihood.prior(context, History()).centre
    model = make(context.kernel(hyper), noise_var=likelihood.noise_var(hyper))
    parts = {"graph": graph, "arms": inputs.arms, "seed": seed, **rest}
    return ContextPolicy(inputs=inputs, context=context, likelihood=likelihood, hyper=hyper, model=model, **parts)
