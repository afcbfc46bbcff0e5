"""What came of decisions: rewards, one or many in a request, and activations."""

import asyncio

from coterie.errors import CoterieError
from coterie.service.app.requests.access import check_experiment
from coterie.service.app.requests.answers import Answer, answer_of
from coterie.service.app.requests.bodies import BodyType, converted
from coterie.service.app.requests.calls import Call, Route
from coterie.service.app.requests.failures import failure_of
from coterie.service.envelopes import EventReward, RewardBatch, RewardResult, RewardResults
from coterie.service.records import ActivationAnswer, EventId, RewardAnswer, RewardRequest


def event_of(call: Call) -> str:
    """Returns the event id in the path, or raises if it can be none."""
    event_id: str = converted(call.params["event_id"], EventId, root="event_id")
    return event_id


def check_event(call: Call, event_id: str) -> None:
    """Raises if the key is not good for rewards in the experiment of a decision; one that is not there is nobody's."""
    assert call.key is not None
    known = call.engine.state.decided(event_id) if call.key.experiments is not None else None
    if known is not None:
        call.experiment = known.experiment
        check_experiment(call.key, "reward", known.experiment)


def give(call: Call, event_id: str, reward: RewardRequest) -> RewardAnswer:
    """Learns a reward, if the key may give it."""
    check_event(call, event_id)
    assert call.key is not None
    answer = call.engine.reward(event_id, reward, call.key.experiments)
    call.service.metrics.reward(answer.status)
    return answer


def reward(call: Call) -> Answer:
    """Learns what came of a decision, or says why not."""
    return answer_of(give(call, event_of(call), call.given))


def activate(call: Call) -> Answer:
    """Lets a deferred decision count."""
    event_id = event_of(call)
    check_event(call, event_id)
    return answer_of(call.engine.activate(event_id))


async def reward_many(call: Call) -> Answer:
    """Learns what came of decisions, each for itself, in order; others are answered between them."""
    results = []
    for reward in call.given.rewards:
        results.append(_result(call, reward))
        await asyncio.sleep(0)
    return answer_of(RewardResults(results=results))


def _result(call: Call, given: EventReward) -> RewardResult:
    request = RewardRequest(
        value=given.value, reward_id=given.reward_id, observed_at=given.observed_at, place=given.place
    )
    try:
        return RewardResult(status=200, reward=give(call, given.event_id, request))
    except CoterieError as error:
        failure = failure_of(error)
        return RewardResult(status=failure.status, error=failure.refusal)


ROUTES = (
    Route(
        method="POST",
        path="/v1/events/{event_id}/reward",
        scope="reward",
        where="some",
        handler=reward,
        changes=True,
        body=BodyType(RewardRequest),
        answer={200: RewardAnswer},
    ),
    Route(
        method="POST",
        path="/v1/events/{event_id}/activate",
        scope="reward",
        where="some",
        handler=activate,
        changes=True,
        answer={200: ActivationAnswer},
        also=(400, 404),
    ),
    Route(
        method="POST",
        path="/v1/events/rewards",
        scope="reward",
        where="some",
        handler=reward_many,
        changes=True,
        body=BodyType(RewardBatch),
        answer={200: RewardResults},
    ),
)
