"""What a data set is, where it is usually had and under which terms; and its files, read line by line."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.errors import InputError
from coterie.logs.log import Ints

REMEDY = "Get the original file again, or mend that line"


@dataclass(frozen=True, slots=True)
class Origin:
    """A data set that others publish.

    Attributes:
        title: Its name, and what it holds.
        had: Where it is usually had.
        terms: Under which terms.
    """

    title: str
    had: str
    terms: str

    def find(self, folder: str | Path, *names: str) -> Path:
        """Returns the file that has one of these names, or says what is missing and where it is had."""
        place = Path(folder)
        for name in names:
            if (place / name).is_file():
                return place / name
        missing = f"there is no folder {str(folder)!r}"
        if place.is_dir():
            missing = f"there is no file {' or '.join(names)} in {str(folder)!r}"
        rule = f"the data set is {self.title}; it is usually had from {self.had}, and its terms are: {self.terms}"
        raise InputError(missing, rule, "Get it from there if its terms allow your use, unpack it, and name its folder")


LASTFM = Origin(
    "HetRec 2011 Last.fm (listening counts, friends and tags of 1,892 users)",
    "GroupLens, as hetrec2011-lastfm-2k",
    "non-commercial use; cite Last.fm and the workshop HetRec 2011",
)
DEEZER = Origin(
    "Deezer of GEMSEC (friendships and liked genres of users in Croatia, Hungary and Romania: HR, HU, RO)",
    "the authors' repository GEMSEC, or SNAP of Stanford as gemsec-Deezer",
    "MIT licence of the repository; cite Rozemberczki et al., GEMSEC",
)
FILMTRUST = Origin(
    "FilmTrust (ratings of films and trust between raters)",
    "the authors of LibRec",
    "no licence is stated; cite Guo, Zhang and Yorke-Smith 2013",
)
OPEN_BANDIT = Origin(
    "the Open Bandit Dataset (logged choices of fashion items with propensities)",
    "ZOZO Research, and a sample with the package obp",
    "those given with it; cite Saito et al., Open Bandit Dataset and Pipeline",
)


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
        raise InputError(problem, "the original is", "Get the original file again") from None


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
