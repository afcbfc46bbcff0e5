"""What an engine needs of its kernel and of its settings."""

from typing import Any

import numpy as np

from coterie.errors import ParameterError
from coterie.kernels.graph_kernel import GraphKernel
from coterie.kernels.joint import JointKernel, OnPool, PoolKernel


def require_pool(kernel: JointKernel, engine: str) -> PoolKernel:
    """Returns the kernel if it is a matrix over a finite pool, and raises otherwise."""
    if isinstance(kernel, PoolKernel):
        return kernel
    raise _no_pool(engine)


def require_arms(kernel: JointKernel, engine: str) -> OnPool:
    """Returns the kernel if its arms are rows of a finite pool, and raises otherwise."""
    if isinstance(kernel, OnPool):
        return kernel
    raise _no_pool(engine)


def require_graph(kernel: JointKernel) -> GraphKernel:
    """Returns the kernel if it is the graph's own, and raises otherwise."""
    if isinstance(kernel, GraphKernel):
        return kernel
    raise ParameterError(
        f"engine 'sparse' was asked for with a {type(kernel).__name__}",
        "it needs the graph itself: the user kernel Green with power 1, and a pool of arms",
        "Use graph_kernel(graph, arm_kernel, pool), or another engine",
    )


def _no_pool(engine: str) -> ParameterError:
    return ParameterError(
        f"engine {engine!r} was asked for without a pool of arms",
        "it keeps a belief for every pair, so the arms must be known",
        "Pass arms=ArmPool(...), or use engine 'exact'",
    )


def check_whole(name: str, value: Any, *, least: int = 1) -> None:
    """Raises ParameterError if the value is not a whole number of at least this size."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(f"{name} is {value!r}", f"it is a whole number >= {least}", "Pass one, or leave it out")


def checked_positive(name: str, value: Any) -> float:
    """Returns the value as a float, or raises if it is not a finite number > 0."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if number and 0 < value < float("inf"):
        return float(value)
    raise ParameterError(f"{name} is {value!r}", "it is a finite number > 0", "Choose 0.1, or leave it out")


def checked_flag(name: str, value: Any) -> bool:
    """Returns the value if it is True or False, and raises otherwise."""
    if isinstance(value, bool):
        return value
    raise ParameterError(f"{name} is {value!r}", "it is True or False", "Choose one, or leave it out")
