"""Fits and studies on two Ray nodes, which are processes of this machine, beside one process: docs/capacity.md.

Run by hand: python -m benchmarks.cluster [--users 1000000] [--events 10000000] [--repeats 2] [--write]. Data are drawn
into build/cluster once. A fit goes alternately in one process and on two nodes of one CPU each. A study of units that
compute goes alternately on one node and on two. Memory is what each process has of its own: shared memory, which is
Ray's object store, is not counted twice.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import coterie as ct
from benchmarks.parts import replace_section

ROOT = Path(__file__).parent.parent
FOLDER, PAGE = ROOT / "build" / "cluster", ROOT / "docs" / "capacity.md"
BEGIN, END = "<!-- cluster: begin -->", "<!-- cluster: end -->"
N_FILES, N_ARMS, WIDTH = 8, 200, 8
GIVEN = ("--linear", "--laplacian-ridge", "1", "--noise-var", "0.25")
STORE = 2 * 2**30
STUDY = """
title = "Units that compute"
trials = 40
seed = 0
[[worlds]]
name = "non-linear"
kind = "gp-draw"
n_users = 40
n_arms = 20
horizon = 1500
graph = "sbm"
[[policies]]
policy = "auto-ucb"
[[policies]]
policy = "lk-gp-ucb"
[[policies]]
policy = "gp-ucb"
"""


class Run(NamedTuple):
    """A command that has ended.

    Attributes:
        seconds: How long it took.
        driver: The peak of its own memory, in bytes.
        workers: The peak of each Ray worker's own memory, largest first.
        last: What it printed.
    """

    seconds: float
    driver: int
    workers: list[int]
    last: str


def draw(users: int, events: int) -> Path:
    """Returns a folder with edges, arms and events in Parquet; it is drawn if it is not there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = FOLDER / f"{users}-{events}"
    if (folder / "ready").exists():
        return folder
    (folder / "events").mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    graph = ct.make_graph("watts-strogatz", users, seed=0, k=10)
    upper = sp.triu(graph.weights, format="coo")
    first, second = upper.coords
    names = np.array([f"u{number}" for number in range(users)])
    edges = {"user": names[first], "other": names[second], "weight": upper.data}
    pq.write_table(pa.table(edges), folder / "edges.parquet")
    features = rng.normal(size=(N_ARMS, WIDTH)) / WIDTH**0.5
    arms = {"arm": [f"a{number}" for number in range(N_ARMS)], **{f"x{j}": features[:, j] for j in range(WIDTH)}}
    pq.write_table(pa.table(arms), folder / "arms.parquet")
    arm_names = np.array(arms["arm"])
    for number in range(N_FILES):
        size = events // N_FILES
        who, what = rng.integers(users, size=size), rng.integers(N_ARMS, size=size)
        rows = {"user": names[who], "arm": arm_names[what], "reward": features[what, 0] + rng.normal(size=size)}
        pq.write_table(pa.table(rows), folder / "events" / f"{number}.parquet")
    (folder / "ready").touch()
    return folder


def own_memory(pid: int) -> int:
    """Returns the bytes that a process has of its own; 0 for one that is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def ray_workers() -> Iterator[int]:
    """Yields the processes of Ray that do work."""
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdigit() and (each / "cmdline").read_bytes().startswith(b"ray::"):
                yield int(each.name)
        except OSError:
            continue  # it has ended meanwhile


def timed(command: list[str]) -> Run:
    """Runs a command of ours and samples its memory, and that of Ray's workers, every fifth of a second."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    peaks: dict[int, int] = {}
    ended = Event()
    start = perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "coterie", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    )

    def sample() -> None:
        while not ended.wait(0.2):
            for pid in (process.pid, *ray_workers()):
                peaks[pid] = max(peaks.get(pid, 0), own_memory(pid))

    sampler = Thread(target=sample)
    sampler.start()
    out = process.communicate()[0].decode()
    seconds = perf_counter() - start
    ended.set()
    sampler.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{out}")
    driver = peaks.pop(process.pid, 0)
    return Run(seconds, driver, sorted(peaks.values(), reverse=True), out)


