"""The tables and sentences of a report, on the terminal as on the page."""

import io

import numpy as np
import pytest
from rich.console import Console

from coterie.runs.report.regret import answer, findings, unfinished
from coterie.runs.report.tables import TextTable, comparison, for_terminal, ordered
from coterie.runs.results import Results
from played import results_of, settings_of


def cell(results: Results, title: str, policy: str, column: str) -> str:
    (table,) = (each for each in comparison(results) if each.title == title and column in each.columns)
    (row,) = (each for each in table.rows if each[0] == policy)
    return row[table.columns.index(column)]


TWO = {"easy": {"a": [5, 7, 9, 6, 8], "b": [1, 3, 5, 2, 4]}, "hard": {"a": [10, 20, 30, 20, 20]}}


def test_cells_hold_what_was_counted() -> None:
    results = results_of(TWO, seconds={"easy": {"a": np.array([2e-5])}})
    assert cell(results, "Final regret", "a", "easy") == "7.00 ± 0.71"
    assert cell(results, "Final regret", "b", "hard") == "-"
    assert cell(results, "Difference to the reference", "a", "easy") == "+4.000 [4.000, 4.000]"
    assert cell(results, "Difference to the reference", "b", "easy") == "0 (reference)"
    assert cell(results, "Time per round", "a", "easy") == "20.0"
    assert cell(results, "Time per round", "a", "hard") == "-"
    assert cell(results, "Ranks", "a", "mean rank") == "1.50"


def test_one_trial_shows_a_dash_for_what_nobody_knows() -> None:
    results = results_of({"w": {"a": [500], "b": [100]}})
    assert cell(results, "Final regret", "a", "w") == "500.0 ± -"
    assert cell(results, "Difference to the reference", "a", "w") == "+400.0 [-]"


def test_few_trials_show_a_standard_error_but_a_dash_for_the_interval() -> None:
    results = results_of({"w": {"a": [500, 502], "b": [100, 101]}})
    assert cell(results, "Final regret", "a", "w") == "501.0 ± 1.0"
    assert cell(results, "Difference to the reference", "a", "w") == "+400.5 [-]"


def test_the_notes_say_in_which_order_and_from_how_many_trials_on() -> None:
    notes = {table.title: table.note for table in comparison(results_of(TWO))}
    assert notes["Final regret"].endswith("In the order of the mean place over the worlds.")
    assert notes["Difference to the reference"].endswith("none with fewer than 5 trials.")


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
    for table in map(
        for_terminal, comparison(results_of({"[bold]w[/]": {"[red]a": [5, 6, 5, 6, 5], "b [/b]": [1, 2, 1, 2, 1]}}))
    ):
        console.print(table)
    assert "[bold]w[/]" in out.getvalue()
    assert "[red]a" in out.getvalue()
    assert "+4.000 [4.000, 4.000]" in out.getvalue()


def test_names_are_wrapped_in_a_narrow_terminal_never_cut() -> None:
    names = ("per-user-linucb", "per-user-gp-ucb, as on Last.fm", "exchangeable-gp-ucb")
    numbers = ("0.346 ± 0.003", "1234", "1800", "+0.003 [-0.010, 0.016]", "12.34", "256")
    columns = ("policy", "a round", "in all", "rows used", "against none", "ms a round", "MiB")
    out = io.StringIO()
    table = TextTable(title="Reward", columns=columns, rows=tuple((name, *numbers) for name in names))
    Console(file=out, width=80).print(for_terminal(table))
    lines = out.getvalue().splitlines()
    assert "…" not in out.getvalue()
    assert max(map(len, lines)) <= 80
    assert "per-user-linucbper-user-gp-ucb,asonLast.fm" in "".join(line[:12].replace(" ", "") for line in lines)


def test_the_answer_to_one_world_is_its_finding() -> None:
    results = results_of({"w": {"a": [200, 210, 220, 205, 215], "b": [110, 120, 130, 115, 125]}})
    assert answer(results) == (
        "w: b had the least regret, 120.0 ± 3.5, ahead of a by 90.0 (95 % interval 90.0 to 90.0)."
    )


def test_the_answer_to_several_worlds_names_the_least_lead_of_each_winner() -> None:
    even, chance = [100] * 5, [105, 95.5, 105, 95.5, 100]
    lead = {"a": even, "b": [150, 152, 151, 150, 152]}
    results = results_of({"u": lead, "v": {"a": even, "b": chance}, "w": {"a": [300] * 5, "b": [200] * 5}})
    assert answer(results) == (
        "Of 3 worlds, a had the least mean regret in 2, by at least 0.2 (95 % interval -4.5 to 5.0, so it may be "
        "chance); b had the least mean regret in 1, by 100.0 (95 % interval 100.0 to 100.0)."
    )
    assert len(findings(results)) == 3


def test_one_trial_and_one_policy_claim_nothing() -> None:
    assert answer(results_of({"w": {"a": [100], "b": [150]}})) == (
        "w: a had the least regret, 100.0, ahead of b by 50.0 (too few trials to say whether by chance)."
    )
    assert answer(results_of({"w": {"a": [100, 100]}})) == (
        "w: a had the least regret, 100.0 ± 0.0; nobody else competed."
    )
    assert answer(results_of({"w": {"a": [1]}, "v": {"a": [1]}})) == "Of 2 worlds, a had the least mean regret in 2."


@pytest.mark.parametrize("n_trials", [2, 4])
def test_few_trials_claim_a_regret_but_no_lead_beyond_chance(n_trials: int) -> None:
    assert answer(results_of({"w": {"a": [100] * n_trials, "b": [150] * n_trials}})) == (
        "w: a had the least regret, 100.0 ± 0.0, ahead of b by 50.0 (too few trials to say whether by chance)."
    )


THREE = [{"name": "u"}, {"name": "v"}, {"name": "w"}]


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ({"u": 2, "v": 2, "w": 2}, ""),
        ({"u": 2, "v": 1, "w": 2}, "Unfinished: 5 of 6 trials are stored."),
        ({"u": 2}, "Unfinished: 2 of 6 trials are stored, none of v, w."),
    ],
)
def test_an_unfinished_study_says_what_is_missing_before_who_won(stored: dict[str, int], said: str) -> None:
    finals = {world: {"random": [1.0] * n_trials} for world, n_trials in stored.items()}
    results = results_of(finals, settings=settings_of(THREE, trials=2))
    assert unfinished(results) == said
    assert answer(results) == f"{said} {answer(results_of(finals))}".strip()


def test_a_quick_study_says_so_first_and_then_what_is_missing() -> None:
    finals = {"u": {"random": [100]}}
    quick = answer(results_of(finals, settings=settings_of(THREE, trials=2, quick=True)))
    assert quick == (
        "A quick run, made small: it shows that everything works, and nothing else. "
        "Unfinished: 1 of 6 trials are stored, none of v, w. "
        "u: random had the least regret, 100.0; nobody else competed."
    )
    assert "quick" not in answer(results_of(finals, settings=settings_of(THREE, trials=2, quick=False)))
