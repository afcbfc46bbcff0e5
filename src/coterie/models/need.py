"""What an engine needs of its kernel."""

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
