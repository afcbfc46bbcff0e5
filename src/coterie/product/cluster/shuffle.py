"""Events to the parts of a graph that their users are in: combined where they are read, then shuffled, by Ray Data.

What is sent is at most a row for each pair of user and arm of a piece of events, however often it came there.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from coterie import errors
from coterie.contracts import Index
from coterie.errors import ClusterError, CoterieError
from coterie.models.engines.sparse.reward_table import COLUMNS
from coterie.product.bulk.budget import Reading
from coterie.product.bulk.collapse import Columns, combine_parts, merge_columns
from coterie.product.bulk.sources import EventPart, IdRows, split_parts
from coterie.product.cluster.connection import in_short

ROWS_A_PIECE = 2_000_000  # at most, as far as row groups allow
PART, MARK = "part", "\x1f"  # a column, and what an error's words stand between


class Shuffled(NamedTuple):
    """The rewards of each part's users.

    Attributes:
        references: To each part's columns, in the object store; users are rows of the whole graph.
        sent: Bytes that were shuffled.
    """

    references: list[Any]
    sent: int


class Known(NamedTuple):
    """What every task needs; put into the object store once.

    Attributes:
        pieces: Of the files of events.
        users: Rows of users by id.
        arms: Rows of arms by id.
        labels: The part of each user.
        reading: How much is read at a time.
    """

    pieces: Sequence[EventPart]
    users: IdRows
    arms: IdRows
    labels: Index
    reading: Reading


def shuffle_events(
    parts: Sequence[EventPart], users: IdRows, arms: IdRows, labels: Index, n_parts: int, reading: Reading
) -> Shuffled:
    """Returns the rewards of each part of the graph, combined by pairs of user and arm.

    Args:
        parts: Of the files of events.
        users: Rows of users by id.
        arms: Rows of arms by id.
        labels: The part of each user.
        n_parts: How many parts.
        reading: How much is read at a time.
    """
    import ray
    import ray.data

    _be_quiet()
    known = Known(split_parts(parts, ROWS_A_PIECE), users, arms, labels, reading)
    reference = [ray.put(known)]  # in a list: a task takes it by itself
    numbers = ray.data.range(len(known.pieces), override_num_blocks=len(known.pieces))
    try:
        combined = numbers.map_batches(_combined, batch_size=1, fn_args=(reference,)).materialize()
        groups = combined.groupby(PART, num_partitions=n_parts)
        merged = groups.map_groups(_merged, batch_format="numpy", fn_args=(len(arms),)).materialize()
    except Exception as error:  # whatever Ray makes of it
        raise _cause(error) from None
    split = ray.remote(num_returns=n_parts)(_by_part)
    blocks = [split.remote(each, n_parts) for each in merged.to_arrow_refs()]
    blocks = [each if isinstance(each, list) else [each] for each in blocks]
    join = ray.remote(_joined)
    return Shuffled([join.remote(*each) for each in zip(*blocks, strict=True)], int(combined.size_bytes() or 0))


def _combined(batch: Mapping[str, Any], reference: Sequence[Any]) -> Columns:
    """Returns the pairs of one piece of events, each with the part that its user is in."""
    import ray

    known: Known = ray.get(reference[0])
    piece, (rows, waiting) = known.pieces[int(batch["id"][0])], known.reading
    try:
        found = combine_parts([piece], known.users, known.arms, rows=rows, waiting=waiting)
    except CoterieError as error:  # Ray Data keeps no more of an error than its text
        told = [type(error).__name__, error.problem, error.rule, error.remedy]
        raise RuntimeError(f"{MARK}{json.dumps(told)}{MARK}") from None
    return {PART: known.labels[found["users"]].astype(np.int32), **{name: found[name] for name in COLUMNS}}


def _merged(group: Mapping[str, Any], n_arms: int) -> Columns:
    """Returns the pairs of one part, each once."""
    found = merge_columns([_with_total({name: np.array(group[name]) for name in COLUMNS})], n_arms)
    return {PART: np.repeat(group[PART][:1], len(found["users"])), **{name: found[name] for name in COLUMNS}}


def _by_part(table: Any, n_parts: int) -> Any:
    """Returns a block of the shuffle as columns for each part; Ray takes one alone as it is."""
    label = table.column(PART).to_numpy() if table.num_rows else np.zeros(0, np.int32)
    columns = {name: table.column(name).to_numpy() if table.num_rows else np.zeros(0) for name in COLUMNS}
    out = [{name: column[label == part] for name, column in columns.items()} for part in range(n_parts)]
    return out if n_parts > 1 else out[0]


def _joined(*blocks: Columns) -> Columns:
    """Returns the columns of a part, of which one block has all rows."""
    joined = {name: np.concatenate([block[name] for block in blocks]).astype(kind) for name, kind in COLUMNS.items()}
    return _with_total(joined)


def _with_total(columns: Columns) -> Columns:
    return {**columns, "n_observations": round(float(np.sum(columns["counts"])))}


def _cause(error: BaseException) -> CoterieError:
    """Returns the error of ours that a task met, or one that tells what Ray says."""
    _, *told = str(error).split(MARK)
    if told:
        name, *words = json.loads(told[0])
        return cast(CoterieError, getattr(errors, name)(*words))
    problem = f"reading events on the cluster failed: {in_short(error)}"
    return ClusterError(problem, "every node can read the files of events", "Put them where all nodes see them")


def _be_quiet() -> None:
    """Lets Ray Data keep its own progress to itself."""
    import ray.data

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.enable_operator_progress_bars = False
    context.print_on_execution_start = False
    for name in ("ray.data", "ray.data._internal.execution.streaming_executor"):
        logging.getLogger(name).setLevel(logging.ERROR)
