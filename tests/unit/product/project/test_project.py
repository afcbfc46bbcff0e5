"""A project from one's own tables: what is read, what is refused and where, and that nothing is overwritten."""

import csv
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.errors import ArmError, CoterieError, GraphError, MissingExtraError, ParameterError, SavedFileError
from coterie.product import Bandit
from coterie.product.project import Project, init_project
from coterie.product.project.checked import read_arms, read_edges

EDGES = "from,to,weight\nana,bo,2\nbo,cy,0.5\n"
ARMS = "song,tempo,loud\ns1,0.5,1\ns2,-1,1e-3\n"
JOINED = [("ana", "bo", 2.0), ("bo", "cy", 0.5)]


def write(folder: Path, edges: str = EDGES, arms: str = ARMS) -> tuple[Path, Path]:
    paths = folder / "e.csv", folder / "a.csv"
    for path, text in zip(paths, (edges, arms), strict=True):
        path.write_bytes(text.encode())
    return paths


def init(folder: Path, edges: str = EDGES, arms: str = ARMS, **options: object) -> Project:
    edges_path, arms_path = write(folder, edges, arms)
    return init_project(folder / "shop", edges=edges_path, arms=arms_path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        EDGES,
        "ana,bo,2\nbo,cy,0.5\n",
        "\ufeffana;bo;2\r\nbo;cy;0.5\r\n",
        "user_id\tfriend id\tweight\n\nana\tbo\t2\n\t\t\nbo\tcy\t0.5",
        '"ana", bo, 2\n bo ,"cy",0.5\ncy,bo,0.5\n',
        "Weight,Friend,User\n2,bo,ana\n0.5,cy,bo\n",
        "user,other,weight\nana,bo,2\nbo,cy,0.5\n",
    ],
    ids=["header", "none", "semicolons", "tabs-and-blank-lines", "quotes-and-both-directions", "by-name", "as-in-logs"],
)
def test_edges_are_read_in_the_forms_that_people_have_them_in(tmp_path: Path, text: str) -> None:
    assert read_edges(write(tmp_path, text)[0]).rows == JOINED


def test_two_columns_weigh_one_and_weight_0_names_a_user_without_friends(tmp_path: Path) -> None:
    assert read_edges(write(tmp_path, "source,target\nana,bo\nbo,cy\n")[0]).rows == [
        ("ana", "bo", 1.0),
        ("bo", "cy", 1.0),
    ]
    made = init(tmp_path, "ana,bo,1\ndee,ana,0\n")
    assert made.bandit.graph.users == ("ana", "bo", "dee")
    assert made.bandit.graph.n_edges == 1


