"""The service is killed at random moments while it works: nothing acknowledged is lost, nothing is done twice."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from coterie.service.engine.clock import ServiceClock
from coterie.service.engine.opening import open_engine
from coterie.service.engine.snapshots import state_digest
from coterie.service.journal import SqliteJournal
from serving import Server, server

USERS, WORKERS = [f"user-{i}" for i in range(12)], 8
HERE = "/v1/experiments/shop"
EXPERIMENT = {
    "id": "shop",
    "graph": {"edges": [{"user": USERS[i], "other": USERS[(i + 1) % 12]} for i in range(12)]},
    "arms": [{"id": f"arm-{i}", "features": [i / 5, (i * i % 7) / 7]} for i in range(6)],
    "exploration_floor": 0.02,
    "aggregation": "sum",
}


@dataclass
class Asked:
    """A request, by whose id it can be sent again, and the answer if one came."""

    path: str
    body: dict[str, Any]
    answer: dict[str, Any] | None = None


@dataclass
class Book:
    """What was sent and what was answered, as only the callers know it."""

    rng: np.random.Generator
    decisions: dict[str, Asked] = field(default_factory=dict)
    rewards: dict[str, Asked] = field(default_factory=dict)
    decided: list[str] = field(default_factory=list)
    n_answers: int = 0

    def next(self) -> Asked:
        """Returns a request that was never sent before."""
        if self.decided and self.rng.random() < 0.5:
            event, number = self.decided[int(self.rng.integers(len(self.decided)))], len(self.rewards)
            body = {"value": float(self.rng.normal()), "reward_id": f"r{number}"}
            return self.rewards.setdefault(f"r{number}", Asked(f"/v1/events/{event}/reward", body))
        name = f"e{len(self.decisions)}"
        body = {"user": USERS[int(self.rng.integers(12))], "event_id": name}
        return self.decisions.setdefault(name, Asked(f"{HERE}/decisions", body))

    def take(self, asked: Asked, answer: httpx.Response) -> None:
        """Notes what a request was answered with."""
        assert answer.status_code in (200, 201), answer.text
        asked.answer = answer.json()
        self.n_answers += 1
        if "reward_id" not in asked.body:
            self.decided.append(asked.body["event_id"])

    def __iter__(self) -> Iterator[Asked]:
        yield from [*self.decisions.values(), *self.rewards.values()]


async def _working(http: httpx.AsyncClient, book: Book) -> None:
    """Sends one request after another until the service does not answer."""
    while True:
        asked = book.next()
        try:
            answer = await http.post(asked.path, json=asked.body)
        except httpx.HTTPError:
            return
        book.take(asked, answer)


async def _killed_at_work(running: Server, book: Book) -> None:
    """Kills the service at a random moment after some answers."""
    enough, seconds = book.n_answers + int(book.rng.integers(1, 150)), float(book.rng.uniform(0, 0.02))
    async with httpx.AsyncClient(base_url=running.url, headers=running.headers, timeout=20) as http:
        workers = [asyncio.create_task(_working(http, book)) for _ in range(WORKERS)]
        while book.n_answers < enough:
            await asyncio.sleep(0.001)
        await asyncio.sleep(seconds)
        running.kill()
        await asyncio.gather(*workers)


def _check_all(running: Server, book: Book, checked: set[str]) -> tuple[int, int]:
    """Sends everything of this round again, and returns how many had been acknowledged and how many were in doubt."""
    acknowledged = doubtful = 0
    with httpx.Client(base_url=running.url, headers=running.headers, timeout=20) as http:
        for asked in book:
            name = asked.body.get("reward_id") or asked.body["event_id"]
            if name in checked:
                continue
            answer = http.post(asked.path, json=asked.body)
            if asked.answer is None:
                doubtful += 1
                book.take(asked, answer)
            elif "reward_id" in asked.body:
                acknowledged += 1
                assert answer.json()["status"] == "duplicate", (asked, answer.text)
            else:
                acknowledged += 1
                assert (answer.status_code, answer.json()) == (200, asked.answer)
            checked.add(name)
    return acknowledged, doubtful


def _check_store(store: Path, book: Book) -> None:
    """Every request is in the journal once, in one order without gaps, and its belief is that of a fresh replay."""
    journal = SqliteJournal(store)
    try:
        events = list(journal.read(1))
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        decided = {event.key: json.loads(event.body)["answer"] for event in events if event.kind == "decided"}
        assert sum(event.kind == "decided" for event in events) == len(decided)
        for name, asked in book.decisions.items():
            assert decided[name] == asked.answer
        bodies = [json.loads(event.body) for event in events if event.kind == "rewarded"]
        ids = [body["reward"]["reward_id"] for body in bodies if body["status"] == "applied"]
        assert sorted(ids) == sorted(book.rewards)
        still = ServiceClock(wall=lambda: 0.0, steady=lambda: 0.0)
        replayed, from_snapshot = (open_engine(journal, clock=still, use_snapshots=use) for use in (False, True))
        assert from_snapshot[1].snapshot > 0
        assert state_digest(from_snapshot[0].state) == state_digest(replayed[0].state)
    finally:
        journal.close()


def _torture(folder: Path, kills: int, seed: int) -> tuple[int, int]:
    book, counts = Book(np.random.default_rng(seed)), np.zeros(2, dtype=int)
    checked: set[str] = set()
    with server(folder / "store") as running:
        with httpx.Client(base_url=running.url, headers=running.headers) as http:
            assert http.post("/v1/experiments", json=EXPERIMENT).status_code == 201
        for _ in range(kills):
            asyncio.run(_killed_at_work(running, book))
            running.start()
            counts += _check_all(running, book, checked)
        running.stop()
    _check_store(folder / "store", book)
    return int(counts[0]), int(counts[1])


def test_nothing_acknowledged_is_lost_by_a_kill(tmp_path: Path) -> None:
    acknowledged, doubtful = _torture(tmp_path, kills=3, seed=1)
    assert acknowledged > 50
    assert doubtful > 0


@pytest.mark.slow
def test_two_hundred_kills(tmp_path: Path) -> None:
    acknowledged, doubtful = _torture(tmp_path, kills=200, seed=2)
    print(f"200 kills: {acknowledged} acknowledged requests, {doubtful} in doubt, none lost")


async def _steady(http: httpx.AsyncClient, book: Book, end: asyncio.Event) -> int:
    """Sends requests, each again with its id until it is answered; returns how often it had to."""
    again = 0
    while not end.is_set():
        asked = book.next()
        while asked.answer is None:
            try:
                answer = await http.post(asked.path, json=asked.body)
            except httpx.HTTPError:
                answer = None
            if answer is not None and answer.status_code in (200, 201):
                book.take(asked, answer)
            else:
                assert answer is None or answer.status_code == 503, answer.text
                again += 1
                await asyncio.sleep(0.05)
    return again


async def _restarted_at_work(running: Server, book: Book, times: int) -> int:
    end = asyncio.Event()
    async with httpx.AsyncClient(base_url=running.url, headers=running.headers, timeout=20) as http:
        workers = [asyncio.create_task(_steady(http, book, end)) for _ in range(WORKERS)]
        for _ in range(times):
            await asyncio.sleep(0.5)
            await asyncio.to_thread(running.stop)
            await asyncio.to_thread(running.start)
        await asyncio.sleep(0.5)
        end.set()
        return sum(await asyncio.gather(*workers))


def test_a_restart_under_load_loses_nothing_and_answers_everybody(tmp_path: Path) -> None:
    book = Book(np.random.default_rng(3))
    with server(tmp_path / "store") as running:
        with httpx.Client(base_url=running.url, headers=running.headers) as http:
            assert http.post("/v1/experiments", json=EXPERIMENT).status_code == 201
        asyncio.run(_restarted_at_work(running, book, times=1))
        running.stop()
    assert len(book.decisions) > 50
    _check_store(tmp_path / "store", book)
