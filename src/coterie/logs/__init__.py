"""What happened: logs in tables of edges, arms and events, and the original files of known data sets.

Order of reading: `log` (what a log is), `plain` (its tables, read and written), `tables` (CSV and Parquet below these).
"""

from coterie.logs.describing import describe
from coterie.logs.log import Events, Log, Pairs, Ragged
from coterie.logs.plain.reading import check_log, read_log
from coterie.logs.plain.writing import write_log

__all__ = ["Events", "Log", "Pairs", "Ragged", "check_log", "describe", "read_log", "write_log"]
