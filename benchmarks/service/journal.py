"""The journal's writer beside raw SQLite: the same rows in the same batches, with the same settings."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import numpy as np

from benchmarks.timing import Row, at_least, seconds
from coterie.service.journal import Event, SqliteJournal
from coterie.service.journal.schema import MIGRATIONS

PLACE = Path("build")  # on the disk of this folder: that of temporary files may be in memory
TARGET = 0.7
REPEATS = 9
COMMITS = {1: 300, 8: 200, 64: 80}
BODY = b'{"type":"decided","arm":"sports","propensity":0.25,"candidates":[%s]}' % b",".join([b'{"id":"arm"}'] * 30)
INSERT = "INSERT INTO events (seq, at, experiment, kind, key, body) VALUES (?, ?, ?, ?, ?, ?)"

Append = Callable[[list[Event]], None]


def batches(size: int) -> Iterator[list[Event]]:
    """Yields batches of decisions, with ids in the order of time."""
    seq = 0
    while True:
        events = [
            Event(n, 1.7e9 + n / 1e3, "news", "decided", f"{n:032x}", BODY) for n in range(seq + 1, seq + size + 1)
        ]
        seq += size
        yield events


@contextmanager
def ours(folder: Path, synchronous: str) -> Iterator[Append]:
    with closing(SqliteJournal(folder, synchronous="FULL" if synchronous == "FULL" else "NORMAL")) as journal:
        yield journal.append


@contextmanager
def raw(folder: Path, synchronous: str) -> Iterator[Append]:
    folder.mkdir()
    with closing(apsw.Connection(str(folder / "raw.sqlite"))) as connection:
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", synchronous)
        connection.execute(";".join(MIGRATIONS))

        def append(events: list[Event]) -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(INSERT, events)
            connection.execute("COMMIT")

        yield append


def block(appends: list[Append], made: list[list[Event]]) -> list[float]:
    """Returns the seconds that each takes for the same batches, in turn batch by batch."""
    taken = np.zeros(len(appends))
    for number, batch in enumerate(made):
        for turn in range(len(appends)):
            which = (number + turn) % len(appends)
            taken[which] += seconds(partial(appends[which], batch))
    return list(taken)


def measured(size: int, synchronous: str) -> list[float]:
    """Returns the seconds of a batch: ours, and raw; checkpoints are among them."""
    PLACE.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=PLACE) as name:
        folder, source = Path(name), batches(size)
        with ours(folder / "ours", synchronous) as journal, raw(folder / "raw", synchronous) as plain:
            blocks = [block([journal, plain], list(islice(source, COMMITS[size]))) for _ in range(REPEATS + 1)]
    return list(np.median(np.array(blocks[1:]), axis=0) / COMMITS[size])


def rows() -> Iterator[Row]:
    for synchronous in ("FULL", "NORMAL"):  # the second hides nothing behind the wait for the disk
        for size in COMMITS:
            journal, plain = measured(size, synchronous)
            what = f"append a batch of {size}, synchronous={synchronous}"
            yield at_least(what, journal, plain, TARGET, per="raw SQLite")


if __name__ == "__main__":
    for row in rows():
        print(row.as_markdown(), flush=True)
