"""Files of lines with cells in them, whose every line is as the publisher says it is."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.errors import InputError
from coterie.logs.log import Ints

REMEDY = "Get the original file anew, or mend that line"


def read_lines(
    path: Path,
    kinds: Sequence[Callable[[str], Any]],
    *,
    header: str | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
) -> list[list[Any]]:
    """Returns the columns of a file, or raises and names the line that is not as it must be.

    Args:
        path: Which file.
        kinds: What makes a value of each cell's text: as many as a line has cells.
        header: The first line, if it names the columns.
        separator: What stands between cells; none for any blanks.
        encoding: How the file is written.
    """
    columns: list[list[Any]] = [[] for _ in kinds]
    with path.open(encoding=encoding, errors="strict", newline="") as file:
        for number, line in enumerate(_texts(file, path), start=1):
            if number == 1 and header is not None:
                _check_header(path, line, header)
            elif line.strip():
                for column, value in zip(columns, _values(path, number, line.split(separator), kinds), strict=True):
                    column.append(value)
    return columns


def _texts(file: Iterable[str], path: Path) -> Iterable[str]:
    try:
        yield from (line.rstrip("\r\n") for line in file)
    except UnicodeDecodeError as odd:
        problem = f"{path.name} is not text in {odd.encoding}: {odd.reason}"
        raise InputError(problem, "the original is", "Get the original file anew") from None


def _check_header(path: Path, line: str, header: str) -> None:
    if line != header:
        problem = f"{path.name}, line 1: it is {line[:80]!r}"
        raise InputError(problem, f"the original begins with {header!r}", "Check that this is the right file")


def _values(path: Path, number: int, cells: list[str], kinds: Sequence[Callable[[str], Any]]) -> list[Any]:
    if len(cells) != len(kinds):
        problem, rule = f"{path.name}, line {number}: it has {len(cells)} cells", f"the original has {len(kinds)}"
        raise InputError(problem, rule, REMEDY)
    try:
        return [kind(cell) for kind, cell in zip(kinds, cells, strict=True)]
    except ValueError:
        problem = f"{path.name}, line {number}: it is {' '.join(cells)[:80]!r}"
        raise InputError(problem, "the original has numbers there", REMEDY) from None


def places(values: Iterable[Any], known: Sequence[Any], path: Path, what: str) -> Ints:
    """Returns where each value is among those that are known, or says which is not."""
    index = {each: place for place, each in enumerate(known)}
    found = [index.get(value, -1) for value in values]
    if -1 in found:
        odd = list(values)[found.index(-1)]
        raise InputError(f"{path.name} names {what} {odd!r}", f"the {what}s of the other files do not", REMEDY)
    return np.array(found, dtype=np.int64)
