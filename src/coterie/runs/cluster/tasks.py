"""Units of a study as tasks of Ray; what they make comes back, and only the driver writes the store."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

from coterie.errors import ClusterError, CoterieError
from coterie.product.cluster.connection import connected, nodes, versions_here
from coterie.runs.cluster.methods import sources_of
from coterie.runs.cluster.remote import Luggage, do_unit
from coterie.runs.runner import Crew, units_a_process
from coterie.runs.store import Store, Unit
from coterie.runs.study import Study
from coterie.runs.worlds import LogSettings, log_of

UNIT_MEMORY, LOG_UNIT_MEMORY = 2**29, 2 * 2**30  # what a unit has reserved on its node: of a drawn world, of a log
LOSSES = 3  # how often a unit may be lost with its worker or node before the study stops
LOOK_EVERY, NO_ROOM_FOR = 5.0, 60.0  # seconds


@contextmanager
def ray_cluster(address: str | None = None, *, jobs: int = 1) -> Iterator["RayCluster"]:
    """Gives a Ray cluster as a place for units: one that runs at this address, or one of so many CPUs started here."""
    with connected(address, jobs=jobs) as ours:
        yield RayCluster(ends=ours)


@dataclass(frozen=True, slots=True)
class RayCluster:
    """The nodes of the Ray that this process is connected to.

    Attributes:
        ends: Whether the connection ends with the study, and what is under way with it.
    """

    ends: bool = False

    @property
    def size(self) -> int:
        """How many CPUs they have."""
        return sum(int(node["Resources"]["CPU"]) for node in nodes())

    @contextmanager
    def crew(self, study: Study, store: Store) -> Iterator[Crew]:
        """Gives those who do the units of a study; what is under way at the end is dropped."""
        tasks = Tasks(study, store)
        try:
            yield tasks
        finally:
            if not self.ends:
                tasks.drop()


class Tasks:
    """Does units of a study as tasks, each with one CPU and its memory; one that is lost is tried again.

    Args:
        study: The study.
        store: Where its results go.
    """

    def __init__(self, study: Study, store: Store) -> None:
        import ray

        self._store, self._memory = store, LOG_UNIT_MEMORY if study.of_logs else UNIT_MEMORY
        self._at_work: dict[Any, Unit] = {}
        if not self._has_room():
            raise self._no_room("no node of the cluster has", "Add a node, or leave out --on ray")
        self._task = ray.remote(max_calls=units_a_process(study) or 0)(do_unit).options(
            num_cpus=1, memory=self._memory, max_retries=LOSSES
        )
        luggage = Luggage(
            study=study.as_dict(), logs=_put_logs(study), methods=sources_of(study), versions=versions_here()
        )
        self._luggage = [ray.put(luggage)]  # in a list: a worker takes it once, not with every task

    def run(self, units: Sequence[Unit]) -> Iterator[Unit]:
        """Yields each unit when it is done and stored."""
        import ray

        files = ray.put(self._store.read_by_units())
        self._at_work = {self._task.remote(unit, files, self._luggage): unit for unit in units}
        last = monotonic()
        while self._at_work:
            ready, _ = ray.wait(list(self._at_work), timeout=LOOK_EVERY)
            last = monotonic() if ready or self._has_room() else last
            if monotonic() - last > NO_ROOM_FOR:
                raise self._no_room("nodes were lost, and none is left that has", "Add a node, and go on with --resume")
            for each in ready:
                unit = self._at_work.pop(each)
                self._store.write_files(_result(each, unit))
                yield unit

    def _has_room(self) -> bool:
        return any(node["Resources"].get("memory", 0) >= self._memory for node in nodes())

    def _no_room(self, problem: str, remedy: str) -> ClusterError:
        needed = f"a CPU and {self._memory / 2**30:g} GiB for a unit"
        return ClusterError(f"{problem} {needed}", "each unit has so much reserved on its node", remedy)

    def drop(self) -> None:
        """Ends what is under way; never by force, for that may end this process too if a task ends just then."""
        import ray
        from ray.exceptions import RayError

        for each in self._at_work:
            with suppress(RayError):  # it may be lost
                ray.cancel(each)
        self._at_work = {}


def _put_logs(study: Study) -> dict[tuple[str, str], Any]:
    """Returns references to the logs that a study reads: each is put into the object store once."""
    import ray

    settings = [each.settings for each in study.worlds if isinstance(each.settings, LogSettings)]
    keys = dict.fromkeys((each.data, each.folder) for each in settings)
    return {key: ray.put(log_of(*key)) for key in keys}


def _result(reference: Any, unit: Unit) -> Mapping[str, bytes]:
    """Returns the files of a unit that is done, or raises what it raised."""
    import ray
    from ray.exceptions import RayError, RayTaskError

    try:
        made: Mapping[str, bytes] = ray.get(reference)
    except RayTaskError as error:
        if isinstance(error.cause, CoterieError):
            raise error.cause from None
        raise
    except RayError as error:
        raise ClusterError(
            f"{unit} was lost with its worker: {type(error).__name__}, out of memory perhaps",
            f"a unit is tried {LOSSES + 1} times; finished units are stored",
            "Go on with --resume, on nodes with more memory or fewer CPUs",
        ) from None
    return made
