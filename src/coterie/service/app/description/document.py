"""The description of the routes in OpenAPI 3.1, from the table of routes and the records that they take and give."""

import re
from collections.abc import Sequence
from http import HTTPStatus
from inspect import cleandoc, getdoc
from typing import Any, TypeAlias

from msgspec.json import encode, format, schema_components

from coterie.contracts import VERSION
from coterie.service.app.description.page import page_of
from coterie.service.app.requests.answers import NDJSON
from coterie.service.app.requests.calls import Route
from coterie.service.envelopes import ErrorAnswer
from coterie.service.records import EventId, ExperimentId, Id

Document: TypeAlias = dict[str, Any]

IN_PATHS: dict[str, tuple[Any, str]] = {
    "experiment": (ExperimentId, "The id of an experiment"),
    "event_id": (EventId, "The id of a decision"),
    "key": (Id, "The id of a key, which is no key"),
}
MEANINGS = {
    200: "It is done",
    201: "It is made",
    204: "It is done",
    400: "The request is not as its record says; `path` names the field",
    401: "There is no key that is good",
    403: "The key is not good for this",
    404: "There is no such thing",
    408: "The body took too long",
    409: "It contradicts what is there: an id that is taken, an experiment that is archived",
    413: "The body is too large",
    415: "The content type is another",
    422: "A value is refused; nothing has changed",
    429: "The key comes too often",
    503: "Not now: the service starts, has too much to do, or has no room; try again later",
}
_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n        .*)*)", re.MULTILINE)


def documents(routes: Sequence[Route]) -> dict[str, bytes]:
    """Returns the description as JSON, and as a page."""
    described = document_of(routes)
    return {"openapi": format(encode(described), indent=1), "docs": page_of(described).encode()}


def document_of(routes: Sequence[Route]) -> Document:
    """Returns the description of routes."""
    schemas, components = _schemas(routes)
    paths: Document = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas, components)
    bearer = {"type": "http", "scheme": "bearer", "description": "A key: ctr_..."}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Coterie", "version": VERSION, "description": "Decisions that learn, on a graph of users."},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"key": bearer}},
    }


def statuses(route: Route) -> list[int]:
    """Returns every status that a route can answer with."""
    found = {*route.answer, *route.also, 503}
    if route.scope is not None:
        found |= {401, 403, 429}
    if "{" in route.path:
        found |= {404}
    if route.body is not None:
        found |= {400, 408, 413, 415}
    if route.query is not None:
        found |= {400}
    if route.changes:
        found |= {422}
    return sorted(found)


def _schemas(routes: Sequence[Route]) -> tuple[dict[Any, Document], Document]:
    """Returns the schema of each type that routes name, and the components that those refer to."""
    types: list[Any] = [ErrorAnswer]
    for route in routes:
        types += [each for each in route.answer.values() if each is not None and not isinstance(each, bytes)]
        types += [] if route.body is None else [each for each in (route.body.record, route.body.line) if each]
        types += [] if route.query is None else [route.query]
    types += [each for each, _ in IN_PATHS.values()]
    unique = [each for number, each in enumerate(types) if each not in types[:number]]
    schemas, components = schema_components(unique, ref_template="#/components/schemas/{name}")
    for each in components.values():
        _describe(each)
    return dict(zip(unique, schemas, strict=True)), components


def _describe(component: Document) -> None:
    """Puts what a docstring says of attributes to the properties."""
    text = cleandoc(component.get("description", ""))
    component["description"], _, rest = text.partition("\n\nAttributes:\n")
    for name, told in _ATTRIBUTE.findall(rest):
        if name in component.get("properties", {}):
            component["properties"][name]["description"] = " ".join(told.split())


def _operation(route: Route, schemas: dict[Any, Document], components: Document) -> Document:
    summary = (getdoc(route.handler) or "").split("\n\n")[0].replace("\n", " ").rstrip(".")
    name = f"{route.method.lower()}_{re.sub(r'[^a-z0-9]+', '_', route.path.lower()).strip('_')}"
    out: Document = {"operationId": name, "summary": summary, "responses": _responses(route, schemas)}
    out["tags"] = [route.handler.__module__.rpartition(".")[2]]
    out["parameters"] = _in_path(route, schemas) + _in_query(route, components)
    if route.scope is not None:
        out["security"], out["x-scope"] = [{"key": []}], route.scope
    if route.body is not None:
        content = {"application/json": {"schema": schemas[route.body.record]}}
        if route.body.line is not None:
            content[NDJSON.decode()] = {"schema": {"type": "string", "description": "A line of JSON for each"}}
        out["requestBody"] = {"required": True, "content": content}
    return out


def _in_path(route: Route, schemas: dict[Any, Document]) -> list[Document]:
    names = re.findall(r"{(\w+)}", route.path)
    return [
        {"name": name, "in": "path", "required": True, "schema": schemas[kind], "description": text}
        for name, (kind, text) in ((name, IN_PATHS[name]) for name in names)
    ]


def _in_query(route: Route, components: Document) -> list[Document]:
    if route.query is None:
        return []
    record = components.pop(route.query.__name__)
    return [
        {"name": name, "in": "query", "required": name in record.get("required", ()), "schema": schema}
        for name, schema in record["properties"].items()
    ]


def _responses(route: Route, schemas: dict[Any, Document]) -> Document:
    out: Document = {}
    for status in statuses(route):
        answer = route.answer.get(status, ErrorAnswer)
        phrase = HTTPStatus(status).phrase
        described: Document = {"description": MEANINGS.get(status, phrase)}
        if isinstance(answer, bytes):
            described["content"] = {answer.decode(): {"schema": {}}}
        elif answer is not None:
            described["content"] = {"application/json": {"schema": schemas[answer]}}
        out[str(status)] = described
    return out
