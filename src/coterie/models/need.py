"""What an engine needs of its kernel and of its settings."""

from typing import Any

import numpy as np

from coterie.errors import ParameterError
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
