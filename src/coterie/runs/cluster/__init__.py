"""Studies on Ray (extra 'ray'): the same units, done as tasks of a cluster; only the driver writes the store."""
