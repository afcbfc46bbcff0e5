"""A fit on Ray: events are combined and shuffled by Ray Data, and the solve goes over the parts of the graph.

The driver reads graph and arms, cuts the graph, fits hyperparameters to a sample, and keeps the bandit, as on one
machine. The others read the events, and each holds the rows of its part.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from coterie.contracts import Array, Index
from coterie.errors import ClusterError, counted
from coterie.graphs import UserGraph
from coterie.graphs.parts import cut_graph, cut_share
from coterie.kernels import ArmPool
from coterie.models.base import SolveProgress
from coterie.models.engines.sparse.model import SparseModel
from coterie.models.engines.sparse.parted.cutting import cut_kernel
from coterie.models.engines.sparse.parted.solve import Solved, solve_parted
from coterie.product.bandit import Bandit
from coterie.product.bulk.budget import FitSizes, Reading, in_bytes
from coterie.product.bulk.collapse import Columns, merge_columns
from coterie.product.bulk.progress import ProgressLines
from coterie.product.bulk.sources import EventPart, IdRows, n_rows_of
from coterie.product.cluster.connection import nodes
from coterie.product.cluster.crew import RayCrew
from coterie.product.cluster.shuffle import Shuffled, shuffle_events


class Traffic(NamedTuple):
    """What moved between processes.

    Attributes:
        n_parts: Into how many parts the graph was cut.
        cut: The share of the edges that was cut.
        shuffled: Bytes of the shuffle.
        solved: How the solve went.
        given: Bytes of weights that parts gave to the driver.
        largest_part: Bytes that the largest part holds.
    """

    n_parts: int
    cut: float
    shuffled: int
    solved: Solved
    given: int
    largest_part: int

    def __str__(self) -> str:
        steps, again = max(self.solved.steps, 1), counted(self.solved.restarts, "time")
        sent, given = (in_bytes(size / steps) for size in (self.solved.bytes_sent, self.given))
        lost = f", begun again {again} since a part was lost" if self.solved.restarts else ""
        return (
            f"{self.n_parts} parts, {self.cut:.1%} of the edges cut; {in_bytes(self.shuffled)} shuffled; "
            f"the largest part holds {in_bytes(self.largest_part)}\n"
            f"{counted(self.solved.steps, 'step')}{lost}; each sent {sent} between parts, and {given} to the driver"
        )


class RayFit:
    """The work of a fit that others do.

    Args:
        graph: The users.
        arms: The pool.
        n_parts: Into how many parts the graph is cut; none given means one for each CPU of the cluster.
        lines: Where progress goes.
        sizes: What the memory of a part depends on, which is then reserved for it.

    Attributes:
        n_steps: Of the solve.
        traffic: What moved between processes, after the solve.
    """

    def __init__(
        self,
        graph: UserGraph,
        arms: ArmPool,
        n_parts: int | None = None,
        lines: ProgressLines | None = None,
        sizes: FitSizes | None = None,
    ) -> None:
        self._graph, self._arms, self._lines = graph, arms, lines or ProgressLines()
        self.n_steps = 0
        self.traffic: Traffic | None = None
        room = [(int(node["Resources"]["CPU"]), node["Resources"].get("memory", 0)) for node in nodes()]
        self.n_parts = min(n_parts or sum(cpus for cpus, _ in room), graph.n_users)
        self._memory = 0 if sizes is None else sizes.in_a_part(self.n_parts)
        check_room(self.n_parts, self._memory, room)
        self._labels: Index = cut_graph(graph, self.n_parts)
        self._shuffled: Shuffled | None = None

    def columns(self, parts: Sequence[EventPart], reading: Reading) -> Columns:
        """Returns all rewards, combined by pairs; the others keep those of their parts."""
        import ray

        self._lines.tell(f"reading {n_rows_of(parts):,} events on Ray, for {self.n_parts} parts", "", "", 0.0)
        known = IdRows(self._graph.users), IdRows(self._arms.ids)
        self._shuffled = shuffle_events(parts, *known, self._labels, self.n_parts, reading)
        return merge_columns(ray.get(self._shuffled.references), len(self._arms))

    def weights(
        self,
        options: Mapping[str, Any],
        progress: SolveProgress | None = None,
        on_crew: Callable[[RayCrew], None] | None = None,
    ) -> Array:
        """Returns the weights of all users, and says what was sent.

        Args:
            options: Of the bandit, as `choose_options` gives them.
            progress: Called with the number of each step, and how far above its limit the residual is.
            on_crew: Called with those who hold the parts, before the solve.
        """
        assert self._shuffled is not None  # events come first
        model = Bandit(graph=self._graph, arms=self._arms, **options)._learned.policy.model
        assert isinstance(model, SparseModel)  # the only engine of options that are solved
        graphs = cut_kernel(model.kernel, self._labels, self.n_parts)
        crew = RayCrew(graphs, self._shuffled.references, model.kernel.features, model.noise_var, memory=self._memory)
        try:
            if on_crew is not None:
                on_crew(crew)
            solved = solve_parted(crew, model.solve_threshold, progress=progress)
        finally:
            crew.end()
        cut, sent = cut_share(self._graph, self._labels), self._shuffled.sent
        self.n_steps = solved.steps
        self.traffic = Traffic(self.n_parts, cut, sent, solved, crew.bytes_given, crew.largest_part)
        print(self.traffic, flush=True)
        return crew.weights


def check_room(n_parts: int, needed: int, room: Sequence[tuple[int, float]]) -> None:
    """Raises if parts have no room on the nodes.

    Args:
        n_parts: How many parts.
        needed: Bytes of each.
        room: The CPUs and the bytes of memory of each node.

    Examples:
        >>> check_room(3, 8 * 10**9, [(2, 16e9), (4, 4e9)])
        Traceback (most recent call last):
        coterie.errors.ClusterError: 3 parts of 8.0 GB each are asked for; nodes have room for 2 of them. ...
    """
    cpus = sum(here for here, _ in room)
    if n_parts > cpus:
        what, rule = f"{n_parts} parts are asked for", f"each has a CPU, and the cluster has {cpus}"
        raise ClusterError(what, rule, f"Ask for at most {cpus}, or add nodes")
    fitting = sum(min(here, int(memory // needed)) if needed else here for here, memory in room)
    if n_parts > fitting:
        what = f"{n_parts} parts of {in_bytes(needed)} each are asked for"
        rule = f"nodes have room for {fitting} of them"
        raise ClusterError(what, rule, "Add nodes and ask for more --parts, or use nodes with more memory")
