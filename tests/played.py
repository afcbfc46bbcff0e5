"""Small studies made by hand, for the tests of what is said about them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coterie.runs.results import Results
from coterie.runs.study import study_from

VERSIONS = {"coterie": "1.2.3", "python": "3.12"}


def settings_of(
    worlds: Sequence[Mapping[str, Any]], policies: Sequence[Mapping[str, Any]] = ({"policy": "random"},), **more: Any
) -> dict[str, Any]:
    """Returns the settings of a study of these worlds and policies as its results hold them, every default included."""
    return study_from({"worlds": list(worlds), "policies": list(policies), **more}).as_dict()


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
