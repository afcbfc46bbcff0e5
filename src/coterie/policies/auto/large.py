"""The policy that learns its own hyperparameters on a graph of any size: engine "sparse"."""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from math import log
from typing import Any, NamedTuple

import numpy as np

from coterie.contracts import Array
from coterie.errors import FAILURES
from coterie.graphs import Difference, UserGraph
from coterie.kernels import ArmPool
from coterie.kernels.graph import GraphKernel
from coterie.models import History, Model, SparseModel
from coterie.models.engines.sparse.table import Table
from coterie.policies.auto.ahead import Ahead
from coterie.policies.auto.evidence import Evidence
from coterie.policies.auto.fitting import NONE, Prior, Weighing, fit, without_idle_parts
from coterie.policies.auto.later import Step, graph_before, graph_state, later_state, later_steps
from coterie.policies.auto.learner import CORNERS_UNTIL, AutoPolicy, centre_and_variance, is_constant, is_two_valued
from coterie.policies.auto.neighbourhoods import FEW, Neighbourhoods
from coterie.policies.auto.parts import Hyper
from coterie.policies.fitting import fit_model
from coterie.policies.rules.widths import Width
from coterie.policies.same import check_same

AT_ONCE = 64  # rewards up to which a fit takes no time worth mentioning
NEARLY_ALL = 0.9
TINY = 1e-300
LATER = 4  # a fit begun after t rewards is taken after t / 4 more


class Begun(NamedTuple):
    """A fit that goes on beside the decisions.

    Attributes:
        started: After how many rewards it began.
        due: After how many rewards it is taken.
        shift: What is taken off every reward then, further than now.
        history: The rewards that it sees, as they were remembered.
        later: What came since: user, arm and reward, as they were remembered, or a change of graph.
        ground: What its kernel is made of: the graph as it was when it began.
        ahead: The work.
    """

    started: int
    due: int
    shift: float
    history: dict[str, Any]
    later: list[Step]
    ground: Neighbourhoods
    ahead: Ahead[Hyper]


