"""Arms from a table: ids, and features if there are any."""

from pathlib import Path

import numpy as np

from coterie.contracts import FEATURE_RULE, LARGEST_FEATURE, ArmId
from coterie.errors import ArmError
from coterie.kernels import ArmPool
from coterie.kernels.pool import RESCALE, check_spread
from coterie.logs.log import Floats
from coterie.logs.plain.cells import Batch
from coterie.logs.plain.folder import find_table, open_table
from coterie.logs.plain.row_errors import Faults, Rows
from coterie.logs.plain.users_table import Roster
from coterie.logs.tables import Table


def read_choices(folder: Path, faults: Faults) -> ArmPool | tuple[ArmId, ...]:
    """Returns the arms of a folder: a pool, or the ids alone where there are no features."""
    path = find_table(folder, "arms")
    assert path is not None  # find_table refuses a folder without them
    table, batches = open_table(path, "arms")
    roster, features = Roster(), [name for name in table.names or () if name != "arm"]
    found = [_rows(table, batch, features, roster, faults) for batch in batches]
    if not found:
        raise ArmError(f"{path.name} has no rows", "a log has at least one arm", "Add a row for each arm")
    ids = tuple(roster.index)
    if not features or faults.found:
        return ids
    return _pool(path, np.concatenate(found), ids, features)


def _pool(path: Path, rows: Floats, ids: tuple[ArmId, ...], names: list[str]) -> ArmPool:
    """Returns the pool, or raises if arms differ by too little for a later command to tell them apart."""
    try:
        check_spread(rows, names=names)
    except ArmError as error:
        raise ArmError(f"{path.name}: {error.problem}", error.rule, error.remedy) from None
    return ArmPool(rows, ids=ids, feature_names=names)


def _rows(table: Table, batch: Batch, features: list[str], roster: Roster, faults: Faults) -> Floats:
    rows = Rows(table, batch, faults.limit)
    rows.missing("arm")
    roster.add_new(rows, "arm")
    numbers = np.empty((len(batch.numbers), len(features)))
    for place, name in enumerate(features):
        numbers[:, place] = batch.columns[name].numbers()
        remedy = "Correct it or fill it in; encode texts and categories as numbers"
        rows.mark(np.isnan(numbers[:, place]), name, rows.text(name), FEATURE_RULE, remedy)
        rows.mark(np.abs(numbers[:, place]) > LARGEST_FEATURE, name, rows.text(name), FEATURE_RULE, RESCALE)
    rows.report(faults)
    return numbers
