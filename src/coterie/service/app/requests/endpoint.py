"""The way of a request: admitted, read, decoded, handled, durable, answered; then counted and logged."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from coterie.service.app.requests.access import admit
from coterie.service.app.requests.answers import Answer, Header, Send
from coterie.service.app.requests.bodies import BodyType, converted
from coterie.service.app.requests.calls import Call, Route, Service
from coterie.service.app.requests.failures import RETRY_AFTER, RequestError, failure_of
from coterie.service.app.requests.notes import Notes

Receive: TypeAlias = Callable[[], Awaitable[Any]]

CLOSE: Header = (b"connection", b"close")
LARGE = 64 * 1024  # bytes, from which on a body is decoded in a thread, and an answer sent in parts
LINGERS = 1.0  # seconds, in which a body that is too large is thrown away, so that its sender reads the answer


class Endpoint:
    """The app of ASGI for one route.

    Args:
        service: What all calls share.
        route: The route.
        notes: What is counted and logged.
    """

    def __init__(self, service: Service, route: Route, notes: Notes) -> None:
        self._service, self._route, self._notes = service, route, notes
        self._seconds = service.settings.read_seconds if route.is_long else service.settings.request_seconds

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answers a request."""
        started, service = perf_counter(), self._service
        call = Call(
            service=service, params=scope["path_params"], headers=dict(scope["headers"]), query=scope["query_string"]
        )
        try:
            try:
                service.limits.enter()
                answer = await self._answer(call, receive)
            except Exception as error:
                answer = failure_of(error).answer
            await self._send(answer, call, receive, send)
        finally:
            service.limits.leave(call.n_bytes)
        self._notes.take(self._route, answer.status, perf_counter() - started, call)

    async def _answer(self, call: Call, receive: Receive) -> Answer:
        admit(self._route, call)
        try:
            async with asyncio.timeout(self._seconds):
                await self._take_given(call, receive)
                return await self._handled(call)
        except TimeoutError:
            raise _late(call.is_read) from None

    async def _take_given(self, call: Call, receive: Receive) -> None:
        route = self._route
        if route.body is not None:
            decode = _decoder(route.body, call.headers)
            body = await read_body(call, receive)
            call.given = decode(body) if len(body) < LARGE else await asyncio.to_thread(decode, body)
            return
        call.is_read = b"transfer-encoding" not in call.headers and call.headers.get(b"content-length", b"0") == b"0"
        if route.query is not None:
            pairs = parse_qsl(call.query.decode("latin-1"), keep_blank_values=True)
            if len(dict(pairs)) < len(pairs):
                raise RequestError(400, "query", "a parameter is given twice", "each is given once", "Leave one out")
            call.given = converted(dict(pairs), route.query, strict=False)

    async def _handled(self, call: Call) -> Answer:
        """Returns an answer; that of a change once all that has happened by then is durable."""
        call.experiment = call.params.get("experiment", "")
        if self._route.changes:
            commits = self._service.running.commits
            commits.check_open()
            made = self._route.handler(call)
            answer = made if isinstance(made, Answer) else await made
            await commits.durable(call.engine.state.seq)
            return answer
        if self._route.is_long:
            return await self._service.read(partial(self._in_one_go, call))
        return self._in_one_go(call)

    def _in_one_go(self, call: Call) -> Answer:
        made = self._route.handler(call)
        assert isinstance(made, Answer)
        return made

    async def _send(self, answer: Answer, call: Call, receive: Receive, send: Send) -> None:
        """Sends an answer; the connection ends if a body was not read that is too large, or of unknown size."""
        size = call.headers.get(b"content-length", b"0")
        unread = not call.is_read and (
            b"transfer-encoding" in call.headers or int(size) > self._service.settings.most_body_bytes
        )
        if unread and CLOSE not in answer.headers:
            answer = answer._replace(headers=(*answer.headers, CLOSE))
        await send(answer.start)
        for first in range(0, len(answer.body), LARGE):
            part = answer.body[first : first + LARGE]
            more = unread or first + LARGE < len(answer.body)
            await send({"type": "http.response.body", "body": part, "more_body": more})
        if unread:
            await _throw_away(receive, self._service.settings.most_body_bytes)
        if unread or not answer.body:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def read_body(call: Call, receive: Receive) -> bytes:
    """Returns the body of a request, or raises if it is too large, as soon as that is known."""
    most, limits = call.service.settings.most_body_bytes, call.service.limits
    if int(call.headers.get(b"content-length", b"0")) > most:
        _refuse_size(most)
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestError(400, "body", "the body ended early", "a body has its whole length", "Send it again")
        part = message.get("body", b"")
        call.n_bytes += len(part)
        limits.take(len(part))
        if call.n_bytes > most:
            _refuse_size(most)
        parts.append(part)
        if not message.get("more_body", False):
            call.is_read = True
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _refuse_size(most: int) -> None:
    rule = f"a body has at most {most} bytes"
    raise RequestError(413, "too_large", "the body is too large", rule, "Send several requests", headers=(CLOSE,))


def _decoder(body: BodyType, headers: dict[bytes, bytes]) -> Callable[[bytes], Any]:
    """Returns what decodes a body of the content type that a request has."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind == b"application/json":
        return body.decode
    if kind in (b"application/x-ndjson", b"application/ndjson") and body.line is not None:
        return body.decode_lines
    name = kind.decode("latin-1")
    known = "application/json" if body.line is None else "application/json or application/x-ndjson"
    raise RequestError(415, "media_type", f"the content type is {name!r}", f"it is {known} here", "Say so in the head")


def _late(is_read: bool) -> RequestError:
    if not is_read:
        rule, remedy = "a body comes within some seconds", "Send it again, faster"
        return RequestError(408, "slow", "the body took too long", rule, remedy, headers=(CLOSE,))
    rule, remedy = "nobody knows yet whether it is durable", "Send it again with the same ids: it is made once"
    return RequestError(503, "late", "the answer took too long", rule, remedy, headers=(RETRY_AFTER,))


async def _throw_away(receive: Receive, most: int) -> None:
    """Reads a part of what a sender still sends, so that it comes to read the answer."""
    n_bytes = 0
    try:
        async with asyncio.timeout(LINGERS):
            while n_bytes < most:
                message = await receive()
                n_bytes += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        return
