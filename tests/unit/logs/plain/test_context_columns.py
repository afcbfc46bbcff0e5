"""Contexts in the tables of a log: what is read, what is refused and where, and that they come back as written."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie import UserGraph
from coterie.errors import ContextError, InputError
from coterie.logs import Contexts, Events, Log, check_log, describe, read_log, write_log

EVENTS = "user,arm,reward,context.hour,context.device,context.new\nana,tea,1,9,phone,true\nbo,cola,0,21.5,7,False\n"
ROWS = [{"hour": 9.0, "device": "phone", "new": True}, {"hour": 21.5, "device": "7", "new": False}]


def written(folder: Path, events: str = EVENTS, contexts: str | None = None) -> Path:
    (folder / "edges.csv").write_text("user,other\nana,bo\n")
    (folder / "arms.csv").write_text("arm\ntea\ncola\n")
    (folder / "events.csv").write_text(events)
    if contexts is not None:
        (folder / "contexts.csv").write_text(contexts)
    return folder


def in_parquet(folder: Path, **columns: Any) -> Path:
    written(folder)
    (folder / "events.csv").unlink()
    plain: dict[str, Any] = {"user": ["ana", "bo"], "arm": ["tea", "cola"], "reward": [1.0, 0.0]}
    pq.write_table(
        pa.table(plain | {f"context.{name}": column for name, column in columns.items()}), folder / "events.parquet"
    )
    return folder


def contexts_of(log: Log) -> list[Any]:
    assert log.events.context is not None
    return [log.events.context[row] for row in range(len(log.events))]


def mistakes(folder: Path, **options: Any) -> list[str]:
    return [str(each) for each in check_log(folder, **options)[1]]


def test_the_first_cell_says_what_a_column_holds(tmp_path: Path) -> None:
    log = read_log(written(tmp_path))
    assert contexts_of(log) == ROWS
    assert log.events.context is not None
    assert log.events.context.schema == {"hour": "number", "device": "category", "new": "flag"}
    assert "  context          hour (number), device (category), new (flag)" in describe(log).splitlines()


def test_without_such_columns_there_are_no_contexts(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, "user,arm,reward\nana,tea,1\n"))
    assert log.events.context is None
    assert "context" not in describe(log)


def test_small_batches_read_the_same(tmp_path: Path) -> None:
    log, _ = check_log(written(tmp_path), batch_rows=1)
    assert log is not None
    assert contexts_of(log) == ROWS


def test_parquet_says_itself_what_a_column_holds(tmp_path: Path) -> None:
    coded = pa.array(["a", "b"]).dictionary_encode()
    log = read_log(in_parquet(tmp_path, hour=[9, 21], zip=["0123", "7"], new=[True, False], shop=coded))
    assert contexts_of(log) == [
        {"hour": 9.0, "zip": "0123", "new": True, "shop": "a"},
        {"hour": 21.0, "zip": "7", "new": False, "shop": "b"},
    ]


def test_a_table_of_contexts_states_kinds_and_defaults(tmp_path: Path) -> None:
    events = EVENTS.replace("21.5,7,False", ",,").replace("true", "1")
    stated = "name,kind,default\nhour,category,noon\ndevice,,desktop\nnew,flag,true\n"
    log = read_log(written(tmp_path, events, stated))
    assert contexts_of(log) == [
        {"hour": "9", "device": "phone", "new": True},
        {"hour": "noon", "device": "desktop", "new": True},
    ]


def test_nulls_of_parquet_are_missing(tmp_path: Path) -> None:
    folder = in_parquet(tmp_path, hour=[None, 21.0], device=["phone", None])
    assert mistakes(folder) == [
        f"events.parquet, row {row}, column 'context.{name}': it is empty; every row has one, unless a table contexts "
        "states a default. Fill it in, or state a default."
        for row, name in ((1, "hour"), (2, "device"))
    ]
    (tmp_path / "contexts.csv").write_text("name,default\nhour,12\ndevice,desktop\n")
    assert contexts_of(read_log(folder)) == [{"hour": 12.0, "device": "phone"}, {"hour": 21.0, "device": "desktop"}]


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("late,phone,true", "line 4, column 'context.hour': it is 'late'; this column has numbers, finite and"),
        ("nan,phone,true", "line 4, column 'context.hour': it is 'nan'; this column has numbers"),
        ("1e60,phone,true", "line 4, column 'context.hour': it is '1e60'; this column has numbers"),
        (",phone,true", "line 4, column 'context.hour': it is empty; every line has one, unless a table contexts"),
        ("9,,true", "line 4, column 'context.device': it is empty"),
        ("9,phone,maybe", "line 4, column 'context.new': it is 'maybe'; this column has true and false"),
    ],
)
def test_a_mistake_names_line_and_column(tmp_path: Path, cell: str, problem: str) -> None:
    found = mistakes(written(tmp_path, f"{EVENTS}bo,tea,1,{cell}\n"))
    assert len(found) == 1
    assert problem in found[0]


@pytest.mark.parametrize(
    ("stated", "problem"),
    [
        ("name,kind\nhour,whole\n", "line 2, column 'kind': it is 'whole'; a kind is 'number', 'flag', 'category'"),
        ("name,kind\nday,number\n", "line 2, column 'name': it is 'day'; names are those of columns context.NAME"),
        ("name\nhour\nhour\n", "line 3, column 'name': it is 'hour'; a name has one row"),
        ("name,kind,default\nhour,number,noon\n", "line 2, column 'default': it is 'noon'; this column has numbers"),
        ("name,kind,default\nnew,flag,maybe\n", "line 2, column 'default': it is 'maybe'; this column has true and"),
        ("kind\nnumber\n", "contexts.csv has no column 'name'"),
    ],
)
def test_a_mistake_in_the_table_of_contexts_is_named(tmp_path: Path, stated: str, problem: str) -> None:
    found = mistakes(written(tmp_path, contexts=stated))
    assert len(found) == 1
    assert "contexts.csv" in found[0]
    assert problem in found[0]


def test_a_column_without_a_name_or_of_lists_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has a column 'context\.'.*context\.NAME \(optional\)"):
        read_log(written(tmp_path, "user,arm,reward,context.\nana,tea,1,9\n"))
    (tmp_path / "lists").mkdir()
    with pytest.raises(InputError, match=r"'context\.hours': it holds lists"):
        read_log(in_parquet(tmp_path / "lists", hours=[[1, 2], [3]]))


texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1).filter(
    lambda s: s == s.strip()
)


@given(
    hours=st.lists(st.floats(-1e50, 1e50), min_size=2, max_size=2),
    devices=st.lists(texts, min_size=2, max_size=2),
    new=st.booleans(),
    name=texts,
)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, hours: list[float], devices: list[str], new: bool, name: str
) -> None:
    folder = tmp_path_factory.mktemp("log")
    rows = [{"hour": hour, f"d{name}": device, "new": new} for hour, device in zip(hours, devices, strict=True)]
    events = Events(
        user=np.array([0, 1]),
        arm=np.array([1, 0]),
        reward=np.array([1.0, 0.0]),
        context=Contexts.of(rows),
        slate=np.array([4, -1]),
        place=np.array([1, 2]),
    )
    log = Log(graph=UserGraph.from_edges([("ana", "bo")]), arms=("tea", "cola"), events=events)
    for format in ("csv", "parquet"):
        write_log(log, folder / format, format=format)
        again = read_log(folder / format)
        assert contexts_of(again) == rows
        assert again.events.slate is not None
        assert again.events.place is not None
        assert again.events.slate.tolist() == [4, -1]
        assert again.events.place.tolist() == [1, 2]


@pytest.mark.parametrize("device", ["", " phone"])
def test_what_would_not_come_back_is_not_written(tmp_path: Path, device: str) -> None:
    log = read_log(written(tmp_path))
    events = Events(
        user=log.events.user,
        arm=log.events.arm,
        reward=log.events.reward,
        context=Contexts.of([{"device": device}] * 2),
    )
    with pytest.raises(InputError, match="category of 'device'"):
        write_log(Log(graph=log.graph, arms=log.arms, events=events), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_contexts_of_lists_are_checked_row_by_row() -> None:
    with pytest.raises(ContextError, match="row 1: 'hour' of the context is 'late'"):
        Contexts.of([{"hour": 9}, {"hour": "late"}])
    with pytest.raises(ContextError, match="row 1: the context has no 'hour'"):
        Contexts.of([{"hour": 9}, {}])
    with pytest.raises(ContextError, match="at least one name"):
        Contexts.of([{}])
    with pytest.raises(ContextError, match="there are no contexts"):
        Contexts.of([])
    filled = Contexts.of([{}, {"hour": 9}], {"hour": {"kind": "number", "default": 12}})
    assert (filled[0], filled[1]) == ({"hour": 12.0}, {"hour": 9.0})


def test_rows_of_numbers_are_contexts_too() -> None:
    contexts = Contexts.of([(1, 2.0), np.array([3.0, 4.0]), [1, 2]])
    assert (contexts.schema, contexts[1], contexts.codes().tolist()) == (2, (3.0, 4.0), [0, 1, 0])
    assert contexts.take(np.array([1]))[0] == (3.0, 4.0)
