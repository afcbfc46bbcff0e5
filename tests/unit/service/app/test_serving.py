"""The app on a port: slow clients, large bodies, a stop with requests in work."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from threadpoolctl import threadpool_info, threadpool_limits

from coterie.runs.workers import BLAS_THREADS
from coterie.service.app import ServiceSettings, create_app
from coterie.service.app.serving import server_config, tuned
from coterie.service.engine.running import RunningEngine, ensure_admin_key
from coterie.service.journal import MemoryJournal
from service_app import NEWS, until

MIB = 2**20


class Served:
    """A service on a port of this computer.

    Attributes:
        port: The port.
        key: A key that may do everything.
        server: What serves.
    """

    def __init__(self, port: int, key: str, server: uvicorn.Server) -> None:
        self.port, self.key, self.server = port, key, server
        self.bearer = {"authorization": f"Bearer {key}"}

    def post(self, path: str, body: Any) -> httpx.Response:
        return httpx.post(f"http://127.0.0.1:{self.port}{path}", json=body, headers=self.bearer)

    def head(self, *lines: str) -> bytes:
        """Returns the head of a decision, up to what follows."""
        start = ["POST /v1/experiments/news/decisions HTTP/1.1", "host: localhost", f"authorization: Bearer {self.key}"]
        return "\r\n".join([*start, "content-type: application/json", *lines]).encode()

    def connected(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)


@contextmanager
def served(**given: Any) -> Iterator[Served]:
    keys: list[str] = []

    async def when_ready(running: RunningEngine) -> None:
        keys.append(await ensure_admin_key(running) or "")

    settings = ServiceSettings(port=0, log_requests=False, **given)
    app = create_app(RunningEngine(MemoryJournal), settings, when_ready=when_ready)
    server = uvicorn.Server(server_config(app, settings))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until(lambda: bool(keys) and server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        out = Served(port, keys[0], server)
        assert out.post("/v1/experiments", NEWS).status_code == 201
        yield out
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served(header_seconds=0.5, request_seconds=0.5, keep_alive_seconds=1, most_body_bytes=MIB) as out:
        yield out


def all_of(connection: socket.socket) -> bytes:
    """Returns what comes until the other end closes."""
    parts: list[bytes] = []
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            part = b""
        if not part:
            return b"".join(parts)
        parts.append(part)


def decides(service: Served) -> bool:
    return service.post("/v1/experiments/news/decisions", {"user": "ana"}).status_code == 201


def test_who_sends_a_head_slowly_is_cut_off(service: Served) -> None:
    with service.connected() as silent, service.connected() as slow:
        for byte in service.head()[:20]:
            slow.sendall(bytes([byte]))
        started = time.monotonic()
        assert all_of(silent) == b""
        assert all_of(slow) == b""
        assert time.monotonic() - started < 3
    assert decides(service)


def test_who_sends_a_second_head_slowly_is_cut_off(service: Served) -> None:
    body = b'{"user":"ana"}'
    with service.connected() as slow:
        slow.sendall(service.head(f"content-length: {len(body)}", "", "") + body)
        assert slow.recv(65536).startswith(b"HTTP/1.1 201")
        slow.sendall(b"POST /v1")
        assert b"HTTP/1.1" not in all_of(slow)


def test_a_head_that_is_too_large_is_cut_off(service: Served) -> None:
    with service.connected() as large:
        large.sendall(service.head("x-more: " + "y" * 40_000, "x-more: "))
        large.sendall(b"y" * 60_000)
        assert all_of(large)[:12] in (b"HTTP/1.1 400", b"")
    assert decides(service)


def test_who_sends_a_body_slowly_is_cut_off(service: Served) -> None:
    for lines, part in ((["content-length: 100"], b'{"user"'), (["transfer-encoding: chunked"], b"1\r\n{\r\n")):
        with service.connected() as slow:
            slow.sendall(service.head(*lines, "", "") + part)
            answer = all_of(slow)
            assert answer.startswith(b"HTTP/1.1 408")
            assert b"connection: close" in answer
    assert decides(service)


def test_who_leaves_in_the_middle_of_a_body_harms_nobody(service: Served) -> None:
    with service.connected() as gone:
        gone.sendall(service.head("content-length: 100", "", "") + b'{"user"')
    assert decides(service)


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_of_a_hundred_megabytes_is_cut_off_and_the_answer_arrives(service: Served, declared: bool) -> None:
    size, sent = 100 * MIB, 0
    with service.connected() as large:
        line = f"content-length: {size}" if declared else "transfer-encoding: chunked"
        large.sendall(service.head(line, "", ""))
        part = b" " * MIB if declared else b"100000\r\n" + b" " * MIB + b"\r\n"
        try:
            while sent < size:
                large.sendall(part)
                sent += MIB
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert sent < 50 * MIB
    with service.connected() as polite:  # which waits for the answer before it sends more than the limit
        polite.sendall(service.head(line, "", "") + part * 2)
        answer = all_of(polite)
        assert answer.startswith(b"HTTP/1.1 413")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_large"
    assert decides(service)


def test_a_hundred_megabytes_without_a_key_are_not_read(service: Served) -> None:
    with service.connected() as large:
        large.sendall(b"POST /v1/experiments HTTP/1.1\r\nhost: x\r\ncontent-length: 104857600\r\n\r\n" + b" " * MIB)
        answer = all_of(large)
        assert answer.startswith(b"HTTP/1.1 401")
        assert b"connection: close" in answer


def test_who_does_not_read_an_answer_is_cut_off(service: Served) -> None:
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", service.port))
        asked = b"GET /docs HTTP/1.1\r\nhost: localhost\r\n\r\n"
        deaf.settimeout(5)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            _ask_until_cut_off(deaf, asked * 10)
    assert decides(service)


def _ask_until_cut_off(deaf: socket.socket, asked: bytes) -> None:
    started = time.monotonic()
    while time.monotonic() - started < 8:
        deaf.sendall(asked)
        time.sleep(0.01)


def test_an_idle_connection_is_closed(service: Served) -> None:
    with service.connected() as idle:
        idle.sendall(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert all_of(idle).startswith(b"HTTP/1.1 200")


def test_a_server_tells_nothing_about_itself(service: Served) -> None:
    answer = httpx.get(f"http://127.0.0.1:{service.port}/livez")
    assert "server" not in answer.headers
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


def blas_threads() -> set[int]:
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_blas_has_one_thread_while_it_serves_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in BLAS_THREADS:
        monkeypatch.delenv(name, raising=False)
    with threadpool_limits(limits=2, user_api="blas"):
        with tuned():
            assert blas_threads() == {1}
            assert os.environ["OPENBLAS_NUM_THREADS"] == "1"  # for processes that start
        assert blas_threads() == {2}
        assert "OPENBLAS_NUM_THREADS" not in os.environ
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        with tuned():
            assert blas_threads() == {2}