class LargeAutoPolicy(AutoPolicy):
    """`AutoPolicy` on a graph of which no matrix can be made.

    Up to 2,000 users a fit knows the whole graph, beyond that neighbourhoods of users with rewards; it looks at 1,500
    pairs at most. Up to 500 users it comes when `AutoPolicy`'s does, and is the same. Among more, past the first 64
    rewards, it does not hold up decisions: it goes on in a thread, its model follows the rewards that come in
    meanwhile, and it is taken after a quarter more of them, however long it took. So the same rewards give the same
    choices on any machine.

    Among more than 500 users it explores by the width asked for times rewards / (users met x features of an arm), at
    most 1: what a choice tells of one of a user's features pays whenever they come again, and how often they came so
    far says how often that will be. What all have in common pays whenever anybody comes: it is explored by the width
    times rewards / features, at most 1. Otherwise a belief that starts wrong is hardly ever tested. And parts that
    nothing speaks for are left out (`without_idle_parts`). Rewards of two values are then taken to be mostly noise,
    since hardly a pair comes again.

    A change of the graph keeps what was learned, as for `AutoPolicy`; a fit that goes on sees the graph as it was, and
    its model follows the change as it does rewards.

    Args:
        ground: What kernels are made of.
        make: Makes a model on a kernel.
        **rest: As for `AutoPolicy`.
    """

    _hyper: Hyper
    _measured: UserGraph  # the graph that the share of its part is of

    def __init__(self, *, ground: Neighbourhoods, make: Callable[..., Model], **rest: Any) -> None:
        super().__init__(parts=None, **rest)
        self._make = make
        self._ground = ground
        self._normalised = ground.normalised
        self._scale = self.ground.scale(self.hyper)
        self._begun: Begun | None = None

    @property
    def ground(self) -> Neighbourhoods:
        """What makes kernels of hyperparameters; O(edges) after a change of graph, once it is asked for."""
        if self._ground.graph is not self.graph:
            self._ground = self._ground.on(self.graph)
        return self._ground

    @property
    def width(self) -> Width:
        """How wide it explores by now."""
        if callable(self._width) or self._are_few():
            return self._width
        history = self._model.history
        assert isinstance(history, Table)
        return self._width * min(1.0, self.n_rewards / (max(history.n_met, 1) * self._ground.dimension))

    @width.setter
    def width(self, width: Width) -> None:
        self._width = width

    def widths(self, arms: Any, std: Array) -> float | Array:
        """Returns how wide to explore now: wider where more of a std is of what all have in common."""
        width, most = super().widths(arms, std), self._width
        common = self.doubtful.common_variances(arms) if isinstance(self.doubtful, SparseModel) else None
        if callable(most) or self._are_few() or common is None:
            return width
        widest = most * min(1.0, self.n_rewards / self._ground.dimension)
        variance = np.maximum(std * std, TINY)
        return np.sqrt(width**2 + max(widest**2 - width**2, 0.0) * np.minimum(common / variance, 1.0))

    @property
    def hyper(self) -> Hyper:
        """What the belief is made with; the graph's share is that on the graph as it is now, its scale has stayed."""
        if self._measured is not self.graph and self._hyper.graph > NONE:
            share = log(self._scale * self.ground.mean_gain(self._hyper.ridge))
            self._hyper, self._measured = self._hyper._replace(graph=share), self.graph
        return self._hyper

    @hyper.setter
    def hyper(self, hyper: Hyper) -> None:
        self._hyper, self._measured = hyper, self.graph

    def explain(self) -> str:
        """Returns in words what this policy runs on and what it has learned of its hyperparameters."""
        begun = self._begun
        told = "" if begun is None else f" A fit to {begun.started} rewards is taken after {begun.due}."
        return super().explain() + told

    def state(self) -> dict[str, Any]:
        """Returns what decisions depend on beside the settings; waits for the fit that goes on, if there is one."""
        kernel = self._model.kernel
        assert isinstance(kernel, GraphKernel)
        return super().state() | {"graph_kernel": kernel.settings(), "begun": self._begun_state(), "scale": self._scale}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes the state of a policy with the same settings, and its arrays; it then decides the same to the bit."""
        super().restore(state)
        self._scale = state["scale"]
        if state["begun"] is not None:
            self._take_begun(state["begun"])

    def _restored_kernel(self, state: dict[str, Any]) -> GraphKernel:
        """Returns the kernel of a state, or raises if it is not the one that the hyperparameters give."""
        hyper, held = Hyper(**state["hyper"]), dict(state["graph_kernel"])
        if hyper.graph > NONE:  # where the graph has no part, its scale is as it was before the graph changed
            check_same("scale", state["scale"], self.ground.scale(hyper))
        made = self.ground.settings(hyper, state["scale"])
        for name in ("laplacian_ridge", "normalised"):
            check_same(name, held[name], made[name])
        parts = [[1 / each["laplacian_ridge"], each["own"], each["common"]] for each in (held, made)]  # a trace is none
        check_same("parts of the variance", *parts)
        probe = np.random.default_rng(0).standard_normal(len(held["features"]))
        of_arms = [each @ (each.T @ probe) for each in (held["features"], made["features"])]  # a turn is no difference
        check_same("features", *of_arms)
        return GraphKernel(self.graph, **held)

    def relearn(self, history: History) -> None:
        """Forgets all rewards and learns this history instead, with hyperparameters fitted to it."""
        self._begun = None
        super().relearn(history)

    def kept(self) -> dict[str, Any]:
        """Returns the hyperparameters learned so far as plain numbers that mean the same on another graph."""
        fits = [[t, list(hyper)] for t, hyper in self.fits]
        learned = {"hyper": list(self.hyper), "scale": log(self._scale), "centre": self.centre, "fits": fits}
        return learned | {"normalised": self._normalised}

    def fit(
        self,
        batches: Iterable[Any],
        *,
        progress: Callable[[str, int], None] | None = None,
        keep: Callable[..., None] | None = None,
    ) -> int:
        """Learns any number of rewards at once, fits the hyperparameters to all of them, and returns how many came.

        On an error nothing has changed; a fit that went on in a thread is dropped for this one.
        """
        count = fit_model(self._model, dict(self._user_index), self._arm_index, batches, progress, keep, self.centre)
        self.doubt, self._begun = None, None
        if count:
            self._refit(self.n_rewards)
        return count

    def relearn_as(self, kept: Mapping[str, Any], history: History) -> None:
        """Forgets all rewards and learns this history with hyperparameters that were kept, those of another graph."""
        self._begun = None
        super().relearn_as(kept, history)
        self._scale = self.ground.scale(self.hyper)

    def _learn(self, row: int, column: Any, value: float) -> None:
        self._model.learn(row, column, value - self.centre)
        t, begun = self.n_rewards, self._begun
        if begun is not None:
            self._follow_up(begun, row, column, value - self.centre)
            if t >= begun.due:
                self._take_fit(begun)
        elif self.settings_are_due(t) and t != self._last_fit():
            if t <= AT_ONCE or self._are_few() or is_constant(self._model.history):
                self._refit(t)
            else:
                self._begun = self._begin_fit(t)

    def _are_few(self) -> bool:
        return self.graph.n_users <= FEW

    def _follow_up(self, begun: Begun, row: int, column: int, value: float) -> None:
        """Lets the model that is being made know of a reward too."""
        begun.later.append((row, column, value))
        begun.ahead.follow(lambda model: model.learn(row, column, value - begun.shift))

    def _regraphed(self, change: Difference) -> None:
        if self._begun is not None:
            self._follow_graph(self._begun, change)

    def _follow_graph(self, begun: Begun, change: Difference) -> None:
        """Lets the model that is being made take a change of graph too."""

        def step(model: Model) -> None:
            model.regraph(change)

        begun.later.append(change)
        begun.ahead.follow(step)

    def _normalise(self, normalised: bool) -> None:
        if normalised != self._normalised:
            self._normalised = normalised
            self._ground = self._ground.on(self.graph, normalised=normalised)

    def _adopt(self, t: int, hyper: Hyper, shift: float) -> None:
        super()._adopt(t, hyper, shift)
        self._scale = self.ground.scale(hyper)

    def _begin_fit(self, t: int) -> Begun:
        """Returns a fit to all rewards so far that has just begun."""
        history = self._model.history
        shift, variance = centre_and_variance(history)
        prior, evidence = self._prior(variance), self.ground.evidence(history, t, shift)
        start = self.hyper if self.fits else prior.centre
        seen = deepcopy(history.state())  # by now the columns are the model's own, and go on changing
        find = partial(_found, evidence, prior, start, t, self._kind())
        return self._begin(t, shift, seen, self.ground, find)

    def _found(self, evidence: Any, prior: Prior, start: Hyper, t: int) -> Hyper:
        return _found(evidence, prior, start, t, self._kind())

    def _prior(self, variance: float) -> Prior:
        two_valued = not self._are_few() and is_two_valued(self._model.history)
        return Prior.of(self.ground, variance, two_valued=two_valued)

    def _kind(self) -> "Kind":
        return Kind(few=self._are_few(), reaches_all=float(np.mean(self.graph.degrees > 0)) >= NEARLY_ALL)

    def _evidence(self, t: int, shift: float) -> Evidence:
        return self.ground.evidence(self._model.history, t, shift)

    def _begin(
        self, t: int, shift: float, history: dict[str, Any], ground: Neighbourhoods, find: Callable[[], Hyper]
    ) -> Begun:
        reason, make = self._model.reason, self._make  # the thread knows nothing of the policy, which may be dropped

        def made(hyper: Hyper) -> Model:
            kernel = ground.kernel(hyper)
            model = make(kernel, noise_var=ground.noise_var(hyper))
            seen = Table.from_columns(deepcopy(history), kernel.n_users, kernel.n_arms)
            seen.shift(-shift)
            model.relearn(seen)
            model.reason = reason
            return model

        return Begun(t, t + t // LATER, shift, history, [], ground, Ahead(find, made))

    def _take_fit(self, begun: Begun) -> None:
        """Takes the model that was made meanwhile; if that failed, the one in use stays."""
        self._begun = None
        try:
            self._check_replayed()
            hyper, self._model = begun.ahead.finish()
        except FAILURES as refusal:
            self._refuse(f"The change due after {begun.started} rewards was not made", refusal)
            return
        super()._adopt(begun.started, hyper, begun.shift)
        self._scale, self._measured = begun.ground.scale(hyper), begun.ground.graph

    def _begun_state(self) -> dict[str, Any] | None:
        if self._begun is None:
            return None
        begun = self._begun
        try:
            hyper = begun.ahead.found()
        except FAILURES:  # it would not be taken: to whoever loads this it is as if it had not begun
            return None
        return {
            "started": begun.started,
            "shift": begun.shift,
            "history": begun.history,
            "hyper": hyper._asdict(),
            "later": later_state(begun.later),
            "graph": None if begun.ground.graph is self.graph else graph_state(begun.ground.graph),
        }

    def _take_begun(self, state: dict[str, Any]) -> None:
        hyper, graph = Hyper(**state["hyper"]), state.get("graph")
        ground = self.ground if graph is None else self.ground.on(graph_before(self.graph, graph))
        self._begun = self._begin(state["started"], state["shift"], state["history"], ground, lambda: hyper)
        for step in later_steps(state["later"]):
            if isinstance(step, Difference):
                self._follow_graph(self._begun, step)
            else:
                self._follow_up(self._begun, *step)


class Kind(NamedTuple):
    """What a fit has to know of the graph: whether users are few, and whether nearly all have edges."""

    few: bool
    reaches_all: bool


def _found(evidence: Weighing, prior: Prior, start: Hyper, t: int, kind: Kind) -> Hyper:
    """Returns the hyperparameters that t rewards call for; among many users without parts that are idle."""
    found = fit(evidence, prior, start, corners=t <= CORNERS_UNTIL)[0]
    return found if kind.few else without_idle_parts(evidence, found, reaches_all=kind.reaches_all)


def make_large_auto_policy(
    *,
    make: Callable[..., Model],
    graph: UserGraph,
    arms: ArmPool,
    seed: int,
    features: Mapping[str, Any],
    **rest: Any,
) -> LargeAutoPolicy:
    """Returns a policy at the prior's centre for rewards of variance 1; `make` makes a model on a kernel."""
    ground = Neighbourhoods(graph, arms, seed=seed, features=features)
    hyper = Prior.of(ground, 1.0).centre
    model = make(ground.kernel(hyper), noise_var=ground.noise_var(hyper))
    return LargeAutoPolicy(
        ground=ground, make=make, hyper=hyper, graph=graph, arms=arms, model=model, seed=seed, **rest
    )
