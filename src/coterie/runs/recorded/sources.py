"""Where a log comes from: the original files of a data set, or a folder of edges, arms and events; read once."""

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

from coterie.errors import SettingError
from coterie.logs import Log, load_deezer, load_filmtrust, load_lastfm, load_open_bandit, read_log
from coterie.logs.commands import ORIGINS
from coterie.problems.recorded import OnePositive, Replay
from coterie.runs.recorded.settings import LogSettings

_LOADERS: dict[str, Callable[[Path], Log]] = {
    "plain": read_log,
    "lastfm": lambda folder: load_lastfm(folder).log(),
    "deezer": lambda folder: load_deezer(folder).log(),
    "filmtrust": lambda folder: load_filmtrust(folder).log(),
    "open-bandit": partial(load_open_bandit),
}


@lru_cache(maxsize=2)
def log_of(data: str, folder: str) -> Log:
    """Returns the log, read once in a process."""
    if not folder:
        remedy = "Name the folder of its files: coterie run NAME --data DIR"
        raise SettingError(f"the folder of {data!r} is not given", _told(data), remedy, key="folder")
    return _LOADERS[data](Path(folder))


def _told(data: str) -> str:
    if data not in ORIGINS:
        return "it holds edges, arms and events"
    origin = ORIGINS[data]
    return f"it is {origin.title}, usually had from {origin.had}, under these terms: {origin.terms}; we do not ship it"


@lru_cache(maxsize=4)
def problem_of(settings: LogSettings) -> OnePositive | Replay:
    """Returns the log as a problem, made once in a process."""
    log = log_of(settings.data, settings.folder)
    if settings.protocol == "replay":
        return Replay(log)
    return OnePositive(
        log,
        n_candidates=settings.n_candidates,
        negatives="uniform" if settings.negatives == "uniform" else "popularity",
        least_positives=settings.least_positives,
    )
