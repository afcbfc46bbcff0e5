"""A Ray to work on: started here, or a cluster that runs, every node of which has the versions of this machine."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from coterie.errors import ClusterError
from coterie.errors.extras import require_extra

REACHED_WITHIN = 5.0  # seconds, for somebody to listen at an address
ANSWERED_WITHIN = 30.0  # seconds, for a cluster to take us in, and for a node to do its first task
SAME = ("coterie", "numpy", "scipy", "pyarrow", "ray")  # and Python: what the bytes of results depend on
QUIET: Mapping[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
KNOCK = "import ray, sys; ray.init(address=sys.argv[1], logging_level='ERROR', log_to_driver=False)"

WANTS_TOKEN = "InvalidAuthToken"  # what Ray says to those who have none

Versions = Mapping[str, str]


@contextmanager
def connected(address: str | None = None, *, jobs: int) -> Iterator[bool]:
    """Connects this process to Ray, and ends that at the end; one that is connected already stays so.

    Gives whether the connection is ours to end, with all tasks.

    Args:
        address: "auto" or HOST:PORT for a cluster that runs; none given means to start Ray here.
        jobs: CPUs of a Ray that is started here.
    """
    with require_extra("ray", "running on Ray"):
        import ray
    if ray.is_initialized():
        check_versions(versions_here(), versions_of_nodes())
        yield False
        return
    try:
        if address is None:
            _start(jobs)
        else:
            _join(address)
        check_versions(versions_here(), versions_of_nodes())
        yield True
    finally:
        ray.shutdown()


def check_reach(address: str | None) -> None:
    """Raises if Ray is not installed or nobody listens at the address; `connected` tells what this does not see."""
    with require_extra("ray", "running on Ray"):
        import ray  # noqa: F401
    host, _, port = (address or "").rpartition(":")
    try:
        if host:
            socket.create_connection((host.strip("[]"), int(port)), timeout=REACHED_WITHIN).close()
    except OSError as error:
        raise _no_cluster(str(address), f"nobody listens there ({error.strerror or error})") from None


def _start(jobs: int) -> None:
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody asked for it
    try:
        ray.init(address="local", num_cpus=jobs, include_dashboard=False, **QUIET)
    except (OSError, RuntimeError, ValueError) as error:
        remedy = "Mend that, name a cluster that runs (--address), or leave out --on ray"
        raise ClusterError(f"Ray cannot be started: {in_short(error)}", "it runs on this machine", remedy) from None


def _join(address: str) -> None:
    import ray

    _knock(address)
    try:
        ray.init(address=address, **QUIET)
    except (OSError, RuntimeError, ValueError) as error:
        raise _no_cluster(address, in_short(error)) from None


def _knock(address: str) -> None:
    """Raises if there is no cluster; another process asks, for Ray itself waits for minutes and cannot be stopped."""
    check_reach(address)
    command = [sys.executable, "-c", KNOCK, address]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=ANSWERED_WITHIN, check=False)
    except subprocess.TimeoutExpired as error:
        said = (error.stderr or b"").decode(errors="replace")
        raise _no_cluster(address, f"no answer in {ANSWERED_WITHIN:.0f} s", said) from None
    if asked.returncode:
        raise _no_cluster(address, in_short(asked.stderr), asked.stderr)


def _no_cluster(address: str, why: str, said: str = "") -> ClusterError:
    if WANTS_TOKEN in said:
        rule = "driver and nodes have the same one, and RAY_AUTH_MODE=token in their environment"
        remedy = "Copy the token from the head (docs/cluster.md, Two machines), and set that"
        return ClusterError(f"the Ray cluster at {address!r} asks for a token", rule, remedy)
    remedy = "Start one (ray start --head), run the command on one of its nodes, or leave --address out"
    return ClusterError(
        f"no Ray cluster at {address!r}: {why}", "the address is that of a cluster that this machine is in", remedy
    )


def in_short(error: object) -> str:
    """Returns the last line of an error that says something, without a stop."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else type(error).__name__


def nodes() -> list[dict[str, Any]]:
    """Returns the nodes that units can be done on: alive, with a CPU."""
    import ray

    return [each for each in ray.nodes() if each["Alive"] and each["Resources"].get("CPU", 0) >= 1]


def versions_here() -> Versions:
    """Returns the versions that this process has, as `versions_of_nodes` does for others."""
    return _look()(SAME)


def versions_of_nodes() -> dict[str, Versions]:
    """Returns the versions that each node has, by its address: a first task on each tells."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    look, asked = ray.remote(num_cpus=0, max_retries=0)(_look()), {}
    for node in nodes():
        there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        asked[node["NodeID"]] = node["NodeManagerAddress"], look.options(scheduling_strategy=there).remote(SAME)
    answers = {f"{name} ({number[:8]})": _answer(name, number, task) for number, (name, task) in asked.items()}
    return {node: answer for node, answer in answers.items() if answer is not None}


def _answer(name: str, number: str, task: Any) -> Versions | None:
    """Returns what a node's first task says; nothing of a node that has left meanwhile."""
    import ray
    from ray.exceptions import RayError, TaskUnschedulableError

    try:
        answer: Versions = ray.get(task, timeout=ANSWERED_WITHIN)
    except TaskUnschedulableError:
        return None
    except RayError as error:
        if number not in [node["NodeID"] for node in nodes()]:
            return None
        problem = f"node {name} does not do its first task: {in_short(error)}"
        raise ClusterError(problem, "every node does units", "Mend or remove that node") from None
    return answer


def _look() -> Callable[[tuple[str, ...]], Versions]:
    """Returns a function that is sent as it is written, for a node may have no Coterie or another one."""

    def look(names: tuple[str, ...]) -> Versions:
        import platform
        from importlib import metadata

        def version(name: str) -> str:
            try:
                return metadata.version(name)
            except metadata.PackageNotFoundError:
                return "none"

        return {"python": platform.python_version(), **{name: version(name) for name in names}}

    return look


def check_versions(here: Versions, there: Mapping[str, Versions]) -> None:
    """Raises if a node has other versions than this machine, or if there is no node.

    Examples:
        >>> check_versions({"numpy": "2.1.0"}, {"10.0.0.7": {"numpy": "1.26.4"}})
        Traceback (most recent call last):
        coterie.errors.ClusterError: node 10.0.0.7 has numpy 1.26.4, and this machine 2.1.0; all units of a study ...
    """
    if not there:
        raise ClusterError("the cluster has no node with a CPU", "units are done on such nodes", "Add one")
    for node, versions in there.items():
        for name, version in here.items():
            if versions.get(name) != version:
                raise ClusterError(
                    f"node {node} has {name} {versions.get(name)}, and this machine {version}",
                    "all units of a study are done with the same versions",
                    f"Install {name} {version} on every node, or run from a machine that has what they have",
                )
