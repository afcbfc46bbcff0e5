"""Requests over plain connections, so cheap that the sender is not what is measured."""

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import uvloop


class Connection(asyncio.Protocol):
    """A connection of HTTP/1.1 that has one request under way at most."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._got, self._answer = b"", asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_exception(error or ConnectionError("the service closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, found, body = self._got.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(body) >= length:
            self._got = b""
            self._answer.set_result((int(head[9:12]), body))

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Returns status and body of the answer."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        answer: tuple[int, bytes] = await self._answer
        return answer

    def close(self) -> None:
        self._transport.close()


def request_of(path: str, body: bytes, key: str, method: str = "POST") -> bytes:
    """Returns the bytes of a request."""
    head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


async def _connected(port: int, n: int) -> list[Connection]:
    loop = asyncio.get_running_loop()
    return [(await loop.create_connection(Connection, "127.0.0.1", port))[1] for _ in range(n)]


async def _at_once(port: int, requests: Sequence[bytes], n_connections: int) -> tuple[float, list[bytes]]:
    waiting, bodies = iter(requests), []
    connections = await _connected(port, n_connections)

    async def work(connection: Connection) -> None:
        for request in waiting:
            status, body = await connection.ask(request)
            assert status in (200, 201), (status, body)
            bodies.append(body)

    start = perf_counter()
    await asyncio.gather(*map(work, connections))
    seconds = perf_counter() - start
    for connection in connections:
        connection.close()
    return seconds, bodies


async def _at_rate(port: int, requests: Sequence[bytes], n_connections: int, rate: float) -> list[float]:
    free: asyncio.Queue[Connection] = asyncio.Queue()
    connections = await _connected(port, n_connections)
    for connection in connections:
        free.put_nowait(connection)
    taken: list[float] = []

    async def one(request: bytes, due: float) -> None:
        connection = await free.get()
        status, body = await connection.ask(request)
        assert status in (200, 201), (status, body)
        taken.append(perf_counter() - due)  # from when it was due: a queue counts
        free.put_nowait(connection)

    start, tasks = perf_counter(), []
    for number, request in enumerate(requests):
        due = start + number / rate
        if (wait := due - perf_counter()) > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(one(request, due)))
    await asyncio.gather(*tasks)
    for connection in connections:
        connection.close()
    return taken


def _run(made: Callable[[], Any]) -> Any:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(made())


def at_once(port: int, requests: Sequence[bytes], n_connections: int) -> tuple[float, list[bytes]]:
    """Returns the seconds that requests take when every connection asks again at once, and what was answered."""
    found: tuple[float, list[bytes]] = _run(lambda: _at_once(port, requests, n_connections))
    return found


def at_rate(port: int, requests: Sequence[bytes], n_connections: int, rate: float) -> list[float]:
    """Returns the seconds that each request takes when so many are due in a second."""
    found: list[float] = _run(lambda: _at_rate(port, requests, n_connections, rate))
    return found
