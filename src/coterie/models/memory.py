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


def require_memory(needed: int, limit: int | None, *, what: str, remedy: str) -> None:
    """Raises MemoryLimitError if `needed` bytes exceed the limit (default: what is available)."""
    allowed = available_memory() if limit is None else limit
    if needed > allowed:
        raise MemoryLimitError(
            f"{what} needs {needed / 2**30:.2f} GiB",
            f"it may take {allowed / 2**30:.2f} GiB",
            f"{remedy}, take a smaller pool, or raise memory_limit",
        )
