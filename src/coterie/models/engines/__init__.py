"""The ways to hold one and the same belief."""
