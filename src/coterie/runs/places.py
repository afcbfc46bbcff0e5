"""Where a study runs: in processes of this machine, or on Ray."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from coterie.errors import SettingError, listed
from coterie.runs.runner import Place, Processes

PLACES = ("processes", "ray")
LAST_PORT = 65_535
_ADDRESS = re.compile(r"auto|[^\s/:]+:\d{1,5}|\[[0-9A-Fa-f:.]+\]:\d{1,5}")


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
    _check(on, address)
    if on == "processes":
        yield Processes(jobs)
        return
    from coterie.runs.cluster.tasks import ray_cluster

    with ray_cluster(address, jobs=jobs) as cluster:
        yield cluster


def _check(on: str, address: str | None) -> None:
    if on not in PLACES:
        raise SettingError(f"on is {on!r}", f"it is one of {listed(PLACES)}", "Choose one of these", key="on")
    if address is None:
        return
    if on != "ray":
        rule = "only Ray has one"
        raise SettingError(f"the address {address!r} is given", rule, "Add --on ray, or leave it out", key="address")
    if not _ADDRESS.fullmatch(address) or (address != "auto" and int(address.rpartition(":")[2]) > LAST_PORT):
        rule = "it is 'auto' or HOST:PORT"
        raise SettingError(f"address is {address!r}", rule, "Write, say, 10.0.0.7:6379", key="address")
