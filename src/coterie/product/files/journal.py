"""Every change of a bandit as one line of JSON, in the order in which they were made.

{"journal": name, "format": 1, "follows": mark}          the first line; the mark is that of the file it was loaded
                                                         from: its journal's name and changes, or its digest and 0
{"opened": {"coterie": "0.1.0", "numpy": ...}}           whenever a program begins to write
{"change": 17, "decisions": 9, "rewards": 6, "call": "decide", "with": {"user": "ana"}, "gave": [["tea", 0.1, ...]]}

A change is numbered from 0 and says how many decisions and rewards there were before it. `with` is what it was called
with: floats so that they come back exactly, a mapping as {"pairs": [[key, value], ...]}, arms as {"ids": [...],
"features": [...]}, with "names" where the features have some, and without "features" where arms have none. `gave` has
arm, mean, std and score of each decision made, so that a replay can check itself, `at` the time, where decisions
expire, and `refused` how many fits failed, so that they fail in a replay too. `replaying.py` reads it.
"""

import json
import os
import stat
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import uuid4

import numpy as np
import scipy

from coterie.contracts import VERSION
from coterie.errors import ArmError, ContextError, CoterieError, JournalError
from coterie.errors.checks import as_list
from coterie.kernels import ArmPool
from coterie.product.decisions import Decision, decision_number
from coterie.product.files.atomic import lock
from coterie.product.inputs.arm_inputs import as_arm_pool, as_user_table, plain_features
from coterie.product.inputs.ids import ID_RULE, check_ids

if TYPE_CHECKING:
    from coterie.product.bandit import Bandit

FORMAT = 1
TAKES_ARMS = frozenset({"add_arms", "update_features"})
AS_JSON = json.JSONEncoder(separators=(",", ":")).encode
LISTS = {
    "decide": ("candidates",),
    "rank": ("candidates",),
    "decide_many": ("users", "candidates", "contexts"),
    "learn_many": ("users", "arms", "contexts"),
    "retire_arms": ("arms",),
    "revive_arms": ("arms",),
}

ODD: dict[str, type[CoterieError]] = {
    "context": ContextError,
    "contexts": ContextError,
    "features": ContextError,
    "candidates": ArmError,
    "arm": ArmError,
}

R = TypeVar("R")


class Steady:
    """A clock that never goes back and can stand: during a change, and in a replay at the times of the journal."""

    __slots__ = ("now", "stands", "tell")

    def __init__(self, tell: Callable[[], float], *, stands: bool = False) -> None:
        self.tell, self.stands, self.now = tell, stands, -inf

    def __call__(self) -> float:
        """Returns the time in seconds."""
        if not self.stands:
            self.now = max(self.now, self.tell())
        return self.now


class End(NamedTuple):
    """Where a journal ends: so many changes, in so many bytes."""

    n_changes: int
    n_bytes: int


