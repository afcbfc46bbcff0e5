"""Numbers that no command can use are refused by all of them alike, with file and line."""

from pathlib import Path

import numpy as np
import pytest

from coterie.__main__ import main

USERS, ARMS = [f"u{place}" for place in range(12)], [f"a{place}" for place in range(6)]


def written(folder: Path, **changed: tuple[int, int, str]) -> Path:
    """Writes a small log; a table's change is a line as an editor counts it, a column from 0, and what stands there."""
    rng = np.random.default_rng(0)
    tables = {
        "edges": [["user", "other", "weight"], *([USERS[i], USERS[i - 1], "1"] for i in range(12))],
        "arms": [["arm", "hot", "sweet"], *([arm, *map(str, rng.normal(size=2).round(3))] for arm in ARMS)],
        "events": [["user", "arm", "reward", "propensity", "time", "candidates"]],
    }
    for time in range(80):
        row = [USERS[rng.integers(12)], ARMS[rng.integers(6)], str(round(rng.normal(), 3)), str(1 / 6)]
        tables["events"].append([*row, str(time), "|".join(ARMS)])
    for table, (line, column, text) in changed.items():
        tables[table][line - 1][column] = text
    for table, rows in tables.items():
        (folder / f"{table}.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    return folder


COMMANDS = [
    ["data", "check", "log"],
    ["diagnose", "log"],
    ["evaluate", "log", "--policy", "lk-gp-ucb"],
    ["run", "log", "--quick", "--out", "out"],
]
REFUSED = [
    ("events", (2, 2, "1e300"), "events.csv, line 2, column 'reward': it is '1e300'; a reward is"),
    ("events", (7, 2, "-1e51"), "events.csv, line 7, column 'reward': it is '-1e51'; a reward is"),
    ("events", (2, 2, "nan"), "events.csv, line 2, column 'reward': it is 'nan'; a reward is"),
    ("events", (3, 3, "0"), "events.csv, line 3, column 'propensity': it is '0'; a propensity is"),
    ("events", (3, 3, "1e-300"), "events.csv, line 3, column 'propensity': it is '1e-300'; a propensity is"),
    ("arms", (4, 2, "1e200"), "arms.csv, line 4, column 'sweet': it is '1e200'; a feature is"),
    ("edges", (5, 2, "1e300"), "edges.csv, line 5, column 'weight': it is '1e300'; a weight is"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(("table", "change", "told"), REFUSED, ids=[change[2] for _, change, _ in REFUSED])
def test_a_number_out_of_range_is_refused_with_its_line(
    command: list[str],
    table: str,
    change: tuple[int, int, str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log").mkdir()
    written(tmp_path / "log", **{table: change})
    assert main(command) == 2
    assert told in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("events", (2, 2, "1e50")),
        ("events", (2, 2, "1e-300")),
        ("events", (2, 3, "1e-20")),
        ("events", (2, 4, "-1e300")),
        ("arms", (4, 2, "1e50")),
        ("arms", (4, 2, "1e-300")),
        ("edges", (5, 2, "1e-300")),
        ("edges", (5, 2, "0")),
    ],
)
def test_a_number_in_range_is_taken_by_every_command(
    command: list[str], table: str, change: tuple[int, int, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Warnings are errors here."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log").mkdir()
    written(tmp_path / "log", **{table: change})
    assert main(command) == 0
