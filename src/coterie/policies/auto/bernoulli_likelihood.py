"""Rewards of 0 and 1: a Bernoulli likelihood that reaches a Gaussian model as one pseudo-observation of each pair."""

from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np

from coterie.contracts import Array, Index
from coterie.errors import FAILURES, NumericalError
from coterie.errors.checks import checked_binary
from coterie.models import History, Model
from coterie.policies.auto.bernoulli import TOLERANCE, Sites, Trials, believed, bound, probabilities, settled
from coterie.policies.auto.evidence import Evidence
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.fits import FIRST_FIT, FitSchedule, Found
from coterie.policies.auto.hyper import Hyper, LearnedHyper
from coterie.policies.auto.likelihood import Likelihood
from coterie.policies.auto.parts import Parts, Scales
from coterie.policies.auto.prior import Prior, fit

LOGIT_VARIANCE = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteLimits:
    """When the sites are settled, and how many pairs that may concern.

    Attributes:
        pairs_of_fit: That a fit of hyperparameters looks at, at most.
        settled: Pairs whose sites are settled together; with more, a site stays as it was made.
        growth: Sites are settled when rewards have grown by this factor since.
        growth_if_moved: By this one if a reward has moved the logit of its pair by `move` since.
        move: A logit's move that brings settling forward.
        jump: One that has sites settled at once.
        unsettled: How far a probability may be from that of settled sites in a file that is believed.
    """

    pairs_of_fit: int = 192
    settled: int = 256
    growth: float = 1.25
    growth_if_moved: float = 1.02
    move: float = 0.5
    jump: float = 1.5
    unsettled: float = 0.1