class Journal:
    """The end of a journal, where lines are added; each is handed to the system at once.

    Nobody else writes to it while it is there.

    Args:
        path: The file, which is made if it is not there.

    Attributes:
        name: Identifies this journal.
        end: Where it ends.
        is_forked: Whether this is a copy in a child process: the journal is the parent's.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.name, self.is_forked = path, "", False
        self._handle = _held(path)
        self.end = End(0, os.fstat(self._handle).st_size)
        self.close = weakref.finalize(self, os.close, self._handle)
        self._failed = ""

    @property
    def is_closed(self) -> bool:
        """Whether it takes no further lines."""
        return self.is_forked or bool(self._failed)

    @property
    def n_changes(self) -> int:
        """How many changes it holds."""
        return self.end.n_changes

    @classmethod
    def begin(cls, path: Path, bandit: "Bandit") -> "Journal":
        """Returns the new journal of a bandit, or raises if there is one in its place."""
        journal = cls(path)
        if journal.end.n_bytes:
            journal.close()
            rule, remedy = "a journal begins with its bandit", "Give another path, or go on with Bandit.load"
            raise JournalError(f"{str(path)!r} holds something already", rule, remedy)
        journal.name = uuid4().hex
        try:
            journal._write({"journal": journal.name, "format": FORMAT, "follows": bandit._mark})
            return journal.opened()
        except OSError as error:
            with suppress(OSError):  # or a piece of a journal would be in the way of the next try
                os.ftruncate(journal._handle, 0)
            journal.close()
            what, rule = f"{str(path)!r} cannot be started: {error.strerror}", "a journal holds every change"
            raise JournalError(what, rule, "Make room, or give another path") from None

    def opened(self) -> "Journal":
        """Returns this journal after noting which versions write to it now."""
        self._write({"opened": versions()})
        return self

    @property
    def mark(self) -> list[Any] | None:
        """Where the journal stands, for a saved bandit to be continued from there; none if it lacks a change."""
        return None if self._failed else [self.name, self.n_changes]

    def record(
        self,
        bandit: "Bandit",
        method: Callable[..., R],
        names: tuple[str, ...],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> R:
        """Returns what the method does, and adds its line; the caller holds the bandit's lock."""
        name = method.__name__
        self._check_open(name)
        asked = {**dict(zip(names, args, strict=False)), **kwargs}
        if len(args) > len(names) or len(asked) < len(args) + len(kwargs):
            return method(bandit, *args, **kwargs)  # which raises: there is an argument too many
        asked = {key: _checked(bandit, name, key, value) for key, value in asked.items()}
        line = {"change": self.n_changes, "decisions": bandit.n_decisions, "rewards": bandit.n_rewards, "call": name}
        line["with"] = {key: _argument(key, value) for key, value in asked.items()}  # raises before any change
        if bandit._ledger.expire_after is not None:
            line["at"], bandit._clock.stands = bandit._clock(), True  # one time for all of the change
        failures = bandit._learned.policy.n_refused
        given = method(bandit, **asked)
        if bandit._learned.policy.n_refused > failures:
            line["refused"] = bandit._learned.policy.n_refused - failures
        self._add(line, decisions_in(given))
        bandit._clock.stands = False
        return given

    def cut(self, end: End) -> None:
        """Drops what was written after this end, and goes on from there; can be repeated."""
        if self.is_forked:
            self.end = end  # the file is the parent's
            return
        try:
            if os.fstat(self._handle).st_size != end.n_bytes:
                os.ftruncate(self._handle, end.n_bytes)
            self.end = end
        except OSError as error:
            self._failed = f"what was written of change {end.n_changes} cannot be taken back: {error.strerror}"

    def _check_open(self, name: str) -> None:
        if self.is_forked:
            raise JournalError(
                f"{name} was refused: this process was forked from the one that writes to {str(self.path)!r}",
                "one process writes to a journal",
                "Change the bandit in the parent, or load it after the fork with a journal of its own",
            )
        if self._failed:
            raise JournalError(
                f"{name} was refused: {self._failed}",
                "every change is in the journal",
                "Save the bandit, and load it with a new journal",
            )

    def _add(self, line: dict[str, Any], made: list[Decision]) -> None:
        try:
            if made:
                line["gave"] = [recorded(each) for each in made]
            self._write(line, changes=1)
        except (OSError, ValueError) as error:  # no room, or a number of thousands of digits
            what = f"change {self.n_changes} cannot be written to {str(self.path)!r}: {error}"
            raise JournalError(
                f"{line['call']} was not done: {what}",
                "a journal holds every change",
                "Make room and call again, or save the bandit and load it with a new journal",
            ) from None

    def _write(self, line: Mapping[str, Any], *, changes: int = 0) -> None:
        content = AS_JSON(line).encode() + b"\n"
        if os.write(self._handle, content) < len(content):
            raise OSError(28, "No space left on device")
        self.end = End(self.n_changes + changes, self.end.n_bytes + len(content))


