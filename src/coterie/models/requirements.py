"""What an engine needs: a kernel that it can use, and memory."""

import os

from coterie.errors import MemoryLimitError, ParameterError
from coterie.kernels.graph_kernel import GraphKernel
from coterie.kernels.group_kernel import GroupKernel
from coterie.kernels.inputs import OnInputs
from coterie.kernels.joint import JointKernel, OnPool, PoolKernel

SHARE = 0.6


def require_pool(kernel: JointKernel, engine: str) -> PoolKernel:
    """Returns the kernel if it is a matrix over a finite pool, and raises otherwise."""
    if isinstance(kernel, PoolKernel):
        return kernel
    raise _no_pool(engine)


def require_arms(kernel: JointKernel, engine: str) -> OnPool | OnInputs:
    """Returns the kernel if its arms are rows of a finite pool, or inputs, and raises otherwise."""
    if isinstance(kernel, OnPool | OnInputs):
        return kernel
    raise _no_pool(engine)


def require_inputs(kernel: JointKernel, engine: str) -> OnInputs:
    """Returns the kernel if its arms are inputs and its users have a matrix, and raises otherwise."""
    if isinstance(kernel, OnInputs) and kernel.has_user_cov:
        return kernel
    raise ParameterError(
        f"engine {engine!r} was asked for with contexts on a kernel {type(kernel).__name__}",
        "its features of users are those of a matrix over all of them",
        "Use engine 'local', which needs none",
    )


def require_graph(kernel: JointKernel) -> GraphKernel:
    """Returns the kernel if it is the graph's own, and raises otherwise."""
    if isinstance(kernel, GraphKernel):
        return kernel
    raise ParameterError(
        f"engine 'sparse' was asked for with a {type(kernel).__name__}",
        "it needs the graph itself: the user kernel Green with power 1, and a pool of arms",
        "Use graph_kernel(graph, arm_kernel, pool), or another engine",
    )


def require_groups(kernel: JointKernel) -> GroupKernel:
    """Returns the kernel if it is one of groups, and raises otherwise."""
    if isinstance(kernel, GroupKernel):
        return kernel
    raise ParameterError(
        f"engine 'groups' was asked for with a {type(kernel).__name__}",
        "it needs users who are pooled, alone or in clusters, and a pool of arms",
        "Use group_kernel(labels, arm_kernel, pool), or another engine",
    )


def _no_pool(engine: str) -> ParameterError:
    return ParameterError(
        f"engine {engine!r} was asked for without a pool of arms",
        "it keeps a belief for every pair, so the arms must be known",
        "Pass arms=ArmPool(...), or use engine 'exact'",
    )


def available_memory() -> int:
    """Returns the bytes a model may take by default: a share of what is free now, or 4 GiB if that is unknown."""
    try:
        return int(SHARE * os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return 4 * 2**30


def check_users_fit(n_users: int) -> None:
    """Raises if two matrices over all users exceed the machine's memory.

    Engines other than "sparse" take at least that. What is free now does not count: caches give way.
    """
    needed, whole = 16 * n_users**2, machine_memory()
    if whole is not None and needed > whole:
        raise MemoryLimitError(
            f"{n_users} users need {needed / 2**30:.0f} GiB and more on any engine but 'sparse'",
            f"this machine has {whole / 2**30:.0f} GiB",
            "Use 'auto-ucb' without an engine, or 'lk-gp-ucb' with engine='sparse' and a pool of arms, or fewer users",
        )


def machine_memory() -> int | None:
    """Returns the bytes that the machine has, or None if that is unknown."""
    try:
        return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return None


def require_memory(needed: int, limit: int | None, *, what: str, remedy: str) -> None:
    """Raises MemoryLimitError if `needed` bytes exceed the limit (default: what is available)."""
    allowed = available_memory() if limit is None else limit
    if needed > allowed:
        raise MemoryLimitError(
            f"{what} needs {needed / 2**30:.2f} GiB",
            f"it may take {allowed / 2**30:.2f} GiB",
            f"{remedy}, take a smaller pool, or raise memory_limit",
        )
