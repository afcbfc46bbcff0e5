"""What happened: logs in tables of edges, arms and events, and the original files of known data sets.

Order of reading: `log` (what a log is), `folder` (its tables), `reading` and `writing`.
"""

from coterie.logs.describing import describe
from coterie.logs.log import Events, Log, Pairs, Ragged
from coterie.logs.reading import check_log, read_log
from coterie.logs.writing import write_log

__all__ = ["Events", "Log", "Pairs", "Ragged", "check_log", "describe", "read_log", "write_log"]
