"""A score orders the candidates: everything there is to know of one is in its class.

A class says what number a candidate gets (`__call__`), by what its std is multiplied where that is all there is to it
(`slope`), how several users are scored together (`of_many`), and with which probability each candidate is chosen
(`propensities`). A plain function will do for a score of one's own (`FunctionScore`); then only the first is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from statistics import NormalDist
from typing import Any, NamedTuple, Protocol

import numpy as np

from coterie.contracts import Array, Belief, Index
from coterie.errors import NumericalError, listed
from coterie.policies.rules.draws import Draws
from coterie.policies.rules.propensity import (
    N_DRAWS,
    ROUNDING,
    Propensities,
    argmax_probabilities,
    epsilon_probabilities,
    joint_thompson_probabilities,
    symmetric_root,
    thompson_probabilities,
    tied,
)


class ScoreFunction(Protocol):
    """Anything that gives each candidate a number, the highest to be chosen."""

    def __call__(
        self,
        mean: Array,
        std: Array,
        width: float | Array,
        *,
        model: Belief,
        user: int,
        arms: Any,
        draws: Draws,
        number: int,
    ) -> Array:
        """Returns one score for each candidate; the width is a number, or one for each.

        Means are less the prior mean of rewards where that is learned (`Policy.centre`), and logits less it with a
        Bernoulli likelihood: only their differences count.
        """
        ...


class Prospects(NamedTuple):
    """What is believed of candidates before a decision is made among them, or several without replacement.

    Attributes:
        model: What scores may ask.
        arms: The candidates as the model knows them.
        mean: The believed reward of each.
        std: The uncertainty of each.
        width: How wide to explore: a number, or one for each.
        covariance: Of the candidates, and their largest prior variance, where they are drawn jointly.
    """

    model: Belief
    arms: Any
    mean: Array
    std: Array
    width: float | Array
    covariance: tuple[Array, float] | None

    def among(self, left: Index) -> "Prospects":
        """Returns what is believed of some of the candidates."""
        width = self.width[left] if isinstance(self.width, np.ndarray) else self.width
        covariance = None if self.covariance is None else (self.covariance[0][np.ix_(left, left)], self.covariance[1])
        return Prospects(self.model, self.arms[left], self.mean[left], self.std[left], width, covariance)


class Scored(NamedTuple):
    """What a decision is made from: what is believed of every candidate, and what the score makes of it.

    Attributes:
        rule: The score.
        mean: The believed reward of each candidate.
        std: The uncertainty of each.
        width: How wide to explore: a number, or one for each.
        score: The number of each; the highest is chosen.
        tolerance: The gap within which scores are tied.
        noise_var: The model's noise variance.
        best: The position of the chosen candidate.
        n_ties: How many candidates have the highest score.
        covariance: Of the candidates, and their largest prior variance, where they are drawn jointly.
        on_reward_scale: Mean and std of each in the rewards' own units, where the belief is about something else.
        certain: Whether the exact belief is proven to choose the same; None where nobody asked.
    """

    rule: "Score"
    mean: Array
    std: Array
    width: float | Array
    score: Array
    tolerance: float
    noise_var: float
    best: int
    n_ties: int = 1
    covariance: tuple[Array, float] | None = None
    on_reward_scale: tuple[Array, Array] | None = None
    certain: bool | None = None

    @property
    def shown(self) -> tuple[Array, Array]:
        """Mean and std of each candidate in the rewards' own units."""
        return self.on_reward_scale or (self.mean, self.std)

    def propensities(self, rng: np.random.Generator | None = None, n_draws: int = N_DRAWS) -> Propensities | None:
        """Returns the probability of each candidate to be chosen, or None where it is not known."""
        return self.rule.propensities(self, rng, n_draws) if self.rule.knows_propensities else None


