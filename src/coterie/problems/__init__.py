"""Worlds to try it on. They know no model and no policy, so the truth cannot leak into a learner."""

from coterie.problems.synthetic import LEVELS, Level, gp_world, linear_gob_world, representer_world, sphere_pool
from coterie.problems.world import Round, World

__all__ = [
    "LEVELS",
    "Level",
    "Round",
    "World",
    "gp_world",
    "linear_gob_world",
    "representer_world",
    "sphere_pool",
]
