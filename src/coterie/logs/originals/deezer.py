"""Deezer of GEMSEC: friendships, and the genres that users like."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coterie.errors import InputError
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.logs.log import Events, Ints, Log
from coterie.logs.originals.origin import DEEZER, places, read_lines


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deezer:
    """The data set of one country as it is published.

    Attributes:
        graph: The users by their numbers as texts, and their friendships.
        genres: The genres, in the order of the alphabet.
        user: Who likes, one row for each user and genre.
        genre: Which genre.
    """

    graph: UserGraph
    genres: tuple[str, ...]
    user: Ints
    genre: Ints

    def log(self) -> Log:
        """Returns the log of likes, each with reward 1; an arm is a genre and has one indicator of its own."""
        pool = ArmPool(np.eye(len(self.genres)), ids=self.genres, feature_names=self.genres)
        return Log(
            graph=self.graph,
            arms=pool,
            events=Events(user=self.user, arm=self.genre, reward=np.ones(len(self.user))),
        )


def load_deezer(folder: str | Path, *, country: str = "RO") -> Deezer:
    """Returns Deezer of GEMSEC from the folder of its original files.

    Args:
        folder: The folder with RO_edges.csv and RO_genres.json, or those of another country.
        country: HR, HU or RO.
    """
    edges, genres = DEEZER.find(folder, f"{country}_edges.csv"), DEEZER.find(folder, f"{country}_genres.json")
    liked = _liked(genres)
    users = sorted(liked)
    ends = read_lines(edges, (int, int), header="node_1,node_2", separator=",")
    for end in ends:
        places(end, users, edges, "user")
    names = sorted({genre for each in liked.values() for genre in each})
    return Deezer(
        graph=UserGraph.from_edges(zip(*(map(str, end) for end in ends), strict=True), users=map(str, users)),
        genres=tuple(names),
        user=np.repeat(np.arange(len(users)), [len(liked[user]) for user in users]),
        genre=places([genre for user in users for genre in liked[user]], names, genres, "genre"),
    )


def _liked(path: Path) -> dict[int, list[str]]:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        return {int(user): _genres(genres) for user, genres in held.items()}
    except (ValueError, TypeError, AttributeError) as odd:
        rule = "the original is a JSON object that gives each user's number a list of genres"
        raise InputError(f"{path.name} cannot be read: {odd}", rule, "Get the original file again") from None


def _genres(held: object) -> list[str]:
    if not isinstance(held, list) or not all(isinstance(genre, str) for genre in held) or len(set(held)) < len(held):
        raise ValueError(f"the genres of a user are {held!r:.80}")
    return held
