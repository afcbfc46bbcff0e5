"""What an engine needs of its kernel."""

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
