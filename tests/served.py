"""The service as a process of its own, on a free port."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Self

from coterie.service.client import Client

LONGEST = 60.0  # seconds that a process may take to start, say something or end
KEY = re.compile(r"COTERIE_KEY=(ctr_\S+)")
URL = re.compile(r" at (http://\S+);")
READY = "Ctrl-C ends it."


class Served:
    """`coterie serve` on a store, from its start until it is killed or stopped.

    Args:
        store: The folder of the store.
        *arguments: More of the command line.

    Attributes:
        url: Where it is.
        key: The key that it has printed; empty if there was none to print.
        lines: What it has printed so far.
    """

    def __init__(self, store: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "coterie", "serve", "--port", "0", "--store", str(store), *arguments]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        self.lines: list[str] = []
        self._said: Queue[str | None] = Queue()
        self._errors: list[str] = []
        self._readers = [Thread(target=self._listen), Thread(target=self._listen_to_errors)]
        for reader in self._readers:
            reader.start()
        try:
            self.wait_for(READY)
        except BaseException:
            self.kill()
            raise
        text = "\n".join(self.lines)
        found = URL.search(text)
        assert found is not None, text
        self.url, key = found[1], KEY.search(text)
        self.key = "" if key is None else key[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._said.put(line.rstrip("\n"))
        self._said.put(None)

    def _listen_to_errors(self) -> None:
        assert self.process.stderr is not None
        self._errors.extend(self.process.stderr)

    @property
    def errors(self) -> str:
        """What it has written to the standard error so far."""
        return "".join(self._errors)

    def wait_for(self, text: str) -> str:
        """Returns the next line with a text, or raises."""
        end = time.monotonic() + LONGEST
        while True:
            try:
                line = self._said.get(timeout=max(end - time.monotonic(), 0.0))
            except Empty:
                raise AssertionError(f"it never said {text!r}, but {self.lines}, {self.errors}") from None
            assert line is not None, f"it ended before it said {text!r}: {self.lines}, {self.errors}"
            self.lines.append(line)
            if text in line:
                return line

    def client(self, key: str = "") -> Client:
        """Returns a client with a key; none given means the one that was printed."""
        return Client(self.url, key or self.key)

    def kill(self) -> None:
        """Ends it as `kill -9` does."""
        if self.process.poll() is None:
            self.process.kill()
        self._ended()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Asks it to end, and returns its exit code."""
        self.process.send_signal(how)
        return self._ended()

    def _ended(self) -> int:
        code = self.process.wait(LONGEST)
        for reader in self._readers:
            reader.join()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
        return code
