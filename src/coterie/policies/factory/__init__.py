"""Policies by name: recipes, their ingredients and the registry."""
