"""What every policy chose and believed, on every engine: a change that means to change nothing keeps to this.

`python tests/recording.py` writes tests/data/decisions.json again, after a change that the CHANGELOG speaks of.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coterie.errors import CoterieError
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.models.choose import ALL_ENGINES
from coterie.policies.factory.recipes import RECIPES
from coterie.policies.factory.registry import make_policy

FILE = Path(__file__).parent / "data" / "decisions.json"
ROUNDS, SHOWN, DIGITS = 60, 5, 10
USERS = [f"user-{i}" for i in range(9)]
EDGES = [(USERS[i], USERS[(i + 1) % 8], 1.0 + i / 4) for i in range(8)]  # a ring, and one user without friends
ON_EVERY_ENGINE = ("lk-gp-ucb", "lk-gp-ts", "auto-ucb", "gob-lin", "gp-ucb", "per-user-gp-ucb")


class Subject(NamedTuple):
    """One policy on one engine."""

    policy: str
    engine: str
    options: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return "/".join([self.policy, self.engine, *(f"{name}={value}" for name, value in self.options)])


def subjects() -> Iterator[Subject]:
    """Returns every policy on the engine that it takes, and some on every engine there is."""
    for name in sorted(RECIPES):
        yield Subject(name, "auto")
    for name in ON_EVERY_ENGINE:
        for engine in sorted(ALL_ENGINES):
            yield Subject(name, engine)
    yield Subject("auto-ucb", "auto", (("likelihood", "bernoulli"),))
    yield Subject("lk-gp-ts", "auto", (("sampling", "joint"),))


def recorded(subject: Subject) -> dict[str, Any]:
    """Returns what the subject chose in a fixed world, and what it believed at the end; or why it cannot be made."""
    rng = np.random.default_rng(17)
    features, liked = rng.standard_normal((14, 3)), rng.standard_normal((9, 3))
    liked[1:8] = 0.5 * (liked[1:8] + liked[0:7])
    ids = [f"arm-{i}" for i in range(14)]
    binary = dict(subject.options).get("likelihood") == "bernoulli"
    try:
        policy = make_policy(
            subject.policy,
            graph=UserGraph.from_edges(EDGES, users=USERS),
            arms=ArmPool(features, ids=ids),
            engine=subject.engine,
            seed=3,
            **dict(subject.options),
        )
    except CoterieError as error:
        return {"refused": type(error).__name__}
    chosen = []
    for _ in range(ROUNDS):
        user, shown = int(rng.integers(9)), rng.choice(14, SHOWN, replace=False)
        noise = float(rng.normal())
        arm = policy.select(USERS[user], [ids[i] for i in shown]).arm
        value = float(np.tanh(features[ids.index(arm)] @ liked[user]) + 0.3 * noise)
        policy.update(USERS[user], arm, float(value > 0) if binary else value)
        chosen.append(ids.index(arm))
    mean, std = zip(*(policy.predict(user) for user in (USERS[0], USERS[8])), strict=True)
    return {"arms": chosen, "mean": _rounded(mean), "std": _rounded(std)}


def _rounded(values: Any) -> list[list[float]]:
    return [[float(f"{value:.{DIGITS}g}") for value in row] for row in np.asarray(values)]


if __name__ == "__main__":
    rows = (f"  {json.dumps(str(each))}: {json.dumps(recorded(each))}" for each in subjects())
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n")
