"""The service as a process of its own, to be killed and started again."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import httpx

PROGRAM = """
import sys
from coterie.service.app import ServiceSettings, serve
store, port, every = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
serve(ServiceSettings(store=store, port=port, snapshot_every=every, tick_every=0.05, log_requests=False))
"""


def free_port() -> int:
    """Returns a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Server:
    """A service on a store; it can be killed and started again, on the same port.

    Attributes:
        url: Its address.
        key: The first key, which it printed when it was started on an empty store.
    """

    def __init__(self, store: Path, *, snapshot_every: int = 200, environment: dict[str, str] | None = None) -> None:
        self._store, self._every, self._port = store, snapshot_every, free_port()
        self._environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **(environment or {})}
        self._said = store.with_name(store.name + ".out")
        self._process: subprocess.Popen[bytes] | None = None
        self.url, self.key = f"http://127.0.0.1:{self._port}", ""

    @property
    def headers(self) -> dict[str, str]:
        """What a request of the first key's has."""
        return {"Authorization": f"Bearer {self.key}"}

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process that runs, or ran last."""
        assert self._process is not None
        return self._process

    def start(self) -> None:
        """Starts it, and waits until it is ready."""
        command = [sys.executable, "-c", PROGRAM, str(self._store), str(self._port), str(self._every)]
        with self._said.open("ab") as said:
            self._process = subprocess.Popen(command, env=self._environment, stdout=said, stderr=said)
        until = monotonic() + 180  # a busy machine takes its time
        while not self._is_ready():
            assert self._process.poll() is None, self.said
            assert monotonic() < until, self.said
            sleep(0.02)
        while not self.key:
            assert monotonic() < until, self.said
            found = re.search(r"ctr_[\w-]+", self.said)
            self.key = "" if found is None else found[0]

    @property
    def said(self) -> str:
        """All that it printed."""
        return self._said.read_text()

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        """Ends it with no warning."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Asks it to end, and waits until it has: by the signal, after all is done that a stop does."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=60) == -signal.SIGTERM, self.said


@contextmanager
def server(store: Path, *, snapshot_every: int = 200, environment: dict[str, str] | None = None) -> Iterator[Server]:
    """Gives a service that runs, and ends it."""
    made = Server(store, snapshot_every=snapshot_every, environment=environment)
    made.start()
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.kill()
