"""What can be read of an experiment: explanations, reports, its file, its log, other policies; and the counts."""

from typing import Annotated, Any

from msgspec import Meta
from msgspec.json import Decoder

from coterie.service.app.requests.answers import NDJSON, Answer, answer_of
from coterie.service.app.requests.bodies import strictly
from coterie.service.app.requests.calls import Call, Route
from coterie.service.app.requests.failures import RequestError
from coterie.service.app.routes.experiments import HERE
from coterie.service.engine import reading
from coterie.service.records import Context, Id, Record

FILE = b"application/octet-stream"
TEXT = b"text/plain; version=0.0.4; charset=utf-8"
MOST_LINES = 10_000
MOST_POLICIES = 20

_context_decoder = Decoder(Context)


class ExplainQuery(Record, frozen=True, kw_only=True):
    """Whose estimate of which arm; the context is JSON, as that of a decision."""

    user: Id
    arm: Id
    context: Annotated[str, Meta(max_length=4000)] | None = None


class LogQuery(Record, frozen=True, kw_only=True):
    """From which event on, and how many lines at most."""

    from_seq: Annotated[int, Meta(ge=1, le=2**62)] = 1
    limit: Annotated[int, Meta(ge=1, le=MOST_LINES)] = 1000


class EvaluationQuery(Record, frozen=True, kw_only=True):
    """Which policies, by names with commas between them, and how they are judged."""

    policies: Annotated[str, Meta(min_length=1, max_length=1000)]
    learning: bool = False
    estimators: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    fit_share: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    confidence: Annotated[float, Meta(gt=0, lt=1)] = 0.95
    n_draws: Annotated[int, Meta(ge=1, le=10_000)] = 1000
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0


def explain(call: Call) -> Answer:
    """Says which users, arms and rewards moved an estimate, and by how much."""
    given: ExplainQuery = call.given
    context = None if given.context is None else strictly(_context_decoder, given.context.encode(), "context")
    found = reading.explain(call.engine, call.params["experiment"], given.user, given.arm, context)
    return answer_of(found)


def graph_report(call: Call) -> Answer:
    """Says what the rewards say about the graph."""
    return answer_of(reading.graph_report(call.engine, call.params["experiment"]))


def export(call: Call) -> Answer:
    """Returns the file of the experiment's bandit, which `Bandit.load` reads."""
    return Answer(200, reading.export(call.engine, call.params["experiment"]), FILE)


def log(call: Call) -> Answer:
    """Returns durable events of the experiment, a line of JSON each."""
    given: LogQuery = call.given
    lines = reading.log(call.engine, call.params["experiment"], given.from_seq, given.limit)
    return Answer(200, b"".join(lines), NDJSON)


def evaluations(call: Call) -> Answer:
    """Says what other policies would have earned, by the experiment's own log."""
    given: EvaluationQuery = call.given
    policies = [name.strip() for name in given.policies.split(",")]
    if len(policies) > MOST_POLICIES:
        rule = f"at most {MOST_POLICIES} are judged at once"
        raise RequestError(400, "query", f"there are {len(policies)} policies", rule, "Ask again", path="$.policies")
    names = ("learning", "fit_share", "confidence", "n_draws", "seed")
    asked: dict[str, Any] = {name: getattr(given, name) for name in names}
    if given.estimators is not None:
        asked["estimators"] = [name.strip() for name in given.estimators.split(",")]
    return answer_of(reading.evaluate(call.engine, call.params["experiment"], policies, **asked))


def metrics(call: Call) -> Answer:
    """Returns the counts of the service, in the text format of Prometheus."""
    return Answer(200, call.service.metrics.text(), TEXT)


def _read(part: str, handler: Any, answer: Any, query: Any = None) -> Route:
    return Route(
        method="GET",
        path=f"{HERE}/{part}",
        scope="read",
        handler=handler,
        is_long=True,
        query=query,
        answer={200: answer},
        also=(404, 422),
    )


ROUTES = (
    _read("explain", explain, dict[str, Any], ExplainQuery),
    _read("graph-report", graph_report, dict[str, Any]),
    _read("export", export, FILE),
    _read("log", log, NDJSON, LogQuery),
    _read("evaluations", evaluations, dict[str, Any], EvaluationQuery),
    Route(method="GET", path="/metrics", scope="read", where="all", handler=metrics, answer={200: TEXT}),
)
