"""What was saved beside what the settings give."""

from typing import Any

import numpy as np

from coterie.algebra.gaps import gap_of_matrices
from coterie.errors import KernelError

SAME = 1e-6


def check_same(name: str, held: Any, made: Any) -> None:
    """Raises if numbers that were saved are not those that the settings give, up to rounding.

    Examples:
        >>> check_same("noise variance", 0.01, 0.5)
        Traceback (most recent call last):
        coterie.errors.KernelError: the noise variance that was saved is off by 0.98; settings, graph and arms give ...
    """
    found = gap_of_matrices(np.asarray(held, dtype=np.float64), np.asarray(made, dtype=np.float64))
    if not found <= SAME:
        what, rule = f"the {name} that was saved is off by {found:.2g}", "settings, graph and arms give the kernel"
        raise KernelError(what, rule, "Learn the rewards again")
