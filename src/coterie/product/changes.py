"""A change of a bandit is made whole or not at all, whatever is raised, at whatever line of it.

Before a change a note is taken of what the bandit is (`Before`). The commit is one assignment that drops the note,
after the change was made and its line is in the journal. An exception on the way, an interrupt or a lack of memory as
well as an error of ours, rolls everything back to the note: rewards, pending decisions, hyperparameters, journal. The
arrays of the posterior change in place and are not copied. If the change had reached them they count as lost, and the
next call conditions a new posterior on the same rewards, at the same hyperparameters (`Bandit._recover`, which has a
line in the journal, so that a replay does the same).

A note that is still there when the next call comes is of a change whose rollback was interrupted too: it is rolled back
again. Every step of a rollback can be repeated.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from coterie.errors import InputError
from coterie.policies import Policy

if TYPE_CHECKING:
    from coterie.product.bandit import Bandit

Made = Callable[["Bandit", tuple[Any, ...], dict[str, Any]], Any]
CHANGES: dict[str, Made] = {}  # the methods whose calls are written down, by name

P = ParamSpec("P")
R = TypeVar("R")
Method = Callable[Concatenate["Bandit", P], R]


class Before:
    """What a bandit was before a change, by reference: nothing is copied but a few attributes."""

    __slots__ = ("_journal", "_learned", "_ledger", "_n_events", "_policy", "_retired", "_stands")

    def __init__(self, bandit: "Bandit") -> None:
        learned, journal = bandit._learned, bandit._journal
        learned.touched = False
        self._retired, self._stands = bandit._retired, bandit._clock.stands
        self._learned, self._policy = vars(learned).copy(), vars(learned.policy).copy()
        self._n_events = len(learned.events.rewards)
        self._ledger = bandit._ledger.begin()
        self._journal = None if journal is None else journal.end

    def restore(self, bandit: "Bandit") -> None:
        """Puts everything back but the arrays of the posterior; can be repeated."""
        learned = bandit._learned
        self._learned["lost"] = self._learned["lost"] or learned.touched
        vars(learned).update(self._learned)
        vars(learned.policy).update(self._policy)
        learned.events.cut(self._n_events)
        bandit._ledger.roll_back(self._ledger)
        bandit._retired, bandit._clock.stands = self._retired, self._stands
        if bandit._journal is not None and self._journal is not None:
            bandit._journal.cut(self._journal)


def journalled(method: Method[P, R]) -> Method[P, R]:
    """Returns a method that changes a bandit whole or not at all, with a line in its journal if it keeps one.

    What the method calls in turn belongs to it and has no line of its own. A private method brings the posterior up to
    date and changes nothing else: it is needed for reading, and done without a line where the journal takes none.
    """
    code, upkeep = method.__code__, method.__name__.startswith("_")
    names = code.co_varnames[1 : code.co_argcount]

    def made(bandit: "Bandit", args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        journal = bandit._journal
        if journal is None or (upkeep and journal.is_closed):
            return method(bandit, *args, **kwargs)
        return journal.record(bandit, method, names, args, kwargs)

    CHANGES[method.__name__] = made
    return _whole_or_not(method, made)


def atomic(method: Method[P, R]) -> Method[P, R]:
    """Returns a method that leaves a bandit as it was if it raises; it has no line in the journal."""
    return _whole_or_not(method, _called(method))


def reading(method: Method[P, R]) -> Method[P, R]:
    """Returns a method that reads under the lock, after upkeep.

    An interrupted change is rolled back, and a fit that has finished in the background is taken, which may add a line
    to the journal.
    """
    return _locked(method, _called(method))


@contextmanager
def up_to_date(bandit: "Bandit", due: bool) -> Iterator[Policy]:
    """Gives the policy to be read, older rewards' weights brought up to date if that is due; within a `reading`.

    A posterior keeps what it computed for a reader, so one that was interrupted in this is lost as well; a caller's
    mistake is found before.
    """
    if bandit._before is not None:  # within another call, which sees to it
        yield bandit._learned.policy
        return
    if due:
        _committed(bandit, CHANGES["_relearn"], (), {})
    bandit._before = Before(bandit)
    bandit._learned.touched = True
    try:
        yield bandit._learned.policy
        bandit._before = None
    except InputError:
        bandit._before = None
        raise
    except BaseException:  # whatever it was, an interrupt too
        roll_back(bandit)
        raise


def _called(method: Callable[..., Any]) -> Made:
    return lambda bandit, args, kwargs: method(bandit, *args, **kwargs)


def _whole_or_not(method: Method[P, R], made: Made) -> Method[P, R]:
    return _locked(method, lambda bandit, args, kwargs: _committed(bandit, made, args, kwargs))


def _locked(method: Method[P, R], made: Made) -> Method[P, R]:
    @wraps(method)
    def call(bandit: "Bandit", /, *args: P.args, **kwargs: P.kwargs) -> Any:
        if bandit._lock._is_owned():  # called by another method of the bandit: part of that one
            return method(bandit, *args, **kwargs)
        # On one line, so that nothing that is raised line by line falls between the end of the call and the release.
        with bandit._lock: return _after_upkeep(bandit, made, args, kwargs)  # noqa: E701 # fmt: skip

    return call


def _after_upkeep(bandit: "Bandit", made: Made, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    recover(bandit)
    learned = bandit._learned
    if learned.policy.pending_fit is not None and not learned.waits_for_fits:
        ready = learned.policy.ready_fit
        if ready is not None:
            _committed(bandit, CHANGES["_take_fit"], ready, {})
    return made(bandit, args, kwargs)


def _committed(bandit: "Bandit", made: Made, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Returns what a change gives once it is committed; the caller holds the lock."""
    learned, failures = bandit._learned, bandit._learned.policy.n_refused
    bandit._before = Before(bandit)
    try:
        given = made(bandit, args, kwargs)
        # A fit that failed half-way has left a posterior that a replay, which knows that it failed, would not have.
        learned.lost = learned.lost or learned.policy.n_refused > failures
        bandit._before = None  # the commit
        return given
    except BaseException:  # whatever it was, an interrupt too
        roll_back(bandit)
        raise


