"""Experiments: worlds and policies brought together, and their pictures.

`worlds` has the worlds of a study, drawn from a seed or read from a log: each draws a problem and its rounds, makes
learners for it and says what a round costs. `trial` holds the loop: show, choose, judge, learn. `study` reads a study
and writes out every default, `entries` what it says of each policy, `learners` makes one (and the oracle, which alone
is given the world). A unit of work is (world, trial, policy): `runner` runs those that `store` does not hold, the
pilot first, and `workers` has the processes. `results` reads back what `report` needs. `log_study` is the study of
Last.fm on any folder; `diagnosis` judges a log before any experiment; `paper` turns stored results into
docs/reproduction.md.
"""
