"""Fits and scores of many events, from files and in bounded memory: `coterie fit` and `coterie score`."""
