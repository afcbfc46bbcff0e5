"""Worlds by name: the paper's levels, the readings of its settings, and settings read from plain values.

The paper contradicts itself on its worlds, so each reading is a preset, and the level or any setting may replace
what the preset says. "paper-table" is a fit: see PRESET_NOTES, which whoever shows its results shows beside them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from coterie.errors import SettingError, listed, or_similar
from coterie.problems.settings import WorldSettings, random_sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """How hard a task is: the pool, what is shown of it, the features and the rounds."""

    n_arms: int
    n_candidates: int
    dimension: int
    horizon: int


# The hard level has 5,000 rounds in the paper's text and 3,000 in its appendix; we take the text's.
LEVELS: Mapping[str, Level] = {
    "easy": Level(n_arms=10, n_candidates=5, dimension=5, horizon=1000),
    "medium": Level(n_arms=20, n_candidates=5, dimension=10, horizon=3000),
    "hard": Level(n_arms=50, n_candidates=5, dimension=20, horizon=5000),
}

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper-literal": {
        "kind": "gp-draw",
        "n_users": 20,
        "n_arms": 20,
        "n_candidates": 5,
        "dimension": 10,
        "horizon": 3000,
        "graph": "erdos-renyi",
        "graph_options": {"edge_prob": 0.2},
        "connected": "retry",
        "homophily": 1.0,
        "power": 0.5,
        "laplacian_ridge": 0.01,
        "lengthscale": 1.0,
        "unit_spread": False,
        "noise_std": 0.1,
        "noise": "gaussian",
        "rewards": "real",
    },
    "paper-text": {
        "kind": "gp-draw",
        "n_users": 20,
        "n_arms": 20,
        "n_candidates": 5,
        "dimension": 10,
        "horizon": 3000,
        "graph": "erdos-renyi",
        "graph_options": {"edge_prob": 0.2},
        "connected": "retry",
        "homophily": 1.0,
        "power": 1.0,
        "laplacian_ridge": 0.1,
        "lengthscale": 1.0,
        "unit_spread": False,
        "noise_std": 0.1,
        "noise": "gaussian",
        "rewards": "real",
    },
    "paper-table": {
        "kind": "gp-draw",
        "n_users": 20,
        "n_arms": 50,
        "n_candidates": 5,
        "dimension": 20,
        "horizon": 5000,
        "graph": "erdos-renyi",
        "graph_options": {"edge_prob": 0.2},
        "connected": "retry",
        "homophily": 1.0,
        "power": 0.5,
        "laplacian_ridge": 0.1,
        "lengthscale": 1.0,
        "unit_spread": False,
        "noise_std": 0.4,
        "noise": "gaussian",
        "rewards": "real",
    },
}

PRESET_NOTES: Mapping[str, str] = {
    "paper-literal": "The settings as the paper's appendix states them, at the level named (medium unless named).",
    "paper-text": "As paper-literal, with the user kernel of the paper's main text: power 1 and ridge 0.1.",
    "paper-table": "The reading that gives the figures of the paper's table over n. Its level (hard), horizon (5000) "
    "and noise (0.4) were found by fit: the paper names the medium level and a noise of 0.1 for that table.",
}


def world_settings(values: Mapping[str, Any]) -> WorldSettings:
    """Returns the settings that plain values stand for, such as a table of a study file.

    Args:
        values: Settings by name, and perhaps `preset` and `level`: the preset comes first, then the level, and
            every other key replaces what they say. A family of graphs other than the preset's comes with its own
            options.

    Examples:
        >>> settings = world_settings({"preset": "paper-table", "n_users": 50})
        >>> settings.horizon, settings.noise_std, settings.n_users
        (5000, 0.4, 50)
        >>> world_settings({"n_arm": 10})
        Traceback (most recent call last):
        coterie.errors.SettingError: 'n_arm' is no setting of a world; ... Did you mean 'n_arms'?
    """
    known = [field.name for field in fields(WorldSettings)]
    own = {key: value for key, value in values.items() if key not in ("preset", "level")}
    for key in own:
        if key not in known:
            rule = f"settings are {listed(['preset', 'level', *known], len(known) + 2)}"
            remedy = or_similar(key, ["preset", "level", *known], "Remove it")
            raise SettingError(f"{key!r} is no setting of a world", rule, remedy, key=str(key))
    return WorldSettings(**(_named_values(values) | own))


def _named_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the preset and the level say, without the options of a graph that is replaced."""
    named: dict[str, Any] = {}
    if values.get("kind") == "random":
        named |= random_sizes(values.get("number", 0))
    if "preset" in values:
        named |= PRESETS[_checked("preset", values["preset"], PRESETS)]
    if "level" in values:
        named |= asdict(LEVELS[_checked("level", values["level"], LEVELS)])
    if values.get("graph", named.get("graph")) != named.get("graph"):
        named.pop("graph_options", None)
    return named


def _checked(key: str, name: object, known: Iterable[str]) -> str:
    names = list(known)
    if isinstance(name, str) and name in names:
        return name
    remedy = or_similar(name, names, "Pick one of these")
    raise SettingError(f"{key} is {name!r}", f"it is one of {listed(names)}", remedy, key=key)


def settings_as_dict(settings: WorldSettings) -> dict[str, Any]:
    """Returns the settings as plain values, every default written out; `world_settings` reads them back.

    Examples:
        >>> world_settings(settings_as_dict(WorldSettings(n_users=7))) == WorldSettings(n_users=7)
        True
    """
    return asdict(settings)
