"""The original files of data sets that people publish, from a folder that the user names.

Nothing is downloaded and nothing is shipped. Order of reading: `origin` (what a data set is, and its files), then one
module for each; `item_features` makes features where the publisher has none.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from coterie.logs.log import Log
from coterie.logs.originals.deezer import Deezer, load_deezer
from coterie.logs.originals.filmtrust import FilmTrust, load_filmtrust
from coterie.logs.originals.lastfm import LastFM, load_lastfm
from coterie.logs.originals.open_bandit import load_open_bandit
from coterie.logs.originals.origin import DEEZER, FILMTRUST, LASTFM, OPEN_BANDIT, Origin

__all__ = [
    "LOADERS",
    "ORIGINS",
    "Deezer",
    "FilmTrust",
    "LastFM",
    "load_deezer",
    "load_filmtrust",
    "load_lastfm",
    "load_open_bandit",
]

ORIGINS: dict[str, Origin] = {
    "lastfm": LASTFM,
    "deezer": DEEZER,
    "filmtrust": FILMTRUST,
    "open-bandit": OPEN_BANDIT,
}


def _lastfm(folder: Path, **features: Any) -> Log:
    data = load_lastfm(folder)
    return data.log(data.features(**features))


# What makes a log of the original files in a folder, and of the options that the data set has.
LOADERS: dict[str, Callable[..., Log]] = {
    "lastfm": _lastfm,
    "deezer": lambda folder, **options: load_deezer(folder, **options).log(),
    "filmtrust": lambda folder, **options: load_filmtrust(folder).log(**options),
    "open-bandit": load_open_bandit,
}
