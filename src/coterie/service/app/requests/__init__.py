"""One request: its key, its body, its limits, its answer, and what is counted and logged of it."""
