"""Durable decisions a second, and what a decision waits for, against the same app without durability and a bare one.

`python -m benchmarks.service` starts one service of each kind and asks them in turn.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter, process_time, sleep

import httpx
import numpy as np
from msgspec.json import encode as as_json

from benchmarks.service.load import at_once, at_rate, request_of
from benchmarks.service.servers import REWARDS
from benchmarks.timing import Row
from coterie.contracts import Array
from coterie.product.bandit import Bandit
from coterie.service.engine.bandits import graph_of
from coterie.service.journal import Event, SqliteJournal
from coterie.service.records import Arm, Edge, Graph, NewExperiment

USERS, ARMS, DIMENSION = 100, 10, 4
REPEATS, REQUESTS, CONNECTIONS = 7, 1500, 64
TICK = os.sysconf("SC_CLK_TCK")


class Service:
    """A service that was started for the benchmark."""

    def __init__(self, kind: str, folder: Path, port: int) -> None:
        self.kind, self.port = kind, port
        command = [sys.executable, "-m", "benchmarks.service.servers", kind, str(folder / kind), str(port)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        self.key = "" if kind == "bare" else self._line().removeprefix("key ")

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def wait(self) -> None:
        """Waits until it answers."""
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{self.port}/livez", timeout=5)
                return
            except httpx.HTTPError:
                sleep(0.05)

    def post(self, path: str, body: bytes) -> None:
        """Asks for something once."""
        _, bodies = at_once(self.port, [request_of(path, body, self.key)], 1)
        assert len(bodies) == 1

    def cpu(self) -> float:
        """Returns the processor time of the process so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK


def experiment(policy: str) -> NewExperiment:
    """Returns an experiment of a hundred users on a ring with chords, and ten arms."""
    rng = np.random.default_rng(0)
    users = [f"user-{number}" for number in range(USERS)]
    edges = [Edge(user=users[i], other=users[(i + step) % USERS]) for i in range(USERS) for step in (1, 2, 5)]
    arms = [Arm(id=f"arm-{i}", features=row.tolist()) for i, row in enumerate(rng.normal(size=(ARMS, DIMENSION)))]
    return NewExperiment(id="bench", graph=Graph(users=users, edges=edges), arms=arms, policy=policy)


def library(policy: str) -> Bandit:
    """Returns a bandit with the same experiment and as many rewards, outside any service."""
    given, rng = experiment(policy), np.random.default_rng(1)
    arms = {arm.id: arm.features for arm in given.arms}
    bandit = Bandit(graph=graph_of(given.graph), arms=arms, policy=policy, wait_for_fits=True)
    for user, value in zip(rng.integers(USERS, size=REWARDS), rng.normal(size=REWARDS), strict=True):
        bandit.reward(bandit.decide(f"user-{user}").id, float(value))
    return bandit


def library_cpu(bandit: Bandit, rng: np.random.Generator) -> float:
    """Returns the processor time of a decision with its propensity by the library alone."""
    users = [f"user-{user}" for user in rng.integers(USERS, size=REQUESTS)]
    start = process_time()
    for user in users:
        assert bandit.decide(user).propensity is not None
    return (process_time() - start) / REQUESTS


def decisions(n: int, key: str, rng: np.random.Generator) -> list[bytes]:
    """Returns requests for decisions, of random users."""
    bodies = (json.dumps({"user": f"user-{user}"}).encode() for user in rng.integers(USERS, size=n))
    return [request_of("/v1/experiments/bench/decisions", body, key) for body in bodies]


def warm(service: Service, rng: np.random.Generator, n: int = REWARDS) -> None:
    """Lets a service decide and learn."""
    _, answers = at_once(service.port, decisions(n, service.key, rng), 8)
    events = [json.loads(answer)["event_id"] for answer in answers]
    rewards = (json.dumps({"value": float(value)}).encode() for value in rng.normal(size=n))
    asked = [request_of(f"/v1/events/{e}/reward", r, service.key) for e, r in zip(events, rewards, strict=True)]
    at_once(service.port, asked, 8)


