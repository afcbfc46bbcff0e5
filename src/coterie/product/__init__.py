"""What people keep: the Bandit, its pending decisions, propensities, saving and explaining."""
