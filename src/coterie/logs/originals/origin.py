"""What a data set is, where it is usually had and under which terms."""

from dataclasses import dataclass
from pathlib import Path

from coterie.errors import InputError


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
