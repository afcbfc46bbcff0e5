"""A policy that learns its own hyperparameters where arms have contexts, or users features."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from coterie.contracts import Array, UserId
from coterie.errors import DimensionError, ParameterError, listed
from coterie.errors.checks import as_list
from coterie.graphs import UserGraph
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

    hyper: InputHyper

    def __init__(self, *, inputs: InputSpace, **rest: Any) -> None:
        super().__init__(**rest)
        self.inputs = inputs
        self.decides_together = False  # rows of contexts differ from decision to decision

    def in_context(self, arms: Any, context: Any, *, keep: bool = True, of_request: Array | None = None) -> Array:
        """Returns the inputs of arms of the pool in a context.

        Args:
            arms: Rows of the pool.
            context: As the schema says.
            keep: Whether categories that are new in it are learned, or counted as unknown.
            of_request: The features that the request gives, a row for each arm, where there are any.
        """
        inputs, after = self._encoded(self.inputs, arms, context, of_request)
        if keep:
            self.inputs = after
        return inputs

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
        inputs, space = [], self.inputs
        for column, context in zip(columns, given, strict=True):
            encoded, space = self._encoded(space, [column], context)
            inputs.append(encoded[0])
        if inputs:
            self._learn_many(rows, inputs, values)
            self.inputs = space

    def fit(self, batches: Iterable[Any], **_: Any) -> int:  # noqa: ARG002 - refused, whatever they are
        """Never possible: raises."""
        rule = "rewards in contexts are learned one after another"
        raise ParameterError(f"a fit was asked for with {self.name!r} and contexts", rule, "Use update_many")

    def _encoded(
        self, space: InputSpace, arms: Any, context: Any, of_request: Array | None = None
    ) -> tuple[Array, InputSpace]:
        """Returns the inputs of arms of the pool in a context, and the space after it has come."""
        wanted, got = len(space.request_features), 0 if of_request is None else of_request.shape[1]
        if wanted != got:
            what = f"a request gives {got} features of an arm"
            rule = f"it gives {wanted}: {listed(space.request_features, 20)}" if wanted else "none are declared"
            raise DimensionError(what, rule, "Give every arm those that request_features names")
        row, after = space.encoded(context)
        return space.rows(space.of_arms(np.asarray(arms)), row, of_request), after

    def state(self) -> dict[str, Any]:
        """Returns what decisions depend on beside the settings, the schema included."""
        return super().state() | {"schema": self.inputs.schema.as_plain()}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes the state of a policy with the same settings, and its arrays; it then decides the same to the bit."""
        self.inputs = InputSpace(
            self.inputs.arms, ContextSchema.from_plain(state["schema"]), self.inputs.request_features
        )
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
