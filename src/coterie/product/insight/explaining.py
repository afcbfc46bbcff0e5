"""Why the bandit believes what it believes: which users, arms and rewards moved an estimate, and by how much."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from coterie.contracts import ArmId, Array, Index, UserId
from coterie.models import Model
from coterie.policies.auto import AutoPolicy
from coterie.policies.auto.bernoulli import Trials, believed, probabilities, settled
from coterie.policies.auto.bernoulli_likelihood import BernoulliLikelihood
from coterie.product.learned import Learned, RewardEvents

SHOWN = 5  # users and arms named in the text; the attributes hold all
NEGLIGIBLE = 1e-3  # of a std: less that is left over is not in the text


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """An estimate taken apart: `level`, contributions and `rest` add up to `mean`, or to `logit` where there is one.

    Attributes:
        user: Whose estimate.
        arm: Of which arm.
        mean: The estimate.
        std: Its uncertainty, without noise.
        level: The level of all rewards, from which the model measures.
        by_user: What the rewards of each user added, the largest first.
        by_arm: What the rewards of each arm added, the largest first.
        by_event: What each reward added: its number, user, arm, reward and contribution, the largest first.
        rest: What the contributions leave over: they are solved for separately, and the mean has the error that engine
            `sparse` states, or rounding where the noise is tiny beside the prior.
        alone: The estimate if the users shared nothing: from this user's own rewards alone.
        logit: With likelihood "bernoulli", the believed logit of the probability: level and contributions are logits
            then, while `mean`, `std` and `alone` are of probabilities, which do not add up.
    """

    user: UserId
    arm: ArmId
    mean: float
    std: float
    level: float
    by_user: dict[UserId, float]
    by_arm: dict[ArmId, float]
    by_event: list[tuple[int, UserId, ArmId, float, float]]
    rest: float
    alone: float
    logit: float | None = None

    def __str__(self) -> str:
        of, origin = "", f", from a level of {self.level:.3g}."
        if self.logit is not None:
            of = "a probability of "
            origin = f". As a logit: {self.logit:.3g}, from a level of {self.level:.3g}, where contributions add up."
        return (
            f"{self.arm!r} for {self.user!r}: {of}{self.mean:.3g} ± {self.std:.2g}{origin} By users: "
            f"{_largest(self.by_user) or 'nobody'}. By arms: {_largest(self.by_arm) or 'none'}. "
            f"{self._left_over()}From own rewards alone: {of}{self.alone:.3g}."
        )

    def _left_over(self) -> str:
        return f"Left over: {self.rest:+.2g}. " if abs(self.rest) > NEGLIGIBLE * self.std else ""


def _largest(shares: dict[Any, float]) -> str:
    """Returns the largest contributions in words, and how many others there are and what they sum to.

    Examples:
        >>> _largest(dict(zip("abcdefg", (3.0, -2.0, 1.0, 0.5, 0.4, 0.3, -0.1))))
        "'a' +3, 'b' -2, 'c' +1, 'd' +0.5, 'e' +0.4, 2 others together +0.2"
    """
    shown = [f"{name!r} {share:+.3g}" for name, share in list(shares.items())[:SHOWN]]
    rest = list(shares.values())[SHOWN:]
    if rest:
        shown.append(f"{len(rest)} other{'s together' if len(rest) > 1 else ''} {sum(rest):+.3g}")
    return ", ".join(shown)


def explained(learned: Learned, user: int, arm: Any, arm_id: ArmId, mean: float, std: float) -> Explanation:
    """Returns the estimate of a pair, whose mean and std are given, taken apart; the arm is as the model knows it."""
    policy, events, level = learned.policy, learned.events, learned.policy.centre
    weights, logit = learned.memory.weights(len(events)), None
    if isinstance(policy, AutoPolicy) and isinstance(policy.likelihood, BernoulliLikelihood):
        given = policy.model, policy.likelihood, level
        shares, alone, logit = logit_contributions(*given, events, weights, user=user, arm=arm)
    else:
        shares, own = contributions(policy.model, events, weights, user=user, arm=arm, level=level)
        alone = own + level
    users = [learned.graph.users[each] for each in events.users]
    arms = events.arm_ids(learned.arms.ids)
    together = zip(range(len(users)), users, arms, events.rewards, shares.tolist(), strict=True)
    return Explanation(
        user=learned.graph.users[user],
        arm=arm_id,
        mean=mean,
        std=std,
        level=level,
        by_user=totals(users, shares),
        by_arm=totals(arms, shares),
        rest=(mean if logit is None else logit) - level - float(shares.sum()),
        by_event=sorted((each for each in together if each[-1]), key=lambda each: -abs(each[-1])),
        alone=alone,
        logit=logit,
    )


def contributions(
    model: Model, events: RewardEvents, weights: Array, *, user: int, arm: Any, level: float
) -> tuple[Array, float]:
    """Returns what each reward adds to the mean of a pair, and the mean that the user's own rewards alone would give.

    The posterior mean is k' (K + N)^-1 (y - level), a weighted sum of rewards; a pair's weight is shared by its rewards
    in proportion to their own weights. O(k^3) for k distinct pairs; on `sparse` a local solve, so within its error.
    """
    users, arms, rows = _distinct_pairs(events)
    rewards, precision = events.observed()
    weights = weights * precision
    counts = np.asarray(np.bincount(rows, weights=weights, minlength=len(users)), dtype=np.float64)
    shares = np.divide(weights, counts[rows], out=np.zeros_like(weights), where=counts[rows] > 0)
    values = rewards - level
    means = np.bincount(rows, weights=shares * values, minlength=len(users))
    pair_weights, own = model.reward_weights(user, arm, users, arms, counts)
    return pair_weights[rows] * shares * values, float(own @ means)


def _distinct_pairs(events: RewardEvents) -> tuple[Index, Any, Index]:
    """Returns users and arms of the distinct pairs, as the model knows them, and the pair of each reward."""
    users = np.array(events.users, dtype=np.intp)
    if events.inputs:
        together = np.column_stack([users, np.array(events.inputs)])
        pairs, rows = np.unique(together, axis=0, return_inverse=True)
        return pairs[:, 0].astype(np.intp), pairs[:, 1:], rows.ravel()
    arms = np.array(events.arms, dtype=np.intp)
    size = int(arms.max(initial=0)) + 1
    numbers, rows = np.unique(users * size + arms, return_inverse=True)
    return numbers // size, numbers % size, rows


def logit_contributions(
    model: Model,
    likelihood: BernoulliLikelihood,
    level: float,
    events: RewardEvents,
    weights: Array,
    *,
    user: int,
    arm: int,
) -> tuple[Array, float, float]:
    """Returns what each reward adds to the logit of a pair, the probability from own rewards alone, and the logit.

    The logit is level + sum over rewards of weight * k(pair, reward's pair) * (reward - expected): a reward adds its
    surprise. `expected` is the probability believed of that pair where the sites are settled, and the number that
    makes the sum exact where rewards have come since. O(k^3) for k distinct pairs.
    """
    kernel, trials = model.kernel, likelihood.trials
    observed, sites = likelihood.observed(level), likelihood.sites(model)
    users, arms = trials.user_array(), trials.arm_array()
    rows = [trials.rows.get(kernel.key(*pair), -1) for pair in zip(events.users, events.arms, strict=True)]
    shares = np.zeros(len(events))
    if len(trials):
        prior = model.prior_cross
        believed_at = believed(prior(users, arms, users, arms), sites)
        expected = (observed.successes - sites.pull + sites.precision * believed_at.mean) / observed.counts
        cross = prior(np.array([user]), np.array([arm]), users, arms)[0]
        kept = np.flatnonzero(np.array(rows) >= 0)
        at = np.array(rows)[kept]
        shares[kept] = weights[kept] * cross[at] * (np.array(events.rewards)[kept] - expected[at])
    return shares, _alone(model, likelihood, level, user, arm), level + float(shares.sum())


def _alone(model: Model, likelihood: BernoulliLikelihood, level: float, user: int, arm: int) -> float:
    """Returns the probability that the rewards of one user alone would give."""
    kernel, own = model.kernel, np.flatnonzero(likelihood.trials.user_array() == user)
    arms = likelihood.trials.arm_array()[own]
    users, observed = np.full(len(own), user), likelihood.observed(level)
    pair, prior = np.array([arm]), model.prior_std(user, [arm])
    if not len(own):
        return float(probabilities(np.array([level]), prior)[0][0])
    gram = kernel.cross(users, arms, users, arms)
    sites, _ = settled(gram, Trials(observed.counts[own], observed.successes[own], observed.level))
    cross = kernel.cross_of_user(user, pair, users, arms)[0]
    solved = cho_solve(cho_factor(gram + np.diag(1 / sites.precision), lower=True), np.c_[sites.values, cross])
    mean, spread = cross @ solved[:, 0], np.sqrt(np.maximum(prior**2 - cross @ solved[:, 1], 0.0))
    return float(probabilities(np.array([level + mean]), spread)[0][0])


def totals(names: list[UserId], shares: Array) -> dict[UserId, float]:
    """Returns the sum for each name, the largest first; names that add nothing are left out."""
    summed: dict[UserId, float] = {}
    for name, share in zip(names, shares.tolist(), strict=True):
        summed[name] = summed.get(name, 0.0) + share
    ranked = sorted(summed.items(), key=lambda item: -abs(item[1]))
    return {name: share for name, share in ranked if share != 0.0}
