"""Small studies made by hand, for the tests of what is said about them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coterie.runs.results import Results

VERSIONS = {"coterie": "1.2.3", "python": "3.12"}


def results_of(finals: Mapping[str, Mapping[str, Sequence[float]]], *, horizon: int = 10, **more: Any) -> Results:
    """Returns a study in which the policies end with these regrets, trial by trial, earned evenly over the rounds."""
    regrets = {
        world: {name: np.outer(ends, np.full(horizon, 1 / horizon)) for name, ends in policies.items()}
        for world, policies in finals.items()
    }
    settings = {"name": "small", "title": "A small study", "settings": {"seed": 7}, "versions": VERSIONS, **more}
    return Results(regrets=regrets, **settings)


def random_results(
    policies: Sequence[str], *, worlds: int = 1, trials: int = 3, horizon: int = 30, seed: int = 0, **more: Any
) -> Results:
    """Returns a study with regrets by chance: later policies have more."""
    rng = np.random.default_rng(seed)
    regrets = {
        f"world-{world}": {name: rng.random((trials, horizon)) * (1 + place) for place, name in enumerate(policies)}
        for world in range(worlds)
    }
    settings = {"name": "chance", "title": "A study by chance", "settings": {}, "versions": VERSIONS, **more}
    return Results(regrets=regrets, **settings)
