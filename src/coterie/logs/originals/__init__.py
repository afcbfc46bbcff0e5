"""The original files of data sets that people publish, from a folder that the user names.

Nothing is downloaded and nothing is shipped. Order of reading: `origin` (what a data set is and where it is had),
`lines` (its files), then one module for each.
"""

from coterie.logs.originals.deezer import Deezer, load_deezer
from coterie.logs.originals.filmtrust import FilmTrust, load_filmtrust
from coterie.logs.originals.lastfm import LastFM, load_lastfm
from coterie.logs.originals.open_bandit import load_open_bandit

__all__ = ["Deezer", "FilmTrust", "LastFM", "load_deezer", "load_filmtrust", "load_lastfm", "load_open_bandit"]
