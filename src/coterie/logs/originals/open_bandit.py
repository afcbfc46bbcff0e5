"""The Open Bandit Dataset: logged choices with propensities; it has no user ids and no graph."""

import csv
import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Literal

import numpy as np
import scipy.sparse as sp

from coterie.errors import InputError, UnknownNameError
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.kernels.schema import CATEGORY
from coterie.logs.contexts import ContextColumn, Contexts
from coterie.logs.log import Events, Floats, Log
from coterie.logs.originals.origin import OPEN_BANDIT, REMEDY, places

Columns = dict[str, list[str]]
NAMED = ("timestamp", "item_id", "position", "click", "propensity_score")
FEATURES = tuple(f"user_feature_{place}" for place in range(4))


def load_open_bandit(
    folder: str | Path,
    *,
    logger: Literal["random", "bts"] = "random",
    campaign: Literal["all", "men", "women"] = "all",
    position: int | None = None,
    users: Literal["features", "one"] = "features",
    contexts: bool = False,
) -> Log:
    """Returns the log of one logger and campaign from the folder of the original files; every item is a candidate.

    Candidates are therefore not listed, event by event. The affinities of users to items are left out, and counted.

    Args:
        folder: The folder with random/all/all.csv and random/all/item_context.csv, or random_all_all.csv and
            random_all_item_context.csv; each may be compressed (.gz).
        logger: "random" for uniform choices, "bts" for Bernoulli Thompson sampling.
        campaign: "all", "men" or "women".
        position: Keep only the choices for this place on the page, 1, 2 or 3; none for all of them.
        users: "features" takes those of equal user features as one user, "one" takes all as one. Nobody has edges.
        contexts: Whether the user features are contexts, four categories, and the position is the place of an event.
    """
    if users not in ("features", "one"):
        raise UnknownNameError(f"users = {users!r} is unknown", "it is 'features' or 'one'", "Pick one of these")
    path = _find(folder, logger, campaign, campaign)
    held, others = _read(path, (*NAMED, *FEATURES))
    rows = [row for row, place in enumerate(held["position"]) if position is None or place == str(position)]
    if not rows:
        problem = f"{path.name} has {len(held['position'])} rows, none for position {position}"
        raise InputError(problem, "positions are 1, 2 and 3", "Pass one of these, or none")
    columns = {name: [column[row] for row in rows] for name, column in held.items()}
    pool = _items(_find(folder, logger, campaign, "item_context"))
    who = list(zip(*(columns[name] for name in FEATURES if users == "features"), strict=True)) or [()] * len(rows)
    people = list(dict.fromkeys(who))
    events = Events(
        user=places(who, people, path, "user"),
        arm=places(columns["item_id"], pool.ids, path, "item"),
        reward=_numbers(path, columns, "click"),
        propensity=_numbers(path, columns, "propensity_score"),
        time=np.array([_seconds(path, text) for text in columns["timestamp"]]),
        context=_contexts(columns) if contexts else None,
        place=_numbers(path, columns, "position").astype(np.int64) if contexts else None,
    )
    gone = {
        "choices for other positions": len(held["position"]) - len(rows),
        "columns of user-item affinities": sum(name.startswith("user-item_affinity") for name in others),
    }
    names = ["-".join(part[:8] for part in each) or "everybody" for each in people]
    graph = UserGraph.from_matrix(sp.csr_array((len(names), len(names))), users=names)
    return Log(graph=graph, arms=pool, events=events, left_out=gone)


def _contexts(columns: Columns) -> Contexts:
    """Returns the user features as categories, of which the beginnings tell them apart."""
    short = {name: [text[:8] for text in columns[name]] for name in FEATURES}
    return Contexts({name: ContextColumn.of(CATEGORY, texts) for name, texts in short.items()})


def _find(folder: str | Path, logger: str, campaign: str, name: str) -> Path:
    stems = f"{logger}/{campaign}/{name}.csv", f"{logger}_{campaign}_{name}.csv"
    return OPEN_BANDIT.find(folder, *(f"{stem}{ending}" for stem in stems for ending in ("", ".gz")))


@contextmanager
def _opened(path: Path) -> Iterator[IO[str]]:
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            yield file
    else:
        with path.open(encoding="utf-8", newline="") as file:
            yield file


def _read(path: Path, needed: tuple[str, ...]) -> tuple[Columns, list[str]]:
    """Returns the columns that are needed, equal texts being one, and the names of the others."""
    same: dict[str, str] = {}
    with _opened(path) as file:
        reader = csv.reader(file)
        names = next(reader, [])
        for name in needed:
            if name not in names:
                problem = f"{path.name} has no column {name!r}"
                raise InputError(problem, "the original has one", "Check that this is the right file")
        at = [names.index(name) for name in needed]
        columns: Columns = {name: [] for name in needed}
        for cells in reader:
            if len(cells) != len(names):
                problem = f"{path.name}, line {reader.line_num}: it has {len(cells)} cells"
                raise InputError(problem, f"every line has as many as the first, {len(names)}", REMEDY)
            for column, place in zip(columns.values(), at, strict=True):
                column.append(same.setdefault(cells[place], cells[place]))
    return columns, [name for name in names if name not in needed]


def _numbers(path: Path, columns: Columns, name: str) -> Floats:
    try:
        return np.array([float(text) for text in columns[name]])
    except ValueError as odd:
        raise InputError(f"{path.name}, column {name!r}: {odd}", "the original has numbers there", REMEDY) from None


def _seconds(path: Path, text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError as odd:
        raise InputError(f"{path.name}, column 'timestamp': {odd}", "the original has dates there", REMEDY) from None


def _items(path: Path) -> ArmPool:
    """Returns the items: the number that each has, and one indicator for each value of its categories."""
    columns, _ = _read(path, ("item_id", *(f"item_feature_{place}" for place in range(4))))
    names, features = ["item_feature_0"], [_numbers(path, columns, "item_feature_0")]
    for name in ("item_feature_1", "item_feature_2", "item_feature_3"):
        for value in dict.fromkeys(columns[name]):
            names.append(f"{name}={value[:8]}")
            features.append(np.array([float(each == value) for each in columns[name]]))
    return ArmPool(np.column_stack(features), ids=columns["item_id"], feature_names=names)
