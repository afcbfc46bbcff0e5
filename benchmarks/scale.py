"""`sparse`: what a reward and a decision cost on large graphs, on one core. Run by hand: python -m benchmarks.scale.

`make bench-scale` measures far more, and writes a page: see benchmarks/large/.
"""

import argparse
from time import perf_counter

from benchmarks.large.world import World, play

WARM = 1_000


def row(world: World, ridge: float, eps: float, rounds: int) -> str:
    """Plays rounds and returns a row of the table."""
    start = perf_counter()
    model = world.model(ridge, eps)
    built = perf_counter() - start
    summary = play(world, model, WARM, rounds).summary()
    return (
        f"| {world.n_users:,} | {ridge:g} | {eps:g} | {summary['reward_p50']:.3f} / {summary['reward_p99']:.2f} | "
        f"{summary['decide_p50']:.3f} / {summary['decide_p99']:.2f} | {built:.2f} | {model.n_waiting} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--ridge", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--eps", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--graph", choices=["communities", "barabasi-albert"], default="communities")
    parser.add_argument("--rounds", type=int, default=5_000)
    asked = parser.parse_args()
    print("| users | rho | eps | reward p50 / p99, ms | decide p50 / p99, ms | built, s | waiting |")
    print("|---|---|---|---|---|---|---|")
    for n_users in asked.users:
        world = World(asked.graph, n_users)
        for ridge in asked.ridge:
            for eps in asked.eps:
                print(row(world, ridge, eps, asked.rounds), flush=True)


if __name__ == "__main__":
    main()
