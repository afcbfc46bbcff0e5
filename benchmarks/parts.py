"""What a solve over parts sends and how many steps it takes, by the number of parts: docs/capacity.md.

Run by hand: python -m benchmarks.parts [--users 100000 1000000] [--write]. All parts are in this process, so that only
counts are measured: sizes of the parts, halos, steps, bytes sent in a step. It goes on where it stopped: every case is
a line of build/parts.jsonl.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import coterie as ct
from coterie.graphs.parts import cut_graph, cut_share
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models.engines.sparse.model import SparseModel
from coterie.models.engines.sparse.parted.cutting import cut_kernel, cut_rows
from coterie.models.engines.sparse.parted.part import Part
from coterie.models.engines.sparse.parted.solve import LocalCrew, solve_parted
from coterie.models.engines.sparse.reward_table import RewardTable

ROOT = Path(__file__).parent.parent
RUNS, PAGE = ROOT / "build" / "parts.jsonl", ROOT / "docs" / "capacity.md"
BEGIN, END = "<!-- parts: begin -->", "<!-- parts: end -->"
FAMILIES: dict[str, dict[str, Any]] = {"watts-strogatz": {"k": 10}, "barabasi-albert": {"attach": 5}}
PARTS = (1, 2, 4, 8, 16, 32, 64)
N_ARMS, WIDTH, REWARDS_A_USER, NOISE, RIDGE = 200, 8, 5, 0.25, 1.0


class Case(NamedTuple):
    """A graph, and how it is cut."""

    family: str
    users: int
    parts: int
    method: str


class Found(NamedTuple):
    """What was counted.

    Attributes:
        case: Of which.
        cut: The share of the edges that was cut.
        halo: Users in the largest halo, over the users of a part.
        largest: Users of the largest part, over the mean.
        megabytes: Of the largest part.
        steps: Of conjugate gradients.
        sent: Megabytes in a step.
        cutting: Seconds to cut the graph.
    """

    case: Case
    cut: float
    halo: float
    largest: float
    megabytes: float
    steps: int
    sent: float
    cutting: float


def cases(users: Sequence[int]) -> Iterator[Case]:
    """Yields every case, small graphs first."""
    for size, family, parts in product(users, FAMILIES, PARTS):
        yield Case(family, size, parts, "metis")
    for size, family in product(users, FAMILIES):
        yield Case(family, size, 16, "hash")


def counted(case: Case, world: "World") -> Found:
    """Returns what a solve over these parts takes."""
    start = perf_counter()
    labels = cut_graph(world.graph, case.parts, case.method)
    cutting = perf_counter() - start
    graphs = cut_kernel(world.kernel, labels, case.parts)
    rows = cut_rows(world.table.state(), labels, case.parts)
    parts = [
        Part(graph, each, world.kernel.features, NOISE, inner_steps=0) for graph, each in zip(graphs, rows, strict=True)
    ]
    solved = solve_parted(LocalCrew(graphs, parts), world.threshold)
    mean = case.users / case.parts
    return Found(
        case,
        cut_share(world.graph, labels),
        max(graph.halo_size for graph in graphs) / mean,
        max(len(graph.users) for graph in graphs) / mean,
        max(part.size() for part in parts) / 1e6,
        solved.steps,
        solved.bytes_sent / max(solved.steps + 1, 1) / 1e6,
        cutting,
    )


class World:
    """A graph with rewards of its users."""

    def __init__(self, family: str, users: int) -> None:
        rng = np.random.default_rng(0)
        self.graph = ct.make_graph(family, users, seed=0, **FAMILIES[family])
        features = rng.normal(size=(N_ARMS, WIDTH)) / WIDTH**0.5
        self.kernel = GraphKernel(self.graph, features, laplacian_ridge=RIDGE)
        size = REWARDS_A_USER * users
        who, what = rng.integers(users, size=size), rng.integers(N_ARMS, size=size)
        rewards = features[what, 0] + rng.normal(size=size)
        self.table = RewardTable.of_rewards(who, what, rewards, np.ones(size), users, N_ARMS)
        self.threshold = SparseModel(self.kernel, noise_var=NOISE).solve_threshold


def run_all(users: Sequence[int], path: Path = RUNS) -> list[Found]:
    """Returns all cases; those that are missing are counted, and each is kept as soon as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    done = [Found(Case(*case), *rest) for case, *rest in map(json.loads, lines)]
    world, made_of = None, None
    for case in cases(users):
        if case in {each.case for each in done}:
            continue
        if made_of != case[:2]:
            world, made_of = World(*case[:2]), case[:2]
        assert world is not None
        done.append(counted(case, world))
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(done[-1]) + "\n")
        print(done[-1], flush=True)
    return [each for each in done if each.case in set(cases(users))]


def section(found: Sequence[Found]) -> str:
    """Returns the table."""
    columns = ("graph", "users", "parts", "cut by", "edges cut", "largest part / mean", "largest halo / mean part")
    head = f"| {' | '.join((*columns, 'largest part, MB', 'steps', 'MB a step'))} |"
    rows = [
        f"| {c.family} | {c.users:,} | {c.parts} | {c.method} | {each.cut:.1%} | {each.largest:.2f} | "
        f"{each.halo:.2f} | {each.megabytes:.0f} | {each.steps} | {each.sent:.2f} |"
        for each in found
        for c in [each.case]
    ]
    return "\n".join([head, "|---" * 10 + "|", *rows]) + "\n"


def replace_section(page: Path, begin: str, end: str, text: str) -> None:
    """Puts a text between two marks of a page."""
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(f"{before}{begin}\n{text}{end}{rest.split(end)[1]}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name} of the documentation")
    asked = parser.parse_args()
    text = section(run_all(asked.users))
    print(text)
    if asked.write:
        replace_section(PAGE, BEGIN, END, text)


if __name__ == "__main__":
    main()
