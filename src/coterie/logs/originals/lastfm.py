"""HetRec 2011 Last.fm: who listened to whom, friends, and tags."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.logs.log import Events, Floats, Ints, Log
from coterie.logs.originals.item_features import TagFeatures, Tagged
from coterie.logs.originals.origin import LASTFM, places, read_lines


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LastFM:
    """The data set as it is published. Users, artists and tags are numbered from 0 in the columns.

    Attributes:
        graph: The users by their ids as texts, and their friendships.
        artists: The artists' ids, as texts.
        names: The artists' names.
        tags: The tags, as texts.
        user: Who listened, one row for each user and artist.
        artist: To whom.
        plays: How often.
        tagged: Who gave which artist which tag.
        left_out: What was left out, and how many of it.
    """

    graph: UserGraph
    artists: tuple[str, ...]
    names: tuple[str, ...]
    tags: tuple[str, ...]
    user: Ints
    artist: Ints
    plays: Floats
    tagged: Tagged
    left_out: dict[str, int] = field(default_factory=dict)

    def features(self, *, dimension: int = 25, seed: int = 0) -> TagFeatures:
        """Returns features of the artists that have tags; these are the arms of `log`, in this order."""
        sizes = {"n_items": len(self.artists), "n_tags": len(self.tags)}
        return TagFeatures(self.tagged, **sizes, dimension=dimension, seed=seed)

    def log(self, features: TagFeatures | None = None) -> Log:
        """Returns the log of listens, each with reward 1, to artists with features; the others are left out."""
        made = self.features() if features is None else features
        arm = np.full(len(self.artists), -1, dtype=np.int64)
        arm[made.items] = np.arange(len(made.items))
        kept = arm[self.artist] >= 0
        names = [f"tags_{place}" for place in range(made.dimension)]
        pool = ArmPool(made.rows, ids=[self.artists[item] for item in made.items], feature_names=names)
        events = Events(user=self.user[kept], arm=arm[self.artist[kept]], reward=np.ones(np.count_nonzero(kept)))
        gone = {
            "artists without tags": len(self.artists) - len(made.items),
            "listens to artists without tags": int(np.count_nonzero(~kept)),
        }
        return Log(graph=self.graph, arms=pool, events=events, left_out=self.left_out | gone)


def load_lastfm(folder: str | Path) -> LastFM:
    """Returns HetRec 2011 Last.fm from the folder of its original files.

    A positive is an artist that a user listened to (several published results took the tagged ones).

    Args:
        folder: The folder with artists.dat, tags.dat, user_artists.dat, user_friends.dat and user_taggedartists.dat.
    """
    files = {name: LASTFM.find(folder, f"{name}.dat") for name in ("artists", "tags", "user_artists", "user_friends")}
    files["tagged"] = LASTFM.find(folder, "user_taggedartists.dat")
    artist_ids, names, *_ = _read(files["artists"], (int, str, str, str), "id\tname\turl\tpictureURL")
    tag_ids, tags = _read(files["tags"], (int, str), "tagID\ttagValue", encoding="latin-1")
    friends = _read(files["user_friends"], (int, int), "userID\tfriendID")
    listener, listened, plays = _read(files["user_artists"], (int, int, float), "userID\tartistID\tweight")
    users = sorted({*friends[0], *friends[1], *listener})
    tagged, unknown = _tagged(files["tagged"], users, artist_ids, tag_ids)
    return LastFM(
        graph=UserGraph.from_edges(zip(*(map(str, each) for each in friends), strict=True), users=map(str, users)),
        artists=tuple(map(str, artist_ids)),
        names=tuple(names),
        tags=tuple(tags),
        user=places(listener, users, files["user_artists"], "user"),
        artist=places(listened, artist_ids, files["user_artists"], "artist"),
        plays=np.array(plays, dtype=float),
        tagged=tagged,
        left_out={"tags of artists that artists.dat does not name": unknown},
    )


def _read(path: Path, kinds: tuple[type, ...], header: str, encoding: str = "utf-8") -> list[list[Any]]:
    return read_lines(path, kinds, header=header, separator="\t", encoding=encoding)


def _tagged(path: Path, users: list[int], artists: list[int], tags: list[int]) -> tuple[Tagged, int]:
    """Returns who gave which artist which tag, and how many tags were for artists that are not known."""
    user, artist, tag, *_ = _read(path, (int,) * 6, "userID\tartistID\ttagID\tday\tmonth\tyear")
    index = {each: place for place, each in enumerate(artists)}
    item = np.array([index.get(each, -1) for each in artist], dtype=np.int64)
    known = item >= 0
    found = Tagged(
        user=places(user, users, path, "user")[known], item=item[known], tag=places(tag, tags, path, "tag")[known]
    )
    return found, int(np.count_nonzero(~known))
