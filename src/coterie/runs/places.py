"""Where a study runs: in processes of this machine, or on Ray."""

from collections.abc import Iterator
from contextlib import contextmanager

from coterie.product.cluster.places import check_place
from coterie.runs.runner import Place, Processes


@contextmanager
def open_place(on: str = "processes", *, jobs: int = 1, address: str | None = None) -> Iterator[Place]:
    """Gives the place where the units of studies are done, and closes it at the end.

    Args:
        on: "processes" of this machine, or "ray".
        jobs: Processes, or CPUs of a Ray that is started here.
        address: Of a Ray cluster that runs: "auto" or HOST:PORT.

    Examples:
        >>> with open_place(jobs=2) as place:
        ...     place.size
        2
    """
    check_place(on, address)
    if on == "processes":
        yield Processes(jobs)
        return
    from coterie.runs.cluster.tasks import ray_cluster

    with ray_cluster(address, jobs=jobs) as cluster:
        yield cluster
