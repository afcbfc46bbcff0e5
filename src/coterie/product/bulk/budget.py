"""How much memory a fit or a score takes, whether that is allowed, and how much is read or scored at a time."""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from coterie.errors import MemoryLimitError, ParameterError
from coterie.models.requirements import available_memory
from coterie.policies.reward_batches import WAITING
from coterie.product.bulk.sources import ROWS
from coterie.product.scoring import BLOCK

try:
    import resource
except ImportError:  # not on every system
    resource = None  # type: ignore[assignment] # and then nobody says how much was held

# Bytes, as measured (docs/decisions/020-fit-command.md); each is the most that is held at any moment of the work.
BASE = 330 * 2**20  # Python, numpy, scipy, numba and pyarrow themselves
A_USER = 700  # ids, rows of ids, and the numbers that kernel and belief have of each
AN_EDGE = 250
A_WEIGHT = 56  # of a user and a feature: weights, residual, and the vectors of conjugate gradients
A_PAIR = 130  # in the table, in the bandit, and while the file is written
A_LEARNED_PAIR = 1_000  # of a policy that learns its hyperparameters, whose history is of Python's objects
A_HELD_ROW = 120  # of those that are sorted by pairs at once
A_READ_ROW = 250  # of a batch
A_SCORE = 48  # of a user and an arm
LOADED = 2.5  # bytes in memory for a byte of a saved bandit, the ids of users included
PART_USER, PART_EDGE, PART_WEIGHT, PART_PAIR = 100, 40, 70, 60  # of a process that holds a part of the graph
FEWEST_ROWS, FEWEST_WAITING, FEWEST_SCORES = 2**12, 2**16, 2**16

UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
SIZE_RULE = "a size is a number above 0 and a unit: 512MB, 4GB, 1.5GiB"


class Reading(NamedTuple):
    """How a fit reads within its limit.

    Attributes:
        rows: How many rows of a file at a time.
        waiting: How many rewards are held before repeats of pairs are collapsed.
    """

    rows: int
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FitSizes:
    """What the memory of a fit depends on.

    Attributes:
        n_users: Of the graph.
        n_edges: Likewise.
        n_arms: Of the pool.
        n_features: Of an arm, in the solve.
        n_rows: Of the events, at most.
        is_solved: Whether the belief is one solve for all users.
    """

    n_users: int
    n_edges: int
    n_arms: int
    n_features: int
    n_rows: int
    is_solved: bool = True

    @property
    def n_pairs(self) -> int:
        """How many distinct pairs there are, at most."""
        return min(self.n_rows, self.n_users * self.n_arms)

    def held(self, waiting: int) -> int:
        """Returns how many rows are sorted at once, at most: the pairs so far, and at least as many that wait."""
        return min(self.n_rows, self.n_pairs + max(waiting, self.n_pairs))

    def needed(self, reading: Reading) -> Mapping[str, int]:
        """Returns the bytes of each part, at the moment when they are the most: while events are read, or after it."""
        always = {"Python": BASE, "users": A_USER * self.n_users, "edges": AN_EDGE * self.n_edges}
        pairs = (A_PAIR if self.is_solved else A_LEARNED_PAIR) * self.n_pairs
        solve = {"weights": A_WEIGHT * self.n_users * self.n_features if self.is_solved else 0, "pairs": pairs}
        read = {"rows": A_READ_ROW * reading.rows, "pairs": A_HELD_ROW * self.held(reading.waiting)}
        return always | max(solve, read, key=lambda part: sum(part.values()))

    def in_a_part(self, n_parts: int) -> int:
        """Returns the bytes of a process that holds one of so many parts of the graph, all about as large."""
        weights = self.n_users * self.n_features
        whole = PART_USER * self.n_users + PART_EDGE * self.n_edges + PART_WEIGHT * weights + PART_PAIR * self.n_pairs
        return BASE + whole // n_parts


