"""A study that is run and read from Python is the one that the command line runs."""

from pathlib import Path

import pytest

import coterie as ct
from coterie.errors import CoterieError
from coterie.runs.results import results_of
from coterie.runs.store import Store

STUDY = {
    "name": "small",
    "trials": 2,
    "worlds": [{"name": "ring", "n_users": 6, "n_arms": 5, "n_candidates": 3, "dimension": 2, "horizon": 15}],
    "policies": [{"policy": "lk-gp-ucb"}, {"policy": "random"}],
}


def test_a_study_is_run_and_read_as_a_table(tmp_path: Path) -> None:
    told: list[int] = []
    done = ct.run_study(STUDY, out=tmp_path / "out", progress=lambda _, left: told.append(left))
    table = done.table()
    assert told == [3, 2, 1, 0]
    assert table.num_rows == 2 * 2 * 15
    assert {"world", "trial", "policy", "t", "user", "arm", "reward", "regret"} <= set(table.column_names)
    frame = table.to_pandas()
    final = frame[(frame.policy == "random") & (frame.trial == 1)].regret.sum()
    assert done.results.final("ring", "random")[1] == pytest.approx(final)
    assert done.report().name == "report.html"


def test_it_goes_on_where_it_stopped_and_is_what_the_store_holds(tmp_path: Path) -> None:
    first = ct.run_study(STUDY, out=tmp_path, trials=1)
    more = ct.run_study(STUDY, out=tmp_path, resume=True)
    assert more.results.n_trials("ring") == 2
    again = results_of(Store(first.folder))
    assert again.final("ring", "lk-gp-ucb").tolist() == more.results.final("ring", "lk-gp-ucb").tolist()


def test_a_study_that_is_unknown_is_named(tmp_path: Path) -> None:
    with pytest.raises(CoterieError, match=r"study 'demmo' is unknown.*Did you mean 'demo'"):
        ct.run_study("demmo", out=tmp_path)
