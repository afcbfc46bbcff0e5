"""An app on an engine in memory, and a caller of it, for the tests of the service's routes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from litestar.testing import TestClient

from coterie.service.app import ServiceSettings, create_app
from coterie.service.engine.running import RunningEngine, ensure_admin_key
from coterie.service.engine.snapshots import state_digest
from coterie.service.journal import MemoryJournal, ServiceJournal

NEWS = {
    "id": "news",
    "graph": {"edges": [{"user": "ana", "other": "bo"}, {"user": "bo", "other": "cy"}]},
    "arms": [{"id": "tea", "features": [0.0, 1.0]}, {"id": "ale", "features": [1.0, 0.0]}],
}
DECISIONS = "/v1/experiments/news/decisions"


class Caller:
    """Calls an app with a key.

    Attributes:
        client: What sends.
        running: The engine of the app.
        key: The key that may do everything.
    """

    def __init__(self, client: TestClient[Any], running: RunningEngine, key: str) -> None:
        self.client, self.running, self.key = client, running, key

    def __call__(self, method: str, path: str, body: Any = None, *, key: str | None = None, **more: Any) -> Any:
        """Returns the answer to a request; bytes are sent as they are, with the content type of JSON."""
        headers = {"authorization": f"Bearer {key or self.key}", **more.pop("headers", {})}
        if isinstance(body, bytes):
            return self.client.request(
                method, path, content=body, headers={"content-type": "application/json", **headers}, **more
            )
        return self.client.request(method, path, json=body, headers=headers, **more)

    def make_key(self, *scopes: str, experiments: list[str] | None = None) -> Any:
        """Returns a new key's record, with the key."""
        body = {"scopes": list(scopes)} | ({} if experiments is None else {"experiments": experiments})
        return self("POST", "/v1/keys", body).json()

    @property
    def digest(self) -> str:
        """A hash of all that is known."""
        return state_digest(self.running.engine.state)


@contextmanager
def service(
    settings: ServiceSettings | None = None, journal: ServiceJournal | None = None, *, news: bool = True, **running: Any
) -> Iterator[Caller]:
    """Yields a caller of an app that is ready, with an experiment `news` unless there shall be none."""
    keys: list[str] = []

    async def when_ready(running: RunningEngine) -> None:
        keys.append(await ensure_admin_key(running) or "")

    kept = journal or MemoryJournal()
    engine = RunningEngine(lambda: kept, **{"when_broken": lambda _: None, **running})
    with TestClient(create_app(engine, settings, when_ready=when_ready)) as client:
        until(lambda: bool(keys))
        caller = Caller(client, engine, keys[0])
        if news:
            assert caller("POST", "/v1/experiments", NEWS).status_code == 201
        yield caller


def until(holds: Any, seconds: float = 10.0) -> None:
    """Waits until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.005)
