"""Decisions, one or many in a request."""

import asyncio

from coterie.errors import CoterieError
from coterie.service.app.requests.answers import Answer, answer_of
from coterie.service.app.requests.bodies import BodyType
from coterie.service.app.requests.calls import Call, Route
from coterie.service.app.requests.failures import failure_of
from coterie.service.app.routes.experiments import HERE
from coterie.service.envelopes import DecisionBatch, DecisionResult, DecisionResults
from coterie.service.records import DecisionAnswer, DecisionRequest


def decide(call: Call) -> Answer:
    """Makes a decision; a repeat of an event id with the same body gets what was logged."""
    answer, is_new = call.engine.decide(call.params["experiment"], call.given)
    call.service.metrics.decision(is_new=is_new)
    return answer_of(answer, 201 if is_new else 200)


async def decide_many(call: Call) -> Answer:
    """Makes decisions, each for itself, in order; others are answered between them."""
    call.engine.view(call.params["experiment"])  # raises if it is not there
    results = []
    for request in call.given.decisions:
        results.append(_result(call, request))
        await asyncio.sleep(0)
    return answer_of(DecisionResults(results=results))


def _result(call: Call, request: DecisionRequest) -> DecisionResult:
    try:
        answer, is_new = call.engine.decide(call.params["experiment"], request)
        call.service.metrics.decision(is_new=is_new)
        return DecisionResult(status=201 if is_new else 200, decision=answer)
    except CoterieError as error:
        failure = failure_of(error)
        return DecisionResult(status=failure.status, error=failure.refusal)


ROUTES = (
    Route(
        method="POST",
        path=f"{HERE}/decisions",
        scope="decide",
        handler=decide,
        changes=True,
        body=BodyType(DecisionRequest),
        answer={201: DecisionAnswer, 200: DecisionAnswer},
        also=(404, 409),
    ),
    Route(
        method="POST",
        path=f"{HERE}/decisions/batch",
        scope="decide",
        handler=decide_many,
        changes=True,
        body=BodyType(DecisionBatch),
        answer={200: DecisionResults},
        also=(404,),
    ),
)
