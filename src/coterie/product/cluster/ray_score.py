"""Scores on Ray: blocks of users are tasks; the saved bandit goes into the object store once, and workers load it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from coterie.contracts import Index, UserId
from coterie.product.bandit import Bandit
from coterie.product.cluster.connection import nodes

AHEAD = 2  # blocks under way for each CPU: results wait in the object store until they are written
LOSSES = 3  # how often a block may be lost with its worker


class RayScores:
    """Scores blocks of users as tasks of the Ray that this process is connected to; a `Mapper` of `score_all`.

    Args:
        file: The saved bandit.
        users: Everybody's ids, by row.
        asked: The options of `Bandit.score_all`.
    """

    def __init__(self, file: Path, users: Sequence[UserId], asked: Mapping[str, Any]) -> None:
        self._file, self._users, self._asked = file, users, dict(asked)

    def __call__(self, work: Any, blocks: Iterable[Index]) -> Iterator[Any]:  # noqa: ARG002 - others do the same work
        """Yields the columns of each block of rows, in order."""
        import ray

        task = ray.remote(num_cpus=1, max_retries=LOSSES)(_scored)
        saved, waiting = [ray.put(self._file.read_bytes())], iter(blocks)  # in a list: a worker takes it once
        n_cpus = sum(int(node["Resources"]["CPU"]) for node in nodes())
        under_way = list[Any]()
        while True:
            for rows in islice(waiting, AHEAD * n_cpus - len(under_way)):
                under_way.append(task.remote(saved, [self._users[row] for row in rows.tolist()], self._asked))
            if not under_way:
                return
            yield ray.get(under_way.pop(0))


_LOADED: dict[str, Bandit] = {}  # the bandit that this process scores


def _scored(saved: Sequence[Any], users: Sequence[UserId], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the columns of some users."""
    import ray

    (reference,) = saved
    if reference.hex() not in _LOADED:
        _LOADED.clear()
        with TemporaryDirectory() as folder:
            file = Path(folder) / "bandit.coterie"
            file.write_bytes(ray.get(reference))
            _LOADED[reference.hex()] = Bandit.load(file, journal=None)
    return _LOADED[reference.hex()].score_all(users=users, **asked)
