"""A small runnable project from one's own edges and arms."""

from coterie.product.project.writing import Project, init_project

__all__ = ["Project", "init_project"]