class BernoulliLikelihood(Likelihood):
    """reward ~ Bernoulli(sigmoid(centre + f(u, x))): the posterior is that of logits.

    Choices are made on the logits; means and stds shown (`Choice`, `predict`) are those of probabilities, a score and
    `covariance` are in logits. The belief is the Gaussian nearest to the posterior (`bernoulli.py`), held by the model
    as one pseudo-observation of each pair, its site. A reward adds a site of its own, made for the belief at that time,
    and leaves the others as they are: one update of the model. All sites are settled again

    - at the fits, t = 1 to 8, 16, 32, ..., and whenever there are a quarter more rewards than the last time,
    - with two in a hundred more if a reward has moved the logit of its pair by 0.5 since, at once if by 1.5.

    Just then the belief is a function of the counts alone, within 1e-4 of the fixed point in probability. In between
    it is near it: on generated histories of 300 rewards no probability was off by more than 0.03, and half the time
    none by 0.002.

    Settling is O(k^3) a pass for k distinct pairs. Beyond 256 pairs sites stay as they were made, each for the belief
    at its time (assumed density filtering), and a fit of hyperparameters looks at a sample of users, so that no call
    costs more the more rewards there are.

    Args:
        seed: Fixes which pairs fits look at.

    Attributes:
        limits: When and how many sites are settled.
        trials: The rewards of each pair.
    """

    name = "bernoulli"
    schedule = FitSchedule(halfway_until=0)
    is_conjugate = False
    needs_matrices = True
    inverse_link = staticmethod(probabilities)
    limits = SiteLimits()

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.trials = History()
        self._settled_at, self._moved = 0, 0.0

    def describe(self) -> str:
        """Returns what differs from a Gaussian, in words."""
        return " Likelihood 'bernoulli': centre and variances are of logits."

    def checked_reward(self, reward: Any) -> float:
        """Returns a reward as a number, or raises if it is neither 0 nor 1."""
        return checked_binary(reward)

    def prior(self, context: FitContext, history: History) -> Prior[Any]:  # noqa: ARG002 - logits have a scale of their own
        """Returns the prior of the hyperparameters."""
        return logit_prior(context)

    def noise_var(self, hyper: LearnedHyper) -> float:  # noqa: ARG002 - sites have weights of their own
        """Returns 1."""
        return 1.0

    def learn(self, model: Model, row: int, column: Any, value: float, centre: float, weight: float = 1.0) -> None:  # noqa: ARG002 - all have the same
        """Conditions the model on the site of a reward."""
        moved = _add_site(model, row, column, Trials(np.ones(1), np.array([value]), centre))
        self._moved = max(self._moved, moved)
        self.trials.add(model.kernel.key(row, column), row, column, value)

    def relearn(self, model: Model, history: History, centre: float) -> None:
        """Lets the model forget all rewards, and settles the sites of this history of 0 and 1 instead."""
        before, self.trials = self.trials, _by_key(history, model)
        try:
            self._settle(model, centre, start=None)
        except FAILURES:
            self.trials = before
            raise

    def can_fit(self, t: int, history: History) -> bool:  # noqa: ARG002 - that many rewards will do
        """Returns whether there are eight rewards."""
        return t >= FIRST_FIT

    def refit(self, model: Model, context: FitContext, t: int, start: LearnedHyper | None, centre: float) -> Found:
        """Gives the model the hyperparameters and sites that the rewards call for, and returns the former."""
        level, prior = level_of(self.trials), logit_prior(context)
        hyper = start or prior.centre  # learned once, it stays if rewards go
        if self.can_fit(t, self.trials):
            rows = self._sample(t, model.n_users)
            hyper, _ = fit(BernoulliEvidence(context.parts, self.trials, level, rows=rows), prior, hyper)
        held, before = self.sites(model), model.kernel
        shifted = Sites(held.precision, held.pull - held.precision * (level - centre))
        model.retune(context.kernel(hyper), 1.0)
        try:
            self._settle(model, level, start=shifted)
        except FAILURES:
            model.retune(before, 1.0)
            raise
        return Found(hyper, level - centre)

    def upkeep_is_due(self, t: int) -> bool:
        """Returns whether all sites are to be settled after so many rewards."""
        limits = self.limits
        if len(self.trials) > limits.settled:
            return False
        growth = limits.growth_if_moved if self._moved > limits.move else limits.growth
        return self._moved > limits.jump or t >= growth * self._settled_at

    def keep_up(self, model: Model, centre: float) -> None:
        """Settles all sites."""
        self._settle(model, centre, start=self.sites(model))

    def is_sound(self, model: Model, centre: float) -> bool:
        """Returns whether the sites are near those that the trials call for; of many pairs it is not looked at."""
        users, arms = self.trials.user_array(), self.trials.arm_array()
        if not 0 < len(users) <= self.limits.settled:
            return True
        gram = model.kernel.cross(users, arms, users, arms)
        found = (believed(gram, self.sites(model)), settled(gram, self.observed(centre))[1])
        held, exact = (probabilities(each.mean + centre, np.sqrt(each.variance))[0] for each in found)
        return bool(np.abs(held - exact).max() <= self.limits.unsettled)

    def state(self) -> dict[str, Any]:
        """Returns the rewards of each pair, and when sites were settled."""
        return {"settled_at": self._settled_at, "moved": self._moved, "trials": self.trials.state()}

    def restore(self, state: dict[str, Any], model: Model) -> None:
        """Takes what `state` returned."""
        self.trials = History.restored(state["trials"], model.kernel.key)
        self._settled_at, self._moved = state["settled_at"], state["moved"]

    def observed(self, level: float) -> Trials:
        """Returns the trials and successes of each pair, to be explained by logits measured from this level."""
        counts = self.trials.count_array()
        return Trials(counts, np.clip(counts * self.trials.mean_array(), 0.0, counts), level)

    def sites(self, model: Model) -> Sites:
        """Returns the pseudo-observations that the belief is made of, one for each pair of `trials`."""
        precision = model.history.count_array()
        return Sites(precision, precision * model.history.mean_array())

    def _sample(self, t: int, n_users: int) -> Index | None:
        """Returns the pairs to look at: all, or those of users drawn at random until there are enough."""
        users, most = self.trials.user_array(), self.limits.pairs_of_fit
        if len(users) <= most:
            return None
        order = np.random.default_rng([self._seed, t]).permutation(n_users)
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        ranked = np.argsort(place[users], kind="stable")
        return np.asarray(ranked[:most])

    def _settle(self, model: Model, level: float, *, start: Sites | None) -> None:
        """Gives the model the settled sites of all pairs for its kernel and level; of many, those it starts from."""
        users, arms = self.trials.user_array(), self.trials.arm_array()
        many = len(users) > self.limits.settled
        if many and start is None:
            self._filter(model, level)
        else:
            sites = start
            if len(users) and not many:
                sites, _ = settled(model.kernel.cross(users, arms, users, arms), self.observed(level), start)
            model.relearn(as_history(self.trials, sites) if len(users) and sites is not None else History())
        self._settled_at, self._moved = self.trials.n_observations, 0.0

    def _filter(self, model: Model, level: float) -> None:
        """Makes the sites of all pairs one after another, each for the belief from those before it."""
        model.relearn(History())
        observed = self.observed(level)
        for row, (user, arm) in enumerate(zip(self.trials.users, self.trials.arms, strict=True)):
            _add_site(model, user, arm, Trials(observed.counts[[row]], observed.successes[[row]], level))
        model.history.n_observations = self.trials.n_observations


