"""What happened: logs in tables of edges, arms and events, and the original files of known data sets.

Order of reading: `log` (what a log is), `contexts` and `slates` of its events, `plain` (its tables, read and written),
`tables` (CSV and Parquet below these), `originals` (data sets that others publish).
"""

from coterie.logs.contexts import ContextColumn, Contexts
from coterie.logs.log import Events, Log, Pairs, Ragged, describe
from coterie.logs.originals import (
    Deezer,
    FilmTrust,
    LastFM,
    load_deezer,
    load_filmtrust,
    load_lastfm,
    load_open_bandit,
)
from coterie.logs.originals.item_features import TagFeatures, Tagged
from coterie.logs.plain.reading import check_log, read_log
from coterie.logs.plain.write_log import write_log

__all__ = [
    "ContextColumn",
    "Contexts",
    "Deezer",
    "Events",
    "FilmTrust",
    "LastFM",
    "Log",
    "Pairs",
    "Ragged",
    "TagFeatures",
    "Tagged",
    "check_log",
    "describe",
    "load_deezer",
    "load_filmtrust",
    "load_lastfm",
    "load_open_bandit",
    "read_log",
    "write_log",
]
