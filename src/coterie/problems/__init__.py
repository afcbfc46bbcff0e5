"""Worlds to try it on. They know no model and no policy, so the truth cannot leak into a learner.

Order of reading: `rounds` and `world` (what a world is), `settings` (what it can be), `synthetic` (how it is drawn),
`contexts` (worlds whose rounds have a context), `recorded` (logs as problems).
"""

from coterie.problems.contexts import ContextSettings, ContextWorld, context_settings, draw_context_world
from coterie.problems.random import RandomWorld, Traits, random_traits, random_world
from coterie.problems.rounds import Problem, Round
from coterie.problems.settings import (
    LEVELS,
    PRESET_NOTES,
    PRESETS,
    Level,
    WorldSettings,
    settings_as_dict,
    world_settings,
)
from coterie.problems.synthetic import draw_rounds, draw_truth, draw_world, gp_world, sphere_pool
from coterie.problems.world import World

__all__ = [
    "LEVELS",
    "PRESETS",
    "PRESET_NOTES",
    "ContextSettings",
    "ContextWorld",
    "Level",
    "Problem",
    "RandomWorld",
    "Round",
    "Traits",
    "World",
    "WorldSettings",
    "context_settings",
    "draw_context_world",
    "draw_rounds",
    "draw_truth",
    "draw_world",
    "gp_world",
    "random_traits",
    "random_world",
    "settings_as_dict",
    "sphere_pool",
    "world_settings",
]
