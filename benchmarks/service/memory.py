"""What a million events take of an engine: memory and time as they come, then a snapshot, and a start from it.

    python -m benchmarks.service.memory --events 1000000 --out /tmp/memory.jsonl

The journal keeps nothing but snapshots, so that what grows is the engine's. A line of JSON for each tenth of the way.
"""

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from coterie.service.engine.engine import Engine
from coterie.service.engine.opening import open_engine
from coterie.service.engine.snapshots import Snapshots, restore
from coterie.service.journal import Event, MemoryJournal
from coterie.service.records import Arm, DecisionRequest, Edge, Graph, NewExperiment, RewardRequest

N_USERS, N_ARMS = 200, 20


class Forgetful(MemoryJournal):
    """A journal that keeps the number of its events alone."""

    def __init__(self) -> None:
        super().__init__()
        self._n_events = self.n_bytes = 0

    @property
    def last_seq(self) -> int:
        return self._n_events

    def append(self, events: Sequence[Event]) -> None:
        self._n_events += len(events)
        self.n_bytes += sum(len(event.body) for event in events)


def experiment(**settings: Any) -> NewExperiment:
    users = [f"user-{i}" for i in range(N_USERS)]
    edges = [Edge(user=users[i], other=users[(i + step) % N_USERS]) for i in range(N_USERS) for step in (1, 7)]
    arms = [Arm(id=f"arm-{i}") for i in range(N_ARMS)]
    return NewExperiment(id="news", graph=Graph(users=users, edges=edges), arms=arms, **settings)


def resident() -> float:
    """Returns the resident memory in megabytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def run(n_events: int, out: Path | None, **settings: Any) -> None:
    journal = Forgetful()
    engine, _ = open_engine(journal)
    engine.create(experiment(**settings))
    chance, started = random.Random(0), perf_counter()
    slowest = 0.0
    for step in range(1, n_events // 2 + 1):
        began = perf_counter()
        answer, _ = engine.decide("news", DecisionRequest(user=f"user-{chance.randrange(N_USERS)}"))
        engine.reward(answer.event_id, RewardRequest(value=chance.gauss(hash_of(answer.arm), 0.5), reward_id="r"))
        slowest = max(slowest, perf_counter() - began)
        if step % 32 == 0:
            journal.append(engine.state.take_batch())
        if step % max(n_events // 20, 1) == 0:
            took = perf_counter() - started
            told = {"events": 2 * step, "megabytes": resident(), "seconds": took, "slowest_pair": slowest}
            tell(told | {"journal_bytes_per_event": journal.n_bytes / (2 * step)} | frozen(engine, journal), out)
            started, slowest = perf_counter() - took, 0.0  # without the snapshot
    tell(snapshot(engine), out)


def hash_of(arm: str) -> float:
    return int(arm.split("-")[1]) / N_ARMS


def frozen(engine: Engine, journal: Forgetful) -> dict[str, float]:
    """Returns how long a snapshot holds the engine, by the clock and in processor time."""
    engine.flush()
    journal.append(engine.state.take_batch())
    began, worked = perf_counter(), process_time()
    Snapshots().freeze(engine.state)
    return {"held": perf_counter() - began, "held_cpu": process_time() - worked}


def snapshot(engine: Engine) -> dict[str, float]:
    """Returns the processor time in which a snapshot is made, and in which an engine starts from it."""
    snapshots, began = Snapshots(), process_time()
    made = snapshots.snapshot(snapshots.freeze(engine.state))
    encoded = process_time()
    restore(Engine(MemoryJournal()).state, made)
    return {"encoded": encoded - began, "restored": process_time() - encoded, "size": len(made.content)}


def tell(line: dict[str, float], out: Path | None) -> None:
    text = json.dumps({name: round(value, 4) for name, value in line.items()})
    print(text, flush=True)
    if out is not None:
        with out.open("a") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--max-pending", type=int, default=100_000)
    parser.add_argument("--policy", default="auto-ucb", help="random shows the service's own share, sooner")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    run(given.events, given.out, max_pending=given.max_pending, policy=given.policy)
