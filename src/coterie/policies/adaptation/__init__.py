"""What follows the rewards: noise schedules, learned similarities, clusters."""
