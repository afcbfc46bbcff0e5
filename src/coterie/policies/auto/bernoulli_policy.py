"""The policy that learns its own hyperparameters, for rewards of 0 and 1 with a Bernoulli likelihood."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import log
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.errors import FAILURES, NumericalError, ParameterError
from coterie.errors.checks import checked_binary
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool, JointKernel
from coterie.models import History, Model
from coterie.policies.auto.auto_policy import FIRST_FIT, AutoPolicy
from coterie.policies.auto.bernoulli import Sites, Trials, bound, probabilities, settled
from coterie.policies.auto.evidence import Evidence
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.parts import Hyper, Parts, Scales
from coterie.policies.auto.prior import Prior, fit
from coterie.policies.auto.sampling import Index
from coterie.policies.rules.scores import Scored

LOGIT_VARIANCE = 2.0
MOST_PAIRS = 192  # that a fit looks at
MOST_SETTLED = 256  # pairs; beyond, a site stays as it was made
GROWTH, GROWTH_IF_MOVED = 1.25, 1.02
MOVE, JUMP = 0.5, 1.5


class BernoulliPolicy(AutoPolicy):
    """Learns logits of probabilities: reward ~ Bernoulli(sigmoid(centre + f(u, x))), f ~ the Gaussian process of auto.

    Choices are made on the logits; means and stds that are told (`Choice`, `predict`) are those of probabilities, a
    score and `covariance` are in logits. The belief is the Gaussian nearest to the posterior (`bernoulli.py`), held by
    the model as one pseudo-observation of each pair, its site. A reward adds a site of its own, made for the belief at
    that time, and leaves the others as they are: one update of the model. All sites are settled anew

    - at the fits, t = 1 to 8, 16, 32, ..., and whenever there are a quarter more rewards than the last time,
    - with two in a hundred more if a reward has moved the logit of its pair by 0.5 since, at once if by 1.5.

    Just then the belief is a function of the counts alone, within 1e-4 of the fixed point in probability. In between
    it is near it: on generated histories of 300 rewards no probability was off by more than 0.03, and half the time
    none by 0.002.

    Settling is O(k^3) a pass for k distinct pairs. Beyond 256 pairs sites stay as they were made, each for the belief
    at its time (assumed density filtering), and a fit of hyperparameters looks at a sample of users, so that no call
    costs more the more rewards there are.
    """

    def __init__(self, **rest: Any) -> None:
        super().__init__(**rest)
        self.trials = History()
        self._settled_at, self._moved = 0, 0.0

    @property
    def n_rewards(self) -> int:
        """Rewards learned so far."""
        return self.trials.n_observations

    def describe(self) -> str:
        """Returns in words what this policy runs on and what it has learned of its hyperparameters."""
        return super().describe() + " Likelihood 'bernoulli': centre and variances are of logits."

    def update(self, user: Any, arm: Any, reward: float) -> None:
        """Learns a reward of 0 or 1; on an error nothing has changed."""
        super().update(user, arm, checked_binary(reward))

    def predict(self, user: Any, candidates: Any = None) -> tuple[Array, Array]:
        """Returns mean and std of the believed probability of each candidate, in the order asked."""
        return probabilities(*super().predict(user, candidates))

    def relearn(self, history: History) -> None:
        """Forgets all rewards and learns this history of 0 and 1 instead, with hyperparameters fitted to it."""
        before = self.trials, self.centre
        self.trials, self.centre = _by_key(history, self._model), 0.0
        try:
            self._settle(self._model.kernel, 0.0, start=None)
        except FAILURES:
            self.trials, self.centre = before
            raise
        if len(history):
            self._refit(self.n_rewards)

    def relearn_with(self, kept: Mapping[str, Any], history: History) -> None:
        """Forgets all rewards and learns this history of 0 and 1 with hyperparameters that were kept."""
        self.trials = _by_key(history, self._model)
        hyper, scale = self._taken_from(kept)
        self._model.retune(self.context.kernel(hyper, scale), 1.0)
        self._settle(self._model.kernel, kept["centre"], start=None)
        self._take_kept(kept, hyper, scale)

    def refit_due(self, t: int) -> bool:
        """Returns whether hyperparameters are fitted after so many rewards, or the level follows the first ones."""
        return t <= FIRST_FIT or t & (t - 1) == 0

    def revise(self, row: int, column: Any, before: float, after: float) -> bool:  # noqa: ARG002 - it never can
        """Returns False: another reward moves every site."""
        return False

    def relink(self, graph: UserGraph) -> bool:  # noqa: ARG002 - it never can
        """Returns False: another graph moves every site."""
        return False

    def fit(self, batches: Iterable[Any], **_: Any) -> int:  # noqa: ARG002 - it never can
        """Raises: sites are made one after another."""
        rule = "with likelihood 'bernoulli' rewards are learned one after another"
        raise ParameterError(f"a fit was asked for with {self.name!r}", rule, "Use update_many, or 'gaussian'")

    def consider_many(self, users: Iterable[Any], candidates: Any = None) -> None:
        """Returns None: decisions are made one after another."""

    def state(self) -> dict[str, Any]:
        """Returns what decisions depend on beside the settings, the rewards of each pair included."""
        settling = {"settled_at": self._settled_at, "moved": self._moved}
        return super().state() | settling | {"trials": self.trials.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes the state of a policy with the same settings, and its arrays; it then decides the same to the bit."""
        super().restore(state)
        self.trials = History.restored(state["trials"], self._model.kernel.key)
        self._settled_at, self._moved = state["settled_at"], state["moved"]

    def observed(self, level: float) -> Trials:
        """Returns the trials and successes of each pair, to be explained by logits measured from this level."""
        counts = self.trials.count_array()
        return Trials(counts, np.clip(counts * self.trials.mean_array(), 0.0, counts), level)

    def sites(self) -> Sites:
        """Returns the pseudo-observations that the belief is made of, one for each pair of `trials`."""
        precision = self._model.history.count_array()
        return Sites(precision, precision * self._model.history.mean_array())

    def _decide(self, row: int, arms: Any, number: int) -> Scored:
        found = super()._decide(row, arms, number)
        return found._replace(on_reward_scale=probabilities(found.mean, found.std))

    def _learn(self, row: int, column: Any, value: float) -> None:
        moved = self._add_site(row, column, Trials(np.ones(1), np.array([value]), self.centre))
        self._moved = max(self._moved, moved)
        self.trials.add(self._model.kernel.key(row, column), row, column, value)
        t = self.n_rewards
        if self.refit_due(t) and t != self._last_fit():
            self._refit(t)
        elif self._settling_is_due(t):
            self._refresh(t)

    def _add_site(self, row: int, column: Any, one: Trials) -> float:
        """Adds the site of some trials of a pair, made for the belief there is; returns how far it moves the logit."""
        mean, std = self._model.read(row, np.array([column]))
        site, found = settled(std[:, None] ** 2, one._replace(level=one.level + float(mean[0])))
        self._model.learn_weighted(row, column, float(mean[0] + site.values[0]), weight=float(site.precision[0]))
        return abs(float(found.mean[0]))

    def _learn_many(self, rows: list[int], columns: list[Any], values: list[Any]) -> None:
        super()._learn_many(rows, columns, [checked_binary(value) for value in values])

    def _settling_is_due(self, t: int) -> bool:
        if len(self.trials) > MOST_SETTLED:
            return False
        growth = GROWTH_IF_MOVED if self._moved > MOVE else GROWTH
        return self._moved > JUMP or t >= growth * self._settled_at

    def _refresh(self, t: int) -> None:
        """Settles the sites anew; if the model refuses them, it keeps those it has."""
        try:
            self._check_replayed()
            self._settle(self._model.kernel, self.centre, start=self.sites())
        except FAILURES as refusal:
            self._refuse(f"The sites due after {t} rewards were not settled", refusal)

    def _refit(self, t: int) -> None:
        """Takes the level and the hyperparameters that the rewards call for; if the model refuses, it keeps its own."""
        level, prior = level_of(self.trials), logit_prior(self.context)
        hyper = start = self.hyper if self.fits else prior.centre  # learned once, it stays if rewards go
        try:
            self._check_replayed()
            if t >= FIRST_FIT:
                evidence = BernoulliEvidence(self.context.parts, self.trials, level, rows=self._sample(t))
                hyper, _ = fit(evidence, prior, start)
            held = self.sites()
            start_sites = Sites(held.precision, held.pull - held.precision * (level - self.centre))
            self._retune(self.context.kernel(hyper), level, start_sites)
        except FAILURES as refusal:
            self._refuse(f"The change due after {t} rewards was not made", refusal)
            return
        self._adopt(t, hyper, level - self.centre)

    def _noise_of(self, hyper: Hyper) -> float:  # noqa: ARG002 - sites have weights of their own
        return 1.0

    def _sample(self, t: int, most: int = MOST_PAIRS) -> Index | None:
        """Returns the pairs to look at: all, or those of users drawn at random until there are enough."""
        users = self.trials.user_array()
        if len(users) <= most:
            return None
        order = np.random.default_rng([self.seed, t]).permutation(self._model.n_users)
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        ranked = np.argsort(place[users], kind="stable")
        return np.asarray(ranked[:most])

    def _retune(self, kernel: JointKernel, level: float, start: Sites) -> None:
        before = self._model.kernel
        self._model.retune(kernel, 1.0)
        try:
            self._settle(kernel, level, start=start)
        except FAILURES:
            self._model.retune(before, 1.0)
            raise

    def _settle(self, kernel: Any, level: float, *, start: Sites | None) -> None:
        """Gives the model the settled sites of all pairs for this kernel and level; of many, those it starts from."""
        users, arms = self.trials.user_array(), self.trials.arm_array()
        if len(users) > MOST_SETTLED and start is None:
            self._filter(level)
            return
        pseudo = History()
        if len(users):
            sites = start
            if sites is None or len(users) <= MOST_SETTLED:
                sites, _ = settled(kernel.cross(users, arms, users, arms), self.observed(level), start)
            pseudo = as_history(self.trials, sites)
        self._model.relearn(pseudo)
        self._settled_at, self._moved = self.n_rewards, 0.0

    def _filter(self, level: float) -> None:
        """Makes the sites of all pairs one after another, each for the belief from those before it."""
        self._model.relearn(History())
        observed = self.observed(level)
        for row, (user, arm) in enumerate(zip(self.trials.users, self.trials.arms, strict=True)):
            self._add_site(user, arm, Trials(observed.counts[[row]], observed.successes[[row]], level))
        self._model.history.n_observations = self.trials.n_observations
        self._settled_at, self._moved = self.n_rewards, 0.0


