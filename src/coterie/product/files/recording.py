"""How a change of a bandit is written down: the call, what it was called with, and what it gave.

{"change": 17, "decisions": 9, "rewards": 6, "call": "decide", "with": {"user": "ana"}, "gave": [["tea", 0.1, ...]]}

A change is numbered from 0 and says how many decisions and rewards there were before it. `with` is what it was called
with: floats so that they come back exactly, a mapping as {"pairs": [[key, value], ...]}, arms as {"ids": [...],
"features": [...]}, with "names" where the features have some, and without "features" where arms have none. `gave` has
arm, mean, std and score of each decision made, so that a replay can check itself, `at` the time, where decisions
expire, and `refused` how many fits failed, so that they fail in a replay too. `replaying.py` reads it.

Where lines go is the recorder's: to a file (`journal.py`), or to whoever keeps a bandit, such as the service.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import scipy

from coterie.contracts import VERSION
from coterie.errors import ArmError, ContextError, CoterieError, JournalError
from coterie.errors.checks import as_list
from coterie.kernels import ArmPool
from coterie.product.decisions import Decision, decision_number
from coterie.product.inputs.arm_inputs import as_arm_pool, as_user_table, plain_features
from coterie.product.inputs.ids import ID_RULE, check_ids

if TYPE_CHECKING:
    from coterie.product.bandit import Bandit

TAKES_ARMS = frozenset({"add_arms", "update_features"})
LISTS = {
    "decide": ("candidates",),
    "rank": ("candidates",),
    "decide_many": ("users", "candidates", "contexts"),
    "learn_many": ("users", "arms", "contexts"),
    "connect_many": ("edges",),
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
    """Where a recorder ends: after so many changes, in so many bytes of a file or lines in memory."""

    n_changes: int
    size: int


class Recorder(ABC):
    """What writes down the changes of a bandit, one line each.

    Attributes:
        end: Where it ends: after so many changes.
        is_forked: Whether this is a copy in a child process: what it writes to is the parent's.
    """

    def __init__(self) -> None:
        self.end, self.is_forked = End(0, 0), False

    @property
    def is_closed(self) -> bool:
        """Whether it takes no further lines."""
        return self.is_forked

    @property
    def n_changes(self) -> int:
        """How many changes it holds."""
        return self.end.n_changes

    @property
    def mark(self) -> list[Any] | None:
        """What a saved bandit says of it; none where nothing continues a saved bandit."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Lets go of what it writes to; can be repeated."""

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

    @abstractmethod
    def cut(self, end: End) -> None:
        """Drops what was written after this end, and goes on from there; can be repeated."""

    @abstractmethod
    def _check_open(self, name: str) -> None:
        """Raises if it takes no further lines."""

    @abstractmethod
    def _add(self, line: dict[str, Any], made: list[Decision]) -> None:
        """Keeps the line of a change, with the decisions that it gave."""


class LineRecorder(Recorder):
    """A recorder whose lines are taken away by whoever keeps them.

    Args:
        n_changes: How many changes there were before.
    """

    def __init__(self, n_changes: int = 0) -> None:
        super().__init__()
        self.end = End(n_changes, 0)
        self._lines: list[dict[str, Any]] = []

    @property
    def has_lines(self) -> bool:
        """Whether there are lines to be taken."""
        return bool(self._lines)

    def take(self) -> list[dict[str, Any]]:
        """Returns the lines since they were last taken."""
        lines, self._lines = self._lines, []
        self.end = End(self.n_changes, 0)
        return lines

    def close(self) -> None:
        """Does nothing."""

    def cut(self, end: End) -> None:
        """Drops the lines after this end."""
        del self._lines[end.size :]
        self.end = end

    def _check_open(self, name: str) -> None:
        """Takes lines always."""

    def _add(self, line: dict[str, Any], made: list[Decision]) -> None:
        if made:
            line["gave"] = [recorded(each) for each in made]
        self._lines.append(line)
        self.end = End(self.n_changes + 1, len(self._lines))


class Told:
    """What lines say of decisions, by number, without making any of them again.

    Attributes:
        rewards: What came of each, the last word of several.
        contexts: In which each was made, for those that have one.
        ranked: Slate and place of each that is of one: the id of the slate, and the place from 1.
    """

    def __init__(self) -> None:
        self.rewards: dict[int, float] = {}
        self.contexts: dict[int, Any] = {}
        self.ranked: dict[int, tuple[int, int]] = {}

    def add(self, line: Mapping[str, Any]) -> None:
        """Takes a line into account; they come in order."""
        given, first, gave = line.get("with", {}), line.get("decisions", 0), len(line.get("gave", ()))
        match line.get("call"):
            case "reward":
                self.rewards[given["decision"]] = given["reward"]
            case "reward_many":
                self.rewards |= zip(given["decisions"], given["rewards"], strict=True)
            case "decide_many" if given.get("contexts") is not None:
                self.contexts |= enumerate(read(given["contexts"]), start=first)
            case "decide" | "rank" if given.get("context") is not None:
                self.contexts |= dict.fromkeys(range(first, first + gave), read(given["context"]))
            case _:
                pass
        if line.get("call") == "rank":
            self.ranked |= {first + place: (first, place + 1) for place in range(gave)}


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
