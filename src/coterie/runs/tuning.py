"""The pilot: which setting of a grid regretted least, on trials that the study itself never plays, unless asked to."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from coterie.runs.play import FINAL, PILOT, Trial
from coterie.runs.recorded.settings import LogSettings
from coterie.runs.store import Pilot
from coterie.runs.study import Study


def play_pilot(study: Study, world: str, number: int) -> Pilot:
    """Returns the regret of every setting of every grid in one pilot trial of a world."""
    assert study.tuning is not None
    settings = study.world(world).settings
    assert not isinstance(settings, LogSettings)  # logs are not tuned on
    kind = FINAL if study.tuning.hindsight else PILOT
    trial = Trial(settings, seed=study.seed, number=number, kind=kind, rounds=study.tuning.horizon)
    policies = {each.label: each for each in study.policies}
    return {
        label: [(values, float(trial.play(policies[label], values).regrets.sum())) for values in grid]
        for label, grid in study.grids(world).items()
    }


def choose(pilots: list[Pilot]) -> dict[str, Any]:
    """Returns for each policy the setting of least mean regret, the first of equals, and the whole grid.

    Examples:
        >>> one = {"ucb": [({"width": 1.0}, 5.0), ({"width": 2.0}, 7.0)]}
        >>> two = {"ucb": [({"width": 1.0}, 9.0), ({"width": 2.0}, 6.0)]}
        >>> choose([one, two])["ucb"]["chosen"]
        {'width': 2.0}
    """
    out: dict[str, Any] = {}
    for label, tried in pilots[0].items():
        means = np.mean([[regret for _, regret in pilot[label]] for pilot in pilots], axis=0)
        grid = [{**values, "mean_regret": float(mean)} for (values, _), mean in zip(tried, means, strict=True)]
        out[label] = {"chosen": tried[int(np.argmin(means))][0], "grid": grid}
    return out


def tuned_for(study: Study, tuned: Mapping[str, Any], world: str) -> dict[str, Mapping[str, Any]]:
    """Returns the frozen settings for a world: its own pilot's, or those of the world it is tuned on."""
    records = tuned.get(study.world(world).tuned_on, {})
    return {label: record["chosen"] for label, record in records.items()}
