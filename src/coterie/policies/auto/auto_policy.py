"""A policy that learns its own hyperparameters.

It is put together from a likelihood (what a reward says to the model, `likelihood.py`), a schedule of fits and a fit
that goes on in the background (`fits.py`), what kernels and evidence are made of (`fit_context.py`), and a rule for the
width (`exploration.py`).
"""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from math import exp, inf, log
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.errors import FAILURES, ParameterError
from coterie.errors.checks import check_same
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool, JointKernel
from coterie.models import History, Model
from coterie.models.base import Replica, SolveProgress
from coterie.policies.auto.bernoulli_likelihood import BernoulliLikelihood
from coterie.policies.auto.climbing import run_aside
from coterie.policies.auto.exploration import RoundsOfUse
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.fits import FIRST_FIT, Found, PendingFit, pending_of, state_of
from coterie.policies.auto.hyper import ABSENT, LearnedHyper, hyper_of
from coterie.policies.auto.likelihood import GaussianLikelihood, Likelihood, fitted
from coterie.policies.auto.prior import Prior
from coterie.policies.policy import Policy
from coterie.policies.reward_batches import condition_on, gathered


class AutoPolicy(Policy):
    """Centres the rewards and learns kernel and noise from them by evidence, when the likelihood's schedule says.

    The graph part goes by the combinatorial Laplacian, or by the normalised one where the degrees of the graph that the
    policy is made on are uneven (`is_uneven`).

    Before the first fit the prior's centre holds, scaled to the rewards seen so far. Rewards of any scale and offset
    give the same choices, and so do features in any units.

    With a conjugate likelihood a fit goes on in a thread and holds up nobody: its model follows the rewards that come
    in meanwhile. It is taken after a sixteenth more of them, and a reward that comes sooner waits for it, so that the
    same rewards give the same choices on any machine. With `takes_when_ready` nobody waits: whoever uses the policy
    asks for `ready_fit` and takes it with `take_fit`. While one goes on no other starts. With another likelihood the
    reward that a fit is due at waits for it.

    A change of the graph keeps what was learned until the next fit: the ridge, the scale exp(graph) / mean(g) of
    (L + ridge I)^-1, and all else. So the graph part means the same between two users as before, however many others
    there are now; its share of the variance, exp(graph), follows the mean of g on the new graph. A fit that goes on
    starts again.

    Args:
        context: What kernels are made of, on the graph as it is.
        likelihood: How rewards depend on what is learned.
        **rest: As for `Policy`; the model is one on the kernel of `hyper`.
        hyper: What it starts from.

    Attributes:
        takes_when_ready: Whether fits are taken by whoever asks for them, not when they are due.
        fits_are_given: Whether fits are not computed but given to `take_fit`: in a replay.
    """

    def __init__(self, *, context: FitContext, likelihood: Likelihood, hyper: LearnedHyper, **rest: Any) -> None:
        super().__init__(**rest)
        self.context, self.likelihood = context, likelihood
        self.pending_fit: PendingFit | None = None
        self._started_at = 0  # after how many rewards the last fit started
        self._fitting = context  # what the kernels of the fit that goes on are made of
        self.takes_when_ready = self.fits_are_given = False
        self.inverse_link = likelihood.inverse_link
        self.decides_together = self.inverse_link is None  # a batch has beliefs on one scale
        self._checked_reward = likelihood.checked_reward
        self._take_hyper(hyper, context.scale(hyper))

    def describe(self) -> str:
        """Returns in words what this policy runs on and what it has learned of its hyperparameters."""
        shares = ", ".join(f"{name} {share:.0%}" for name, share in self.hyper.shares().items())
        h, pending = self.hyper, self.pending_fit
        since = f"Learned from {self.fits[-1][0]} rewards:" if self.fits else "Nothing learned yet: it starts from"
        learned = (
            f" {since} users {shares}; ridge {np.exp(h.ridge):.3g}, length-scale {np.exp(h.lengthscale):.3g}, "
            f"linear share {h.linear_share:.0%}, noise variance {h.noise_var:.3g}, centre {self.centre:.4g}."
        )
        goes_on = "" if pending is None else f" A fit to {pending.started} rewards goes on."
        return super().describe() + learned + goes_on + self.likelihood.describe()

    def state(self) -> dict[str, Any]:
        """Returns what decisions depend on beside the settings; waits for the fit that goes on, if there is one."""
        fits = [{"rewards": t, "hyper": hyper._asdict()} for t, hyper in self.fits]
        learned = {"hyper": self.hyper._asdict(), "centre": self.centre, "fits": fits, "scale": self._scale}
        # Keys are those of saved files; a fit that goes on is called "begun" there.
        begun = state_of(self.pending_fit)
        learned |= {"begun_at": self._started_at, "begun": None if begun is None else begun | self._fitting.scales()}
        learned |= {"normalised": self.context.normalised} | self.context.scales()
        out = super().state() | learned | self.likelihood.state()
        if self._model.mismatch_limit < inf:  # its belief shows whether it is one of these hyperparameters' kernel
            out.pop("kernel", None)
        return out

    def restore(self, state: dict[str, Any]) -> None:
        """Takes the state of a policy with the same settings, and its arrays; it then decides the same to the bit."""
        self._normalise(state.get("normalised", False))
        self.context = self.context.with_scales(state)
        super().restore(state)
        self._take_hyper(_hyper_of_state(state["hyper"]), state["scale"])
        self.centre, self._started_at = state["centre"], state["begun_at"]
        self.fits = [(each["rewards"], _hyper_of_state(each["hyper"])) for each in state["fits"]]
        if self.fits:  # the share of the graph follows changes of it
            kept = [
                name for name in type(self.hyper)._fields if name != "graph" and getattr(self.hyper, name) != ABSENT
            ]
            learned = [self.hyper, self.fits[-1][1]]  # what is absent would outweigh the others
            check_same("hyperparameters", *([getattr(each, name) for name in kept] for each in learned))
        if state["begun"] is not None:
            context = self.context.with_scales(state["begun"])
            self.pending_fit = pending_of(state["begun"], self._model_maker(context))
            self._fitting = context
        self.likelihood.restore(state, self._model)

    def is_sound(self) -> bool:
        """Returns whether a restored posterior is that of its rewards, as near as it is kept."""
        return super().is_sound() and self.likelihood.is_sound(self._model, self.centre)

    def _restored_kernel(self, state: dict[str, Any]) -> JointKernel:
        hyper, scale = _hyper_of_state(state["hyper"]), state["scale"]
        check_same("noise variance", state["model"]["noise_var"], self.likelihood.noise_var(hyper))
        check_same("scale", scale, self.context.scale(hyper))
        return self._checked_kernel(state, self.context.kernel(hyper, scale))

    def relearn(self, history: History) -> None:
        """Forgets all rewards and learns this history instead, with hyperparameters fitted to it."""
        self.pending_fit = None
        self.likelihood.relearn(self._model, history, 0.0)
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
        self._check_fit()
        more = self._gathered(batches, progress, keep)
        self._fit_to(more)
        return more.n_observations

    def fit_combined(
        self, columns: Mapping[str, Any], *, start: Array | None = None, progress: SolveProgress | None = None
    ) -> int:
        """Learns rewards that were combined by pairs of rows, as `fit` does; there is no solve, and no step."""
        self._check_fit()
        if start is not None:
            rule = "its belief is no solve for all users"
            raise ParameterError(f"a warm start was given to {self.name!r}", rule, "Leave it out, or use 'lk-gp-ucb'")
        if progress is not None:
            progress(0, 0.0)
        self._fit_to(self._model.history_of(dict(columns)))
        return 0

    def _check_fit(self) -> None:
        if not self.likelihood.is_conjugate:
            rule = f"with likelihood {self.likelihood.name!r} rewards are learned one after another"
            raise ParameterError(f"a fit was asked for with {self.name!r}", rule, "Use update_many, or 'gaussian'")

    def _fit_to(self, more: History) -> None:
        """Conditions on more rewards, and fits the hyperparameters to all of them."""
        if len(more):
            more.shift(-self.centre)
            condition_on(self._model, more)
            self.pending_fit, self.pending_model = None, None
            self._refit(self.n_rewards)

    def _gathered(
        self, batches: Iterable[Any], progress: Callable[[str, int], None] | None, keep: Callable[..., None] | None
    ) -> History:
        """Returns all batches as a history, each batch checked and kept."""
        return gathered(dict(self._user_index), self._arm_index, batches, progress, keep)

    def revise(self, row: int, column: Any, before: float, after: float) -> bool:
        """Puts a reward in the place of one learned before, if it can; hyperparameters stay until the next fit."""
        revisable = self.likelihood.is_conjugate
        could = revisable and super().revise(row, column, before - self.centre, after - self.centre)
        if could:
            self._restart_fit()
        return could

    def refit_due(self, t: int) -> bool:
        """Returns whether hyperparameters are fitted after so many rewards, or follow the scale of the first ones."""
        return t <= FIRST_FIT or self.likelihood.schedule.starts_at(t)

    def hyperparameters(self) -> dict[str, Any]:
        """Returns the hyperparameters learned so far as plain numbers that mean the same on another graph."""
        fits = [[t, list(hyper)] for t, hyper in self.fits]
        learned = {"hyper": list(self.hyper), "log_scale": log(self._scale), "centre": self.centre, "fits": fits}
        learned |= {"normalised": self.context.normalised, "started_at": self._started_at}
        return learned | self.context.scales()

    def relearn_with(self, hyperparameters: Mapping[str, Any], history: History) -> None:
        """Forgets all rewards and learns this history with hyperparameters that another policy had, on another graph.

        The graph part's scale is the same on this graph; its share of the variance follows.
        """
        self.pending_fit = None
        kept = hyperparameters
        self._normalise(kept["normalised"])
        self.context = self.context.with_scales(kept)
        given, scale = hyper_of(kept["hyper"]), exp(kept["log_scale"])
        hyper = given._replace(graph=kept["log_scale"] + log(self.context.mean_gain(given.ridge)))
        self._model.retune(self.context.kernel(hyper, scale), self.likelihood.noise_var(hyper))
        self.likelihood.relearn(self._model, history, kept["centre"])
        self._take_hyper(hyper, scale)
        self.centre, self._started_at = kept["centre"], kept["started_at"]
        self.fits = [(t, hyper_of(hyper)) for t, hyper in kept["fits"]]

    def relink(self, graph: UserGraph) -> bool:
        """Takes a graph with other edges, or with more users after those there are; returns whether it is one.

        The posterior is conditioned again, at the same hyperparameters; a fit that goes on starts again.
        """
        return self._relinked(graph, self.context.on(graph))

    def _relinked(self, graph: UserGraph, context: Any) -> bool:
        """Takes a graph, and what kernels are made of there; returns whether it could."""
        n_users = self.graph.n_users
        same = graph.changes_since(self.graph) is not None or graph.users[:n_users] == self.graph.users
        if not (same and self.likelihood.is_conjugate):
            return False
        hyper = self.hyper._replace(graph=log(self._scale * context.mean_gain(self.hyper.ridge)))
        try:
            self._model.retune(context.kernel(hyper, self._scale), self.likelihood.noise_var(hyper))
        except FAILURES:
            return False
        self.context, self.pending_model = context, None
        self._take_hyper(hyper, self._scale)
        self._take_graph(graph)
        self._restart_fit()
        return True

    # Fits

    @property
    def ready_fit(self) -> tuple[int, list[float]] | None:
        """After how many rewards a fit started that can be taken now, and the numbers it found; none if it failed."""
        pending = self.pending_fit
        if pending is None or not self.takes_when_ready or self.fits_are_given or not pending.is_ready:
            return None
        try:
            return pending.started, pending.found().numbers()
        except FAILURES:
            return pending.started, []
        except BaseException:  # a mistake in the code: it is raised once, and further calls go on without the fit
            self.pending_fit = None
            raise

    def take_fit(self, started: int, numbers: Iterable[float]) -> None:
        """Takes the fit that goes on, these being the numbers it found; none of them means that it failed."""
        pending, found = self.pending_fit, tuple(numbers)
        if pending is None or pending.started != started:
            self._refuse(f"The change due after {started} rewards was not made", LookupError("no such fit goes on"))
            return
        if found and self.fits_are_given:
            pending.give(Found.of(found))
        self._take(pending)

    def set_fits(self, *, when_ready: bool, given: bool) -> None:
        """Says how fits are taken: by whoever asks for them, and whether their numbers are given, as in a replay."""
        self.takes_when_ready, self.fits_are_given = when_ready, given
        if not given and self.pending_fit is not None:
            self.pending_fit.start()

    def learn(self, row: int, column: Any, value: float, *, weight: float = 1.0) -> None:
        """Learns a reward from a user's row, an arm as the model knows it and a number, which were checked already."""
        self.likelihood.learn(self._model, row, column, value, self.centre, weight)
        t, pending = self._model.history.n_observations, self.pending_fit
        if pending is not None:
            pending.follow((row, column, value - self.centre), weight)
            if t >= pending.due and not self.takes_when_ready:
                self._take(pending)
        elif self.refit_due(t) and t != self._last_fit():
            if t < FIRST_FIT or not self.likelihood.is_conjugate:
                self._refit(t)
            elif self.likelihood.can_fit(t, self._model.history):
                self.pending_fit = self._started_fit(t)
        elif self.likelihood.upkeep_is_due(t):
            self._keep_up(t)

    def _learn_many(self, rows: list[int], columns: list[Any], values: list[Any]) -> None:
        checked = [self._checked_reward(value) for value in values]
        self._model.checked_batch(rows, columns, checked)
        for row, column, value in zip(rows, columns, checked, strict=True):
            self.learn(row, self._model.checked_arm(column), value)

    def _last_fit(self) -> int:
        """Returns after how many rewards; in a window that is always full each further reward may be that one again."""
        return max(self.fits[-1][0] if self.fits else 0, self._started_at)

    def _started_fit(self, t: int) -> PendingFit:
        """Returns a fit to all rewards so far that has just started, or waits for what is given."""
        history = self._model.history
        self._fitting = context = self.context.rescaled(history)
        prior, schedule = self.likelihood.prior(context, history), self.likelihood.schedule
        seen = deepcopy(history.state())  # the history goes on changing
        find = partial(_found, context, seen, t, prior, self.hyper if self.fits else prior.centre)
        self._started_at = t
        at_once = not self.fits_are_given
        return PendingFit(t, schedule.due_after(t), seen, find, self._model_maker(context), at_once=at_once)

    def _restart_fit(self) -> None:
        """Lets a fit that goes on see what has changed besides rewards that came."""
        if self.pending_fit is not None:
            self.pending_fit = self._started_fit(self.n_rewards)

    def _model_maker(self, context: FitContext) -> Callable[[Found, dict[str, Any]], Model | None]:
        """Returns what makes a model of what a fit found; a thread calls it, and must not hold the policy."""
        return partial(_made, context, self._model.replica())

    def _take(self, pending: PendingFit) -> None:
        """Takes the model that was made meanwhile; if that failed, the one in use stays."""
        self.pending_fit = None
        try:
            self._fail_as_recorded()
            found, model = pending.finish()
            if model is None:
                noise_var = self.likelihood.noise_var(found.hyper)
                self._model.retune(self._fitting.kernel(found.hyper), noise_var, shift=-found.shift)
            else:
                self._model = model
        except FAILURES as refusal:
            self._refuse(f"The change due after {pending.started} rewards was not made", refusal)
            return
        self.context = self._fitting
        self._adopt(found)
        self.fits = [*self.fits, (pending.started, found.hyper)]

    def _refit(self, t: int) -> None:
        """Takes the hyperparameters that the rewards call for, now; if the model refuses them, it keeps its own."""
        can_fit, context = self.likelihood.can_fit(t, self._model.history), self.context.rescaled(self._model.history)
        try:
            self._fail_as_recorded()
            start = self.hyper if self.fits else None
            found = self.likelihood.refit(self._model, context, t, start, self.centre)
        except FAILURES as refusal:
            self._refuse(f"The change due after {t} rewards was not made", refusal)
            return
        self.context = context
        self._adopt(found)
        if can_fit:
            self.fits = [*self.fits, (t, found.hyper)]  # a new list: whoever holds the former keeps what was learned

    def _keep_up(self, t: int) -> None:
        """Lets the model's observations be computed again; if the model refuses them, it keeps those it has."""
        try:
            self._fail_as_recorded()
            self.likelihood.keep_up(self._model, self.centre)
        except FAILURES as refusal:
            self._refuse(f"The sites due after {t} rewards were not settled", refusal)

    def _adopt(self, found: Found) -> None:
        """Takes note of what the posterior was made with."""
        self._take_hyper(found.hyper, self.context.scale(found.hyper))
        self.centre += found.shift

    def _take_hyper(self, hyper: LearnedHyper, scale: float) -> None:
        """Takes hyperparameters, and the scale of the graph part."""
        self.hyper, self._scale = hyper, scale
        self.width_rule = RoundsOfUse(self.context.n_arms, hyper.shares()["common"])

    def _normalise(self, normalised: bool) -> None:
        """Takes the kind of Laplacian that hyperparameters were learned with."""
        if normalised != self.context.normalised:
            self.context = self.context.on(self.graph, normalised=normalised)