def recover(bandit: "Bandit") -> None:
    """Brings a bandit back to where it was before a change that was interrupted; the caller holds the lock."""
    roll_back(bandit)
    if bandit._learned.lost:
        _committed(bandit, CHANGES["_recover"], (), {})
        bandit._learned.lost = False


def mend(bandit: "Bandit") -> None:
    """Rolls back what an interrupted rollback left, unless somebody is at work: for readers that wait for nobody."""
    if bandit._before is not None and not bandit._lock._is_owned() and bandit._lock.acquire(blocking=False):
        try:
            roll_back(bandit)
        finally:
            bandit._lock.release()


def roll_back(bandit: "Bandit") -> None:
    """Undoes a change that was not committed, if there is one."""
    if bandit._before is not None:
        bandit._before.restore(bandit)
        bandit._before = None


# Locks are copied by a fork as they are: one that another thread held is never released in the child. So every bandit
# gets a new one there, and a change that was under way in another thread is rolled back by the first call.
_bandits: "weakref.WeakSet[Bandit]" = weakref.WeakSet()


def survive_forks(bandit: "Bandit") -> None:
    """Lets a bandit be used in a forked child process: to read, and to change where no journal is kept."""
    _bandits.add(bandit)


def _in_child() -> None:
    for bandit in _bandits:
        bandit._lock = threading.RLock()
        if bandit._journal is not None:
            bandit._journal.is_forked = True
            bandit._journal.close()  # or the journal would stay locked for as long as the child lives


if hasattr(os, "register_at_fork"):  # not on every system
    os.register_at_fork(after_in_child=_in_child)
