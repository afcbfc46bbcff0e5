"""What a reward says to the Gaussian model, and the hyperparameters that all rewards call for."""

from collections.abc import Callable
from typing import Any

from coterie.contracts import Array
from coterie.errors.checks import checked_reward
from coterie.models import History, Model
from coterie.policies.auto.evidence import Together, level_of
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.fits import FIRST_FIT, FitSchedule, Found
from coterie.policies.auto.parts import Hyper
from coterie.policies.auto.prior import Prior, fit
from coterie.policies.auto.statistics import centre_and_variance, is_constant, noise_share_of


class GaussianLikelihood:
    """reward = centre + f(u, x) + noise: a reward less the centre is an observation of the model as it is.

    Another likelihood reaches the model by observations of its own making, and overrides what differs.

    Attributes:
        schedule: When hyperparameters are fitted.
        is_conjugate: Whether the posterior is Gaussian, so that rewards can be replaced, tables learned at once, graphs
            changed and fits made in the background.
        inverse_link: Turns mean and std of the posterior into those of rewards; None where they are the same.
    """

    schedule = FitSchedule()
    is_conjugate = True
    inverse_link: Callable[[Array, Array], tuple[Array, Array]] | None = None

    def describe(self) -> str:
        """Returns what differs from a Gaussian, in words."""
        return ""

    def checked_reward(self, reward: Any) -> float:
        """Returns a reward as a number, or raises if it is none that this likelihood knows."""
        return checked_reward(reward)

    def prior(self, context: FitContext, history: History) -> Prior:
        """Returns the prior of the hyperparameters, for the scale of the rewards so far."""
        variance = centre_and_variance(history)[1]
        return Prior.of(context, variance, noise_share=noise_share_of(history, variance))

    def noise_var(self, hyper: Hyper) -> float:
        """Returns the noise variance that the model has with these hyperparameters."""
        return hyper.noise_var

    def learn(self, model: Model, row: int, column: Any, value: float, centre: float) -> None:
        """Conditions the model on a reward."""
        model.learn(row, column, value - centre)

    def relearn(self, model: Model, history: History, centre: float) -> None:
        """Lets the model forget all rewards, and conditions it on this history instead."""
        history.shift(-centre)
        model.relearn(history)

    def refit(self, model: Model, context: FitContext, t: int, start: Hyper | None, centre: float) -> Found:  # noqa: ARG002 - others need it
        """Gives the model the hyperparameters that its rewards call for, and returns them.

        Args:
            model: What learned t rewards.
            context: What kernels are made of.
            t: How many rewards there are.
            start: A warm start; None before the first fit.
            centre: The prior mean of rewards so far.
        """
        history = model.history
        prior, shift = self.prior(context, history), centre_and_variance(history)[0]
        hyper = start or prior.centre  # learned once, it stays if rewards go
        if t >= FIRST_FIT and not is_constant(history):
            hyper, shift = fitted(context, history, t, prior, hyper)
        model.retune(context.kernel(hyper), self.noise_var(hyper), shift=-shift)
        return Found(hyper, shift)

    def upkeep_is_due(self, t: int) -> bool:  # noqa: ARG002 - others need it
        """Returns whether the model's observations are to be computed again after so many rewards, without a fit."""
        return False

    def keep_up(self, model: Model, centre: float) -> None:
        """Computes the model's observations again."""

    def is_sound(self, model: Model, centre: float) -> bool:  # noqa: ARG002 - others need it
        """Returns whether the model's observations are those of the rewards, as near as they are kept."""
        return True

    def state(self) -> dict[str, Any]:
        """Returns what decisions depend on beside the model."""
        return {}

    def restore(self, state: dict[str, Any], model: Model) -> None:
        """Takes what `state` returned."""


def fitted(context: FitContext, history: History, t: int, prior: Prior, start: Hyper) -> Found:
    """Returns hyperparameters and level of the rewards by evidence; the level varies about their mean as they do."""
    mean, variance = centre_and_variance(history)
    samples = context.evidences(history, t, mean, level_var=variance)
    hyper = fit(Together(samples), prior, start)[0]
    return Found(hyper, mean + level_of(samples, hyper))
