"""What the client asks for is what the service describes: every request is one of a route, and no route is left out."""

import re
from typing import Any

import pytest
from msgspec import convert

from coterie.service.app.description.document import document_of
from coterie.service.app.requests.calls import Route
from coterie.service.app.routes.table import ROUTES
from coterie.service.client import Client, DecisionRequest, SettingsChange
from coterie.service.client.methods import Method, Methods
from coterie.service.client.requests.call import Call

GIVEN: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "create_experiment": (("songs",), {"arms": {"hymn": [0.5]}, "edges": [("ana", "bo", 0.5)], "users": ["cy"]}),
    "experiments": ((), {}),
    "experiment": (("songs",), {}),
    "configure": (("songs", SettingsChange(wait_time=60.0, default_reward=None)), {}),
    "archive": (("songs",), {}),
    "reset": (("songs",), {}),
    "set_edges": (("songs", [("ana", "bo")]), {}),
    "replace_edges": (("songs", [("ana", "bo")]), {}),
    "add_users": (("songs", ["dee"]), {}),
    "remove_users": (("songs", ["dee"]), {}),
    "replace_users": (("songs", ["ana", "bo"]), {}),
    "put_arms": (("songs", {"jazz": {"tempo": 0.5}}), {}),
    "retire_arms": (("songs", ["jazz"]), {}),
    "revive_arms": (("songs", ["jazz"]), {}),
    "replace_arms": (("songs", ["jazz"]), {}),
    "decide": (("songs", "ana", ["hymn"], {"hour": 21}), {"exclude": ["punk"], "k": 2, "probabilities": True}),
    "decide_many": (("songs", [DecisionRequest(user="ana")]), {}),
    "reward": (("event", 1.0), {"observed_at": 1.0, "place": 2}),
    "reward_many": (([("event", 1.0)],), {}),
    "activate": (("event",), {}),
    "explain": (("songs", "ana", "hymn", {"hour": 21}), {}),
    "graph_report": (("songs",), {}),
    "export": (("songs",), {}),
    "evaluations": (("songs", ["greedy", "random"]), {"learning": True, "seed": 1, "confidence": 0.9}),
    "metrics": ((), {}),
    "log_page": (("songs", 1, 100), {}),
    "keys": ((), {}),
    "make_key": ((["decide", "reward"], ["songs"]), {}),
    "rotate_key": (("id",), {}),
    "revoke_key": (("id",), {}),
    "livez": ((), {}),
    "ready": ((), {}),
}
METHODS = [name for name, each in vars(Methods).items() if isinstance(each, Method)]


def call_of(name: str) -> Call[Any]:
    args, kwargs = GIVEN[name]
    return next(iter(getattr(Client, name)(*args, **kwargs)))


def route_of(call: Call[Any]) -> Route:
    found = [route for route in ROUTES if route.method == call.method and _fits(route.path, call.path)]
    exact = [route for route in found if "{" not in route.path.rpartition("/")[2]] or found
    assert len(exact) == 1, f"{call.method} {call.path} is of {[route.path for route in exact]}"
    return exact[0]


def _fits(template: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"{\w+}", "[^/]+", template), path) is not None


@pytest.mark.parametrize("name", METHODS)
def test_a_request_is_one_of_a_route_with_its_body_and_its_query(name: str) -> None:
    call = call_of(name)
    route = route_of(call)
    assert call.method.lower() in document_of(ROUTES)["paths"][route.path]
    assert (call.body is None) == (route.body is None)
    if route.body is not None:
        route.body.decode(call.body or b"")
    if call.params:
        convert(dict(call.params), route.query, strict=False)


def test_no_route_is_left_out() -> None:
    asked = {(route.method, route.path) for route in map(route_of, map(call_of, METHODS))}
    others = {(route.method, route.path) for route in ROUTES} - asked
    assert {path for _, path in others if not path.startswith("/personalizer/")} <= {"/openapi.json", "/docs"}


def test_what_cannot_be_repeated_is_a_change() -> None:
    for call in map(call_of, METHODS):
        assert call.is_repeatable or route_of(call).changes
