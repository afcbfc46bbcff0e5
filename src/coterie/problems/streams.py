"""Separate streams of random numbers for the parts of a trial, all from its one seed."""

from typing import Literal, TypeAlias

import numpy as np

from coterie.errors import ParameterError

Part: TypeAlias = Literal["graph", "pool", "truth", "shown-graph", "users", "candidates", "noise"]

# From 1000 up, so that a runner's own children of the seed, which `spawn` counts from 0, are other streams.
SPAWN_KEYS: dict[Part, int] = {
    "graph": 1000,
    "pool": 1001,
    "truth": 1002,
    "shown-graph": 1003,
    "users": 1004,
    "candidates": 1005,
    "noise": 1006,
}


def stream(seed: np.random.SeedSequence, part: Part) -> np.random.Generator:
    """Returns the generator of one part of a trial; it depends on the seed and the part alone.

    Examples:
        >>> seed = np.random.SeedSequence(7)
        >>> before = stream(seed, "noise").random()
        >>> _ = stream(seed, "graph").random(100)
        >>> stream(seed, "noise").random() == before
        True
    """
    if not isinstance(seed, np.random.SeedSequence):
        rule = "the seed of a trial is a numpy SeedSequence"
        raise ParameterError(f"seed is {seed!r}", rule, "Pass, say, np.random.SeedSequence(0)")
    key = (*seed.spawn_key, SPAWN_KEYS[part])
    return np.random.default_rng(np.random.SeedSequence(entropy=seed.entropy, spawn_key=key))
