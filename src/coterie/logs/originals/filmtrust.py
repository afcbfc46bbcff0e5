"""FilmTrust: ratings of films, and trust between raters."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import scipy.sparse as sp

from coterie.errors import UnknownNameError
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.logs.log import Events, Floats, Ints, Log, Pairs
from coterie.logs.originals.item_features import leading_directions, unit_rows
from coterie.logs.originals.origin import FILMTRUST, places, read_lines

LIKED = 3.0  # the least rating that is a positive


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilmTrust:
    """The data set as it is published, but for ratings that were given twice: of these the last in the file counts.

    Attributes:
        graph: The users by their ids as texts, also those who only trust or are trusted; trust symmetrised by max.
        items: The items' ids, as texts.
        user: Who rated, one row for each user and item.
        item: What.
        rating: How, from 0.5 to 4.
        repeats: How many ratings gave way to a later one.
    """

    graph: UserGraph
    items: tuple[str, ...]
    user: Ints
    item: Ints
    rating: Floats
    repeats: int = 0

    def log(self, *, dimension: int = 25, seed: int = 0, reward: Literal["positive", "rating"] = "positive") -> Log:
        """Returns the log of a half of the ratings; the other half, drawn with the seed, makes features and leaves.

        Features of an item are its ratings of that half on their leading directions, to length 1; an item without one
        is left out. What users rated in that half is in `had`.

        Args:
            dimension: How many features an item gets.
            seed: Of the halves, and of the decomposition's start.
            reward: "positive" for 1 if the rating is at least 3 and else 0, or "rating".
        """
        if reward not in ("positive", "rating"):
            raise UnknownNameError(f"reward = {reward!r} is unknown", "it is 'positive' or 'rating'", "Pick one")
        spent = np.zeros(len(self.rating), dtype=bool)
        spent[np.random.default_rng(seed).permutation(len(self.rating))[: len(self.rating) // 2]] = True
        items, arms = np.unique(self.item[spent]), np.full(len(self.items), -1, dtype=np.int64)
        arms[items] = np.arange(len(items))
        kept = ~spent & (arms[self.item] >= 0)
        pool = ArmPool(
            self._features(spent, dimension, seed)[items],
            ids=[self.items[item] for item in items],
            feature_names=[f"ratings_{place}" for place in range(dimension)],
        )
        value = self.rating[kept] if reward == "rating" else (self.rating[kept] >= LIKED).astype(float)
        return Log(
            graph=self.graph,
            arms=pool,
            events=Events(user=self.user[kept], arm=arms[self.item[kept]], reward=value),
            had=Pairs(user=self.user[spent], arm=arms[self.item[spent]]),
            left_out={
                "ratings given again later": self.repeats,
                "ratings that made the features": int(np.count_nonzero(spent)),
                "items without features": len(self.items) - len(items),
                "ratings of items without features": int(np.count_nonzero(~spent & ~kept)),
            },
        )

    def _features(self, spent: np.ndarray[tuple[int], np.dtype[np.bool_]], dimension: int, seed: int) -> Floats:
        ends = self.item[spent], self.user[spent]
        ratings = sp.csr_array(sp.coo_array((self.rating[spent], ends), shape=(len(self.items), self.graph.n_users)))
        return unit_rows(np.asarray(ratings @ leading_directions(ratings, dimension, seed)))


def load_filmtrust(folder: str | Path) -> FilmTrust:
    """Returns FilmTrust from the folder of its original files.

    Args:
        folder: The folder with ratings.txt and trust.txt.
    """
    ratings, trust = FILMTRUST.find(folder, "ratings.txt"), FILMTRUST.find(folder, "trust.txt")
    rater, rated, rating = read_lines(ratings, (int, int, float))
    truster, trusted, weight = read_lines(trust, (int, int, float))
    users, items = sorted({*rater, *truster, *trusted}), sorted(set(rated))
    last = dict(zip(zip(rater, rated, strict=True), rating, strict=True))
    edges = zip(map(str, truster), map(str, trusted), weight, strict=True)
    return FilmTrust(
        graph=UserGraph.from_edges(edges, users=map(str, users), symmetrise="max"),
        items=tuple(map(str, items)),
        user=places([user for user, _ in last], users, ratings, "user"),
        item=places([item for _, item in last], items, ratings, "item"),
        rating=np.array(list(last.values()), dtype=float),
        repeats=len(rating) - len(last),
    )
