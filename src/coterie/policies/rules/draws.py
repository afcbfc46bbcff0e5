"""The randomness of a decision: a function of (seed, decision number) and nothing else."""

from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.errors import ParameterError
from coterie.errors.checks import is_whole

SCORES, TIES, EXPLORATION = 0, 1, 2


class Draws:
    """One counter-based generator, set to a counter of its own for each decision.

    A decision's draws for scores and for ties come from counters of their own, so whether a tie occurs changes no
    other draw, and decision 48,211 can be drawn without the 48,210 before it. Making a generator for each decision
    would cost more than the decision.

    Examples:
        >>> draws = Draws(seed=7)
        >>> first = draws.normals(3, 2)
        >>> _ = draws.normals(4, 2), draws.pick(3, 5)
        >>> bool((draws.normals(3, 2) == first).all())
        True
    """

    __slots__ = ("_bits", "_counter", "_generator", "_seed", "_state")

    def __init__(self, seed: int) -> None:
        self._seed = checked_seed(seed)
        key = np.random.SeedSequence(self._seed).generate_state(2, np.uint64)
        self._bits = np.random.Philox(key=key)
        self._generator = np.random.Generator(self._bits)
        self._state: Any = self._bits.state
        self._counter = self._state["state"]["counter"]

    def __reduce__(self) -> tuple[type["Draws"], tuple[int]]:
        """A copy is made from the seed: NumPy 1 gives a copied generator bits of its own, which nobody would set."""
        return Draws, (self._seed,)

    def normals(self, number: int, size: int) -> Array:
        """Returns standard normal draws for the scores of a decision."""
        self._set(number, SCORES)
        return self._generator.standard_normal(size)

    def pick(self, number: int, size: int) -> int:
        """Returns a uniform draw from 0 to size - 1 to break a decision's tie."""
        self._set(number, TIES)
        return int(self._generator.integers(size))

    def explore(self, number: int, size: int) -> tuple[float, int]:
        """Returns a uniform draw from 0 to 1 and one from 0 to size - 1, for a decision's uniform exploration."""
        self._set(number, EXPLORATION)
        return float(self._generator.random()), int(self._generator.integers(size))

    def _set(self, number: int, purpose: int) -> None:
        self._counter[2] = purpose
        self._counter[3] = number
        self._bits.state = self._state


def checked_seed(seed: Any) -> int:
    """Returns the seed, or raises if it is not a whole number >= 0."""
    if is_whole(seed, 0):
        return int(seed)
    raise ParameterError(f"seed is {seed!r}", "it is a whole number >= 0", "Choose, say, 0")
