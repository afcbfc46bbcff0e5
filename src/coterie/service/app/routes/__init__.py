"""What can be asked for: the routes, each with the scope that a key needs for it."""
