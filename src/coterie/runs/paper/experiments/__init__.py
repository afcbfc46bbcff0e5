"""The computations of the paper: what its theory says beside what is measured, and what engines cost."""
