"""What `Bandit(graph=..., arms=...)` does with default settings: on random worlds, in a tight loop, on logs."""
