"""Fits and scores on Ray (extra 'ray'): the same results as on one machine, within the stated error."""
