"""Decisions and what came of them."""

from collections.abc import Iterable

from coterie.service.client.requests.call import Plan, Steps, sent
from coterie.service.client.requests.rows import (
    ArmsLike,
    RewardLike,
    as_candidates,
    as_reward,
    batches,
    new_id,
    with_id,
)
from coterie.service.envelopes import (
    MOST_IN_BATCH,
    DecisionBatch,
    DecisionResult,
    DecisionResults,
    RewardBatch,
    RewardResult,
    RewardResults,
)
from coterie.service.records import (
    ActivationAnswer,
    Context,
    DecisionAnswer,
    DecisionRequest,
    RewardAnswer,
    RewardRequest,
)


def decide(
    experiment: str,
    user: str,
    candidates: ArmsLike | None = None,
    context: Context | None = None,
    *,
    event_id: str | None = None,
    exclude: Iterable[str] = (),
    k: int | None = None,
    defer_activation: bool = False,
    probabilities: bool = False,
) -> Plan[DecisionAnswer]:
    """Returns a decision.

    Args:
        experiment: Of which.
        user: For whom.
        candidates: Ids of arms, or new arms with features; none given means every arm that is not retired.
        context: What is different about this moment.
        event_id: By which a repeat is known; one is made if none is given.
        exclude: Arms that are not to be chosen.
        k: How many places a slate has; none given means one decision.
        defer_activation: Whether the decision counts only once it is activated.
        probabilities: Whether the answer has the probability of each candidate.
    """
    request = DecisionRequest(
        user=user,
        candidates=as_candidates(candidates),
        context=context,
        event_id=event_id or new_id(),
        exclude=list(exclude),
        k=k,
        defer_activation=defer_activation,
        probabilities=probabilities,
    )
    return sent(DecisionAnswer, "POST", request, "v1", "experiments", experiment, "decisions")


def decide_many(experiment: str, requests: Iterable[DecisionRequest]) -> Steps[list[DecisionResult]]:
    """Returns what came of each request, in order: a decision, or an error of its own."""
    path, results = ("v1", "experiments", experiment, "decisions", "batch"), []
    for batch in batches(map(with_id, requests), MOST_IN_BATCH):
        answer = yield from sent(DecisionResults, "POST", DecisionBatch(decisions=batch), *path)
        results += answer.results
    return results


def reward(
    event_id: str, value: float, *, reward_id: str | None = None, observed_at: float | None = None, place: int = 1
) -> Plan[RewardAnswer]:
    """Tells what came of a decision, and returns what became of that.

    Args:
        event_id: Which decision.
        value: The reward.
        reward_id: By which a repeat is known; one is made if none is given.
        observed_at: When it was observed, in seconds since 1970.
        place: Which place of a slate it is for, from 1.
    """
    body = RewardRequest(value=value, reward_id=reward_id or new_id(), observed_at=observed_at, place=place)
    return sent(RewardAnswer, "POST", body, "v1", "events", event_id, "reward")


def reward_many(rewards: Iterable[RewardLike]) -> Steps[list[RewardResult]]:
    """Tells what came of many decisions, each (event_id, value) or a record; returns what became of each, in order."""
    results: list[RewardResult] = []
    for batch in batches(map(as_reward, rewards), MOST_IN_BATCH):
        answer = yield from sent(RewardResults, "POST", RewardBatch(rewards=batch), "v1", "events", "rewards")
        results += answer.results
    return results


def activate(event_id: str) -> Plan[ActivationAnswer]:
    """Lets a deferred decision count."""
    return sent(ActivationAnswer, "POST", None, "v1", "events", event_id, "activate")