def test_a_first_line_that_may_be_either_is_not_guessed(tmp_path: Path) -> None:
    path = write(tmp_path, "user-1,user-2\nuser-3,user-4\n")[0]
    with pytest.raises(GraphError, match=r"e.csv, line 1: 'user-1', 'user-2' may be a header or an edge.*--no-header"):
        read_edges(path)
    assert len(read_edges(path, header=False).rows) == 2
    assert read_edges(path, header=True).rows == [("user-3", "user-4", 1.0)]
    assert len(read_edges(write(tmp_path, "user,name\nname,id\n")[0]).rows) == 2  # named again below: users
    assert len(read_edges(write(tmp_path, "ana,bo\n")[0]).rows) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ana,bo,2\nbo,cy,-1\n", "e.csv, line 2, column 3: the weight is '-1'"),
        ("ana,bo,nan\nbo,cy,1\n", "e.csv, line 1, column 3: the weight is 'nan'"),
        (
            "ana,bo,1\nbo,cy,1e300\n",
            "e.csv, line 2, column 3: the weight is '1e300'; a weight is 0, or a number from",
        ),
        ("from,to,weight\nana,bo,2\n\nbo,cy,\n", "e.csv, line 4, column 'weight': the weight is ''"),
        ("ana,bo\nbo,\n", "e.csv, line 2, column 2: the user is missing"),
        ("ana,bo\nbo,bo\n", "e.csv, line 2: 'bo' is joined to themselves"),
        ("ana,bo,1\nbo,ana,2\n", "e.csv, line 2: 'bo' and 'ana' have weight 2, and 1 in line 1"),
        ("ana,bo\nbo,cy,1\n", "e.csv, line 2: it has 3 cells"),
        ("ana\nbo\n", "e.csv, line 1: it has 1 column;"),
        ('ana,bo\nbo,"cy\n', "e.csv, line 2: unexpected end of data"),
        (
            "user,friend,since\nana,bo,1700000000\n",
            "e.csv: the table has 3 columns ('user', 'friend', 'since'); an edge",
        ),
        ("user,friend\n", "e.csv has only a header"),
        ("", "e.csv has no rows"),
    ],
)
def test_a_mistake_in_the_edges_is_told_its_place(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(GraphError) as raised:
        init(tmp_path, text, header=True if text == "user,friend\n" else None)
    assert str(raised.value).startswith(told)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "shop").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("id,tempo,loud\ns1,0,1\ns2,0,fast\n", "a.csv, line 3, column 'loud': the value is 'fast'"),
        ("id,tempo\ns1,inf\n", "a.csv, line 2, column 'tempo': the value is 'inf'"),
        ("id,tempo\ns1,1\ns2,-1e200\n", "a.csv, line 3, column 'tempo': the value is '-1e200'; a feature is a finite"),
        ("id,tempo\ns1,\n", "a.csv, line 2, column 'tempo': the value is ''"),
        ("id,tempo\ns1,1\ns1,2\n", "a.csv, line 3, column 'id': 's1' is in line 2 already"),
        ("id,tempo\n,1\n", "a.csv, line 2, column 'id': the id is missing"),
        ("s1,1,2\ns2,1,2\n", "a.csv begins with ['s1', '1', '2']; the first line names the columns"),
        ("id,tempo,tempo\ns1,1,2\n", "a.csv, column 3: the name is 'tempo'"),
        ("id\ns1\n", "a.csv has 1 column"),
        ("id,tempo\n", "a.csv has only a header"),
    ],
)
def test_a_mistake_in_the_arms_is_told_its_place(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ArmError) as raised:
        init(tmp_path, arms=text)
    assert str(raised.value).startswith(told)
    assert not (tmp_path / "shop").exists()


def test_the_project_holds_a_bandit_and_tables_that_make_the_same_one(tmp_path: Path) -> None:
    made = init(tmp_path, policy="lk-gp-ucb", seed=4)
    saved = Bandit.load(made.folder / "bandit.coterie")
    assert saved.graph.weight("bo", "cy") == 0.5
    assert saved.predict("ana") == made.bandit.predict("ana")
    again = init_project(tmp_path / "again", edges=made.folder / "edges.csv", arms=made.folder / "arms.csv")
    assert again.bandit.graph.users == saved.graph.users
    assert (again.bandit.graph.weights != saved.graph.weights).nnz == 0
    assert again.bandit.arms.ids == ("s1", "s2")
    assert again.bandit.arms.features.tolist() == [[0.5, 1.0], [-1.0, 0.001]]
    assert again.bandit.arms.feature_names == ("tempo", "loud")
    assert str(made).endswith(f"next: coterie decide {made.folder / 'bandit.coterie'} ana")
    assert "3 users and 2 edges (below the header 'from,to,weight'), 2 arms, 2 features" in str(made)


@pytest.mark.parametrize("name", ["bandit.coterie", "app.py", "README.md", "edges.csv", "arms.csv"])
def test_nothing_is_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / name).write_text("mine", encoding="utf-8")
    with pytest.raises(SavedFileError, match="exists already; init never overwrites"):
        init(tmp_path)
    assert [path.name for path in (tmp_path / "shop").iterdir()] == [name]
    assert (tmp_path / "shop" / name).read_text(encoding="utf-8") == "mine"


