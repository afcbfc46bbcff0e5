"""The results of a study as they lie in memory: what the comparison, the figures and the report read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie.contracts import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The regrets of every policy on every world of a study, trial by trial.

    Attributes:
        name: The study's short name, fit for a file name.
        title: The study's title, for people.
        settings: The study with every default written out.
        versions: What it ran on: coterie, Python, NumPy, SciPy.
        regrets: World -> policy -> one row a trial, one column a round.
        seconds: World -> policy -> seconds per round in each trial; empty where timings are lost.
        tuned: World -> policy -> the settings that the pilot chose; empty where nothing was tuned.
        pilot: World -> policy -> one record a setting of the grid: its values and its mean pilot regret.

    Examples:
        >>> results = Results(name="tiny", title="A tiny study", settings={}, versions={},
        ...                   regrets={"easy": {"random": np.ones((2, 5))}})
        >>> results.cum_regret("easy", "random")[:, -1]
        array([5., 5.])
    """

    name: str
    title: str
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    regrets: Mapping[str, Mapping[str, Array]]
    seconds: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    tuned: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    pilot: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]] = field(default_factory=dict)

    @property
    def worlds(self) -> list[str]:
        """The worlds, in the study's order."""
        return list(self.regrets)

    def policies(self, world: str) -> list[str]:
        """Returns the policies that played this world, in the study's order."""
        return list(self.regrets[world])

    def n_trials(self, world: str) -> int:
        """Returns how many trials of this world are finished."""
        return len(next(iter(self.regrets[world].values())))

    def cum_regret(self, world: str, policy: str) -> Array:
        """Returns the cumulative regret, one row a trial."""
        return np.cumsum(self.regrets[world][policy], axis=1)

    def final(self, world: str, policy: str) -> Array:
        """Returns the regret at the end, one number a trial."""
        return np.asarray(self.regrets[world][policy].sum(axis=1))
