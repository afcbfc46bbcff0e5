"""Answers of the engine, and what values it takes."""

from msgspec import UNSET, UnsetType

from coterie.errors import ParameterError, RewardError
from coterie.errors.checks import checked_binary, checked_reward
from coterie.product.bandit import Bandit
from coterie.product.decisions import Decision
from coterie.service.records import Context, DecisionAnswer, DecisionRequest, ExperimentSettings, Features, Place


def answer_of(
    event_id: str, request: DecisionRequest, places: list[Decision], version: int, seq: int
) -> DecisionAnswer:
    """Returns the answer to a request, with the decision of each place."""
    first = places[0]
    every: dict[str, float] | UnsetType = UNSET
    slate: list[Place] | UnsetType = UNSET
    if request.probabilities:
        every = {str(arm): each.propensity for arm, each in first.candidates.items() if each.propensity is not None}
    if request.k is not None:
        slate = [Place(arm=str(each.arm), propensity=each.propensity, mean=each.mean, std=each.std) for each in places]
    return DecisionAnswer(
        event_id=event_id,
        arm=str(first.arm),
        propensity=first.propensity,
        mean=first.mean,
        std=first.std,
        model_version=version,
        seq=seq,
        probabilities=every,
        slate=slate,
    )


def check_candidates(
    bandit: Bandit, candidates: dict[str, Features | None], context: Context | None, *, join: bool
) -> None:
    """Raises if nothing can be decided among candidates, for whomever; nothing has changed.

    Args:
        bandit: Who is to decide.
        candidates: The features that they come with, by id.
        context: In which they are shown.
        join: Whether those that are new are to join the arms.
    """
    with bandit._lock:  # a reader in another thread may be at work
        bandit._shown(bandit._requests(), candidates, context, keep=join)


def check_place(place: int, n_places: int) -> None:
    """Raises if a decision has no such place."""
    if place > n_places:
        what, rule = f"place {place} was rewarded", f"the decision has {n_places}"
        raise RewardError(what, rule, "Leave it out, or name one of them")


def check_reward(value: float, settings: ExperimentSettings) -> None:
    """Raises if a reward is none of an experiment's."""
    (checked_binary if settings.binary else checked_reward)(value)
    if settings.reward_range is not None:
        least, most = settings.reward_range
        if not least <= value <= most:
            rule = f"this experiment's rewards are from {least:g} to {most:g}"
            raise RewardError(f"the reward is {value!r}", rule, "Pass such, or change reward_range")


def check_settings(settings: ExperimentSettings) -> None:
    """Raises if settings contradict each other."""
    if settings.reward_range is not None and not settings.reward_range[0] < settings.reward_range[1]:
        what = f"reward_range is {list(settings.reward_range)}"
        raise ParameterError(what, "it is the least and the greatest reward", "Put the smaller first")
    if settings.default_reward is not None:
        check_reward(settings.default_reward, settings)
    if settings.binary and settings.aggregation in ("sum", "mean"):
        what, rule = f"aggregation is {settings.aggregation!r}", "binary rewards come to 0 or 1"
        raise ParameterError(what, rule, "Use 'first', 'last' or 'max', or rewards that are not binary")