@contextmanager
def services(policy: str, kinds: tuple[str, ...]) -> Iterator[dict[str, Service]]:
    """Gives one service of each kind, all with the same experiment and rewards."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        made = {kind: Service(kind, Path(folder), 18_700 + i) for i, kind in enumerate(kinds)}
        for service in made.values():
            stack.callback(service.process.kill)
            service.wait()
            if service.kind != "bare":
                service.post("/v1/experiments", as_json(experiment(policy)))
                warm(service, np.random.default_rng(1))
        yield made


def throughput(policy: str) -> dict[str, Array]:
    """Returns the seconds of a decision at 64 connections, and its processor time, by kind; and that of the library."""
    seconds: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    bandit = library(policy)
    with services(policy, ("durable", "memory", "single", "bare")) as made:
        for number in range(REPEATS):
            for kind, service in made.items():
                asked, before = decisions(REQUESTS, service.key, np.random.default_rng(number)), service.cpu()
                taken, _ = at_once(service.port, asked, CONNECTIONS)
                seconds.setdefault(kind, []).append(taken / REQUESTS)
                cpu.setdefault(kind, []).append((service.cpu() - before) / REQUESTS)
            cpu.setdefault("library", []).append(library_cpu(bandit, np.random.default_rng(number)))
    out = {kind: np.array(each) for kind, each in seconds.items()}
    return out | {f"cpu {kind}": np.array(each) for kind, each in cpu.items()}


def latencies(policy: str, rate: float) -> dict[str, Array]:
    """Returns the 99th percentiles at a rate, of a durable service, of one that fits meanwhile, of a raw commit."""
    found: dict[str, list[float]] = {"durable": [], "fitting": [], "commit": []}
    with services(policy, ("durable", "fitting")) as made, tempfile.TemporaryDirectory() as folder:
        journal, n = SqliteJournal(Path(folder) / "store"), int(max(rate * 4, 200))
        for number in range(REPEATS):
            for kind, service in made.items():
                asked = decisions(n, service.key, np.random.default_rng(number))
                with others_standing(made, service):
                    found[kind].append(float(np.percentile(at_rate(service.port, asked, CONNECTIONS, rate), 99)))
            found["commit"].append(raw_commit(journal, n, rate))
        journal.close()
    return {kind: np.array(each) for kind, each in found.items()}


@contextmanager
def others_standing(made: dict[str, Service], measured: Service) -> Iterator[None]:
    """Lets all services but one stand still: what they do in the background would be measured too."""
    others = [each.process for each in made.values() if each is not measured]
    for process in others:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in others:
            process.send_signal(signal.SIGCONT)


def raw_commit(journal: SqliteJournal, n: int, rate: float) -> float:
    """Returns the 99th percentile of a commit of one event, when so many are due in a second."""
    taken, start = [], perf_counter()
    for number in range(n):
        if (wait := start + number / rate - perf_counter()) > 0:
            sleep(wait)
        began = perf_counter()
        journal.append([Event(journal.last_seq + 1, 0.0, "bench", "decided", f"e{journal.last_seq}", b"x" * 600)])
        taken.append(perf_counter() - began)
    return float(np.percentile(taken, 99))


def ratio(above: Array, below: Array) -> float:
    """Returns the median of ratios that were measured in turn."""
    return float(np.median(above / below))


def per_second(seconds: Array) -> str:
    """Returns how many there are in a second."""
    return f"{1 / np.median(seconds):,.0f} a second"


def in_micro(seconds: Array) -> str:
    """Returns a median in microseconds."""
    return f"{float(np.median(seconds)) * 1e6:,.0f} us"


def speed_rows(policy: str, found: dict[str, Array]) -> list[Row]:
    """Returns how many decisions there are in a second, and what one costs outside the model."""
    off, single = ratio(found["memory"], found["durable"]), ratio(found["single"], found["durable"])
    outside = np.maximum(found["cpu durable"] - found["cpu library"], 1e-9)
    extra, ours = ratio(outside, found["cpu bare"]), per_second(found["durable"])
    what = f"`{policy}`: durable decisions, {CONNECTIONS} connections"
    cost = f"`{policy}`: processor time beside that of the library, {in_micro(found['cpu library'])}"
    bare = f"{in_micro(found['cpu bare'])} (bare ASGI app)"
    alone = f"{per_second(found['single'])} (one commit a request)"
    return [
        Row(what, ours, f"{per_second(found['memory'])} (log off)", f"{off:.2f}x", ">= 0.5x", off >= 0.5),
        Row(what, ours, alone, f"{single:.2f}x", ">= 2.5x", single >= 2.5),
        Row(cost, in_micro(outside), bare, f"{extra:.2f}x", "<= 3x", extra <= 3),
    ]


def latency_rows(policy: str, found: dict[str, Array]) -> list[Row]:
    """Returns what a decision waits for at half load."""
    p99 = {kind: float(np.median(each)) * 1e3 for kind, each in found.items()}
    limit, fits = 3 * p99["commit"] + 5, ratio(found["fitting"], found["durable"])
    what, ours = f"`{policy}`: p99 at half load", f"{p99['durable']:.1f} ms"
    raw = f"{p99['commit']:.1f} ms (p99 of a raw commit)"
    fitting = f"{p99['fitting']:.1f} ms"
    return [
        Row(what, ours, raw, f"limit {limit:.1f} ms", "<= 3x + 5 ms", p99["durable"] <= limit),
        Row(f"{what}, while fits go on", fitting, f"{ours} (no fit)", f"{fits:.2f}x", "<= 2x", fits <= 2),
    ]


def rows(policy: str) -> list[Row]:
    """Returns the ratios of one policy, with their targets."""
    found = throughput(policy)
    late = latencies(policy, 0.5 / float(np.median(found["durable"])))
    return speed_rows(policy, found) + latency_rows(policy, late)
