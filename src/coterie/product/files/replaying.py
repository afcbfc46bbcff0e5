"""A journal read back: any decision made again from a saved bandit, or the bandit brought to where the journal ends."""

import json
import warnings
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from typing import Any

from coterie.errors import CoterieError, JournalError, counted
from coterie.errors.checks import check_whole
from coterie.product.bandit import Bandit
from coterie.product.changes import CHANGES
from coterie.product.decisions import Decision
from coterie.product.files.journal import FORMAT, Journal
from coterie.product.files.recording import End, Recorder, Steady, Told, decisions_in, read, recorded, versions
from coterie.product.files.saving import load_bandit

ROUNDING = 1e-6  # numbers that differ by less are the same: engine 'exact' may round otherwise after loading


def replay(snapshot: str | Path, journal: str | Path, *, decision: int) -> Decision:
    """Returns a decision as it was made, propensities included, or raises if it cannot be made again.

    Every decision on the way is compared with what the journal says of it. Takes as long as the changes from the
    snapshot to the decision took.

    Args:
        snapshot: A file that `Bandit.save` wrote before the decision, while the journal was kept or before it began.
        journal: The file that was given to the bandit as `journal`.
        decision: The decision's id.
    """
    check_whole("decision", decision, least=0)
    clock = Steady(lambda: inf, stands=True)
    bandit = load_bandit(Path(snapshot), clock=clock)
    if decision < bandit.n_decisions:
        raise JournalError(
            f"decision {decision} was made before the snapshot, which holds {bandit.n_decisions} decisions",
            "a replay goes forward",
            "Use an earlier snapshot",
        )
    lines = JournalLines(Path(journal))
    for made in lines.replayed(bandit, clock):
        for each in made:
            if each.id == decision:
                return each
    cut = "; its last line is cut off" if lines.torn_at is not None else ""
    raise JournalError(
        f"decision {decision} is not in {str(journal)!r}, which ends before decision {bandit.n_decisions}{cut}",
        "a replay needs the journal up to the decision",
        "Check the number and the file",
    )


def load_with_journal(path: Path, journal: Path, *, clock: Callable[[], float]) -> Bandit:
    """Returns the bandit of a file after the changes in its journal since, which then goes on."""
    steady = Steady(clock, stands=True)
    bandit = load_bandit(path, clock=steady)
    if not journal.exists() or not journal.stat().st_size:
        bandit._journal = Journal.begin(journal, bandit)
    else:
        bandit._journal = _continued(bandit, journal, steady)
    steady.stands = False
    return bandit


def _continued(bandit: Bandit, path: Path, clock: Steady) -> Journal:
    journal = Journal(path)  # first, so that nobody adds a line meanwhile
    try:
        lines = JournalLines(path)
        for _ in lines.replayed(bandit, clock):
            pass
        journal.cut(End(lines.n_changes, journal.end.size if lines.torn_at is None else lines.torn_at))
        if lines.torn_at is not None:
            warnings.warn(f"the last line of {str(path)!r} was cut off, and is dropped", stacklevel=4)
        journal.name = lines.name
        bandit._learned.give_fits(False)
        return journal.opened()
    except OSError as error:
        journal.close()
        what, rule = f"{str(path)!r} cannot be continued: {error.strerror}", "a journal holds every change"
        raise JournalError(what, rule, "Make room, and load the bandit again") from None
    except BaseException:
        journal.close()
        raise


