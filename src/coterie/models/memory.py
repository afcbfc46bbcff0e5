"""How much memory a model may take."""

import os

from coterie.errors import MemoryLimitError

SHARE = 0.6


def available_memory() -> int:
    """Returns the bytes a model may take by default: a share of what is free now, or 4 GiB where nobody tells."""
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
            "Use 'auto-ucb', or 'lk-gp-ucb' with engine='sparse' and a pool of arms, or fewer users",
        )


def machine_memory() -> int | None:
    """Returns the bytes that the machine has, or None where nobody tells."""
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
