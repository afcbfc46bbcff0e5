"""A policy that learns its own hyperparameters, on epochs that double, with one halfway while fits are cheap."""

from collections.abc import Callable, Iterable, Mapping
from math import exp, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import LEAST_SPREAD, Array
from coterie.errors import FAILURES
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool, JointKernel
from coterie.kernels.links import GraphCovariance, Link
from coterie.models import History, Model
from coterie.policies.auto.evidence import Evidence
from coterie.policies.auto.fitting import Explaining, Prior, fit
from coterie.policies.auto.parts import Hyper, KernelParts, Parts
from coterie.policies.considered import Considered
from coterie.policies.policy import Policy
from coterie.policies.rules.batches import Batch
from coterie.policies.same import check_same

FIRST_FIT = 8
HALFWAY_UNTIL = 1024
MOST_PAIRS = 1500

Index = NDArray[np.intp]


class AutoPolicy(Policy):
    """Centres the rewards and learns kernel and noise from them by evidence, at t = 8, 12, 16, 24, 32, ...

    The graph part goes by the combinatorial Laplacian, or by the normalised one where the degrees of the graph that the
    policy is made on are uneven (`levels`).

    Before the first fit the prior's centre holds, scaled to the rewards seen so far. Rewards of any scale and offset
    give the same choices. From t = 1024 on a fit comes at every power of two. Beyond 1,500 distinct pairs a fit looks
    at a sample of users with all their pairs, so that it costs no more than then.

    A change of the graph keeps what was learned until the next fit: the ridge, the scale exp(graph) / mean(g) of
    (L + ridge I)^-1, and all else. So the graph part means the same between two users as before, however many others
    there are now; its share of the variance, exp(graph), follows the mean of g on the new graph.

    Args:
        parts: What the kernel is made of.
        **rest: As for `Policy`; the model is one on `parts.kernel(...)`.
    """

    def __init__(self, *, parts: Parts | None, hyper: Hyper, **rest: Any) -> None:
        super().__init__(**rest)
        self._parts = parts
        self._normalised = parts is not None and parts.normalised  # it stays what it was when the policy was made
        self._mean_gain = 0.0  # of the graph part, where there are no parts to tell
        self.hyper = hyper
        self.centre = 0.0

    @property
    def parts(self) -> Parts:
        """What the kernel is made of; O(n^3) for the first time on a graph."""
        if self._parts is None:
            assert self.arms is not None
            self._parts = Parts.of(self.graph, self.arms, normalised=self._normalised)
        return self._parts

    @property
    def ground(self) -> KernelParts:
        """What makes kernels of hyperparameters, on a graph of any size."""
        return self.parts

    def explain(self) -> str:
        """Returns in words what this policy runs on and what it has learned of its hyperparameters."""
        shares = ", ".join(f"{name} {share:.0%}" for name, share in self.hyper.shares().items())
        h = self.hyper
        since = f"Learned from {self.fits[-1][0]} rewards:" if self.fits else "Nothing learned yet: it starts from"
        learned = (
            f" {since} users {shares}; ridge {np.exp(h.ridge):.3g}, length-scale {np.exp(h.lengthscale):.3g}, "
            f"linear share {h.linear_share:.0%}, noise variance {h.noise_var:.3g}, centre {self.centre:.4g}."
        )
        return super().explain() + learned

    def predict(self, user: Any, candidates: Any = None) -> tuple[Array, Array]:
        """Returns the believed mean and std of the candidates, in the order asked; std is without noise."""
        mean, std = super().predict(user, candidates)
        return mean + self.centre, std

    def state(self) -> dict[str, Any]:
        """Returns what decisions depend on beside the settings, all that was learned of hyperparameters included."""
        fits = [{"rewards": t, "hyper": hyper._asdict()} for t, hyper in self.fits]
        # Once the graph has changed without a fit since, the mean gain is the one that was followed, to the bit.
        gain = self._mean_gain if self._parts is None and self._mean_gain > 0 else None
        learned = {"hyper": self.hyper._asdict(), "centre": self.centre, "fits": fits, "mean_gain": gain}
        return super().state() | learned | {"normalised": self._normalised}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes the state of a policy with the same settings, and its arrays; it then decides the same to the bit."""
        self._normalise(state.get("normalised", False))
        super().restore(state)
        self.hyper, self.centre = Hyper(**state["hyper"]), state["centre"]
        self.fits = [(each["rewards"], Hyper(**each["hyper"])) for each in state["fits"]]
        if state["mean_gain"] is not None:
            check_same("mean gain", state["mean_gain"], self.parts.mean_gain(self.hyper.ridge))
            self._parts, self._mean_gain = None, state["mean_gain"]

    def _restored_kernel(self, state: dict[str, Any]) -> JointKernel:
        hyper = Hyper(**state["hyper"])
        check_same("noise variance", state["model"]["noise_var"], self.ground.noise_var(hyper))
        return self._checked_kernel(state, self.ground.kernel(hyper))

    def relearn(self, history: History) -> None:
        """Forgets all rewards and learns this history instead, with hyperparameters fitted to it."""
        self._model.relearn(history)
        self.centre = 0.0
        if len(history):
            self._refit(self.n_rewards)

    def revise(self, row: int, column: Any, before: float, after: float) -> bool:
        """Puts a reward in the place of one learned before, if it can; hyperparameters stay until the next fit."""
        return super().revise(row, column, before - self.centre, after - self.centre)

    def settings_are_due(self, t: int) -> bool:
        """Returns whether hyperparameters are fitted after so many rewards, or follow the scale of the first ones."""
        return t <= FIRST_FIT or fit_is_due(t)

    def kept(self) -> dict[str, Any]:
        """Returns the hyperparameters learned so far as plain numbers that mean the same on another graph."""
        fits = [[t, list(hyper)] for t, hyper in self.fits]
        scale = self.hyper.graph - log(self._gain())
        learned = {"hyper": list(self.hyper), "scale": scale, "centre": self.centre, "fits": fits}
        return learned | {"normalised": self._normalised}

    def relearn_as(self, kept: Mapping[str, Any], history: History) -> None:
        """Forgets all rewards and learns this history with hyperparameters that were kept, those of another graph."""
        self._normalise(kept.get("normalised", False))
        hyper = self._kept_hyper(kept)
        self._model.retune(self.ground.kernel(hyper), self.ground.noise_var(hyper))
        history.shift(-kept["centre"])
        self._model.relearn(history)
        self._take_kept(kept, hyper)

    def _last_fit(self) -> int:
        """Returns after how many rewards; in a window that is always full each further reward may be that one again."""
        return self.fits[-1][0] if self.fits else 0

    def _kept_hyper(self, kept: Mapping[str, Any]) -> Hyper:
        """Returns what was kept, the graph's scale being the same on this graph."""
        given = Hyper(*kept["hyper"])
        return given._replace(graph=kept["scale"] + log(self.ground.mean_gain(given.ridge)))

    def _take_kept(self, kept: Mapping[str, Any], hyper: Hyper) -> None:
        self.hyper, self.centre = hyper, kept["centre"]
        self.fits = [(t, Hyper(*hyper)) for t, hyper in kept["fits"]]

    def _normalise(self, normalised: bool) -> None:
        """Takes the kind of Laplacian that hyperparameters were learned with."""
        if normalised != self._normalised:
            self._normalised, self._parts, self._mean_gain = normalised, None, 0.0

    def _form(self) -> GraphCovariance | None:
        h = self.hyper
        if self._normalised:
            return None
        scale = exp(h.graph) / self._gain()
        return GraphCovariance(ridge=exp(h.ridge), scale=scale, own=exp(h.own), common=exp(h.common))

    def _gain(self) -> float:
        """Returns the mean of g on this graph."""
        followed = self._parts is None and self._mean_gain > 0
        return self._mean_gain if followed else self.parts.mean_gain(self.hyper.ridge)

    def _linked(self, link: Link) -> None:
        form, before = self._form(), self.graph.n_users
        assert form is not None  # or there would be no link
        traces = before * self._gain() + link.newcomers / form.ridge - link.lost / form.scale
        self._mean_gain = traces / (before + link.newcomers)
        self._parts = None
        self.hyper = self.hyper._replace(graph=log(form.scale * self._mean_gain))

    def _decide(self, row: int, arms: Any, number: int) -> Considered:
        found = super()._decide(row, arms, number)
        return found._replace(mean=found.mean + self.centre, score=found.score + self.centre)

    def consider_many(self, users: Iterable[Any], candidates: Any = None) -> Batch | None:
        """Returns what `consider` would for one user after another, or None where it must be asked so."""
        found = super().consider_many(users, candidates)
        if found is None:
            return None
        return found._replace(mean=found.mean + self.centre, score=found.score + self.centre)

    def _learn(self, row: int, column: Any, value: float) -> None:
        self._model.learn(row, column, value - self.centre)
        t = self.n_rewards
        if self.settings_are_due(t) and t != self._last_fit():
            self._refit(t)

    def _learn_many(self, rows: list[int], columns: list[Any], values: list[Any]) -> None:
        self._model.checked_batch(rows, columns, values)
        for row, column, value in zip(rows, columns, values, strict=True):
            self._learn(row, self._model.checked_arm(column), float(value))

    def _refit(self, t: int) -> None:
        """Takes the hyperparameters that the rewards call for; if the model refuses them, it keeps those it has."""
        shift, variance = centre_and_variance(self._model.history)
        prior = self._prior(variance)
        hyper = prior.centre
        try:
            self._check_replayed()
            if t >= FIRST_FIT and not is_constant(self._model.history):
                start = self.hyper if self.fits else prior.centre
                hyper = self._found(self._evidence(t, shift), prior, start, t)
            self._model.retune(self.ground.kernel(hyper), self.ground.noise_var(hyper), shift=-shift)
        except FAILURES as refusal:
            self._refuse(f"The change due after {t} rewards was not made", refusal)
            return
        self._adopt(t, hyper, shift)

    def _found(self, evidence: Explaining, prior: Prior, start: Hyper, t: int) -> Hyper:  # noqa: ARG002
        """Returns the hyperparameters that t rewards call for."""
        return fit(evidence, prior, start)[0]

    def _prior(self, variance: float) -> Prior:
        """Returns what is thought of hyperparameters beforehand, for the rewards so far and their variance."""
        return Prior.of(self.ground, variance)

    def _adopt(self, t: int, hyper: Hyper, shift: float) -> None:
        """Takes note of what the belief was made with."""
        self.hyper, self.centre = hyper, self.centre + shift
        if t >= FIRST_FIT:
            self.fits = [*self.fits, (t, hyper)]  # a new list: whoever holds the former has what was learned by then

    def _evidence(self, t: int, shift: float) -> Explaining:
        """Returns the evidence of the rewards less a number."""
        history = self._model.history
        history.shift(-shift)
        try:
            return Evidence(self.parts, history, rows=self._sample(t))
        finally:
            history.shift(shift)

    def _sample(self, t: int, most: int = MOST_PAIRS) -> Index | None:
        """Returns the pairs to look at: all, or those of users drawn at random until there are enough."""
        users = self._model.history.user_array()
        if len(users) <= most:
            return None
        order = np.random.default_rng([self.seed, t]).permutation(self._model.n_users)
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        ranked = np.argsort(place[users], kind="stable")
        return np.asarray(ranked[:most])


