"""What a world shows, round by round: who comes, which candidates, and the noise, each from its own random stream."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import ArmId, Array, UserId
from coterie.errors import CandidatesError, ParameterError, listed
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool

NoiseKind: TypeAlias = Literal["gaussian", "heavy-tailed"]
RewardKind: TypeAlias = Literal["real", "binary"]
Rows: TypeAlias = NDArray[np.int64]
Context: TypeAlias = Mapping[str, Any] | tuple[float, ...]

Part: TypeAlias = Literal["graph", "pool", "truth", "shown-graph", "users", "candidates", "noise", "contexts"]

# From 1000 up, so that a runner's own children of the seed, which `spawn` counts from 0, are other streams.
SPAWN_KEYS: dict[Part, int] = {
    "graph": 1000,
    "pool": 1001,
    "truth": 1002,
    "shown-graph": 1003,
    "users": 1004,
    "candidates": 1005,
    "noise": 1006,
    "contexts": 1007,
}

# Student's t with fewer degrees of freedom than this has no variance that could be stated.
_FREEDOM = 3
# Entries of the table in which candidates are shuffled: 2 MB, however many rounds and arms there are.
_CHUNK = 2**18


@dataclass(frozen=True, slots=True)
class Round:
    """What the world shows, and the noise that whatever is chosen will meet.

    Attributes:
        t: The round's number, from 0.
        user: Who is served.
        candidates: The arms to choose from.
        noise: What is added to the expected reward; where rewards are binary, the number between 0 and 1 that the
            probability must exceed to pay.
        context: What is different about this moment; None in worlds without contexts.
    """

    t: int
    user: UserId
    candidates: tuple[ArmId, ...]
    noise: float
    context: Context | None = field(default=None, hash=False)

    def place_of(self, arm: ArmId) -> int:
        """Returns the place of an arm among the candidates, or raises if it was not shown."""
        try:
            return self.candidates.index(arm)
        except ValueError:
            rule = f"candidates were {listed(self.candidates)}"
            raise CandidatesError(f"arm {arm!r} was not shown", rule, "Choose one of these") from None


class Problem(Protocol):
    """What a trial is played on, drawn or recorded: a learner is given graph and arms, the runner asks `judge`."""

    @property
    def graph(self) -> UserGraph:
        """The users."""
        ...

    @property
    def arms(self) -> ArmPool:
        """The pool."""
        ...

    def judge(self, shown: Round, arm: ArmId) -> tuple[float, float]:
        """Returns the reward of the chosen arm and its regret; NaN where they are not known."""
        ...


def stream(seed: np.random.SeedSequence, part: Part) -> np.random.Generator:
    """Returns the generator of one part of a trial; it depends on the seed and the part alone.

    Examples:
        >>> seed = np.random.SeedSequence(7)
        >>> before = stream(seed, "noise").random()
        >>> _ = stream(seed, "graph").random(100)
        >>> stream(seed, "noise").random() == before
        True
    """
    if not isinstance(seed, np.random.SeedSequence):
        rule = "the seed of a trial is a numpy SeedSequence"
        raise ParameterError(f"seed is {seed!r}", rule, "Pass, say, np.random.SeedSequence(0)")
    key = (*seed.spawn_key, SPAWN_KEYS[part])
    return np.random.default_rng(np.random.SeedSequence(entropy=seed.entropy, spawn_key=key))


def served_users(
    n_users: int,
    horizon: int,
    rng: np.random.Generator,
    *,
    late_share: float = 0.0,
    late_after: float = 0.5,
    chances: Array | None = None,
) -> Rows:
    """Returns the row of the user served in each round: uniform among those who have come by then, or by `chances`.

    Examples:
        >>> served_users(4, 6, np.random.default_rng(0)).shape
        (6,)
    """
    if chances is not None:
        return np.asarray(rng.choice(n_users, horizon, p=chances))
    order = rng.permutation(n_users)
    n_early = n_users - min(round(late_share * n_users), n_users - 1)
    present = np.where(np.arange(horizon) < late_after * horizon, n_early, n_users)
    return np.asarray(order[(rng.random(horizon) * present).astype(np.int64)])


def shown_arms(
    n_arms: int, n_candidates: int, horizon: int, rng: np.random.Generator, *, chunk: int = _CHUNK
) -> Iterator[list[int]]:
    """Yields the rows of the candidates of each round: distinct, every ordered choice as likely as any other.

    The first rounds are the same whatever the horizon. O(n_arms) a round, in tables of bounded size.

    Examples:
        >>> [sorted(rows) for rows in shown_arms(3, 3, 2, np.random.default_rng(0))]
        [[0, 1, 2], [0, 1, 2]]
    """
    size = max(1, chunk // n_arms)
    for start in range(0, horizon, size):
        yield from _dealt(n_arms, n_candidates, min(size, horizon - start), rng)


def _dealt(n_arms: int, n_candidates: int, n_rounds: int, rng: np.random.Generator) -> list[list[int]]:
    """Returns the first cards of `n_rounds` decks of arms, shuffled as far as they are dealt."""
    decks, each = np.tile(np.arange(n_arms), (n_rounds, 1)), np.arange(n_rounds)
    places = (rng.random((n_rounds, n_candidates)) * (n_arms - np.arange(n_candidates))).astype(np.int64)
    for i in range(n_candidates):
        place = i + places[:, i]
        dealt = decks[each, place]
        decks[each, place] = decks[:, i]
        decks[:, i] = dealt
    shown: list[list[int]] = decks[:, :n_candidates].tolist()
    return shown


def drawn_noise(
    horizon: int, rng: np.random.Generator, *, noise_std: float, noise: NoiseKind, rewards: RewardKind
) -> Array:
    """Returns the noise of each round: of this standard deviation, or uniform below 1 where rewards are binary.

    Examples:
        >>> drawn_noise(2, np.random.default_rng(0), noise_std=0.1, noise="gaussian", rewards="real").round(3)
        array([ 0.013, -0.013])
    """
    if rewards == "binary":
        return rng.random(horizon)
    if noise == "gaussian":
        return noise_std * rng.standard_normal(horizon)
    # The variance of Student's t is freedom / (freedom - 2).
    return np.asarray(noise_std * sqrt((_FREEDOM - 2) / _FREEDOM) * rng.standard_t(_FREEDOM, horizon))
