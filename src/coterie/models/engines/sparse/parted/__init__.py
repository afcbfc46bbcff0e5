"""The posterior mean of all users' weights on a graph that is cut into parts, which other processes may hold."""