def test_a_failed_save_takes_the_other_files_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Bandit, "save", full)
    with pytest.raises(OSError, match="No space left"):
        init(tmp_path)
    assert list((tmp_path / "shop").iterdir()) == []


def test_a_wrong_policy_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(CoterieError, match="Did you mean 'auto-ucb'"):
        init(tmp_path, policy="auto-ubc")
    assert not (tmp_path / "shop").exists()


def test_ids_are_texts_unless_numbers_are_asked_for(tmp_path: Path) -> None:
    edges, arms = write(tmp_path, "1,02\n02,3\n")
    assert read_edges(edges).rows == [("1", "02", 1.0), ("02", "3", 1.0)]
    assert read_edges(edges, int_ids=True).rows == [(1, 2, 1.0), (2, 3, 1.0)]
    made = init(tmp_path, "1,02\n02,3\n", int_ids=True)
    assert (made.bandit.graph.users, made.bandit.arms.ids) == ((1, 2, 3), ("s1", "s2"))
    assert "USER = 1\n" in (made.folder / "app.py").read_text(encoding="utf-8")
    with pytest.raises(ParameterError, match=r"neither the users of e.csv nor the arms of a.csv are all whole numbers"):
        init_project(tmp_path / "other", edges=write(tmp_path)[0], arms=arms, int_ids=True)


def test_parquet_is_read_as_csv_is(tmp_path: Path) -> None:
    edges, arms = tmp_path / "edges.parquet", tmp_path / "arms.parquet"
    pq.write_table(pa.table({"a": [1, 2], "b": [2.0, 3.0], "weight": [1.0, 0.5]}), edges)
    pq.write_table(pa.table({"arm": ["s1", "s2"], "hot": [True, False], "__index_level_0__": [0, 1]}), arms)
    assert read_edges(edges).rows == [("1", "2", 1.0), ("2", "3", 0.5)]
    assert read_arms(arms).rows == {"s1": [1.0], "s2": [0.0]}
    pq.write_table(pa.table({"arm": ["s1", "s2"], "hot": [1.5, None]}), arms)
    with pytest.raises(ArmError, match=r"arms.parquet, row 2, column 'hot': the value is ''"):
        read_arms(arms)
    arms.write_bytes(arms.read_bytes()[:-9])
    with pytest.raises(ArmError, match=r"arms.parquet cannot be read: [^\n]*$"):
        read_arms(arms)


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "edges.parquet"
    pq.write_table(pa.table({"a": ["x"], "b": ["y"]}), path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"needs 'pyarrow'.*extra 'data'"):
        read_edges(path)


def test_a_file_that_is_neither_is_told(tmp_path: Path) -> None:
    path = tmp_path / "e.xlsx"
    path.write_bytes(b"PK\x03\x04\xff\xfe")
    with pytest.raises(GraphError, match=r"e.xlsx is not text in UTF-8 \(byte 4\); a table is CSV in UTF-8"):
        read_edges(path)


IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(str.strip).filter(bool)


@given(st.lists(st.tuples(IDS, IDS).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=5))
def test_any_ids_come_through_a_csv_file(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("from", "to"), *pairs])
    read = read_edges(path, header=True).rows
    once = {frozenset(pair): pair for pair in reversed(pairs)}
    assert [row[:2] for row in read] == [pair for pair in dict.fromkeys(pairs) if once[frozenset(pair)] == pair]


def test_true_and_false_are_told_to_be_1_and_0(tmp_path: Path) -> None:
    with pytest.raises(ArmError, match=r"column 'loud': the value is 'False'.*Write 0 for False: 1 is true"):
        init(tmp_path, arms="song,tempo,loud\ns1,0.5,False\n")
    with pytest.raises(ArmError, match="Write 1 for true"):
        init(tmp_path, arms="song,tempo,loud\ns1,0.5,true\n")
