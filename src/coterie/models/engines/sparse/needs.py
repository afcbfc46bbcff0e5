"""What `sparse` needs: the graph itself, settings in their range, and numba."""

from types import ModuleType
from typing import Any

import numpy as np

from coterie.errors import MissingExtraError, ParameterError
from coterie.kernels.graph_kernel import GraphKernel
from coterie.kernels.joint import JointKernel
from coterie.models.engines.sparse.compiling import say_if_compiling


def require_graph(kernel: JointKernel) -> GraphKernel:
    """Returns the kernel if it is the graph's own, and raises otherwise."""
    if isinstance(kernel, GraphKernel):
        return kernel
    raise ParameterError(
        f"engine 'sparse' was asked for with a {type(kernel).__name__}",
        "it needs the graph itself: the user kernel Green with power 1, and a pool of arms",
        "Use graph_kernel(graph, arm_kernel, pool), or another engine",
    )


def checked_share(name: str, value: Any) -> float:
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


def load_push() -> ModuleType:
    """Returns the compiled functions, or says which extra brings them; imported here, for nothing else needs numba."""
    from coterie.algebra import push

    if not push.COMPILED:
        raise MissingExtraError(
            "engine 'sparse' needs 'numba', which is not installed",
            "it belongs to the extra 'scale'",
            "Install it: pip install '.[scale]' in a clone of the project",
        )
    say_if_compiling(push)
    return push


def load_rows() -> ModuleType:
    """Returns the compiled functions on rows of rewards; see `load_push`."""
    from coterie.algebra import reward_rows

    return reward_rows