def _found(context: FitContext, seen: dict[str, Any], t: int, prior: Prior[Any], start: LearnedHyper) -> Found:
    return fitted(context, History.restored(seen, context.key), t, prior, start, run=run_aside)


def _made(context: FitContext, replica: Replica | None, found: Found, seen: dict[str, Any]) -> Model | None:
    """Returns a model at what a fit found, conditioned on the rewards that it saw; None where an engine makes none."""
    if replica is None:
        return None
    kernel = context.kernel(found.hyper)
    model, history = replica(kernel, noise_var=found.hyper.noise_var), History.restored(seen, kernel.key)
    history.shift(-found.shift)
    model.relearn(history)
    return model


def _hyper_of_state(state: Mapping[str, float]) -> LearnedHyper:
    return hyper_of(list(state.values()))


LIKELIHOODS: dict[str, Callable[[int], Likelihood]] = {  # made from a seed
    "gaussian": lambda _: GaussianLikelihood(),
    "bernoulli": BernoulliLikelihood,
}


def make_auto_policy(
    *,
    make: Callable[..., Model],
    graph: UserGraph,
    arms: ArmPool,
    seed: int,
    likelihood: str = "gaussian",
    matrices: bool = False,
    **rest: Any,
) -> AutoPolicy:
    """Returns a policy at the prior's centre, for rewards of variance 1 or for logits.

    Args:
        make: Makes a model on a kernel.
        graph: The users.
        arms: The pool.
        seed: As for `Policy`; also which rewards fits look at.
        likelihood: One of `LIKELIHOODS`.
        matrices: Whether the kernel is to have matrices over users and arms whatever their number.
        **rest: As for `Policy`.
    """
    of_rewards = LIKELIHOODS[likelihood](seed)
    context = FitContext(graph, arms, seed=seed, matrices=matrices or of_rewards.needs_matrices)
    hyper = of_rewards.prior(context, History()).centre
    parts = {"graph": graph, "arms": arms, "seed": seed, **rest}
    model = make(context.kernel(hyper), noise_var=of_rewards.noise_var(hyper))
    return AutoPolicy(context=context, likelihood=of_rewards, hyper=hyper, model=model, **parts)
