"""Ids in the order of time: UUID version 7."""

import os
from random import Random

_drawn = Random()  # seeded by the system; nobody else seeds it, and asking the system each time would cost more
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drawn.seed)


def time_id(at: float, random: bytes | None = None) -> str:
    """Returns an id whose first 48 bits are the milliseconds since 1970; the others are random.

    Args:
        at: Seconds since 1970.
        random: Ten bytes; none given means that they are drawn.

    Examples:
        >>> time_id(1.0, bytes(10))
        '00000000-03e8-7000-8000-000000000000'
    """
    drawn = _drawn.randbytes(10) if random is None else random
    value = int(at * 1000) << 80 | int.from_bytes(drawn)
    value = value & ~(0xF << 76) | 7 << 76
    value = value & ~(0x3 << 62) | 2 << 62
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