def _held(path: Path) -> int:
    """Returns a handle to the end of a file that no other journal has one to; it holds a lock until it is closed."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    except OSError as error:
        what, rule = f"{str(path)!r} cannot be written: {error.strerror}", "a journal is a file in a folder that exists"
        raise JournalError(what, rule, "Make the folder, or give another path") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        what, rule = f"{str(path)!r} is not a plain file", "a journal is read again, to the last line"
        raise JournalError(what, rule, "Give the path of a file")
    try:
        lock(handle, until=-inf)
    except BlockingIOError:
        os.close(handle)
        what, rule = f"{str(path)!r} is in use", "one bandit writes to a journal"
        raise JournalError(what, rule, "End the program that does, or let go of the other bandit") from None
    return handle


def versions() -> dict[str, str]:
    """Returns the versions that a decision's last bit may depend on."""
    return {"coterie": VERSION, "numpy": np.__version__, "scipy": scipy.__version__}


def decisions_in(given: Any) -> list[Decision]:
    """Returns the decisions among what a change returned."""
    together = given if isinstance(given, list | tuple) else [given]
    return [each for each in together if isinstance(each, Decision)]


def recorded(decision: Decision) -> list[Any]:
    """Returns what a line has of a decision."""
    return [_plain(decision.arm), decision.mean, decision.std, decision.score]


def _argument(name: str, value: Any) -> Any:
    """Returns an argument as `written` does; what cannot be written is no context, or no candidate, either."""
    try:
        return written(value)
    except JournalError as error:
        raise ODD.get(name, JournalError)(error.problem, error.rule, error.remedy) from None


def written(value: Any) -> Any:
    """Returns an argument as JSON can hold it, or raises if it cannot.

    Examples:
        >>> written({"ana": 0.1}), written(("tea", np.int64(7)))
        ({'pairs': [['ana', 0.1]]}, ['tea', 7])
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, ArmPool):
        named = {} if value.feature_names is None else {"names": list(value.feature_names)}
        known = {"features": value.features.tolist(), **named} if value.has_features else {}
        return {"ids": [_plain(each) for each in value.ids], **known}
    if isinstance(value, Mapping):
        return {"pairs": [[_plain(key), written(each)] for key, each in value.items()]}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Iterable):
        return [written(each) for each in value]
    return _plain(value)


def read(value: Any) -> Any:
    """Returns the argument that was written.

    Examples:
        >>> read(written({"ana": 0.1, 7: None}))
        {'ana': 0.1, 7: None}
    """
    if isinstance(value, list):
        return [read(each) for each in value]
    if isinstance(value, dict):
        if "ids" in value and "features" not in value:
            return ArmPool.without_features(value["ids"])
        if "ids" in value:
            return ArmPool(value["features"], ids=value["ids"], feature_names=value.get("names"))
        return {key: read(each) for key, each in value["pairs"]}
    return value


def _checked(bandit: "Bandit", call: str, name: str, value: Any) -> Any:
    """Returns an argument as the method is to have it and a line can hold it; what is read once only is read here."""
    if name == "reward":
        return bandit._checked_reward(value)
    if name == "decision":
        return decision_number(value)
    if name == "rewards":
        return bandit._checked_rewards(value)
    if name == "decisions":
        return [decision_number(each) for each in as_list(name, value)]
    if name == "friends" and isinstance(value, Iterator):
        return list(value)
    if name in LISTS.get(call, ()):
        return value if value is None or isinstance(value, Mapping) else as_list(name, value)
    if call in TAKES_ARMS:
        return as_arm_pool(list(value) if isinstance(value, Iterator) else value)
    if name == "features" and value is not None:
        return plain_features(value) if call == "add_user" else as_user_table(value)
    if (call, name) == ("add_user", "user"):
        check_ids([value])
        return _plain(value)
    return value


def _plain(value: Any) -> Any:
    """Returns an id or a number as a plain one, or raises if it is another thing."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, str | int | float):
        return plain
    what, rule = f"{value!r} cannot be written to a journal", f"{ID_RULE}, and values numbers, texts, True or False"
    raise JournalError(what, rule, "Use such")
