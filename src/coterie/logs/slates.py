"""Slates of a log: the rows of each together, place by place, and which candidates were left at each place."""

import numpy as np
from numpy.typing import NDArray

from coterie.logs.log import Events, Ints, Ragged


def in_slates(events: Events) -> Ints:
    """Returns a number for each event, the same for the places of a slate; an event of no slate has its own.

    They are counted in the order in which slates begin.

    Examples:
        >>> columns = {"user": np.zeros(4, int), "arm": np.arange(4), "reward": np.zeros(4)}
        >>> in_slates(Events(slate=np.array([7, -1, 7, 3]), place=np.array([2, -1, 1, 1]), **columns))
        array([0, 1, 0, 2])
    """
    n = len(events)
    if events.slate is None:
        return np.arange(n)
    keys = np.where(events.slate < 0, -1 - np.arange(n), events.slate)
    _, first, codes = np.unique(keys, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[codes])


def slate_order(events: Events) -> Ints:
    """Returns the rows in which slates begin one after the other and each is whole, place by place.

    Examples:
        >>> columns = {"user": np.zeros(4, int), "arm": np.arange(4), "reward": np.zeros(4)}
        >>> slate_order(Events(slate=np.array([7, -1, 7, 3]), place=np.array([2, -1, 1, 1]), **columns))
        array([2, 0, 1, 3])
    """
    slates = in_slates(events)
    places = np.zeros(len(events), dtype=np.int64) if events.place is None else events.place
    return np.lexsort((np.arange(len(events)), places, slates))


def shown_before(events: Events, rows: Ints, arms: Ints) -> NDArray[np.bool_]:
    """Returns which arms an earlier place of their slate has shown, one for each of these rows."""
    assert events.place is not None  # a row of a slate has one
    n_arms = int(max(events.arm.max(), arms.max(initial=0))) + 1
    slates = in_slates(events) * n_arms
    keys = slates + events.arm
    order = np.argsort(keys, kind="stable")
    asked = slates[rows] + arms
    found = order[np.minimum(np.searchsorted(keys[order], asked), len(keys) - 1)]
    return np.asarray((keys[found] == asked) & (events.place[found] < events.place[rows]))


def candidates_left(events: Events, n_arms: int) -> Ragged | None:
    """Returns the candidates of each event; of a slate's places, where they were not logged, the arms that were left.

    An empty list means that all arms were candidates.

    Examples:
        >>> columns = {"user": np.zeros(2, int), "arm": np.array([1, 0]), "reward": np.zeros(2)}
        >>> left = candidates_left(Events(slate=np.zeros(2, int), place=np.array([1, 2]), **columns), 3)
        >>> left[0].tolist(), left[1].tolist()
        ([], [0, 2])
    """
    logged = events.candidates
    if events.slate is None or events.place is None:
        return logged
    lists = [np.zeros(0, dtype=np.int32) if logged is None else logged[row] for row in range(len(events))]
    slates, order, every = in_slates(events), slate_order(events), np.arange(n_arms, dtype=np.int32)
    ends = np.flatnonzero(np.diff(slates[order])) + 1
    for places in np.split(order, ends):
        for number, row in enumerate(places.tolist()):
            if number and not len(lists[row]):
                lists[row] = np.setdiff1d(every, events.arm[places[:number]])
    return Ragged(np.cumsum([0, *map(len, lists)], dtype=np.int64), np.concatenate(lists).astype(np.int32))
