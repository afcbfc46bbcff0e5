"""A study in a few kilobytes: what is kept of it."""

import numpy as np
import pytest

from coterie.runs.paper.summary import StudySummary, growth, summarise
from coterie.runs.results import Results


def test_growth_is_the_exponent_of_the_second_half() -> None:
    t = np.arange(1.0, 401.0)
    assert growth(t) == pytest.approx(1.0)
    assert growth(np.sqrt(t)) == pytest.approx(0.5)
    assert growth(np.zeros(10)) == 0.0


def test_a_summary_keeps_finals_and_growth() -> None:
    regrets = {"easy": {"random": np.ones((2, 100)), "greedy": np.zeros((2, 100))}}
    settings = {"reference": "random", "trials": 2}
    results = Results(name="s", title="S", settings=settings, versions={}, regrets=regrets)
    summary = StudySummary(summarise(results))
    assert summary.mean("easy", "random") == 100.0
    assert summary.growth("easy", "random") == pytest.approx(1.0)
    assert summary.ranked("easy") == ["greedy", "random"]
    assert summary.excess("easy", "random", "greedy").mean == 100.0