class ScoredBatch(NamedTuple):
    """What the decisions for several users among the same candidates are made from, a row for each.

    Attributes:
        rule: The score.
        first: The number of the first decision; the others follow.
        rows: The users' rows.
        mean: The believed rewards.
        std: Their uncertainty.
        width: How wide to explore: a number, or one for each score.
        score: The numbers; the highest of each row is chosen.
        tolerances: The gap within which scores are tied, for each user.
        noise_var: The model's noise variance.
        best: The position of each chosen candidate.
    """

    rule: "Score"
    first: int
    rows: list[int]
    mean: Array
    std: Array
    width: float | Array
    score: Array
    tolerances: list[float]
    noise_var: float
    best: Index

    def at(self, i: int) -> Scored:
        """Returns what one of the decisions is made from."""
        width = self.width[i] if isinstance(self.width, np.ndarray) else self.width
        of_user = self.mean[i], self.std[i], width, self.score[i]
        return Scored(self.rule, *of_user, self.tolerances[i], self.noise_var, int(self.best[i]))


class Score:
    """Gives each candidate a number, the highest to be chosen.

    Attributes:
        is_deterministic: Whether it is mean + slope * std; a score that draws nothing and is none leaves it False.
        is_joint: Whether it draws the candidates together, from their covariance.
        knows_propensities: Whether `propensities` has them: those of a class that draws are its own to compute.
    """

    is_deterministic = False
    is_joint = False
    knows_propensities = False

    def __call__(self, mean: Array, std: Array, width: float | Array, **context: Any) -> Array:
        """Returns one score for each candidate, in the `context` of a decision (see `ScoreFunction`)."""
        return mean + self.slope(width, context.get("model")) * std

    def slope(self, width: float | Array, model: Any) -> float | Array:
        """Returns by what std is multiplied, where that is all that the score adds to the mean."""
        raise NotImplementedError(f"{type(self).__name__} is no multiple of std")

    def of_many(
        self, mean: Array, std: Array, width: float | Array, *, model: Belief, draws: Draws, numbers: Sequence[int]
    ) -> Array | None:
        """Returns the scores of several decisions, a row for each; None where they are made one after another."""
        del draws, numbers
        return self(mean, std, width, model=model) if self.is_deterministic else None

    def covariance(self, model: Belief, user: int, arms: Any) -> tuple[Array, float] | None:  # noqa: ARG002 - see below
        """Returns what `Scored.covariance` holds of these candidates; None unless they are drawn jointly."""
        return None

    def of_one(
        self,
        mean: Array,
        std: Array,
        width: float | Array,
        covariance: tuple[Array, float] | None,  # noqa: ARG002 - only some draw jointly
        **context: Any,
    ) -> Array:
        """Returns the scores of a decision whose candidates' covariance was read before."""
        return self(mean, std, width, **context)

    def propensities(self, found: Scored, rng: np.random.Generator | None, n_draws: int) -> Propensities:
        """Returns the probability of each candidate to be chosen.

        Args:
            found: What the decision is made from.
            rng: Where simulated draws come from.
            n_draws: How many.
        """
        del rng, n_draws
        return Propensities(argmax_probabilities(found.score, found.tolerance))


class UpperConfidenceBound(Score):
    """mean + width * std (equation 6 of the paper)."""

    is_deterministic = knows_propensities = True

    def slope(self, width: float | Array, model: Any) -> float | Array:  # noqa: ARG002 - one signature for all scores
        """Returns the width."""
        return width


class WideningUpperConfidenceBound(Score):
    """mean + width * sqrt(log(t + 1)) * std in round t."""

    is_deterministic = knows_propensities = True

    def slope(self, width: float | Array, model: Any) -> float | Array:
        """Returns the width times what it has grown to by now."""
        return width * sqrt(log(model.n_observations + 2))


class Greedy(Score):
    """The mean."""

    is_deterministic = knows_propensities = True

    def __call__(self, mean: Array, std: Array, width: float | Array, **context: Any) -> Array:  # noqa: ARG002 - one signature for all scores
        """Returns the mean."""
        return mean

    def slope(self, width: float | Array, model: Any) -> float:  # noqa: ARG002 - one signature for all scores
        """Returns 0."""
        return 0.0