class BernoulliEvidence:
    """A lower bound of log p(rewards) as a function of the hyperparameters, with its gradient. O(k^3) a pass.

    The sites are settled at each point asked for, from those of the last. The noise variance is 1, whatever is asked.

    Args:
        parts: What the kernel is made of.
        trials: A collapsed history of 0 and 1.
        level: The logit that f is measured from.
        rows: The pairs to look at; none given means all.
    """

    def __init__(self, parts: Parts, trials: History, level: float, *, rows: Index | None = None) -> None:
        keep = np.arange(len(trials)) if rows is None else rows
        self.parts = parts
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
            self._sites, belief = settled(gram, self._trials, self._sites)
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


def logit_prior(scales: Scales) -> Prior:
    """Returns the prior for logits, whose scale is known beforehand, with the noise variance held at 1."""
    prior = Prior.of(scales, LOGIT_VARIANCE)
    return replace(prior, centre=prior.centre._replace(noise=0.0))


def make_bernoulli_policy(
    *, make: Callable[..., Model], graph: UserGraph, arms: ArmPool, seed: int, **rest: Any
) -> BernoulliPolicy:
    """Returns a policy at the centre of the prior for logits; `make` makes a model on a kernel."""
    context = FitContext(graph, arms, seed=seed, matrices=True)
    hyper = logit_prior(context).centre
    model = make(context.kernel(hyper), noise_var=1.0)
    return BernoulliPolicy(context=context, hyper=hyper, graph=graph, arms=arms, model=model, seed=seed, **rest)
