"""What a request is refused with: words that are right over HTTP, and what is allowed instead."""

import re
from typing import Any

import pytest

from service_app import DECISIONS, NEWS, service

PYTHON = re.compile(r"None|True|\w+\(|\bbandit\b|UserGraph|add_user|add_arms|update_features")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/experiments", NEWS | {"id": "empty", "graph": {}}),
        (DECISIONS, {"user": "zoe"}),
        (DECISIONS, {"user": "ana", "exclude": ["tea", "ale"]}),
        (DECISIONS, {"user": "ana", "candidates": ["tea"], "exclude": ["tea"]}),
        (DECISIONS, {"user": "ana", "context": {"hour": 1}}),
        (DECISIONS, {"user": "ana", "candidates": [{"id": "gin"}]}),
        (DECISIONS, {"user": "ana", "candidates": [{"id": "tea", "features": [5.0, 5.0]}]}),
    ],
)
def test_a_remedy_is_right_for_who_speaks_no_python(path: str, body: Any) -> None:
    with service() as call:
        assert call("POST", DECISIONS, {"user": "ana"}).status_code == 201
        refused = call("POST", path, body)
        assert refused.status_code == 422
        error = refused.json()["error"]
        assert not PYTHON.search(f"{error['problem']}; {error['rule']}. {error['remedy']}"), error


@pytest.mark.parametrize(
    ("method", "path", "body", "field", "allowed"),
    [
        ("PATCH", "/v1/experiments/news", {"aggregation": "median"}, "$.aggregation", "'first', 'last', 'max', 'mean'"),
        ("POST", "/v1/keys", {"scopes": ["read", "write"]}, "$.scopes[1]", "'admin', 'decide', 'read', 'reward'"),
    ],
)
def test_a_value_that_is_none_of_a_few_is_refused_with_those(
    method: str, path: str, body: Any, field: str, allowed: str
) -> None:
    with service() as call:
        refused = call(method, path, body)
        assert (refused.status_code, refused.json()["error"]["path"]) == (400, field)
        assert allowed in refused.json()["error"]["rule"]


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/", 404), ("DELETE", "/livez", 405)])
def test_who_is_lost_is_told_where_the_routes_are(method: str, path: str, status: int) -> None:
    with service(news=False) as call:
        refused = call.client.request(method, path)
        assert refused.status_code == status
        assert "Open /docs" in refused.json()["error"]["remedy"]