class Thompson(Score):
    """mean + width * std * z, with z drawn for each candidate on its own (equation 7 of the paper)."""

    knows_propensities = True

    def __call__(self, mean: Array, std: Array, width: float | Array, **context: Any) -> Array:
        """Returns one score for each candidate."""
        return np.asarray(mean + width * std * context["draws"].normals(context["number"], len(mean)))

    def of_many(
        self, mean: Array, std: Array, width: float | Array, *, model: Belief, draws: Draws, numbers: Sequence[int]
    ) -> Array:
        """Returns the scores of several decisions, each with its own draws."""
        del model
        return np.asarray(mean + width * std * np.array([draws.normals(number, mean.shape[1]) for number in numbers]))

    def propensities(self, found: Scored, rng: np.random.Generator | None, n_draws: int) -> Propensities:
        """Returns the probability of each candidate to have the largest draw, by quadrature."""
        del rng, n_draws
        gap = max(found.tolerance, ROUNDING * float(np.abs(found.mean).max()))
        return Propensities(thompson_probabilities(found.mean, found.width * found.std, gap))


class JointThompson(Score):
    """mean + width * a joint draw of the candidates from the posterior."""

    is_joint = knows_propensities = True

    def __call__(self, mean: Array, std: Array, width: float | Array, **context: Any) -> Array:
        """Returns one score for each candidate."""
        covariance = self.covariance(context["model"], context["user"], context["arms"])
        return self.of_one(mean, std, width, covariance, **context)

    def covariance(self, model: Belief, user: int, arms: Any) -> tuple[Array, float]:
        """Returns the covariance of the candidates, and their largest prior variance."""
        return model.covariance(user, arms), float(model.prior_std(user, arms).max()) ** 2

    def of_one(
        self,
        mean: Array,
        std: Array,  # noqa: ARG002 - one signature for all scores
        width: float | Array,
        covariance: tuple[Array, float] | None,
        **context: Any,
    ) -> Array:
        """Returns the scores of a decision whose candidates' covariance was read before."""
        assert covariance is not None
        drawn = symmetric_root(*covariance) @ context["draws"].normals(context["number"], len(mean))
        return np.asarray(mean + width * drawn)

    def propensities(self, found: Scored, rng: np.random.Generator | None, n_draws: int) -> Propensities:
        """Returns how often each candidate has the largest of simulated draws, with standard errors."""
        assert found.covariance is not None
        covariance, scale = found.covariance
        given = found.mean, covariance, found.width
        return Propensities(*joint_thompson_probabilities(*given, rng, n_draws, tolerance=found.tolerance, scale=scale))


class Uniform(Score):
    """Random numbers: every candidate is as likely as the others."""

    knows_propensities = True

    def __call__(self, mean: Array, std: Array, width: float | Array, **context: Any) -> Array:  # noqa: ARG002 - one signature for all scores
        """Returns a draw for each candidate."""
        return np.asarray(context["draws"].normals(context["number"], len(mean)))

    def propensities(self, found: Scored, rng: np.random.Generator | None, n_draws: int) -> Propensities:
        """Returns the same probability for each."""
        del rng, n_draws
        return Propensities(np.full(len(found.mean), 1.0 / len(found.mean)))


class EpsilonGreedy(Score):
    """The mean, or with probability `width` random numbers."""

    knows_propensities = True

    def __call__(self, mean: Array, std: Array, width: float | Array, **context: Any) -> Array:  # noqa: ARG002 - one signature for all scores
        """Returns the means, or a draw for each candidate."""
        normals = context["draws"].normals(context["number"], len(mean) + 1)
        explore = NormalDist().cdf(float(normals[-1])) < np.max(width)
        return np.asarray(normals[:-1]) if explore else mean

    def propensities(self, found: Scored, rng: np.random.Generator | None, n_draws: int) -> Propensities:
        """Returns epsilon / k for each of k candidates, and the rest for the best mean."""
        del rng, n_draws
        epsilon = min(float(np.max(found.width)), 1.0)
        return Propensities(epsilon_probabilities(found.mean, epsilon, found.tolerance))


