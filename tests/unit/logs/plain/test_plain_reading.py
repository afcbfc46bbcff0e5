"""The plain format: what is read, what is refused and where, and that a log comes back as it was written."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie import ArmPool, UserGraph
from coterie.errors import InputError
from coterie.graphs.build import EDGE_PAIRS
from coterie.logs import Events, Log, Pairs, Ragged, check_log, describe, read_log, write_log
from coterie.logs.plain.cells import read_batches

TABLES = {
    "users": "user\ndee\n",
    "edges": "user,other,weight\nana,bo,1\nbo,cy,0.5\nbo,ana,1\n",
    "arms": "arm,hot,sweet\ntea,1,0.1\ncola,0,0.9\nmilk,0.5,0.5\n",
    "events": "user,arm,reward,candidates,propensity,time\n"
    "ana,tea,1,tea|cola,0.5,2024-05-31T12:00:00+00:00\n"
    "dee,milk,-0.5,,,\n"
    "bo,cola,0,milk|cola|tea,0.25,2024-05-31 12:00:01\n",
}


def written(folder: Path, **changed: str | None) -> Path:
    for name, text in (TABLES | changed).items():
        if text is not None:
            (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    return folder


def as_parquet(folder: Path, name: str, table: dict[str, Any]) -> None:
    (folder / f"{name}.csv").unlink()
    pq.write_table(pa.table(table), folder / f"{name}.parquet")


def assert_same(log: Log, other: Log) -> None:
    assert log.graph == other.graph
    assert log.graph.users == other.graph.users
    assert log.arm_ids == other.arm_ids
    if isinstance(log.arms, ArmPool) and isinstance(other.arms, ArmPool):
        np.testing.assert_array_equal(log.arms.features, other.arms.features)
        assert log.arms.feature_names == other.arms.feature_names
    for name in ("user", "arm", "reward", "propensity", "time"):
        np.testing.assert_array_equal(getattr(log.events, name), getattr(other.events, name))
    lists, others = log.events.candidates, other.events.candidates
    assert (lists is None) == (others is None)
    if lists is not None and others is not None:
        np.testing.assert_array_equal(lists.starts, others.starts)
        np.testing.assert_array_equal(lists.flat, others.flat)


@pytest.mark.parametrize("pair", EDGE_PAIRS)
def test_the_users_of_an_edge_go_by_any_of_the_usual_names(tmp_path: Path, pair: tuple[str, str]) -> None:
    edges = TABLES["edges"].replace("user,other", ",".join(pair))
    assert read_log(written(tmp_path, edges=edges)).graph.weight("cy", "bo") == 0.5
    written(tmp_path, edges=edges.replace("bo,cy", "bo,bo"))
    _, mistakes = check_log(tmp_path)
    assert f"edges.csv, line 3, column {pair[1]!r}: it is 'bo'" in str(mistakes[0])


def test_a_log_is_read(tmp_path: Path) -> None:
    log = read_log(written(tmp_path))
    assert log.graph.users == ("dee", "ana", "bo", "cy")
    assert log.graph.weight("cy", "bo") == 0.5
    assert isinstance(log.arms, ArmPool)
    assert log.arms.feature_names == ("hot", "sweet")
    events = log.events
    assert events.user.tolist() == [1, 0, 2]
    assert events.arm.tolist() == [0, 2, 1]
    assert events.reward.tolist() == [1.0, -0.5, 0.0]
    assert events.candidates is not None
    assert [events.candidates[row].tolist() for row in range(3)] == [[0, 1], [], [2, 1, 0]]
    assert events.propensity is not None
    np.testing.assert_array_equal(events.propensity, [0.5, np.nan, 0.25])
    assert events.time is not None
    np.testing.assert_array_equal(events.time, [1717156800.0, np.nan, 1717156801.0])


def test_arms_need_no_features_and_optional_columns_need_not_be_there(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, arms="arm\ntea\n", events="reward,user,arm\n2,ana,tea\n", users=None))
    assert log.arms == ("tea",)
    assert log.n_features == 0
    assert [log.events.candidates, log.events.propensity, log.events.time] == [None] * 3


def test_a_log_without_edges_has_users(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, users="user\nana\ndee\nbo\n", edges="user,other\n"))
    assert log.graph.n_edges == 0
    assert log.graph.n_users == 3


def test_parquet_with_numbers_dictionaries_lists_and_gaps_says_the_same(tmp_path: Path) -> None:
    names = {"users": "user\n4\n", "edges": "user,other\n1,2\n2,3\n", "arms": "arm\n10\n20\n"}
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    rows = "user,arm,reward,candidates,propensity,time\n1,10,1,10|20,0.5,7\n4,20,0,,,8\n"
    log = read_log(written(tmp_path / "a", **names, events=rows))
    folder = written(tmp_path / "b", **names)
    as_parquet(folder, "edges", {"user": pa.array([1, 2], pa.int32()), "other": pa.array([2.0, 3.0])})
    table = {
        "user": pa.array(["1", "4"]).dictionary_encode(),
        "arm": pa.array([10, 20]),
        "reward": pa.array([True, False]),
        "candidates": pa.array([[10, 20], None], pa.list_(pa.int64())),
        "propensity": pa.array([0.5, None]),
        "time": pa.array([7, 8]),
    }
    as_parquet(folder, "events", table)
    assert_same(read_log(folder), log)


WRONG = [
    ("users", "user\ndee\ndee\n", "users.csv, line 3, column 'user': it is 'dee'; ids are unique"),
    ("edges", "user,other\nana,bo\ncy,\n", "edges.csv, line 3, column 'other': it is empty"),
    ("edges", "user,other\nana,bo\n\nbo,bo\n", "edges.csv, line 4, column 'other': it is 'bo'; an edge joins two"),
    ("edges", "user,other,weight\nana,bo,-1\n", "edges.csv, line 2, column 'weight': it is '-1'; a weight is 0, or"),
    ("edges", "user,other,weight\nana,bo,1e300\n", "edges.csv, line 2, column 'weight': it is '1e300'; a weight is 0"),
    ("edges", "user,other,weight\nana,bo,1\nbo,ana,2\n", "line 3: 'ana' and 'bo' have weight 2, and 1 in line 2"),
    ("edges", "ana,bo\nbo,cy\n", "edges.csv has no column 'user' among 'ana', 'bo'; its first line names"),
    ("edges", "user,other,wieght\nana,bo,1\n", "edges.csv has a column 'wieght'.*Did you mean 'weight'"),
    ("edges", "user,other\nana,bo\nbo,cy,1\n", "edges.csv, line 3: it has 3 cells; every line has as many"),
    ("arms", "arm,hot\ntea,1\ntea,2\n", "arms.csv, line 3, column 'arm': it is 'tea'; ids are unique"),
    ("arms", "arm,hot\ntea,warm\n", "arms.csv, line 2, column 'hot': it is 'warm'; a feature is a finite number"),
    ("arms", "arm,hot\ntea,inf\n", "arms.csv, line 2, column 'hot': it is 'inf'"),
    ("arms", "arm,hot\ntea,1\ncola,1e200\n", "arms.csv, line 3, column 'hot': it is '1e200'; .*in another unit"),
    ("arms", "arm,hot,one\ntea,1e-200,1\ncola,2e-200,1\n", "arms.csv: feature 'hot' differs by 1e-200, and no other"),
    ("arms", "arm,hot\n", "arms.csv has no rows"),
    ("events", "user,arm,reward\nana,tea,1\nzoe,tea,1\n", "events.csv, line 3, column 'user': it is 'zoe'; users are"),
    ("events", "user,arm,reward\nana,gin,1\n", "events.csv, line 2, column 'arm': it is 'gin'; arms are those"),
    ("events", "user,arm,reward\nana,tea,\n", "events.csv, line 2, column 'reward': it is ''; a reward is a finite"),
    ("events", "user,arm,reward\nana,tea,1\nbo,tea,-1e300\n", r"line 3, column 'reward': it is '-1e300'; .* 1e\+50 in"),
    ("events", "user,arm,reward\nana,tea,1e400\n", "line 2, column 'reward': it is '1e400'; a reward is a finite"),
    ("events", "", "events.csv has no column 'user': it is empty"),
    ("events", "user,arm,reward\n,,\n", "events.csv, line 2, column 'user': it is empty"),
    ("events", "user,arm,reward\n", "events.csv has no rows; a log has at least one event"),
    ("events", "user,arm,reward,propensity\nana,tea,1,0\n", "line 2, column 'propensity': it is '0'; a propensity is"),
    ("events", "user,arm,reward,propensity\nana,tea,1,1.5\n", "line 2, column 'propensity': it is '1.5'"),
    (
        "events",
        "user,arm,reward,time\nana,tea,1,3\nana,tea,1,2024-05-31\n",
        "line 3, column 'time'.*a time is a number",
    ),
    ("events", "user,arm,reward,time\nana,tea,1,1e400\nana,tea,1,3\n", "line 2, column 'time'.*a time is a number"),
    (
        "events",
        "user,arm,reward,time\nana,tea,1,soon\nbo,tea,1,2024-05-31\n",
        "line 2, column 'time'.*a time is a date",
    ),
    ("events", "user,arm,reward,time\nana,tea,1,2024-05-31\nana,tea,1,3\n", "line 3, column 'time'.*a time is a date"),
    ("events", "user,arm,reward,candidates\nana,tea,1,cola|milk\n", "column 'candidates': 'tea' is absent; the chosen"),
    ("events", "user,arm,reward,candidates\nana,tea,1,tea|gin\n", "column 'candidates': one of them is 'gin'; arms"),
    ("events", "user,arm,reward,candidates\nana,tea,1,tea|milk|milk\n", "one of them is 'milk'; candidates are diff"),
]


@pytest.mark.parametrize(("table", "text", "message"), WRONG)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, table: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_log(written(tmp_path, **{table: text}))


def test_a_mistake_in_parquet_is_named_with_its_row(tmp_path: Path) -> None:
    folder = written(tmp_path)
    as_parquet(folder, "events", {"user": ["ana"] * 5, "arm": ["tea"] * 5, "reward": [1.0, 0.0, 1.0, np.nan, 1.0]})
    _, [mistake] = check_log(folder, batch_rows=2)
    assert str(mistake).startswith("events.parquet, row 4, column 'reward': it is 'nan'")


def test_lists_of_parquet_belong_to_candidates(tmp_path: Path) -> None:
    folder = written(tmp_path)
    table = {
        "user": ["ana"],
        "arm": ["tea"],
        "reward": [1.0],
        "candidates": pa.array([["tea", "cola"]], pa.list_(pa.string(), 2)),
    }
    as_parquet(folder, "events", table)
    lists = read_log(folder).events.candidates
    assert lists is not None
    assert lists[0].tolist() == [0, 1]
    pq.write_table(pa.table(table | {"reward": [[1.0]]}), folder / "events.parquet")
    with pytest.raises(InputError, match=r"events.parquet, column 'reward': it holds lists; only candidates are"):
        read_log(folder)


def test_missing_and_doubled_tables_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        read_log(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"neither arms.csv nor arms.parquet.*Add a table with the columns arm"):
        read_log(written(tmp_path, arms=None))
    written(tmp_path)
    (tmp_path / "arms.parquet").touch()
    with pytest.raises(InputError, match=r"there are arms.csv and arms.parquet"):
        read_log(tmp_path)


def test_several_mistakes_are_found_in_the_order_of_the_rows(tmp_path: Path) -> None:
    rows = "\n".join(["ana,tea,1", "zoe,tea,x", "ana,gin,1", "ana,tea,y"] * 4)
    log, mistakes = check_log(written(tmp_path, events=f"user,arm,reward\n{rows}\n"), limit=5)
    assert log is None
    assert [str(each).partition(":")[0] for each in mistakes] == [
        f"events.csv, line {line}, column {column!r}"
        for line, column in ((3, "user"), (4, "arm"), (5, "reward"), (7, "user"), (8, "arm"))
    ]


def test_mistakes_of_several_tables_are_found_at_once(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        users="user\ndee\ndee\neve\n",
        edges="user,other\neve,eve\n,bo\nana,bo\n",
        arms="arm,hot\ntea,x\ntea,1\n",
    )
    _, mistakes = check_log(folder)
    assert [str(each).partition(",")[0] for each in mistakes[:5]] == [
        "users.csv",
        *["edges.csv"] * 2,
        *["arms.csv"] * 2,
    ]


IDS = st.lists(
    st.text("ab\"',;| é", min_size=1, max_size=4).map(str.strip).filter(bool), min_size=1, max_size=6, unique=True
)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    users, arms = draw(IDS), draw(IDS)
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    weights = np.triu(rng.integers(0, 3, size=(len(users), len(users))) * rng.random((len(users), len(users))), 1)
    size = draw(st.integers(1, 8))
    chosen = rng.integers(len(arms), size=size)
    lists = [
        sorted({int(arm), *rng.integers(len(arms), size=2).tolist()}) if rng.random() < 0.8 else [] for arm in chosen
    ]
    events = Events(
        user=rng.integers(len(users), size=size),
        arm=chosen,
        reward=rng.normal(size=size),
        candidates=Ragged.of(lists) if any(lists) else None,
        propensity=np.concatenate([[0.5], np.where(rng.random(size - 1) < 0.5, np.nan, rng.random(size - 1))]),
        time=None if draw(st.booleans()) else rng.normal(size=size) * 1e9,
    )
    pool = ArmPool(rng.normal(size=(len(arms), 2)), ids=arms, feature_names=["user", "x y"])
    return Log(graph=UserGraph.from_matrix(weights + weights.T, users=users), arms=pool, events=events)


@settings(max_examples=25, deadline=None)
@given(log=logs(), format=st.sampled_from(["csv", "parquet"]))
def test_a_log_comes_back_as_it_was_written(log: Log, format: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    if format == "csv" and any("|" in str(arm) for arm in log.arm_ids):
        log = Log(graph=log.graph, arms=tuple(f"{place}" for place in range(len(log.arm_ids))), events=log.events)
    folder = tmp_path_factory.mktemp("log")
    write_log(log, folder, format=format)
    assert_same(read_log(folder), log)


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_file_is_read_in_batches_and_says_the_same(format: Any, tmp_path: Path) -> None:
    log = read_log(written(tmp_path))
    write_log(log, tmp_path / "out", format=format)
    _, batches = read_batches(tmp_path / "out" / f"events.{format}", InputError, 1)
    assert [len(batch.numbers) for batch in batches] == [1, 1, 1]
    again, _ = check_log(tmp_path / "out", batch_rows=1)
    assert again is not None
    assert_same(again, log)


def test_what_was_had_besides_comes_back(tmp_path: Path) -> None:
    log = read_log(written(tmp_path))
    had = Pairs(user=np.array([0, 3]), arm=np.array([2, 1]))
    write_log(Log(graph=log.graph, arms=log.arms, events=log.events, had=had), tmp_path / "out", format="parquet")
    back = read_log(tmp_path / "out").had
    assert back is not None
    assert (back.user.tolist(), back.arm.tolist()) == ([0, 3], [2, 1])


def test_writing_overwrites_nothing_and_refuses_what_would_not_come_back(tmp_path: Path) -> None:
    log = read_log(written(tmp_path))
    with pytest.raises(InputError, match="is there already; nothing is overwritten"):
        write_log(log, tmp_path, format="parquet")
    odd = Log(graph=log.graph, arms=("tea", "co|la", "milk"), events=log.events)
    with pytest.raises(InputError, match=r"arm 'co\|la' has one in its id"):
        write_log(odd, tmp_path / "odd")
    twice = Log(graph=UserGraph.from_edges([(1, "1"), (2, 3)]), arms=log.arms, events=log.events)
    with pytest.raises(InputError, match="users 1 and '1' have one text"):
        write_log(twice, tmp_path / "odd")
    assert not (tmp_path / "odd").exists()
    with pytest.raises(InputError, match="format = 'xlsx' is unknown"):
        write_log(log, tmp_path / "odd", format="xlsx")  # type: ignore[arg-type]


def test_the_counts_are_told(tmp_path: Path) -> None:
    told = dict(line.strip().rsplit("  ", 1) for line in describe(read_log(written(tmp_path))).splitlines())
    counts = {name.strip(): value for name, value in told.items()}
    assert counts["without edges"] == "1"
    assert counts["rewards"] == "-0.5 to 1"
    assert counts["with candidates"] == counts["with propensity"] == counts["with time"] == "2"


def test_a_log_says_in_a_line_what_it_holds(tmp_path: Path) -> None:
    log = read_log(written(tmp_path))
    counts = f"users {log.graph.n_users}, edges {log.graph.n_edges}, arms {len(log.arm_ids)}, features {log.n_features}"
    assert str(log) == f"Log: {counts}, events {len(log.events)}"
