"""The tables and sentences of a report, on the terminal as on the page."""

import io

import numpy as np
import pytest
from rich.console import Console

from coterie.runs.report.tables import comparison, comparison_tables, ordered
from coterie.runs.report.words import answer, findings
from coterie.runs.results import Results
from played import results_of


def cell(results: Results, title: str, policy: str, column: str) -> str:
    (table,) = (each for each in comparison(results) if each.title == title and column in each.columns)
    (row,) = (each for each in table.rows if each[0] == policy)
    return row[table.columns.index(column)]


TWO = {"easy": {"a": [5, 7, 9], "b": [1, 2, 6]}, "hard": {"a": [10, 20, 30]}}


def test_cells_hold_what_was_counted() -> None:
    results = results_of(TWO, seconds={"easy": {"a": np.array([2e-5])}})
    assert cell(results, "Final regret", "a", "easy") == "7.00 ± 1.15"
    assert cell(results, "Final regret", "b", "hard") == "-"
    assert cell(results, "Difference to the reference", "a", "easy") == "+4.000 [3.000, 5.000]"
    assert cell(results, "Difference to the reference", "b", "easy") == "0 (reference)"
    assert cell(results, "Time per round", "a", "easy") == "20.0"
    assert cell(results, "Time per round", "a", "hard") == "-"
    assert cell(results, "Ranks", "a", "mean rank") == "1.50"


def test_one_trial_shows_a_dash_for_what_nobody_knows() -> None:
    results = results_of({"w": {"a": [500], "b": [100]}})
    assert cell(results, "Final regret", "a", "w") == "500.0 ± -"
    assert cell(results, "Difference to the reference", "a", "w") == "+400.0 [-]"


def test_a_study_without_timings_has_no_table_of_them() -> None:
    assert "Time per round" not in [table.title for table in comparison(results_of(TWO))]


@pytest.mark.parametrize(("worlds", "widths"), [(1, [1]), (3, [3]), (4, [2, 2]), (9, [3, 3, 3]), (7, [3, 2, 2])])
def test_many_worlds_are_split_evenly_and_none_is_lost(worlds: int, widths: list[int]) -> None:
    tables = comparison(results_of({f"w{i}": {"a": [1.0, 2.0], "b": [3.0, 4.0]} for i in range(worlds)}))
    shown = [table.columns[1:] for table in tables if table.title == "Final regret"]
    assert [len(columns) for columns in shown] == widths
    assert [world for columns in shown for world in columns] == [f"w{i}" for i in range(worlds)]


def test_policies_stand_in_the_order_of_their_places() -> None:
    results = results_of({"w": {"c": [3], "a": [1], "b": [2]}, "v": {"c": [30], "a": [20], "b": [10]}})
    assert set(ordered([results])[:2]) == {"a", "b"}
    assert ordered([results])[2] == "c"


def test_several_studies_are_told_apart_and_stand_side_by_side() -> None:
    tables = comparison(results_of({"w": {"a": [100]}}), results_of({"w": {"a": [300], "b": [200]}}))
    (cross,) = (table for table in tables if table.title == "Mean final regret")
    assert cross.columns == ("policy", "small #1: w", "small #2: w")
    assert {row[0]: row[1:] for row in cross.rows} == {"a": ("100.0", "300.0"), "b": ("-", "200.0")}
    assert tables[0].title == "small #1: Final regret"


def test_the_terminal_shows_labels_as_they_are() -> None:
    out = io.StringIO()
    console = Console(file=out, width=100)
    for table in comparison_tables(results_of({"[bold]w[/]": {"[red]a": [5, 6], "b [/b]": [1, 2]}})):
        console.print(table)
    assert "[bold]w[/]" in out.getvalue()
    assert "[red]a" in out.getvalue()
    assert "+4.000 [4.000, 4.000]" in out.getvalue()


def test_the_answer_to_one_world_is_its_finding() -> None:
    results = results_of({"w": {"a": [200, 210, 220], "b": [110, 120, 130]}})
    assert answer(results) == (
        "w: b had the least regret, 120.0 ± 5.8, ahead of a by 90.0 (95 % interval 90.0 to 90.0)."
    )


def test_the_answer_to_several_worlds_names_the_least_lead_of_each_winner() -> None:
    lead = {"a": [100, 100], "b": [150, 152]}
    results = results_of({"u": lead, "v": {"a": [100, 100], "b": [105, 95.5]}, "w": {"a": [300, 300], "b": [200, 200]}})
    assert answer(results) == (
        "Of 3 worlds, a had the least mean regret in 2, by at least 0.2 (95 % interval -4.5 to 5.0, so it may be "
        "chance); b had the least mean regret in 1, by 100.0 (95 % interval 100.0 to 100.0)."
    )
    assert len(findings(results)) == 3


def test_one_trial_and_one_policy_claim_nothing() -> None:
    assert answer(results_of({"w": {"a": [100], "b": [150]}})) == (
        "w: a had the least regret, 100.0, ahead of b by 50.0 (one trial, which says nothing about chance)."
    )
    assert answer(results_of({"w": {"a": [100, 100]}})) == (
        "w: a had the least regret, 100.0 ± 0.0; nobody else competed."
    )
    assert answer(results_of({"w": {"a": [1]}, "v": {"a": [1]}})) == "Of 2 worlds, a had the least mean regret in 2."
