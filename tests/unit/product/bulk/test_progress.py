"""Progress: a line when a step starts, and now and then one with what is left."""

import io

from coterie.product.bulk.progress import ProgressLines, SolveLines


def test_steps_of_a_solve_are_told_with_an_estimate() -> None:
    out, now = io.StringIO(), iter([0.0, 1.0, 6.0, 7.0])
    lines = SolveLines(ProgressLines(out, clock=lambda: next(now)))
    for step, level in enumerate([1e4, 1e3, 1e2, 0.5]):
        lines(step, level)
    told = out.getvalue().splitlines()
    assert told == [
        "solving for all users: residual 1e+04 times its limit",
        "solving for all users: step 2, residual 100 times its limit, about 6 s left",
    ]


def test_a_start_from_the_solution() -> None:
    out = io.StringIO()
    SolveLines(ProgressLines(out))(0, 0.0)
    assert out.getvalue() == "solving for all users: residual 0 times its limit\n"
