"""Slates in a table of events: rows of a slate that do not agree are named, and candidates are those left."""

from pathlib import Path

import numpy as np
import pytest

from coterie.logs import Events, Ragged, check_log, describe, read_log
from coterie.logs.slates import candidates_left, in_slates, shown_before, slate_order

HEAD = "user,arm,reward,candidates,slate,place\n"


def written(folder: Path, *rows: str) -> Path:
    (folder / "edges.csv").write_text("user,other\nana,bo\n")
    (folder / "arms.csv").write_text("arm\ntea\ncola\ngin\n")
    (folder / "events.csv").write_text(HEAD + "\n".join(rows) + "\n")
    return folder


def mistakes(folder: Path) -> list[str]:
    return [str(each) for each in check_log(folder)[1]]


def test_slates_and_places_are_read(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, "ana,tea,1,tea|cola,7,1", "ana,cola,0,cola,7,2", "bo,tea,0,,,", "bo,gin,0,,,3"))
    assert log.events.slate is not None
    assert log.events.place is not None
    assert log.events.slate.tolist() == [7, 7, -1, -1]
    assert log.events.place.tolist() == [1, 2, -1, 3]
    assert "  in slates        2 of 1 slate" in describe(log).splitlines()
    assert "  with place       3" in describe(log).splitlines()


def test_columns_without_a_cell_are_none(tmp_path: Path) -> None:
    events = read_log(written(tmp_path, "ana,tea,1,tea|cola,,")).events
    assert events.slate is None
    assert events.place is None


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("ana,gin,1,,x,1", "column 'slate': it is 'x'; it is a whole number, 0 or more"),
        ("ana,gin,1,,-1,1", "column 'slate': it is '-1'"),
        ("ana,gin,1,,1.5,1", "column 'slate': it is '1.5'"),
        ("ana,gin,1,,9,0", "column 'place': it is '0'; it is a whole number, 1 or more"),
        ("ana,gin,1,,9,", "column 'place': there is no place; a row of a slate has a place"),
        ("bo,gin,1,,7,3", "column 'user': it is another than at the first place in slate 7"),
        ("ana,gin,1,,7,2", "column 'place': it is taken already in slate 7; each place of a slate has one row"),
        ("ana,tea,1,,7,3", "column 'arm': it is shown twice in slate 7; the arms of a slate are different"),
        (
            "ana,gin,1,gin|tea,7,3",
            "column 'candidates': one of them was shown before in slate 7; candidates of a place",
        ),
    ],
)
def test_a_mistake_names_line_and_column(tmp_path: Path, row: str, problem: str) -> None:
    found = mistakes(written(tmp_path, "ana,tea,1,tea|cola,7,1", "ana,cola,0,,7,2", row))
    assert len(found) == 1
    assert f"events.csv, line 4, {problem}" in found[0]


def test_candidates_of_an_earlier_place_may_be_shown_later(tmp_path: Path) -> None:
    rows = "ana,tea,1,gin,7,2".replace("gin,7", "gin|tea,7"), "ana,cola,0,cola|gin|tea,7,1", "bo,cola,0,cola|tea,8,1"
    assert mistakes(written(tmp_path, *rows)) == []


def events(slate: list[int], place: list[int], arm: list[int], candidates: list[list[int]] | None = None) -> Events:
    lists = None if candidates is None else Ragged.of(candidates)
    plain = {"user": np.zeros(len(arm), dtype=np.int64), "reward": np.zeros(len(arm))}
    return Events(slate=np.array(slate), place=np.array(place), arm=np.array(arm), candidates=lists, **plain)  # type: ignore[arg-type] # they are


def test_a_slate_comes_whole_and_in_order_of_places() -> None:
    log = events([5, 2, -1, 5, 2, -1], [2, 1, -1, 1, 2, -1], [0, 1, 2, 3, 0, 2])
    assert in_slates(log).tolist() == [0, 1, 2, 0, 1, 3]
    assert slate_order(log).tolist() == [3, 0, 1, 4, 2, 5]


def test_what_was_shown_is_no_candidate_any_more() -> None:
    log = events([5, 5, 5, -1], [3, 1, 2, -1], [0, 1, 2, 2], [[], [], [2, 3], []])
    left = candidates_left(log, 4)
    assert left is not None
    assert [left[row].tolist() for row in range(4)] == [[0, 3], [], [2, 3], []]
    assert shown_before(log, np.array([0, 0, 2, 1]), np.array([2, 3, 0, 1])).tolist() == [True, False, False, False]


def test_without_slates_candidates_are_as_logged() -> None:
    plain = {"user": np.zeros(1, dtype=np.int64), "arm": np.zeros(1, dtype=np.int64), "reward": np.zeros(1)}
    assert candidates_left(Events(**plain), 3) is None  # type: ignore[arg-type] # they are
    assert in_slates(Events(**plain)).tolist() == [0]  # type: ignore[arg-type] # they are
