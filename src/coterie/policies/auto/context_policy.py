"""A policy that learns its own hyperparameters where arms have contexts, or users features."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from coterie.contracts import Array, UserId
from coterie.errors import ContextError, CoterieError, DimensionError, NumericalError, listed
from coterie.errors.checks import as_list
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.kernels.input_space import InputSpace
from coterie.kernels.schema import ContextSchema
from coterie.models import History, Model
from coterie.models.engines.local import LocalModel
from coterie.policies.auto.auto_policy import AutoPolicy
from coterie.policies.auto.context_batches import inputs_of_rows
from coterie.policies.auto.hyper import InputHyper
from coterie.policies.auto.input_context import InputFitContext
from coterie.policies.auto.likelihood import GaussianLikelihood
from coterie.policies.policy import Policy
from coterie.policies.reward_batches import RowReader, checked_batches


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
        self.has_places = inputs.has_places
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

    def learn(self, row: int, column: Any, value: float, *, weight: float = 1.0) -> None:
        """Learns a reward of an input, which was checked already; the row that is kept is a copy."""
        super().learn(row, np.array(column), value, weight=weight)

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

    @property
    def takes_contexts(self) -> bool:
        """Whether decisions are made in contexts: features of users alone need none."""
        return bool(self.inputs.schema.fields)

    def fit(
        self,
        batches: Iterable[Any],
        *,
        progress: Callable[[str, int], None] | None = None,
        keep: Callable[..., None] | None = None,
    ) -> int:
        """Learns any number of rewards of arms in contexts at once, as `AutoPolicy.fit` does."""
        before = self.inputs
        try:
            return super().fit(batches, progress=progress, keep=keep)
        except BaseException:
            self.inputs = before  # without the categories that came
            raise

    def _gathered(
        self, batches: Iterable[Any], progress: Callable[[str, int], None] | None, keep: Callable[..., None] | None
    ) -> History:
        more, reader = History(), RowReader(dict(self._user_index), self._arm_index)
        for users, arms, rewards, contexts in checked_batches(batches):
            first = reader.n_rows
            rows, columns, values = reader.read(users, arms, rewards)
            given, self.inputs = inputs_of_rows(self.inputs, columns, contexts, first)
            for row, input, value in zip(rows.tolist(), given, values.tolist(), strict=True):
                more.add(self._model.kernel.key(row, input), row, input, value)
            if keep is not None:
                keep(rows, columns, values, given)
            if progress is not None:
                progress("rows", reader.n_rows)
        return more

    def at_place(self, arms: Array, place: int) -> Array:
        """Returns inputs at a place of a slate, from 1."""
        return self.inputs.at_place(arms, place)

    def relink(self, graph: UserGraph, traits: Array | None = None) -> bool:
        """Takes another graph, as `AutoPolicy` does; with the features of its users, where they have any."""
        context = self.context.on(graph)
        context = context if traits is None else context.with_traits(traits)
        if context.traits is not None and len(context.traits) != graph.n_users:
            return False  # nobody says which features newcomers have
        return self._relinked(graph, context)

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

    def continue_from(self, other: Policy) -> None:
        """Goes on as another policy in whose place this one comes: with the codes of the categories that it met."""
        super().continue_from(other)
        if isinstance(other, ContextPolicy) and other.inputs.schema.fields:  # or the first context has come
            self.inputs = replace(self.inputs, schema=other.inputs.schema)

    def state(self) -> dict[str, Any]:
        """Returns what decisions depend on beside the settings, the schema included."""
        return super().state() | {"schema": self.inputs.schema.as_plain()}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes the state of a policy with the same settings, and its arrays; it then decides the same to the bit."""
        schema = ContextSchema.from_plain(state["schema"])
        if not schema.is_like(self.inputs.schema):
            what, rule = f"the schema of contexts is {schema.given()}", "it is the one that was stated or learned first"
            raise ContextError(what, rule, "Use the settings that it was saved with")
        self.inputs = replace(self.inputs, schema=schema)
        super().restore(state)

    def is_sound(self) -> bool:
        """Returns whether a restored posterior is that of its rewards; raises where it is one of other settings.

        A file has no kernel of contexts, so only the posterior shows whether settings and features are its own.
        """
        sound = super().is_sound()
        if not sound and self._model.mismatch() > LocalModel.mismatch_limit:
            what = f"a belief on engine {self._model.engine!r} is off by {self._model.mismatch():.2g}"
            raise NumericalError(what, "it is the posterior of its rewards", "Learn the rewards again")
        return sound

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
    matrices: bool = False,
    **rest: Any,
) -> ContextPolicy:
    """Returns a policy at the prior's centre, for rewards of variance 1.

    Args:
        make: Makes a model on a kernel.
        graph: The users.
        inputs: Makes rows of arms and contexts.
        seed: As for `Policy`; also which rewards fits look at.
        traits: Features of users, a row each.
        matrices: Whether the kernel is to have a matrix over users whatever their number.
        **rest: As for `Policy`.
    """
    likelihood = GaussianLikelihood()
    context = InputFitContext(graph, inputs.arms, inputs.layout, traits=traits, seed=seed, matrices=matrices)
    hyper = likelihood.prior(context, History()).centre
    model = make(context.kernel(hyper), noise_var=likelihood.noise_var(hyper))
    parts = {"graph": graph, "arms": inputs.arms, "seed": seed, **rest}
    return ContextPolicy(inputs=inputs, context=context, likelihood=likelihood, hyper=hyper, model=model, **parts)
