"""Experiments: studies of policies on worlds, run trial by trial, stored, compared and reported; and the paper's own.

Order of reading: `study` (what is asked), with `entries` and `learners` for its policies and `worlds` for its worlds;
`trial` (the loop), `runner` (units of world, trial and policy; the pilot first), `workers` (processes), `store` and
`results` (what came of it), `report`. `studies` finds a study by name, file or log and runs it from Python, `console`
on the terminal. `diagnosis` looks at a log before any experiment, `paper` reproduces.
"""
