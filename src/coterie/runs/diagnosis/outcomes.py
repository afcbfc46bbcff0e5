"""What a log's rewards are, who had a good one with what, and which pairs the evidence looks at.

These are pairs of neighbourhoods, in blocks that fit a matrix over their pairs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coterie.errors import InputError
from coterie.graphs import UserGraph
from coterie.logs.log import Floats, Ints, Log
from coterie.models import History
from coterie.policies.auto.sampling import PairSample

LEAST_EVENTS = 20
BLOCKS, BALLS, BALL_PAIRS, USER_PAIRS = 5, 3, 160, 20

Kind: TypeAlias = Literal["one-class", "binary", "real"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """The mean reward of each pair of user and arm that the log holds.

    Attributes:
        kind: "one-class" if every event has the same reward, "binary" if rewards are 0 and 1, else "real".
        user: The users of the pairs.
        arm: Their arms.
        reward: Their mean rewards.
        count: How many events each has.
        scatter: The sum of squares of its rewards about their mean.
        level: A pair is a positive if its mean reward is above this.
        n_users: How many users there are, also those without events.
        n_arms: How many arms there are.
    """

    kind: Kind
    user: Ints
    arm: Ints
    reward: Floats
    count: Floats
    scatter: Floats
    level: float
    n_users: int
    n_arms: int

    def table(self, values: Floats) -> sp.csr_array:
        """Returns users x arms with a value for each pair."""
        return sp.csr_array((values, (self.user, self.arm)), shape=(self.n_users, self.n_arms))

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Which pairs are positives."""
        return np.asarray(self.reward > self.level)


def outcomes_of(log: Log) -> Outcomes:
    """Returns the outcomes of a log, or raises if there are too few, or if all rewards are 0."""
    events = log.events
    if len(events) < LEAST_EVENTS:
        rule = f"a diagnosis needs at least {LEAST_EVENTS}, and says more with thousands"
        raise InputError(f"the log has {len(events)} events", rule, "Come back with a longer log")
    n_arms = len(log.arm_ids)
    keys, place, count = np.unique(events.user * n_arms + events.arm, return_inverse=True, return_counts=True)
    mean = np.bincount(place, events.reward) / count
    kind, level = _kind_and_level(events.reward)
    return Outcomes(
        kind=kind,
        user=keys // n_arms,
        arm=keys % n_arms,
        reward=mean,
        count=count.astype(float),
        scatter=np.bincount(place, (events.reward - mean[place]) ** 2).astype(float),
        level=level,
        n_users=log.graph.n_users,
        n_arms=n_arms,
    )


