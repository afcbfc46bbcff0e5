"""The parts of a graph as actors of Ray: each holds its users' rows, and what one needs of another goes straight there.

After each step a part gives its weights to the driver, which needs them at the end anyway. When a process or a node is
lost, another takes the part with these, and the solve goes on from there: what is lost is that part's last step.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.errors import ClusterError
from coterie.models.engines.sparse.parted.cutting import PartGraph
from coterie.models.engines.sparse.parted.part import Part, Report
from coterie.models.engines.sparse.parted.solve import PartLost, routed
from coterie.product.bulk.budget import in_bytes
from coterie.product.cluster.connection import in_short

LOSSES = 10  # how often parts may be lost before the solve stops
STARTED_WITHIN = 120.0  # seconds, for a part to have a process


class RayCrew:
    """Actors that hold the parts.

    Args:
        graphs: Of the parts.
        rows: References to their rewards, users being numbered as in the whole graph.
        features: Of all arms.
        noise_var: The noise variance of the rewards.
        inner_steps: As for `Part`.
        memory: Bytes that each part has reserved on its node; 0 for none.

    Attributes:
        n_parts: How many parts there are.
        bytes_sent: What went between parts, so far.
        bytes_given: What parts gave to the driver: their weights, after each step.
        losses: How often parts were lost.
        weights: Of all users, after the last step.
        largest_part: Bytes that the largest part holds.
    """

    def __init__(
        self,
        graphs: Sequence[PartGraph],
        rows: Sequence[Any],
        features: Array,
        noise_var: float,
        *,
        inner_steps: int = 0,
        memory: int = 0,
    ) -> None:
        import ray

        self.n_parts, self.bytes_sent, self.bytes_given, self.losses = len(graphs), 0, 0, 0
        self._graphs, self._rows, self._memory = graphs, rows, memory
        self._settings = ray.put((features, noise_var, inner_steps))
        self._put = [ray.put(graph) for graph in graphs]
        width = features.shape[1]
        self.weights = np.zeros((sum(len(graph.users) for graph in graphs), width))
        self._a_vector = 8 * width * sum(graph.halo_size for graph in graphs)
        self._actors = [self._actor(part) for part in range(self.n_parts)]
        self.largest_part = max(self._await(self._actors))

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Calls a method of every part; raises `PartLost` once the parts that are gone have others in their place."""
        if method == "step":
            return self._step(arguments)
        calls = [actor.call.remote(method, *given) for actor, given in zip(self._actors, arguments, strict=True)]
        return self._results(calls)

    def exchange(self, sender: str, arguments: Sequence[tuple[Any, ...]], receiver: str) -> list[Any]:
        """Calls `sender` of every part; what it sends goes from actor to actor, to their `receiver`."""
        sent = []
        for actor, graph, given in zip(self._actors, self._graphs, arguments, strict=True):
            made = actor.sent.options(num_returns=max(len(graph.sends), 1)).remote(sender, *given)
            sent.append(made if isinstance(made, list) else [made])
        self.bytes_sent += self._a_vector if sender != "null_sent" else 0
        return self.each(receiver, routed(sent, self._graphs))

    def end(self) -> None:
        """Ends the actors."""
        import ray

        for actor in self._actors:
            with suppress(Exception):  # it may be gone
                ray.kill(actor)

    def _step(self, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        calls = [actor.step.remote(*given) for actor, given in zip(self._actors, arguments, strict=True)]
        results = self._results(calls)
        for graph, (_, weights) in zip(self._graphs, results, strict=True):
            self.weights[graph.users] = weights
        self.bytes_given += self.weights.nbytes
        return [report for report, _ in results]

    def _actor(self, part: int, weights: Array | None = None) -> Any:
        import ray

        given = self._put[part], self._rows[part], self._settings, weights
        return ray.remote(PartActor).options(num_cpus=1, memory=self._memory or None).remote(*given)

    def _results(self, calls: Sequence[Any]) -> list[Any]:
        import ray
        from ray.exceptions import RayError, RayTaskError

        try:
            return list(ray.get(list(calls)))
        except RayError as error:  # a call may fail since another part, which was to send something, is gone
            if isinstance(error, RayTaskError) and not isinstance(error.cause, RayError):
                raise
        self._replace()
        raise PartLost

    def _replace(self) -> None:
        """Puts others in the place of actors that are gone."""
        import ray
        from ray.exceptions import RayActorError

        self.losses += 1
        if self.losses > LOSSES:
            what, rule = f"parts were lost {self.losses} times", f"a solve goes on after {LOSSES}"
            raise ClusterError(what, rule, "See what kills them: memory perhaps; then fit again, with more --parts")
        fresh = []
        for part, actor in enumerate(self._actors):
            try:
                ray.get(actor.size.remote())
            except RayActorError:
                fresh.append(self._actor(part, self.weights[self._graphs[part].users]))
                self._actors[part] = fresh[-1]
        self._await(fresh)

    def _await(self, actors: Sequence[Any]) -> list[int]:
        """Waits until parts have their processes, and returns the bytes that each holds; raises if one has none."""
        import ray
        from ray.exceptions import GetTimeoutError, RayError

        memory = f" and {in_bytes(self._memory)} of its memory" if self._memory else ""
        try:
            return list(ray.get([actor.size.remote() for actor in actors], timeout=STARTED_WITHIN))
        except GetTimeoutError:
            what = f"a part has no process after {STARTED_WITHIN:.0f} s"
            rule = f"each of {self.n_parts} parts has a CPU of the cluster{memory} to itself"
            raise ClusterError(what, rule, "Add a node, wait until others are done, or ask for fewer --parts") from None
        except RayError as error:
            what, rule = f"a part's process ended as it began: {in_short(error)}", "it holds the rows of its users"
            raise ClusterError(what, rule, "Give nodes more memory, or ask for more --parts") from None


class PartActor:
    """A part in a process of its own.

    Args:
        graph: Its rows of L_rho.
        rows: Its rewards; users are rows of the whole graph.
        settings: The features of all arms, the noise variance and the steps of its preconditioner.
        weights: Where it starts.
    """

    def __init__(
        self, graph: PartGraph, rows: dict[str, Any], settings: tuple[Array, float, int], weights: Array | None
    ) -> None:
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)
        features, noise_var, inner_steps = settings
        places = np.searchsorted(graph.users, rows["users"]).astype(np.int32)
        own = {name: np.array(column) for name, column in rows.items() if name != "n_observations"}
        held = PartGraph._make(np.array(each) if isinstance(each, np.ndarray) else each for each in graph)
        self._part = Part(
            held, own | {"users": places}, np.array(features), noise_var, inner_steps=inner_steps, weights=weights
        )

    def size(self) -> int:
        """Returns the bytes that it holds."""
        return self._part.size()

    def call(self, method: str, *arguments: Any) -> Any:
        """Calls a method of the part."""
        return getattr(self._part, method)(*arguments)

    def sent(self, method: str, *arguments: Any) -> Any:
        """Returns what a method sends, an object for each part that it goes to."""
        out = getattr(self._part, method)(*arguments)
        return out if len(out) > 1 else out[0] if out else None

    def step(self, length: float) -> tuple[Report, Array]:
        """Makes a step; returns the report and the weights."""
        return self._part.step(length), self._part.weights
