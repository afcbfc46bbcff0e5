"""The best arms of every user at once, block by block, in memory or to a Parquet file."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.contracts import ArmId, Array, Index, UserId
from coterie.errors import ParameterError
from coterie.errors.checks import as_list, check_whole
from coterie.policies import Policy
from coterie.product.files.atomic import not_written, replacing
from coterie.product.inputs.rewards import parquet

BLOCK = 2**22  # means held at once
Columns = dict[str, Any]
Progress = Callable[[int, int], None]
Mapper = Callable[[Any, Iterable[Any]], Iterator[Any]]  # as `map` is: calls a function with each of many things


def score_all(
    policy: Policy,
    *,
    users: Iterable[UserId] | None = None,
    arms: Iterable[ArmId] | None = None,
    top: int = 10,
    by: str = "mean",
    std: bool = False,
    to: str | Path | None = None,
    progress: Progress | None = None,
    block: int = BLOCK,
    context: Any = None,
    mapper: Mapper = map,
) -> Columns:
    """Returns the best arms of every user as columns "user", "rank" (from 1), "arm", "mean", and "std" if asked for.

    On engine "sparse" the means of a block of users are one product of matrices. A std there is an upper bound from the
    user's prior and own rewards, which leaves out others' rewards; it takes a local solve for each user,
    which the means alone do not. On other engines both are the exact ones, user by user.

    Args:
        policy: Whose means and stds.
        users: Who to score for; none means everybody.
        arms: What to choose from; none means the whole pool.
        top: How many of the best arms to give for each user, at most.
        by: "mean", or "ucb" for mean + width x std, with the policy's own width.
        std: Whether to give the std of the best; with "ucb" it is needed and given anyway.
        to: A Parquet file to write, a row group for each block; nothing is then kept, and the columns are empty.
        progress: Called after each block with how many users are done, and how many there are.
        block: How many means are held in memory at a time.
        context: The one in which arms are shown to everybody, where there are contexts.
        mapper: Calls a function with each block of users, in order; here, unless somebody else does it.
    """
    scorer = _Scorer(policy, arms, top, by, std, context)
    rows = np.arange(policy.graph.n_users)
    if users is not None:
        rows = np.array([policy.graph.index_of(user) for user in as_list("users", users)], np.intp)
    blocks = _with_progress(scorer.blocks(rows, block, mapper), len(rows), progress)
    if to is None:
        return _joined(list(blocks), scorer.names)
    _write(Path(to), blocks, scorer)
    return {name: np.zeros(0) for name in scorer.names}


class _Scorer:
    """What is asked of a policy, checked."""

    def __init__(
        self, policy: Policy, arms: Iterable[ArmId] | None, top: int, by: str, std: bool, context: Any
    ) -> None:
        if policy.arms is None:
            raise ParameterError("the policy has no pool of arms", "scores are of arms in a pool", "Make it with arms")
        if by not in ("mean", "ucb") or (by == "ucb" and callable(policy.width)):
            what = f"by is {by!r}" if by not in ("mean", "ucb") else "the width of the policy changes with time"
            raise ParameterError(what, 'by is "mean", or "ucb" where the width is a number', 'Choose "mean"')
        check_whole("top", top)
        self.policy, self._columns = policy, policy.rows_of(arms)
        self._inputs = policy.in_context(self._columns, context, learn=False)
        self._top, self._by_ucb, self._with_std = min(int(top), len(self._columns)), by == "ucb", std or by == "ucb"
        self._ids: Sequence[Any] = policy.arms.ids
        self.names = ("user", "rank", "arm", "mean") + (("std",) if self._with_std else ())

    def blocks(self, rows: Index, block: int, mapper: Mapper) -> Iterator[Columns]:
        """Returns the columns of one block of users after another, of so many means each."""
        size = max(block // len(self._columns), 1)
        return mapper(self.block, [rows[start : start + size] for start in range(0, len(rows), size)])

    def block(self, rows: Index) -> Columns:
        """Returns the columns of some users."""
        mean, std = self._beliefs(rows)
        score = mean
        if self._by_ucb:
            score = np.asarray(mean + self.policy.widths(rows, self._inputs, std) * std)
        best = _best(score, self._top)
        if self._with_std and not self._by_ucb:
            std = self._stds(rows, best)
        elif self._with_std:
            std = np.take_along_axis(std, best, axis=1)
        users, ids = self.policy.graph.users, self._ids
        columns = {
            "user": [users[row] for row in np.repeat(rows, self._top).tolist()],
            "rank": np.tile(np.arange(1, self._top + 1), len(rows)),
            "arm": [ids[column] for column in self._columns[best].ravel().tolist()],
            "mean": np.take_along_axis(mean, best, axis=1).ravel(),
        }
        return columns | ({"std": std.ravel()} if self._with_std else {})

    def _beliefs(self, rows: Index) -> tuple[Array, Array]:
        """Returns means, and stds where the order depends on them, else nothing there."""
        model, nothing = self.policy.model, np.zeros((0, 0))
        if model.has_cheap_means:
            mean = model.read_means(rows, self._columns) + getattr(self.policy, "centre", 0.0)
            every = np.broadcast_to(np.arange(len(self._columns)), mean.shape)
            return mean, self._stds(rows, every) if self._by_ucb else nothing
        both = [self.policy.predict_rows(row, self._inputs) for row in rows.tolist()]
        return np.array([mean for mean, _ in both]), np.array([std for _, std in both])

    def _stds(self, rows: Index, chosen: Index) -> Array:
        """Returns the stds of each user's chosen arms."""
        model = self.policy.model
        if model.has_cheap_means:
            columns = self._columns[chosen]
            return np.array([model.std_bound(row, each) for row, each in zip(rows.tolist(), columns, strict=True)])
        return np.take_along_axis(self._beliefs(rows)[1], chosen, axis=1)


def _best(score: Array, top: int) -> Index:
    """Returns the places of the highest scores of each row, the highest first."""
    if top < score.shape[1]:
        some = np.argpartition(-score, top - 1, axis=1)[:, :top]
    else:
        some = np.broadcast_to(np.arange(top), score.shape)
    some = np.sort(some, axis=1)  # equal scores in the order of the arms
    order = np.argsort(-np.take_along_axis(score, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def _with_progress(blocks: Iterator[Columns], n_users: int, progress: Progress | None) -> Iterator[Columns]:
    done = 0
    for block in blocks:
        yield block
        done += int(np.sum(block["rank"] == 1))
        if progress is not None:
            progress(done, n_users)


def _joined(blocks: list[Columns], names: Iterable[str]) -> Columns:
    out: Columns = {}
    for name in names:
        parts = [block[name] for block in blocks]
        whole = isinstance(parts[0], np.ndarray) if parts else True
        out[name] = np.concatenate([np.zeros(0), *parts]) if whole else [each for part in parts for each in part]
    return out | {"rank": out["rank"].astype(np.int64)}


def _write(path: Path, blocks: Iterator[Columns], scorer: _Scorer) -> None:
    """Writes a row group for each block; the file is there whole or not at all."""
    pq = parquet()
    import pyarrow as pa

    try:
        with replacing(path) as file:
            writer = None
            for block in blocks:
                table = pa.table(block)
                writer = writer or pq.ParquetWriter(file, table.schema)
                writer.write_table(table)
            if writer is None:
                pq.write_table(pa.table({name: [] for name in scorer.names}), file)
            else:
                writer.close()
    except pa.ArrowException as error:  # ids that are now texts, now numbers make no column
        raise not_written(path, str(error)) from None