def _kind_and_level(reward: Floats) -> tuple[Kind, float]:
    values = np.unique(reward)
    if len(values) == 1 and values[0] <= 0:
        rule = "rewards are informative where some are above others, or where all are above 0"
        raise InputError(f"every reward is {values[0]:g}", rule, "Check the column reward")
    if len(values) == 1:
        return "one-class", 0.0
    return ("binary", 0.0) if set(values.tolist()) == {0.0, 1.0} else ("real", float(reward.mean()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvidenceSample:
    """What the evidence looks at.

    Attributes:
        history: The pairs of all blocks, rewards and drawn zeros.
        blocks: Three neighbourhoods each: users, and their rows of the history.
        n_zeros: How many of the pairs are drawn zeros.
    """

    history: History
    blocks: list[PairSample]
    n_zeros: int

    @property
    def n_users(self) -> int:
        """How many users they have in all."""
        return sum(len(block.users) for block in self.blocks)

    def together(self, most: int) -> PairSample:
        """Returns the first blocks as one, up to so many pairs; the first is in it anyway."""
        ends = np.cumsum([len(block.rows) for block in self.blocks])
        kept = self.blocks[: max(1, int(np.searchsorted(ends, most, side="right")))]
        offsets = np.cumsum([0, *(len(block.users) for block in kept)])
        places = [block.places + offset for block, offset in zip(kept, offsets[:-1], strict=True)]
        rows, users = [block.rows for block in kept], [block.users for block in kept]
        return PairSample(np.concatenate(users), np.concatenate(rows), np.concatenate(places))


def look(log: Log, outcomes: Outcomes, *, seed: int, liked: bool = False) -> EvidenceSample:
    """Returns blocks of neighbourhoods and their pairs, the same for the same seed.

    A user has 20 pairs at most. Where every event is a positive, or what users liked is all that is asked for, half of
    them are arms that the user never had, drawn uniformly, with reward 0.

    Args:
        log: The users and arms.
        outcomes: What they had.
        seed: Fixes what is drawn.
        liked: Whether positives (a reward above 0) are set against what users never had, whatever their rewards are.
    """
    rng = np.random.default_rng(seed)
    one_class = liked or outcomes.kind == "one-class"
    most = USER_PAIRS // 2 if one_class else USER_PAIRS
    asked = outcomes.user[outcomes.reward > 0] if liked else outcomes.user
    counts = np.minimum(np.bincount(asked, minlength=outcomes.n_users), most) * (1 + one_class)
    history, blocks, n_zeros = History(), [], 0
    for users in neighbourhoods(log.graph, counts, rng):
        first, sizes = len(history), []
        for user in users.tolist():
            before = len(history)
            rows = _add_pairs(history, outcomes, user, most, rng, liked=liked)
            if one_class:
                n_zeros += _add_zeros(
                    history, _never_had(log, outcomes, user, rows, rng)[: len(history) - before], user
                )
            sizes.append(len(history) - before)
        places = np.repeat(np.arange(len(users)), sizes)
        blocks.append(PairSample(users, np.arange(first, len(history)), places))
    return EvidenceSample(history=history, blocks=blocks, n_zeros=n_zeros)


def neighbourhoods(graph: UserGraph, counts: Ints, rng: np.random.Generator) -> list[Ints]:
    """Returns blocks of users with data: three neighbourhoods each, grown from random users by who has most links.

    The more edges there are inside, the more the rewards say of the graph; and users far apart separate what all
    have in common from what neighbours share. A neighbourhood is full with 160 pairs.

    Args:
        graph: The users.
        counts: How many pairs each has.
        rng: Who comes first.
    """
    starts, free, even = iter(rng.permutation(np.flatnonzero(counts)).tolist()), counts > 0, np.ones(graph.n_users)
    found: list[Ints] = []
    while len(found) < BLOCKS and free.any():
        balls = [_grown(graph, counts, BALL_PAIRS, free, starts, even) for _ in range(BALLS)]
        found.append(np.concatenate(balls))
    return found


def communities(graph: UserGraph, most: int, count: int, rng: np.random.Generator) -> Ints:
    """Returns so many users in some communities, each grown from a random user with edges.

    Who has the largest part of their links into it comes next. In one community alone everybody would be alike, and the
    graph would add nothing to that.
    """
    degrees = np.diff(graph.weights.indptr)
    starts = iter([*rng.permutation(np.flatnonzero(degrees)).tolist(), *np.flatnonzero(degrees == 0).tolist()])
    each, free = np.ones(graph.n_users, dtype=np.int64), np.ones(graph.n_users, dtype=np.bool_)
    sizes = np.diff(np.linspace(0, most, count + 1).round().astype(int)).tolist()
    return np.concatenate([_grown(graph, each, size, free, starts, 1 / np.maximum(degrees, 1)) for size in sizes])


def _grown(
    graph: UserGraph, counts: Ints, most: int, free: NDArray[np.bool_], starts: Iterator[int], worth: Floats
) -> Ints:
    """Returns users until their counts sum to `most`, each the one with most links to those before, times their worth.

    Where nobody is left to be reached, it goes on from the next start. `free` and `starts` go on from set to set.
    """
    near = graph.weights
    links: dict[int, float] = {}
    users: list[int] = []
    total = 0
    while total < most:
        user = max(links, key=links.__getitem__) if links else next((each for each in starts if free[each]), None)
        if user is None:
            break
        links.pop(user, None)
        free[user] = False
        users.append(user)
        total += int(counts[user])
        others = near.indices[near.indptr[user] : near.indptr[user + 1]]
        for other in others[free[others]].tolist():
            links[other] = links.get(other, 0.0) + float(worth[other])
    return np.array(users, dtype=np.int64)


def _add_pairs(
    history: History, outcomes: Outcomes, user: int, most: int, rng: np.random.Generator, *, liked: bool
) -> Ints:
    """Adds some pairs of a user, and returns the rows of all of them; pairs are sorted by user."""
    rows = np.arange(*np.searchsorted(outcomes.user, [user, user + 1]))
    for row in rng.permutation(rows[outcomes.reward[rows] > 0] if liked else rows)[:most].tolist():
        arm = int(outcomes.arm[row])
        if liked:
            history.add((user, arm), user, arm, 1.0)
            continue
        history.add((user, arm), user, arm, float(outcomes.reward[row]), weight=float(outcomes.count[row]))
        history.scatters[-1] = float(outcomes.scatter[row])
    return rows


def _add_zeros(history: History, arms: list[int], user: int) -> int:
    """Adds rewards of 0, and returns how many."""
    for arm in arms:
        history.add((user, arm), user, arm, 0.0)
    return len(arms)


def _never_had(log: Log, outcomes: Outcomes, user: int, rows: Ints, rng: np.random.Generator) -> list[int]:
    """Returns distinct arms that a user never had, in random order: as many as the user has pairs, if there are."""
    had = set(outcomes.arm[rows].tolist())
    if log.had is not None:
        had |= set(log.had.arm[log.had.user == user].tolist())
    if 2 * (len(had) + len(rows)) > outcomes.n_arms:
        return [arm for arm in rng.permutation(outcomes.n_arms).tolist() if arm not in had]
    drawn: dict[int, None] = {}
    while len(drawn) < len(rows):
        drawn |= dict.fromkeys(arm for arm in rng.integers(outcomes.n_arms, size=len(rows)).tolist() if arm not in had)
    return list(drawn)
