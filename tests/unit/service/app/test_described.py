"""What the app answers is what it says of itself: requests made from its own description, good ones and bad ones."""

import json
import os
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from coterie.service.app import ServiceSettings
from coterie.service.app.description.document import document_of
from coterie.service.app.routes.table import ROUTES
from service_app import DECISIONS, Caller, service

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
LONGEST_URL = 60_000
BASE = "http://testserver.local"
DESCRIBED = schemathesis.openapi.from_dict(document_of(ROUTES))
OPERATIONS = {each.label: each for each in (found.ok() for found in DESCRIBED.get_all_operations())}  # type: ignore[union-attr]
ENDS_IT = {"DELETE /v1/experiments/{experiment}"}  # is tried on experiments that are not there
MODES = {"good": GenerationMode.POSITIVE, "bad": GenerationMode.NEGATIVE}


@pytest.fixture(scope="module")
def call() -> Any:
    quiet = ServiceSettings(personalizer_experiment="news", log_requests=False)
    with service(quiet) as caller:
        assert caller("POST", DECISIONS, {"user": "ana", "event_id": "e1"}).status_code == 201
        yield caller


def tried(call: Caller, label: str, mode: str, n: int) -> int:
    """Sends requests made from the description of a route, checks the answers, and returns how many were sent."""
    operation, sent = OPERATIONS[label], 0
    if mode == "bad" and not (operation.body or operation.query or operation.path_parameters):
        return 0

    @seed(0)
    @settings(
        max_examples=n,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(MODES[mode]))
    def send(case: Any) -> None:
        nonlocal sent
        sent += 1
        if "experiment" in (case.path_parameters or {}) and label not in ENDS_IT and sent % 5:
            case.path_parameters["experiment"] = "news"
        made = requests.Request(**case.as_transport_kwargs(base_url=BASE)).prepare()
        assert made.url is not None
        assert made.method is not None
        if len(made.url) > LONGEST_URL:
            return  # no client sends it
        headers = {name: str(value) for name, value in made.headers.items()}
        body: Any = made.body.encode() if isinstance(made.body, str) else made.body
        bearer = {"authorization": f"Bearer {call.key}"}
        answer = call.client.request(made.method, made.url, content=body, headers=headers | bearer)
        case.validate_response(answer, checks=CHECKS)

    send()
    return sent


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("label", OPERATIONS)
def test_no_answer_is_a_fault_or_undocumented(label: str, mode: str, call: Caller) -> None:
    tried(call, label, mode, 4)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("label", OPERATIONS)
def test_no_answer_of_many_is_a_fault_or_undocumented(label: str, mode: str, call: Caller) -> None:
    tried(call, label, mode, int(os.environ.get("COTERIE_TRIES", "200")))


def test_every_route_is_described() -> None:
    assert set(OPERATIONS) == {f"{route.method} {route.path}" for route in ROUTES}


def test_the_page_has_every_route_and_nothing_from_elsewhere(call: Caller) -> None:
    page = call.client.get("/docs")
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    for route in ROUTES:
        assert route.path in page.text
    assert "http://" not in page.text
    assert "https://" not in page.text
    assert "src=" not in page.text
    assert json.loads(call.client.get("/openapi.json").text)["openapi"] == "3.1.0"
