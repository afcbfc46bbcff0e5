"""The policy that learns its own hyperparameters beside the decisions: what `auto-*` is by default, at any size."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from math import log
from typing import Any, NamedTuple

from coterie.errors import FAILURES
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool, JointKernel
from coterie.models import History, Model
from coterie.policies.auto.ahead import Ahead
from coterie.policies.auto.evidence import Evidence
from coterie.policies.auto.fitting import Prior, fit
from coterie.policies.auto.learner import FIRST_FIT, AutoPolicy, centre_and_variance, is_constant, is_two_valued
from coterie.policies.auto.neighbourhoods import Neighbourhoods
from coterie.policies.auto.parts import Hyper
from coterie.policies.same import check_same

LATER = 16  # a fit begun after t rewards is taken after t / 16 more

Reward = tuple[int, int, float]


class PendingFit(NamedTuple):
    """A fit that goes on beside the decisions.

    Attributes:
        started: After how many rewards it began.
        due: After how many rewards it is taken.
        shift: What is taken off every reward then, further than now.
        history: The rewards that it sees, as they were remembered.
        later: Those that came since, as they were remembered.
        work: The work itself.
    """

    started: int
    due: int
    shift: float
    history: dict[str, Any]
    later: list[Reward]
    work: Ahead[Hyper]


class BackgroundAutoPolicy(AutoPolicy):
    """`AutoPolicy` on engine "local", whose cost is bounded; fits do not hold up decisions.

    A fit goes on in a thread, its model follows the rewards that come in meanwhile, and it is taken after a quarter
    more of them, however long it took. So the same rewards give the same choices on any machine.

    A change of the graph keeps what was learned, as for `AutoPolicy`; a fit that goes on begins anew.

    Args:
        ground: What kernels are made of.
        make: Makes a model on a kernel.
        **rest: As for `AutoPolicy`.
    """

    def __init__(self, *, ground: Neighbourhoods, make: Callable[..., Model], **rest: Any) -> None:
        super().__init__(parts=None, **rest)
        self._make = make
        self._ground = ground
        self._normalised = ground.normalised
        self._scale = ground.scale(self.hyper)
        self._pending: PendingFit | None = None

    @property
    def ground(self) -> Neighbourhoods:
        """What makes kernels of hyperparameters, on the graph as it is now."""
        if self._ground.graph is not self.graph:
            self._ground = self._ground.on(self.graph)
        return self._ground

    def explain(self) -> str:
        """Returns in words what this policy runs on and what it has learned of its hyperparameters."""
        pending = self._pending
        if pending is None:
            return super().explain()
        return f"{super().explain()} A fit to {pending.started} rewards is taken after {pending.due}."

    def state(self) -> dict[str, Any]:
        """Returns what decisions depend on beside the settings; waits for the fit that goes on, if there is one."""
        out = super().state() | {"begun": self._pending_state(), "scale": self._scale}
        out.pop("kernel", None)  # hyperparameters and graph give it
        return out

    def restore(self, state: dict[str, Any]) -> None:
        """Takes the state of a policy with the same settings, and its arrays; it then decides the same to the bit."""
        super().restore(state)
        self._scale = state["scale"]
        if state["begun"] is not None:
            self._restore_pending(state["begun"])

    def _restored_kernel(self, state: dict[str, Any]) -> JointKernel:
        hyper = Hyper(**state["hyper"])
        check_same("noise variance", state["model"]["noise_var"], self.ground.noise_var(hyper))
        return self.ground.kernel(hyper, state["scale"])

    def relearn(self, history: History) -> None:
        """Forgets all rewards and learns this history instead, with hyperparameters fitted to it."""
        self._pending = None
        super().relearn(history)

    def kept(self) -> dict[str, Any]:
        """Returns the hyperparameters learned so far as plain numbers that mean the same on another graph."""
        fits = [[t, list(hyper)] for t, hyper in self.fits]
        learned = {"hyper": list(self.hyper), "scale": log(self._scale), "centre": self.centre, "fits": fits}
        return learned | {"normalised": self._normalised}

    def relearn_as(self, kept: Mapping[str, Any], history: History) -> None:
        """Forgets all rewards and learns this history with hyperparameters that were kept, those of another graph."""
        self._pending = None
        super().relearn_as(kept, history)
        self._scale = self.ground.scale(self.hyper)

    def relink(self, graph: UserGraph) -> bool:
        """Takes a graph with other edges, or with more users after those there are; returns whether it is one.

        The posterior is conditioned anew, at the same hyperparameters; a fit that goes on begins anew.
        """
        n_users = self.graph.n_users
        if graph.n_users < n_users or list(graph.users[:n_users]) != list(self.graph.users):
            return False
        ground = self._ground.on(graph)
        self._model.retune(ground.kernel(self.hyper, self._scale), ground.noise_var(self.hyper))
        self._ground = ground
        self._take_graph(graph)
        self.hyper = self.hyper._replace(graph=log(self._scale * ground.mean_gain(self.hyper.ridge)))
        self.doubt = None
        if self._pending is not None:
            self._pending = self._begun_fit(self.n_rewards)
        return True

    def _learn(self, row: int, column: Any, value: float) -> None:
        self._model.learn(row, column, value - self.centre)
        t, pending = self.n_rewards, self._pending
        if pending is not None:
            pending.later.append((row, column, value - self.centre))
            pending.work.follow(partial(_learn, (row, column, value - self.centre - pending.shift)))
            if t >= pending.due:
                self._take_fit(pending)
        elif self.settings_are_due(t) and t != self._last_fit():
            if t < FIRST_FIT or is_constant(self._model.history):
                self._refit(t)
            else:
                self._pending = self._begun_fit(t)

    def _normalise(self, normalised: bool) -> None:
        if normalised != self._normalised:
            self._normalised = normalised
            self._ground = self._ground.on(self.graph, normalised=normalised)

    def _adopt(self, t: int, hyper: Hyper, shift: float) -> None:
        super()._adopt(t, hyper, shift)
        self._scale = self.ground.scale(hyper)

    def _begun_fit(self, t: int) -> PendingFit:
        """Returns a fit to all rewards so far that has just begun."""
        history = self._model.history
        shift, variance = centre_and_variance(history)
        prior, evidence = self._prior(variance), self.ground.evidence(history, t, shift)
        start = self.hyper if self.fits else prior.centre
        seen = deepcopy(history.state())  # the history goes on changing
        return self._pending_fit(t, shift, seen, partial(_found, evidence, prior, start))

    def _found(self, evidence: Any, prior: Prior, start: Hyper, t: int) -> Hyper:
        return _found(evidence, prior, start)

    def _prior(self, variance: float) -> Prior:
        return Prior.of(self.ground, variance, two_valued=is_two_valued(self._model.history))

    def _evidence(self, t: int, shift: float) -> Evidence:
        return self.ground.evidence(self._model.history, t, shift)

    def _pending_fit(self, t: int, shift: float, history: dict[str, Any], find: Callable[[], Hyper]) -> PendingFit:
        reason, make, ground = self._model.reason, self._make, self.ground  # the thread knows nothing of the policy

        def made(hyper: Hyper) -> Model:
            kernel = ground.kernel(hyper)
            model = make(kernel, noise_var=ground.noise_var(hyper))
            seen = History.restored(deepcopy(history), kernel.key)
            seen.shift(-shift)
            model.relearn(seen)
            model.reason = reason
            return model

        return PendingFit(t, t + max(t // LATER, 1), shift, history, [], Ahead(find, made))

    def _take_fit(self, pending: PendingFit) -> None:
        """Takes the model that was made meanwhile; if that failed, the one in use stays."""
        self._pending = None
        try:
            self._check_replayed()
            hyper, self._model = pending.work.finish()
        except FAILURES as refusal:
            self._refuse(f"The change due after {pending.started} rewards was not made", refusal)
            return
        self._adopt(pending.started, hyper, pending.shift)

    def _pending_state(self) -> dict[str, Any] | None:
        pending = self._pending
        if pending is None:
            return None
        try:
            hyper = pending.work.found()
        except FAILURES:  # it would not be taken: to whoever loads this it is as if it had not begun
            return None
        users, arms, values = zip(*pending.later, strict=True) if pending.later else ((), (), ())
        return {
            "started": pending.started,
            "shift": pending.shift,
            "history": pending.history,
            "hyper": hyper._asdict(),
            "later": {"users": list(users), "arms": list(arms), "values": list(values)},
        }

    def _restore_pending(self, state: dict[str, Any]) -> None:
        hyper, later = Hyper(**state["hyper"]), state["later"]
        self._pending = self._pending_fit(state["started"], state["shift"], state["history"], lambda: hyper)
        for row, column, value in zip(later["users"], later["arms"], later["values"], strict=True):
            self._pending.later.append((row, column, value))
            self._pending.work.follow(partial(_learn, (row, column, value - state["shift"])))


def _learn(reward: Reward, model: Model) -> None:
    model.learn(*reward)


def _found(evidence: Evidence, prior: Prior, start: Hyper) -> Hyper:
    """Returns the hyperparameters that rewards call for."""
    return fit(evidence, prior, start)[0]


def make_background_auto_policy(
    *, make: Callable[..., Model], graph: UserGraph, arms: ArmPool, seed: int, **rest: Any
) -> BackgroundAutoPolicy:
    """Returns a policy at the prior's centre for rewards of variance 1; `make` makes a model on a kernel."""
    ground = Neighbourhoods(graph, arms, seed=seed)
    hyper = Prior.of(ground, 1.0).centre
    model = make(ground.kernel(hyper), noise_var=ground.noise_var(hyper))
    return BackgroundAutoPolicy(
        ground=ground, make=make, hyper=hyper, graph=graph, arms=arms, model=model, seed=seed, **rest
    )