def fit_reading(sizes: FitSizes, limit: int | None) -> Reading:
    """Returns how to read within a limit, or raises MemoryLimitError, before the work, if no way of reading fits.

    Args:
        sizes: Of graph, arms and events.
        limit: In bytes; what the machine can spare, unless given.

    Examples:
        >>> small = FitSizes(n_users=1000, n_edges=5000, n_arms=10, n_features=4, n_rows=10**6)
        >>> fit_reading(small, 4 * 10**9)
        Reading(rows=131072, waiting=4194304)
        >>> fit_reading(small, 10**8)
        Traceback (most recent call last):
        coterie.errors.MemoryLimitError: the fit needs 358 MB: ... at most 100 MB is allowed. Raise --memory, ...
    """
    allowed, least = available_memory() if limit is None else limit, Reading(FEWEST_ROWS, FEWEST_WAITING)
    parts = sizes.needed(least)
    if sum(parts.values()) > allowed:
        raise _too_large("the fit", allowed, parts, "use fewer edges, events or features")
    reading = Reading(ROWS, WAITING)
    while sum(sizes.needed(reading).values()) > allowed:
        reading = Reading(max(reading.rows // 2, FEWEST_ROWS), max(reading.waiting // 2, FEWEST_WAITING))
    return reading


def score_block(file_bytes: int, limit: int | None) -> int:
    """Returns how many means to hold at a time, or raises MemoryLimitError if the bandit alone does not fit.

    Examples:
        >>> score_block(10**6, 4 * 10**9)
        4194304
    """
    allowed = available_memory() if limit is None else limit
    parts = {"Python": BASE, "the bandit": int(LOADED * file_bytes), "scores": A_SCORE * FEWEST_SCORES}
    spare = allowed - sum(parts.values())
    if spare < 0:
        raise _too_large("the score", allowed, parts, "use a smaller bandit")
    return min(BLOCK, FEWEST_SCORES + spare // A_SCORE)


def _too_large(what: str, allowed: int, parts: Mapping[str, int], otherwise: str) -> MemoryLimitError:
    needed = sum(parts.values())
    listed = ", ".join(f"{name} {in_bytes(size)}" for name, size in parts.items() if size)
    rule = f"at most {in_bytes(allowed)} is allowed"
    return MemoryLimitError(f"{what} needs {in_bytes(needed)}: {listed}", rule, f"Raise --memory, or {otherwise}")


def read_size(text: str) -> int:
    """Returns the bytes of a size such as 4GB, or raises ParameterError if it is none.

    Examples:
        >>> read_size("4GB"), read_size("1.5 GiB"), read_size("2g")
        (4000000000, 1610612736, 2147483648)
        >>> read_size("much")
        Traceback (most recent call last):
        coterie.errors.ParameterError: the memory is 'much'; a size is a number above 0 and a unit: ... Write, say, 4GB.
    """
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([A-Za-z]*)\s*", text)
    unit = UNITS.get(found[2].lower()) if found else None
    size = int(float(found[1]) * unit) if found and unit else 0
    if size < 1:
        raise ParameterError(f"the memory is {text!r}", SIZE_RULE, "Write, say, 4GB")
    return size


def in_bytes(size: float) -> str:
    """Returns a size in words.

    Examples:
        >>> in_bytes(5e8), in_bytes(2.34e9), in_bytes(900)
        ('500 MB', '2.3 GB', '900 B')
    """
    for unit, one in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= one:
            return f"{size / one:.{0 if size >= 10 * one or unit == 'MB' else 1}f} {unit}"
    return f"{size:.0f} B"


def peak_memory() -> int:
    """Returns the most bytes that this process has held so far; 0 where the system does not say."""
    unit = 1 if sys.platform == "darwin" else 2**10
    return 0 if resource is None else int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit


def spent(seconds: float, limit: int | None) -> str:
    """Returns in words what the work took."""
    allowed = "" if limit is None else f" of the {in_bytes(limit)} allowed"
    return f"{seconds:.0f} s, {in_bytes(peak_memory())}{allowed} of memory at most"
