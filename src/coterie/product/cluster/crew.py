"""The parts of a graph as actors of Ray: each holds its users' rows, and what one needs of another goes straight there.

After each step a part gives its weights away, as an object of the driver's. When a process or a node is lost, another
takes the part with these, and the solve goes on from there: what is lost is that part's last step. The weights are
copied to the driver's node every so many steps, so that they outlive the node they were made on.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from coterie.contracts import Array
from coterie.errors import ClusterError
from coterie.models.engines.sparse.parted.cutting import PartGraph
from coterie.models.engines.sparse.parted.part import Part
from coterie.models.engines.sparse.parted.solve import PartLost, routed

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
        copy_every: After how many steps weights are copied to this node.
    """

    def __init__(
        self,
        graphs: Sequence[PartGraph],
        rows: Sequence[Any],
        features: Array,
        noise_var: float,
        *,
        inner_steps: int = 0,
        copy_every: int = 5,
    ) -> None:
        import ray

        self.n_parts, self.bytes_sent, self.losses = len(graphs), 0, 0
        self._graphs, self._rows, self._copy_every = graphs, rows, copy_every
        self._settings = ray.put((features, noise_var, inner_steps))
        self._put = [ray.put(graph) for graph in graphs]
        self._weights: list[Any] = [None] * self.n_parts  # references to what each part had after its last step
        self._copied: list[Any] = [None] * self.n_parts  # those of them that this node has
        self._steps, width = 0, features.shape[1]
        self._a_vector = 8 * width * sum(graph.halo_size for graph in graphs)
        self._actors = [self._actor(part) for part in range(self.n_parts)]
        self._await(self._actors)

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

    def weights(self) -> list[Array]:
        """Returns the weights of each part's users."""
        return self._results([actor.solution.remote() for actor in self._actors])

    def end(self) -> None:
        """Ends the actors."""
        import ray

        for actor in self._actors:
            with suppress(Exception):  # it may be gone
                ray.kill(actor)

    def _step(self, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        import ray

        steps = [actor.step.options(num_returns=2) for actor in self._actors]
        pairs = [step.remote(*given) for step, given in zip(steps, arguments, strict=True)]
        reports = self._results([report for report, _ in pairs])
        self._weights = [weights for _, weights in pairs]
        self._steps += 1
        if self._steps % self._copy_every == 0:
            ray.wait(self._weights, num_returns=self.n_parts, fetch_local=True)
            self._copied = self._weights
        return reports

    def _actor(self, part: int, weights: Any = None) -> Any:
        import ray

        given = self._put[part], self._rows[part], self._settings, weights
        return ray.remote(PartActor).options(num_cpus=1).remote(*given)

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
                ray.get(actor.ping.remote())
            except RayActorError:
                fresh.append(self._actor(part, self._kept(part)))
                self._actors[part] = fresh[-1]
        self._await(fresh)

    def _await(self, actors: Sequence[Any]) -> None:
        """Waits until parts have their processes, or raises."""
        import ray
        from ray.exceptions import GetTimeoutError, RayActorError

        try:
            ray.get([actor.ping.remote() for actor in actors], timeout=STARTED_WITHIN)
        except GetTimeoutError:
            what = f"a part has no process after {STARTED_WITHIN:.0f} s"
            rule = f"each of {self.n_parts} parts has a CPU of the cluster to itself"
            raise ClusterError(what, rule, "Add a node, wait until CPUs are free, or ask for fewer --parts") from None
        except RayActorError as error:
            what, rule = f"a part's process ended as it began: {error}", "it holds the rows of its users"
            raise ClusterError(what, rule, "Give nodes more memory, or ask for more --parts") from None

    def _kept(self, part: int) -> Any:
        """Returns the weights to go on from: the last that can be had; none where a part had made no step."""
        import ray

        for weights in (self._weights[part], self._copied[part]):
            with suppress(Exception):  # it was on the node that is gone
                if weights is not None:
                    return ray.put(ray.get(weights, timeout=STARTED_WITHIN))
        return None


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
        import numpy as np
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)
        features, noise_var, inner_steps = settings
        places = np.searchsorted(graph.users, rows["users"]).astype(np.int32)
        own = {name: np.array(column) for name, column in rows.items() if name != "n_observations"}
        held = PartGraph._make(np.array(each) if isinstance(each, np.ndarray) else each for each in graph)
        self._part = Part(
            held, own | {"users": places}, np.array(features), noise_var, inner_steps=inner_steps, weights=weights
        )

    def ping(self) -> None:
        """Answers."""

    def call(self, method: str, *arguments: Any) -> Any:
        """Calls a method of the part."""
        return getattr(self._part, method)(*arguments)

    def sent(self, method: str, *arguments: Any) -> Any:
        """Returns what a method sends, an object for each part that it goes to."""
        out = getattr(self._part, method)(*arguments)
        return out if len(out) > 1 else out[0] if out else None

    def step(self, length: float) -> Any:
        """Makes a step; returns the report, and the weights as an object of their own."""
        report = self._part.step(length)
        return report, self._part.weights

    def solution(self) -> Array:
        """Returns the weights."""
        return self._part.weights
