"""What an engine needs of the joint kernel."""

from coterie.errors import ParameterError
from coterie.kernels.joint import JointKernel, PoolKernel


def require_pool(kernel: JointKernel, engine: str) -> PoolKernel:
    """Returns the kernel if it is one on a finite pool, and raises otherwise."""
    if isinstance(kernel, PoolKernel):
        return kernel
    raise ParameterError(
        f"engine {engine!r} was asked for without a pool of arms",
        "it keeps a belief for every pair, so the arms must be known",
        "Pass arms=ArmPool(...), or use engine 'exact'",
    )
