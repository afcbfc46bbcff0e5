"""Decisions that say whether they are certain: those that the exact belief would make."""

from collections.abc import Mapping
from typing import Any

from coterie.errors import ParameterError
from coterie.policies.policy import Policy
from coterie.policies.rules.scores import Score, Scored
from coterie.policies.rules.widths import Width


class CertifiedPolicy(Policy):
    """A policy on a model that refines what it believes of the contenders until the choice is certain, if it can.

    A certain choice is the one that the exact belief on the same features would make. While uncertainty is read from
    another model than the mean (pending decisions that are hallucinated), no choice is called certain.
    """

    decides_together = False  # each is refined by itself

    def prospects(self, row: int, arms: Any) -> None:
        """Returns nothing: among other candidates others are contenders."""

    def _decide(self, row: int, arms: Any, number: int) -> Scored:
        model, width = self._model, self.width
        if self.pending_model is not None or not model.certifies or callable(width):
            return super()._decide(row, arms, number)._replace(certain=False)
        slope = float(self._score.slope(width, model))
        mean, std, certain = model.read_certain(row, arms, slope)
        score = mean + slope * std
        return self._scored(row, arms, number, mean, std, width, score)._replace(certain=certain)


def is_certified(engine_options: Any) -> bool:
    """Returns whether certified choices are asked for."""
    return isinstance(engine_options, Mapping) and bool(engine_options.get("certified"))


def refuse_certified(name: str, engine_options: Any) -> None:
    """Raises if certified choices are asked for of a policy whose hyperparameters are learned."""
    if is_certified(engine_options):
        raise ParameterError(
            f"certified=True was asked for with {name!r}",
            "its hyperparameters are estimates themselves, and no choice of theirs is certain",
            "Leave engine option 'certified' out, or use 'lk-gp-ucb' with a kernel of your own",
        )


def check_certifiable(name: str, score: Score, width: Width) -> None:
    """Raises if the choices of such a policy cannot be certified."""
    if not score.is_deterministic:
        raise ParameterError(
            f"certified=True was asked for with {name!r}",
            "only the highest mean + width * std can be certain: a UCB policy, or greedy",
            "Leave engine option 'certified' out, or use 'lk-gp-ucb'",
        )
    if callable(width):
        raise ParameterError(
            f"certified=True was asked for with width {width!r}",
            "a function of the model may depend on what is not exact there, so the width is a number",
            "Pass a number, or leave engine option 'certified' out",
        )