@dataclass(frozen=True, slots=True)
class InNoiseUnits(Score):
    """The same score with std measured in units of the noise's, as the linear methods do.

    Examples:
        >>> from types import SimpleNamespace
        >>> InNoiseUnits(ucb)(np.zeros(1), np.ones(1), 1.0, model=SimpleNamespace(noise_var=4.0))
        array([0.5])
    """

    score: Score

    @property
    def is_deterministic(self) -> bool:  # type: ignore[override]
        """As the score inside."""
        return self.score.is_deterministic

    @property
    def is_joint(self) -> bool:  # type: ignore[override]
        """As the score inside."""
        return self.score.is_joint

    @property
    def knows_propensities(self) -> bool:  # type: ignore[override]
        """As the score inside."""
        return self.score.knows_propensities

    def __call__(self, mean: Array, std: Array, width: float | Array, **context: Any) -> Array:
        """Returns one score for each candidate."""
        return self.score(mean, std, width / sqrt(context["model"].noise_var), **context)

    def slope(self, width: float | Array, model: Any) -> float | Array:
        """Returns by what std is multiplied."""
        return self.score.slope(width / sqrt(model.noise_var), model)

    def of_many(
        self, mean: Array, std: Array, width: float | Array, *, model: Belief, draws: Draws, numbers: Sequence[int]
    ) -> Array | None:
        """Returns the scores of several decisions, a row for each; None where they are made one after another."""
        width = width / sqrt(model.noise_var)
        return self.score.of_many(mean, std, width, model=model, draws=draws, numbers=numbers)

    def covariance(self, model: Belief, user: int, arms: Any) -> tuple[Array, float] | None:
        """Returns what `Scored.covariance` holds of these candidates; None unless they are drawn jointly."""
        return self.score.covariance(model, user, arms)

    def of_one(
        self, mean: Array, std: Array, width: float | Array, covariance: tuple[Array, float] | None, **context: Any
    ) -> Array:
        """Returns the scores of a decision whose candidates' covariance was read before."""
        return self.score.of_one(mean, std, width / sqrt(context["model"].noise_var), covariance, **context)

    def propensities(self, found: Scored, rng: np.random.Generator | None, n_draws: int) -> Propensities:
        """Returns the probability of each candidate to be chosen."""
        return self.score.propensities(found._replace(width=found.width / sqrt(found.noise_var)), rng, n_draws)


@dataclass(frozen=True, slots=True)
class FunctionScore(Score):
    """A function as a score. It may use its draws in any way, so its propensities are not known."""

    function: ScoreFunction

    def __call__(self, mean: Array, std: Array, width: float | Array, **context: Any) -> Array:
        """Returns what the function gives."""
        return self.function(mean, std, width, **context)


ucb = UpperConfidenceBound()
widening_ucb = WideningUpperConfidenceBound()
greedy = Greedy()
thompson = Thompson()
joint_thompson = JointThompson()
uniform = Uniform()
epsilon_greedy = EpsilonGreedy()


def as_score(score: Score | ScoreFunction) -> Score:
    """Returns a score, or a function as one.

    Examples:
        >>> as_score(ucb) is ucb, as_score(lambda mean, std, width, **_: mean - std).knows_propensities
        (True, False)
    """
    return score if isinstance(score, Score) else FunctionScore(score)


def best_of_one(score: Array, tolerance: float, draws: Draws, number: int) -> tuple[int, int]:
    """Returns the position of the highest score of a decision, ties broken at random, and how many are tied.

    Examples:
        >>> best_of_one(np.array([2.0, 1.0, 2.0 - 1e-9]), 0.0, Draws(seed=0), number=0)
        (0, 1)
    """
    values = score.tolist()  # few numbers: faster than an array
    highest = max(values)
    least = highest - max(tolerance, ROUNDING * abs(highest))  # as `tied` has it for arrays
    ties = [i for i, value in enumerate(values) if value >= least]
    if not ties:
        raise NumericalError(
            f"the scores of the candidates are {listed(values)}",
            "they must be numbers",
            "Check the width and the model's describe()",
        )
    return (ties[0], 1) if len(ties) == 1 else (ties[draws.pick(number, len(ties))], len(ties))


def best_of_each(score: Array, tolerances: Array, draws: Draws, numbers: Sequence[int]) -> Index | None:
    """Returns the position of the highest score of each row, as `best_of_one`; None where one is not a number."""
    ties = tied(score, tolerances[:, None])
    n_ties, best = ties.sum(axis=1), ties.argmax(axis=1)
    for i in np.flatnonzero(n_ties > 1).tolist():
        best[i] = np.flatnonzero(ties[i])[draws.pick(numbers[i], int(n_ties[i]))]
    return np.asarray(best) if n_ties.all() else None
