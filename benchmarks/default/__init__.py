"""What `Bandit(graph=..., arms=...)` does as it comes: on worlds that nobody chose, in a tight loop, on logs."""
