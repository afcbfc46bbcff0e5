"""A log from a folder of tables, checked row by row."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coterie.errors import InputError
from coterie.kernels import ArmPool
from coterie.logs.log import Log
from coterie.logs.plain.arms_table import read_choices
from coterie.logs.plain.events_table import read_events, read_had
from coterie.logs.plain.row_errors import EnoughError, Faults
from coterie.logs.plain.users_table import read_graph


def read_log(folder: str | Path) -> Log:
    """Returns the log of a folder with `edges`, `arms` and `events`, each CSV or Parquet (docs/data.md).

    The first mistake raises an error that names file, row, value, rule and remedy; nothing is skipped.

    Args:
        folder: Where; `users` (people without edges) and `had` (what users had besides) are optional.
    """
    log, mistakes = check_log(folder, limit=1)
    if log is None:
        raise mistakes[0]
    return log


def check_log(folder: str | Path, *, limit: int = 10) -> tuple[Log | None, list[InputError]]:
    """Returns the log of a folder, or none and its first mistakes, at most `limit` of them."""
    faults = Faults(limit)
    try:
        log = _read(Path(folder), faults)
    except EnoughError:
        return None, faults.found
    except InputError as error:
        return None, [*faults.found, error]
    return (None, faults.found) if faults.found else (log, [])


def _read(folder: Path, faults: Faults) -> Log:
    graph, arms = read_graph(folder, faults), read_choices(folder, faults)
    places = _places(arms)
    events = read_events(folder, graph.index, places, faults)
    return Log(graph=graph, arms=arms, events=events, had=read_had(folder, graph.index, places, faults))


def _places(arms: ArmPool | tuple[Any, ...]) -> Mapping[Any, int]:
    return arms.index if isinstance(arms, ArmPool) else {arm: place for place, arm in enumerate(arms)}