class Replay:
    """Makes the recorded changes of a bandit again, and compares every decision with what was recorded of it.

    Args:
        bandit: As it was before the first of them; it records nothing meanwhile.
        clock: The bandit's, which stands.
        source: Where the lines are from, for errors.
        takes_arms: Whether the arms that were chosen are taken as they were recorded. Mean, std and score that differ
            from what was recorded are then counted, and are no error: another version, another processor or another
            number of BLAS threads may compute them otherwise, and what was shown was shown.

    Attributes:
        versions: Those that wrote the lines, for errors.
        n_odd: How many decisions differed from what was recorded, where that is no error.
        first_odd: The first of them, in words.
    """

    def __init__(self, bandit: Bandit, clock: Steady, source: Path | str, *, takes_arms: bool = False) -> None:
        self._bandit, self._clock, self._source, self._takes_arms = bandit, clock, source, takes_arms
        self.versions: dict[str, str] = {}
        self.n_odd, self.first_odd = 0, ""
        bandit._learned.give_fits(True)

    def make(self, line: dict[str, Any]) -> list[Decision]:
        """Makes a change again, and returns the decisions that it gave."""
        bandit, number, call = self._bandit, line["change"], line.get("call")
        before = line.get("decisions"), line.get("rewards")
        if before != (bandit.n_decisions, bandit.n_rewards):
            held = f"{bandit.n_decisions} decisions and {bandit.n_rewards} rewards"
            why = f"change {number} came after {before[0]} and {before[1]}, and the bandit has {held}"
            raise _apart(self._source, why)
        if call not in CHANGES:
            why = f"change {number} is {call!r}, which this version of Coterie does not know"
            raise _wrong(self._source, why)
        self._clock.now = line.get("at", self._clock.now)
        bandit._learned.policy.n_to_refuse = line.get("refused", 0)
        then = line.get("gave", [])
        bandit._given_arms = [each[0] for each in then] if self._takes_arms else []
        try:
            made = decisions_in(getattr(bandit, call)(**{key: read(each) for key, each in line["with"].items()}))
        except (CoterieError, LookupError, TypeError, AttributeError) as error:
            raise _wrong(self._source, f"change {number}, {call}, cannot be made again ({error})") from error
        finally:
            bandit._given_arms = []
        if len(made) != len(then):
            why = f"change {number} gives {counted(len(made), 'decision')} and gave {len(then)}"
            raise _wrong(self._source, why)
        for decision, recorded_then in zip(made, then, strict=True):
            self._compare(decision, recorded_then)
        return made

    def end(self, recorder: Recorder | None = None) -> Bandit:
        """Returns the bandit, which goes on: it fits by itself again, and its changes go to the recorder."""
        self._bandit._learned.give_fits(False)
        self._bandit._journal = recorder
        self._clock.stands = False
        return self._bandit

    def _compare(self, decision: Decision, then: list[Any]) -> None:
        """Raises if a decision is not the one that was recorded, and says what differs; or counts it."""
        now = recorded(decision)
        slack = ROUNDING * max(abs(number) for number in now[1:])
        same = [now[0] == then[0], *(abs(a - b) <= slack for a, b in zip(now[1:], then[1:], strict=True))]
        compared = zip(("arm", "mean", "std", "score"), now, then, same, strict=True)
        odd = [f"{what} is {a!r} and was {b!r}" for what, a, b, equal in compared if not equal]
        if odd and self._takes_arms:
            self.n_odd += 1
            self.first_odd = self.first_odd or f"decision {decision.id}: {', '.join(odd)}"
        elif odd:
            here = versions()
            other = [f"{name} {old}, not {here[name]}" for name, old in self.versions.items() if here[name] != old]
            remedy = f"Use the versions that wrote it ({', '.join(other)})" if other else "Use the files as written"
            raise JournalError(
                f"decision {decision.id} is not the one in {str(self._source)!r}: {', '.join(odd)}",
                "the same snapshot, journal and versions give the same decision",
                remedy,
            )


class JournalLines:
    """The lines of a journal, read one by one.

    Attributes:
        path: The file.
        name: Which journal it is.
        n_changes: How many changes were read.
        torn_at: Where a last line begins that is cut off; none if the last one is whole, or is not reached.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.n_changes = path, 0
        self.torn_at: int | None = None
        first = next(self._parsed(), {})
        if "journal" not in first:
            raise self._wrong("it does not begin as a journal does")
        if first.get("format") != FORMAT:
            raise self._wrong(f"it has format {first.get('format')}, and this version of Coterie reads {FORMAT}")
        self.name, self._follows = first["journal"], first.get("follows")

    def replayed(self, bandit: Bandit, clock: Steady) -> Iterator[list[Decision]]:
        """Makes each change after the bandit was saved once more, and yields the decisions that it gave."""
        start, again = self._start(bandit._mark), Replay(bandit, clock, self.path)
        for line in self._parsed():
            if "opened" in line:
                again.versions = line["opened"]
            if "change" not in line:
                continue
            if line["change"] != self.n_changes:
                raise self._wrong(f"change {line['change']} stands where change {self.n_changes} belongs")
            if self.n_changes >= start:
                yield again.make(line)
            self.n_changes += 1
        if self.n_changes < start:
            raise self._apart(f"the snapshot was saved after change {start}, and the journal holds {self.n_changes}")

    def told(self) -> Told:
        """Returns what the lines say of decisions, without making any of them again."""
        found = Told()
        for line in self._parsed():
            found.add(line)
        return found

    def _start(self, mark: list[Any] | None) -> int:
        """Returns the first change after a bandit was saved with this mark."""
        if mark is not None and mark[0] == self.name:
            return int(mark[1])
        if mark == self._follows:
            return 0
        raise self._apart("the snapshot was saved with another journal, or none")

    def _parsed(self) -> Iterator[dict[str, Any]]:
        """Yields the lines, from the first; one without an end is the last, and is left out."""
        place = 0
        try:
            with self.path.open("rb") as file:
                for number, raw in enumerate(file, start=1):
                    if not raw.endswith(b"\n"):
                        self.torn_at = place
                        return
                    place += len(raw)
                    yield self._line(number, raw)
        except OSError as error:
            what = f"{str(self.path)!r} cannot be replayed: {error.strerror or error}"
            raise JournalError(what, "a journal is a file that can be read", "Check the path") from None

    def _line(self, number: int, raw: bytes) -> dict[str, Any]:
        try:
            line = json.loads(raw)
        except ValueError:
            line = None
        if isinstance(line, dict):
            return line
        raise self._wrong(f"line {number} is damaged")

    def _wrong(self, why: str) -> JournalError:
        return _wrong(self.path, why)

    def _apart(self, why: str) -> JournalError:
        return _apart(self.path, why)


def _wrong(source: Path | str, why: str) -> JournalError:
    return JournalError(f"{str(source)!r} cannot be replayed: {why}", "a journal is read whole", "Use a backup")


def _apart(source: Path | str, why: str) -> JournalError:
    return JournalError(
        f"{str(source)!r} does not continue the snapshot: {why}",
        "a bandit that keeps a journal is loaded with it whenever it is changed",
        "Use the journal that was kept when the snapshot was saved",
    )
