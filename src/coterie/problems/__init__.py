"""Worlds to try it on. They know no model and no policy, so the truth cannot leak into a learner."""

from coterie.problems.world import Round, World, gp_world

__all__ = ["Round", "World", "gp_world"]