def centre_and_variance(history: History) -> tuple[float, float]:
    """Returns the mean of all rewards and their variance about it; 1 where they are as good as equal."""
    counts, means = history.count_array(), history.mean_array()
    centre = float(counts @ means / counts.sum())
    about = means - centre
    variance = float((counts @ (about * about) + np.sum(history.scatters)) / counts.sum())
    return centre, variance if variance > LEAST_SPREAD**2 else 1.0


def is_constant(history: History) -> bool:
    """Returns whether all rewards are as good as equal: nothing can be learned of kernels from them."""
    spread, scatter = np.ptp(history.mean_array()), np.max(history.scatters, initial=0.0)
    return bool(spread < LEAST_SPREAD and scatter < LEAST_SPREAD**2)


def is_two_valued(history: History) -> bool:
    """Returns whether every reward is one of two values, and both have come.

    Of values a and b, n rewards with mean m have the sum of squares n (m - a) (b - m) about it, and others less.

    Examples:
        >>> history = History()
        >>> for arm, reward in [(0, 1.0), (0, 0.0), (1, 0.0), (2, 1.0)]: history.add(arm, 0, arm, reward)
        >>> is_two_valued(history)
        True
        >>> history.add(3, 0, 3, 0.5)
        >>> is_two_valued(history)
        False
    """
    means, scatters = history.mean_array(), np.asarray(history.scatters)
    low, high = float(means.min()), float(means.max())
    about = history.count_array() * (means - low) * (high - means)
    return low < high and bool(np.all(np.abs(scatters - about) <= 1e-9 * history.count_array() * (high - low) ** 2))


def fit_is_due(t: int) -> bool:
    """Returns whether hyperparameters are fitted after so many rewards: powers of two, and early on halfway between.

    Examples:
        >>> [t for t in range(8, 100) if fit_is_due(t)]
        [8, 12, 16, 24, 32, 48, 64, 96]
    """
    odd = t // (t & -t)
    return t >= FIRST_FIT and (odd == 1 or (odd == 3 and t < HALFWAY_UNTIL))


def make_auto_policy(*, make: Callable[..., Model], graph: UserGraph, arms: ArmPool, **rest: Any) -> AutoPolicy:
    """Returns a policy at the prior's centre for rewards of variance 1; `make` makes a model on a kernel."""
    parts = Parts.of(graph, arms)
    hyper = Prior.of(parts, 1.0).centre
    model = make(parts.kernel(hyper), noise_var=hyper.noise_var)
    return AutoPolicy(parts=parts, hyper=hyper, graph=graph, arms=arms, model=model, **rest)
