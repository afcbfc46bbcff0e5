"""How rewards depend on what is learned: what the Gaussian model is conditioned on, and its hyperparameters."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from coterie.contracts import Array
from coterie.errors.checks import checked_reward
from coterie.models import History, Model
from coterie.policies.auto.climbing import Climb, Summit
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.fits import FIRST_FIT, FitSchedule, Found
from coterie.policies.auto.hyper import LearnedHyper
from coterie.policies.auto.prior import Prior
from coterie.policies.auto.statistics import centre_and_variance, is_constant, noise_share_of


class Likelihood(ABC):
    """How rewards depend on f(u, x), and so what the Gaussian model is conditioned on.

    A likelihood that is not Gaussian reaches the model by observations of its own making. A new one is a class here or
    in a module beside this one, and a name in `LIKELIHOODS` of `auto_policy.py`.

    Attributes:
        name: By which one asks for it.
        schedule: When hyperparameters are fitted.
        is_conjugate: Whether a reward is an observation of the model as it is, and the posterior exact. Only then
            rewards are replaced in place, tables learned at once, graphs changed in place and fits made in the
            background.
        needs_matrices: Whether the kernel must have matrices over users and arms whatever their number.
        inverse_link: Turns mean and std of the posterior into those of rewards; None where they are the same.
    """

    name: str
    schedule = FitSchedule()
    is_conjugate = True
    needs_matrices = False
    inverse_link: Callable[[Array, Array], tuple[Array, Array]] | None = None

    @abstractmethod
    def checked_reward(self, reward: Any) -> float:
        """Returns a reward as a number, or raises if it is none that this likelihood knows."""

    @abstractmethod
    def prior(self, context: FitContext, history: History) -> Prior[Any]:
        """Returns the prior of the hyperparameters, for the scale of the rewards so far."""

    @abstractmethod
    def noise_var(self, hyper: LearnedHyper) -> float:
        """Returns the noise variance that the model has with these hyperparameters."""

    @abstractmethod
    def learn(self, model: Model, row: int, column: Any, value: float, centre: float, weight: float = 1.0) -> None:
        """Conditions the model on a reward; its noise is that of others over the weight, where that is below 1."""

    @abstractmethod
    def relearn(self, model: Model, history: History, centre: float) -> None:
        """Lets the model forget all rewards, and conditions it on this history instead."""

    @abstractmethod
    def can_fit(self, t: int, history: History) -> bool:
        """Returns whether t rewards, which a model keeps so, say anything about hyperparameters."""

    @abstractmethod
    def refit(self, model: Model, context: FitContext, t: int, start: LearnedHyper | None, centre: float) -> Found:
        """Gives the model the hyperparameters that its rewards call for, and returns them.

        Args:
            model: What learned t rewards.
            context: What kernels are made of.
            t: How many rewards there are.
            start: A warm start; None before the first fit.
            centre: The prior mean of rewards so far.
        """

    def describe(self) -> str:
        """Returns what differs from a Gaussian, in words."""
        return ""

    def upkeep_is_due(self, t: int) -> bool:  # noqa: ARG002 - others need it
        """Returns whether the model's observations are to be computed again after so many rewards, without a fit."""
        return False

    def keep_up(self, model: Model, centre: float) -> None:  # noqa: B027 - most have nothing to do
        """Computes the model's observations again."""

    def is_sound(self, model: Model, centre: float) -> bool:  # noqa: ARG002 - others need it
        """Returns whether the model's observations are those of the rewards, as near as they are kept."""
        return True

    def state(self) -> dict[str, Any]:
        """Returns what decisions depend on beside the model."""
        return {}

    def restore(self, state: dict[str, Any], model: Model) -> None:  # noqa: B027 - most have nothing to do
        """Takes what `state` returned."""


class GaussianLikelihood(Likelihood):
    """reward = centre + f(u, x) + noise: a reward less the centre is an observation of the model as it is."""

    name = "gaussian"

    def checked_reward(self, reward: Any) -> float:
        """Returns a reward as a number, or raises if it is not a finite one."""
        return checked_reward(reward)

    def prior(self, context: FitContext, history: History) -> Prior[Any]:
        """Returns the prior of the hyperparameters, for the scale of the rewards so far, 1 without any."""
        variance = centre_and_variance(history)[1]
        return context.prior(variance, noise_share_of(history, variance))

    def noise_var(self, hyper: LearnedHyper) -> float:
        """Returns the noise variance."""
        return hyper.noise_var

    def learn(self, model: Model, row: int, column: Any, value: float, centre: float, weight: float = 1.0) -> None:
        """Conditions the model on a reward less the centre."""
        model.learn_noisier(row, column, value - centre, weight=weight)

    def relearn(self, model: Model, history: History, centre: float) -> None:
        """Lets the model forget all rewards, and conditions it on this history instead, less the centre."""
        history.shift(-centre)
        model.relearn(history)

    def can_fit(self, t: int, history: History) -> bool:
        """Returns whether there are eight rewards that are not as good as equal."""
        return t >= FIRST_FIT and not is_constant(history)

    def refit(self, model: Model, context: FitContext, t: int, start: LearnedHyper | None, centre: float) -> Found:  # noqa: ARG002 - rewards are less it already
        """Gives the model the hyperparameters of highest evidence, or the prior's scaled to few rewards."""
        history = model.history
        prior, shift = self.prior(context, history), centre_and_variance(history)[0]
        hyper: LearnedHyper = start or prior.centre  # learned once, it stays if rewards go
        if self.can_fit(t, history):
            hyper, shift = fitted(context, history, t, prior, hyper)
        model.retune(context.kernel(hyper), self.noise_var(hyper), shift=-shift)
        return Found(hyper, shift)


def fitted(
    context: FitContext,
    history: History,
    t: int,
    prior: Prior[Any],
    start: LearnedHyper,
    *,
    run: Callable[[Climb], Summit] = Climb.run,
) -> Found:
    """Returns hyperparameters and level of the rewards by evidence, whose climb `run` runs."""
    mean, variance = context.level_prior(history)
    samples = context.evidences(history, t, mean, level_var=variance)
    hyper, level = run(Climb(samples, prior, start, context.climb))
    return Found(hyper, mean + level)