@contextmanager
def nodes(number: int) -> Iterator[str]:
    """Gives the address of a cluster of nodes with one CPU each, as processes of this machine."""
    from ray.cluster_utils import Cluster

    made = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False},
    )
    try:
        for _ in range(number - 1):
            made.add_node(num_cpus=1, object_store_memory=STORE)
        yield made.address
    finally:
        made.shutdown()


def fits(users: int, events: int, repeats: int) -> list[tuple[Run, Run]]:
    """Returns a fit in one process and one on two nodes, in turn."""
    folder = draw(users, events)
    command = ["fit", str(folder / "events"), "--graph", str(folder / "edges.parquet")]
    command += ["--arms", str(folder / "arms.parquet"), *GIVEN, "--overwrite", "--out"]
    out = []
    for _ in range(repeats):
        here = timed([*command, str(FOLDER / "here.coterie")])
        with nodes(2) as address:
            there = timed([*command, str(FOLDER / "ray.coterie"), "--on", "ray", "--address", address, "--parts", "2"])
        print(f"fit: {here.seconds:.1f} s here, {there.seconds:.1f} s on two nodes\n{there.last}", flush=True)
        out.append((here, there))
    return out


def studies(repeats: int) -> list[tuple[Run, Run]]:
    """Returns a study on one node and on two, in turn."""
    path = FOLDER / "compute.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(STUDY, encoding="utf-8")

    def on(number: int, repeat: int) -> Run:
        with nodes(number) as address:
            out = FOLDER / f"study-{os.getpid()}-{repeat}-{number}"
            return timed(["run", str(path), "--on", "ray", "--address", address, "--out", str(out)])

    runs = []
    for repeat in range(repeats):
        one, two = on(1, repeat), on(2, repeat)
        print(f"study: {one.seconds:.1f} s on one node, {two.seconds:.1f} s on two", flush=True)
        runs.append((one, two))
    return runs


def section(users: int, events: int, fitted: list[tuple[Run, Run]], studied: list[tuple[Run, Run]]) -> str:
    """Returns the table of both."""

    def each(pick: Callable[[Any], float], runs: list[tuple[Run, Run]], place: int) -> str:
        return ", ".join(f"{pick(pair[place]):.1f}" for pair in runs)

    def ratio(runs: list[tuple[Run, Run]], over: int) -> float:
        return float(np.median([pair[over].seconds / pair[1 - over].seconds for pair in runs]))

    def driver(run: Run) -> float:
        return run.driver / 1e9

    def worker(run: Run) -> float:
        return run.workers[0] / 1e9

    lines = [
        f"| {events:,} events of {users:,} users | one process | two nodes of one CPU | ratio | target |",
        "|---|---|---|---|---|",
        f"| the fit, seconds | {each(lambda run: run.seconds, fitted, 0)} | {each(lambda run: run.seconds, fitted, 1)} "
        f"| {ratio(fitted, 1):.2f} | at most 1.5 |",
        f"| own memory of the driver, GB | {each(driver, fitted, 0)} | {each(driver, fitted, 1)} | | |",
        f"| own memory of the largest worker, GB | | {each(worker, fitted, 1)} | | |",
        "",
        "| a study of 120 units that compute | one node | two nodes | ratio | target |",
        "|---|---|---|---|---|",
        f"| seconds | {each(lambda run: run.seconds, studied, 0)} | {each(lambda run: run.seconds, studied, 1)} "
        f"| {ratio(studied, 0):.2f} | at least 1.5 |",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name} of the documentation")
    asked = parser.parse_args()
    studied = studies(asked.repeats)
    text = section(asked.users, asked.events, fits(asked.users, asked.events, asked.repeats), studied)
    print(text)
    if asked.write:
        replace_section(PAGE, BEGIN, END, text)


if __name__ == "__main__":
    main()
