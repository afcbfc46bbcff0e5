from pathlib import Path

import pytest

from coterie.errors import ArmError, GraphError, InputError, ParameterError
from coterie.service.command.loading import Tables, read_tables
from coterie.service.records import Arm, Edge


def table(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.csv"
    path.write_text(text)
    return path


def test_users_are_those_that_are_named_and_those_of_edges(tmp_path: Path) -> None:
    users = table(tmp_path, "users", "user,since\ndee,2020\nbo,2021\n")
    edges = table(tmp_path, "edges", "user,friend,weight\nana,bo,0.5\nbo,cy,1\n")
    arms = table(tmp_path, "arms", "song,tempo,loud\nhymn,0.2,0.1\npunk,0.9,1\n")
    found = read_tables(users=users, edges=edges, arms=arms)
    assert found.users == ["dee", "bo", "ana", "cy"]
    assert found.edges == [Edge(user="ana", other="bo", weight=0.5), Edge(user="bo", other="cy")]
    assert found.arms[0] == Arm(id="hymn", features={"tempo": 0.2, "loud": 0.1})
    assert str(found) == "4 users, 2 edges, 2 arms"


def test_arms_of_one_column_have_no_features(tmp_path: Path) -> None:
    found = read_tables(users=None, edges=None, arms=table(tmp_path, "arms", "song\nhymn\npunk\n"))
    assert found == Tables(users=[], edges=[], arms=[Arm(id="hymn"), Arm(id="punk")])


@pytest.mark.parametrize(
    ("name", "text", "error", "why"),
    [
        ("users", "user,since\n,2020\n", GraphError, r"users.csv, line 2: the id is missing"),
        ("arms", "song,tempo\nhymn,fast\n", ArmError, r"arms.csv, line 2, column 'tempo': the value is 'fast'"),
        ("edges", "user,friend\nana,ana\n", GraphError, r"edges.csv, line 2: 'ana' is joined to themselves"),
    ],
)
def test_a_table_that_is_wrong_is_refused_by_line(
    name: str, text: str, error: type[InputError], why: str, tmp_path: Path
) -> None:
    given: dict[str, Path | None] = {"users": None, "edges": None, "arms": None}
    given[name] = table(tmp_path, name, text)
    with pytest.raises(error, match=why):
        read_tables(users=given["users"], edges=given["edges"], arms=given["arms"])


def test_nothing_to_load_is_a_mistake() -> None:
    with pytest.raises(ParameterError, match="there is nothing to load"):
        read_tables(users=None, edges=None, arms=None)
