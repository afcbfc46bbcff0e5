"""A policy that learns its own hyperparameters, on epochs that double, with one halfway while fits are cheap."""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from math import exp, inf, log
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.errors import FAILURES
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool, JointKernel
from coterie.models import History, Model
from coterie.models.base import Replica
from coterie.policies.auto.evidence import Together, level_of
from coterie.policies.auto.exploration import expected_visits, explored_widths, rounds_ahead
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.parts import Hyper
from coterie.policies.auto.pending import Found, PendingFit, pending_of, state_of
from coterie.policies.auto.prior import Prior, fit
from coterie.policies.auto.statistics import centre_and_variance, is_constant, noise_share_of
from coterie.policies.policy import Policy
from coterie.policies.reward_batches import condition_on, gathered
from coterie.policies.rules.scores import Scored, ScoredBatch
from coterie.policies.saved_check import check_same

FIRST_FIT = 8
HALFWAY_UNTIL = 1024
KEPT = tuple(name for name in Hyper._fields if name != "graph")  # of hyperparameters, when the graph changes
LATER = 16  # a fit begun after t rewards is due after t / 16 more


class AutoPolicy(Policy):
    """Centres the rewards and learns kernel and noise from them by evidence, at t = 8, 12, 16, 24, 32, ...

    The graph part goes by the combinatorial Laplacian, or by the normalised one where the degrees of the graph that the
    policy is made on are uneven (`levels`).

    Before the first fit the prior's centre holds, scaled to the rewards seen so far. Rewards of any scale and offset
    give the same choices, and so do features in any units. From t = 1024 on a fit comes at every power of two.

    A fit goes on in a thread and holds up nobody: its model follows the rewards that come in meanwhile. It is taken
    after a sixteenth more of them, and a reward that comes sooner waits for it, so that the same rewards give the same
    choices on any machine. With `takes_when_ready` nobody waits: whoever uses the policy asks for `ready_fit` and
    takes it with `take_fit`.

    A change of the graph keeps what was learned until the next fit: the ridge, the scale exp(graph) / mean(g) of
    (L + ridge I)^-1, and all else. So the graph part means the same between two users as before, however many others
    there are now; its share of the variance, exp(graph), follows the mean of g on the new graph. A fit that goes on
    begins anew.

    Args:
        context: What kernels are made of.
        hyper: What it starts from.
        **rest: As for `Policy`; the model is one on `context.kernel(hyper)`.

    Attributes:
        takes_when_ready: Whether fits are taken by whoever asks for them, not when they are due.
        fits_are_given: Whether fits are not computed but given to `take_fit`: in a replay.
    """

    def __init__(self, *, context: FitContext, hyper: Hyper, **rest: Any) -> None:
        super().__init__(**rest)
        self._context = context
        self._normalised = context.normalised  # it stays what it was when the policy was made
        self._scale = context.scale(hyper)
        self._pending: PendingFit | None = None
        self._begun_at = 0  # after how many rewards the last fit began
        self.takes_when_ready = self.fits_are_given = False
        self.hyper = hyper
        self.centre = 0.0

    @property
    def context(self) -> FitContext:
        """What makes kernels of hyperparameters, on the graph as it is now."""
        if self._context.graph is not self.graph:
            self._context = self._context.on(self.graph)
        return self._context

    def describe(self) -> str:
        """Returns in words what this policy runs on and what it has learned of its hyperparameters."""
        shares = ", ".join(f"{name} {share:.0%}" for name, share in self.hyper.shares().items())
        h, pending = self.hyper, self._pending
        since = f"Learned from {self.fits[-1][0]} rewards:" if self.fits else "Nothing learned yet: it starts from"
        learned = (
            f" {since} users {shares}; ridge {np.exp(h.ridge):.3g}, length-scale {np.exp(h.lengthscale):.3g}, "
            f"linear share {h.linear_share:.0%}, noise variance {h.noise_var:.3g}, centre {self.centre:.4g}."
        )
        goes_on = "" if pending is None else f" A fit to {pending.started} rewards goes on."
        return super().describe() + learned + goes_on

    def predict(self, user: Any, candidates: Any = None) -> tuple[Array, Array]:
        """Returns the believed mean and std of the candidates, in the order asked; std is without noise."""
        mean, std = super().predict(user, candidates)
        return mean + self.centre, std

    def state(self) -> dict[str, Any]:
        """Returns what decisions depend on beside the settings; waits for the fit that goes on, if there is one."""
        fits = [{"rewards": t, "hyper": hyper._asdict()} for t, hyper in self.fits]
        learned = {"hyper": self.hyper._asdict(), "centre": self.centre, "fits": fits, "scale": self._scale}
        learned |= {"begun_at": self._begun_at, "normalised": self._normalised, "begun": state_of(self._pending)}
        out = super().state() | learned
        if self._model.near < inf:  # its belief tells whether it is one of the kernel that hyperparameters give
            out.pop("kernel", None)
        return out

    def restore(self, state: dict[str, Any]) -> None:
        """Takes the state of a policy with the same settings, and its arrays; it then decides the same to the bit."""
        self._normalise(state.get("normalised", False))
        super().restore(state)
        self.hyper, self.centre, self._scale = Hyper(**state["hyper"]), state["centre"], state["scale"]
        self._begun_at = state["begun_at"]
        self.fits = [(each["rewards"], Hyper(**each["hyper"])) for each in state["fits"]]
        if self.fits:  # the share of the graph follows changes of it
            learned = [self.hyper, self.fits[-1][1]]
            check_same("hyperparameters", *([getattr(each, name) for name in KEPT] for each in learned))
        if state["begun"] is not None:
            self._pending = pending_of(state["begun"], self._maker())

    def _restored_kernel(self, state: dict[str, Any]) -> JointKernel:
        hyper, scale = Hyper(**state["hyper"]), state["scale"]
        check_same("noise variance", state["model"]["noise_var"], self._noise_of(hyper))
        check_same("scale", scale, self.context.scale(hyper))
        return self._checked_kernel(state, self.context.kernel(hyper, scale))

    def relearn(self, history: History) -> None:
        """Forgets all rewards and learns this history instead, with hyperparameters fitted to it."""
        self._pending = None
        self._model.relearn(history)
        self.centre = 0.0
        if len(history):
            self._refit(self.n_rewards)

    def fit(
        self,
        batches: Iterable[Any],
        *,
        progress: Callable[[str, int], None] | None = None,
        keep: Callable[..., None] | None = None,
    ) -> int:
        """Learns any number of rewards at once, fits the hyperparameters to all of them, and returns how many came.

        On an error nothing has changed; a fit that went on is dropped for this one.
        """
        more = gathered(dict(self._user_index), self._arm_index, batches, progress, keep)
        if len(more):
            more.shift(-self.centre)
            condition_on(self._model, more)
            self._pending, self.pending_model = None, None
            self._refit(self.n_rewards)
        return more.n_observations

    def revise(self, row: int, column: Any, before: float, after: float) -> bool:
        """Puts a reward in the place of one learned before, if it can; hyperparameters stay until the next fit."""
        could = super().revise(row, column, before - self.centre, after - self.centre)
        if could:
            self._begin_anew()
        return could

    def refit_due(self, t: int) -> bool:
        """Returns whether hyperparameters are fitted after so many rewards, or follow the scale of the first ones."""
        return t <= FIRST_FIT or fit_is_due(t)

    def hyperparameters(self) -> dict[str, Any]:
        """Returns the hyperparameters learned so far as plain numbers that mean the same on another graph."""
        fits = [[t, list(hyper)] for t, hyper in self.fits]
        learned = {"hyper": list(self.hyper), "scale": log(self._scale), "centre": self.centre, "fits": fits}
        return learned | {"normalised": self._normalised, "begun_at": self._begun_at}

    def relearn_with(self, kept: Mapping[str, Any], history: History) -> None:
        """Forgets all rewards and learns this history with hyperparameters that were kept, those of another graph."""
        self._pending = None
        hyper, scale = self._taken_from(kept)
        self._model.retune(self.context.kernel(hyper, scale), self._noise_of(hyper))
        history.shift(-kept["centre"])
        self._model.relearn(history)
        self._take_kept(kept, hyper, scale)

    def relink(self, graph: UserGraph) -> bool:
        """Takes a graph with other edges, or with more users after those there are; returns whether it is one.

        The posterior is conditioned anew, at the same hyperparameters; a fit that goes on begins anew.
        """
        n_users = self.graph.n_users
        same = graph.changes_since(self.graph) is not None or graph.users[:n_users] == self.graph.users
        if not same:
            return False
        context, hyper = self._context.on(graph), self.hyper
        hyper = hyper._replace(graph=log(self._scale * context.mean_gain(hyper.ridge)))
        try:
            self._model.retune(context.kernel(hyper, self._scale), self._noise_of(hyper))
        except FAILURES:
            return False
        self._context, self.hyper, self.pending_model = context, hyper, None
        self._take_graph(graph)
        self._begin_anew()
        return True

    # Fits

    @property
    def ready_fit(self) -> tuple[int, list[float]] | None:
        """After how many rewards a fit began that can be taken now, and the numbers it found; none if it failed."""
        pending = self._pending
        if pending is None or not self.takes_when_ready or self.fits_are_given or not pending.is_ready:
            return None
        try:
            return pending.started, pending.found().numbers()
        except FAILURES:
            return pending.started, []
        except BaseException:  # a mistake in the code: it is raised once, and further calls go on without the fit
            self._pending = None
            raise

    def take_fit(self, started: int, numbers: Iterable[float]) -> None:
        """Takes the fit that goes on, these being the numbers it found; none of them means that it failed."""
        pending, found = self._pending, tuple(numbers)
        if pending is None or pending.started != started:
            self._refuse(f"The change due after {started} rewards was not made", LookupError("no such fit goes on"))
            return
        if found and self.fits_are_given:
            pending.give(Found.of(found))
        self._take(pending)

    def begin_fits(self) -> None:
        """Lets fits be computed again, the one that goes on too."""
        self.fits_are_given = False
        if self._pending is not None:
            self._pending.begin()

    def _learn(self, row: int, column: Any, value: float) -> None:
        self._model.learn(row, column, value - self.centre)
        t, pending = self.n_rewards, self._pending
        if pending is not None:
            pending.follow((row, column, value - self.centre))
            if t >= pending.due and not self.takes_when_ready:
                self._take(pending)
        elif self.refit_due(t) and t != self._last_fit():
            if t < FIRST_FIT:
                self._refit(t)
            elif not is_constant(self._model.history):
                self._pending = self._begun_fit(t)

    def _learn_many(self, rows: list[int], columns: list[Any], values: list[Any]) -> None:
        self._model.checked_batch(rows, columns, values)
        for row, column, value in zip(rows, columns, values, strict=True):
            self._learn(row, self._model.checked_arm(column), float(value))

    def _last_fit(self) -> int:
        """Returns after how many rewards; in a window that is always full each further reward may be that one again."""
        return max(self.fits[-1][0] if self.fits else 0, self._begun_at)

    def _begun_fit(self, t: int) -> PendingFit:
        """Returns a fit to all rewards so far that has just begun, or waits for what is given."""
        history = self._model.history
        prior = self._prior(centre_and_variance(history)[1])
        seen = deepcopy(history.state())  # the history goes on changing
        find = partial(_found, self.context, seen, t, prior, self.hyper if self.fits else prior.centre)
        due, self._begun_at = t + max(t // LATER, 1), t
        return PendingFit(t, due, seen, find, self._maker(), begins=not self.fits_are_given)

    def _begin_anew(self) -> None:
        """Lets a fit that goes on see what has changed besides rewards that came."""
        if self._pending is not None:
            self._pending = self._begun_fit(self.n_rewards)

    def _maker(self) -> Callable[[Hyper, dict[str, Any]], Model | None]:
        """Returns what makes a model of hyperparameters and rewards; a thread calls it, and knows nothing of this."""
        return partial(_made, self.context, self._model.replica())

    def _take(self, pending: PendingFit) -> None:
        """Takes the model that was made meanwhile; if that failed, the one in use stays."""
        self._pending = None
        try:
            self._check_replayed()
            (hyper, shift), model = pending.finish()
            if model is None:
                self._model.retune(self.context.kernel(hyper), self._noise_of(hyper), shift=-shift)
            else:
                self._model = model
        except FAILURES as refusal:
            self._refuse(f"The change due after {pending.started} rewards was not made", refusal)
            return
        self._adopt(pending.started, hyper, shift)

    def _refit(self, t: int) -> None:
        """Takes the hyperparameters that the rewards call for, now; if the model refuses them, it keeps its own."""
        shift, variance = centre_and_variance(self._model.history)
        prior = self._prior(variance)
        hyper = start = self.hyper if self.fits else prior.centre  # learned once, it stays if rewards go
        try:
            self._check_replayed()
            if t >= FIRST_FIT and not is_constant(self._model.history):
                hyper, shift = _fitted(self.context, self._model.history, t, prior, start)
            self._model.retune(self.context.kernel(hyper), self._noise_of(hyper), shift=-shift)
        except FAILURES as refusal:
            self._refuse(f"The change due after {t} rewards was not made", refusal)
            return
        self._adopt(t, hyper, shift)

    def _prior(self, variance: float) -> Prior:
        """Returns what is thought of hyperparameters beforehand, for the rewards so far and their variance."""
        return Prior.of(self.context, variance, noise_share=noise_share_of(self._model.history, variance))

    def widths(self, rows: Any, arms: Any, std: Array) -> float | Array:
        """Returns what std is multiplied by: each part is explored as far as what is found out is of use again."""
        kernel, history, users = self._model.kernel, self._model.history, np.atleast_1d(rows).tolist()
        shown = std.shape[-1] / len(self.context.features)  # how likely an arm is to be shown again
        pairs = np.array([history.pairs_of[user] for user in users], dtype=np.float64)
        visits = shown * expected_visits(pairs, len(history.rows), self.graph.n_users, self.n_rewards)
        variances = np.array([kernel.user_variance(user) for user in users]) - self.hyper.shares()["common"]
        not_common = np.multiply.outer(variances, kernel.arm_diag(arms)).reshape(std.shape)
        ahead = shown * rounds_ahead(self.n_rewards)
        found = explored_widths(std, not_common, ahead, visits.reshape(std.shape[:-1]))
        return super().widths(rows, arms, std) * found

    def _noise_of(self, hyper: Hyper) -> float:
        """Returns the noise variance that the model has with these hyperparameters."""
        return hyper.noise_var

    def _adopt(self, t: int, hyper: Hyper, shift: float) -> None:
        """Takes note of what the belief was made with."""
        self.hyper, self.centre, self._scale = hyper, self.centre + shift, self.context.scale(hyper)
        if t >= FIRST_FIT:
            self.fits = [*self.fits, (t, hyper)]  # a new list: whoever holds the former has what was learned by then

    def _taken_from(self, kept: Mapping[str, Any]) -> tuple[Hyper, float]:
        """Returns hyperparameters that were kept, and the graph part's scale, which is the same on this graph."""
        self._normalise(kept.get("normalised", False))
        given = Hyper(*kept["hyper"])
        return given._replace(graph=kept["scale"] + log(self.context.mean_gain(given.ridge))), exp(kept["scale"])

    def _take_kept(self, kept: Mapping[str, Any], hyper: Hyper, scale: float) -> None:
        self.hyper, self.centre, self._scale, self._begun_at = hyper, kept["centre"], scale, kept["begun_at"]
        self.fits = [(t, Hyper(*hyper)) for t, hyper in kept["fits"]]

    def _normalise(self, normalised: bool) -> None:
        """Takes the kind of Laplacian that hyperparameters were learned with."""
        if normalised != self._normalised:
            self._normalised = normalised
            self._context = self._context.on(self.graph, normalised=normalised)

    def _decide(self, row: int, arms: Any, number: int) -> Scored:
        found = super()._decide(row, arms, number)
        return found._replace(mean=found.mean + self.centre, score=found.score + self.centre)

    def consider_many(self, users: Iterable[Any], candidates: Any = None) -> ScoredBatch | None:
        """Returns what `consider` would for one user after another, or None where it must be asked so."""
        found = super().consider_many(users, candidates)
        if found is None:
            return None
        return found._replace(mean=found.mean + self.centre, score=found.score + self.centre)


def _found(context: FitContext, seen: dict[str, Any], t: int, prior: Prior, start: Hyper) -> Found:
    return _fitted(context, History.restored(seen, context.key), t, prior, start)


def _fitted(context: FitContext, history: History, t: int, prior: Prior, start: Hyper) -> Found:
    """Returns hyperparameters and level of the rewards by evidence; the level varies about their mean as they do."""
    mean, variance = centre_and_variance(history)
    samples = context.evidences(history, t, mean, level_var=variance)
    hyper = fit(Together(samples), prior, start)[0]
    return Found(hyper, mean + level_of(samples, hyper))


def _made(context: FitContext, replica: Replica | None, hyper: Hyper, seen: dict[str, Any]) -> Model | None:
    if replica is None:
        return None
    kernel = context.kernel(hyper)
    model = replica(kernel, noise_var=hyper.noise_var)
    model.relearn(History.restored(seen, kernel.key))
    return model


def fit_is_due(t: int) -> bool:
    """Returns whether hyperparameters are fitted after so many rewards: powers of two, and early on halfway between.

    Examples:
        >>> [t for t in range(8, 100) if fit_is_due(t)]
        [8, 12, 16, 24, 32, 48, 64, 96]
    """
    odd = t // (t & -t)
    return t >= FIRST_FIT and (odd == 1 or (odd == 3 and t < HALFWAY_UNTIL))


def make_auto_policy(
    *, make: Callable[..., Model], graph: UserGraph, arms: ArmPool, seed: int, matrices: bool = False, **rest: Any
) -> AutoPolicy:
    """Returns a policy at the prior's centre for rewards of variance 1; `make` makes a model on a kernel.

    Args:
        make: Makes a model on a kernel.
        graph: The users.
        arms: The pool.
        seed: As for `Policy`; also which rewards fits look at.
        matrices: Whether the kernel is to have matrices over users and arms whatever their number.
        **rest: As for `Policy`.
    """
    context = FitContext(graph, arms, seed=seed, matrices=matrices)
    hyper = Prior.of(context, 1.0).centre
    model = make(context.kernel(hyper), noise_var=hyper.noise_var)
    return AutoPolicy(context=context, hyper=hyper, graph=graph, arms=arms, model=model, seed=seed, **rest)
