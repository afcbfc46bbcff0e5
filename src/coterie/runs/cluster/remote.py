"""What a Ray worker does: a unit, with what was sent along and nothing from a disk; its files are what it returns."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.product.cluster.connection import Versions, check_versions, versions_here
from coterie.runs.cluster.carried import CarriedStore
from coterie.runs.cluster.methods import SentModules
from coterie.runs.runner import UnitRunner
from coterie.runs.store import Unit
from coterie.runs.study import study_from
from coterie.runs.workers import addresses_held, limit_memory, one_blas_thread
from coterie.runs.worlds import give_logs


@dataclass(frozen=True, slots=True, kw_only=True)
class Luggage:
    """What units of a study need on another machine; put into the object store once.

    Attributes:
        study: The study as plain values.
        logs: The logs that it reads, by data set and folder: references to the object store.
        methods: Python files of methods of one's own.
        versions: What the driver has.
    """

    study: Mapping[str, Any]
    logs: Mapping[tuple[str, str], Any]
    methods: Mapping[str, bytes]
    versions: Versions


Doer = Callable[[Unit, Mapping[str, bytes]], dict[str, bytes]]
_READY: dict[str, Doer] = {}  # of the study that this process is at


def do_unit(unit: Unit, files: Mapping[str, bytes], luggage: Sequence[Any]) -> dict[str, bytes]:
    """Does a unit and returns the files that it made.

    Args:
        unit: The unit.
        files: What units read of the store.
        luggage: One reference to the rest, which a process takes once for all its units.
    """
    (reference,) = luggage
    if reference.hex() not in _READY:
        _READY.clear()
        _READY[reference.hex()] = _made_ready(reference)
    return _READY[reference.hex()](unit, files)


def _made_ready(reference: Any) -> Doer:
    """Unpacks the luggage of a study, once in a process."""
    import ray

    luggage: Luggage = ray.get(reference)
    check_versions(luggage.versions, {ray.util.get_node_ip_address(): versions_here()})  # it may have come later
    if luggage.methods:
        sys.meta_path.insert(0, SentModules(luggage.methods))
    study, store = study_from(luggage.study), CarriedStore()
    give_logs(dict(zip(luggage.logs, ray.get(list(luggage.logs.values())), strict=True)))
    if study.of_logs:
        limit_memory(besides=addresses_held())
    runner = UnitRunner(study, store)

    def do(unit: Unit, files: Mapping[str, bytes]) -> dict[str, bytes]:
        with one_blas_thread(), store.carrying(files) as made:
            runner.run(unit)
        return made

    return do