def _add_site(model: Model, row: int, column: Any, one: Trials) -> float:
    """Adds the site of some trials of a pair, made for the belief there is; returns how far it moves the logit."""
    mean, std = model.read(row, np.array([column]))
    site, found = settled(std[:, None] ** 2, one._replace(level=one.level + float(mean[0])))
    model.learn_weighted(row, column, float(mean[0] + site.values[0]), weight=float(site.precision[0]))
    return abs(float(found.mean[0]))


class BernoulliEvidence:
    """A lower bound of log p(rewards) as a function of the hyperparameters, with its gradient. O(k^3) a pass.

    The sites are settled at each point asked for, from those of the last. The noise variance is 1, whatever is asked.

    Args:
        parts: What the kernel is made of.
        trials: A collapsed history of 0 and 1.
        level: The logit that f is measured from.
        rows: The pairs to look at; none given means all.
        tolerance: Within which sites are settled.
    """

    def __init__(
        self,
        parts: Parts,
        trials: History,
        level: float,
        *,
        rows: Index | None = None,
        tolerance: float = TOLERANCE,
    ) -> None:
        keep = np.arange(len(trials)) if rows is None else rows
        self.parts, self._tolerance = parts, tolerance
        self._kept = History()
        for row in keep.tolist():
            user, arm = trials.users[row], trials.arms[row]
            self._kept.add((user, arm), user, arm, trials.means[row], weight=trials.counts[row])
        counts = self._kept.count_array()
        self._trials = Trials(counts, np.clip(counts * self._kept.mean_array(), 0.0, counts), level)
        self._sites: Sites | None = None

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """Returns the bound and its gradient, that of the sites' Gaussian evidence; minus infinity where it fails."""
        hyper = Hyper(*point)._replace(noise=0.0)
        users, arms = self._kept.user_array(), self._kept.arm_array()
        gram = self.parts.kernel(hyper).cross(users, arms, users, arms)
        try:
            self._sites, belief = settled(gram, self._trials, self._sites, tolerance=self._tolerance)
        except NumericalError:
            return -np.inf, np.zeros(len(point))
        evidence = Evidence(self.parts, as_history(self._kept, self._sites))
        value, gradient = evidence.value_and_gradient(np.array(hyper))
        gradient[Hyper._fields.index("noise")] = 0.0
        return (bound(belief, self._sites, self._trials) if np.isfinite(value) else value), gradient


def _by_key(history: History, model: Model) -> History:
    """Returns the history under the keys that the model gives pairs."""
    out = History()
    together = zip(history.users, history.arms, history.means, history.counts, strict=True)
    for user, arm, mean, count in together:
        out.add(model.kernel.key(user, arm), user, arm, mean, weight=count)
    out.n_observations = history.n_observations
    return out


def level_of(trials: History) -> float:
    """Returns the logit of the share of successes, with one success and one failure more than there were."""
    counts = trials.count_array()
    n_successes, n_trials = float(counts @ trials.mean_array()), float(counts.sum())
    return log((n_successes + 1) / (n_trials - n_successes + 1))


def as_history(trials: History, sites: Sites) -> History:
    """Returns the sites as observations of noise variance 1 whose weights are their precisions."""
    out = History()
    together = zip(trials.rows, trials.users, trials.arms, sites.values.tolist(), sites.precision.tolist(), strict=True)
    for key, user, arm, value, weight in together:
        out.add(key, user, arm, value, weight=weight)
    out.n_observations = trials.n_observations
    return out


def logit_prior(scales: Scales) -> Prior[Any]:
    """Returns the prior for logits, whose scale is known beforehand, with the noise variance held at 1."""
    prior = Prior.of(scales, LOGIT_VARIANCE)
    return replace(prior, centre=prior.centre._replace(noise=0.0))
