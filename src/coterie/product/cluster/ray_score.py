"""Scores on Ray: blocks of users are tasks; the policy is put into the object store once, for all of a node."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from coterie.product.cluster.connection import nodes

AHEAD = 2  # blocks under way for each CPU: results wait in the object store until they are written
LOSSES = 3  # how often a block may be lost with its worker


def ray_map(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Yields what a function returns for each item, in order, as tasks of the Ray that this process is connected to."""
    import ray

    task = ray.remote(num_cpus=1, max_retries=LOSSES)(_called)
    shared, waiting = ray.put(work), iter(items)
    n_cpus = sum(int(node["Resources"]["CPU"]) for node in nodes())
    under_way = [task.remote(shared, item) for item in islice(waiting, AHEAD * n_cpus)]
    while under_way:
        yield ray.get(under_way.pop(0))
        under_way += [task.remote(shared, item) for item in islice(waiting, 1)]


def _called(work: Callable[[Any], Any], item: Any) -> Any:
    return work(item)
