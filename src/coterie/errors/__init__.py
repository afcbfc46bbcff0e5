"""Every error a caller can meet: each names the value, the rule and a way out.

Examples:
    >>> from coterie.errors import UnknownUserError
    >>> raise UnknownUserError("user 'zoe' is unknown", "users are 'ana', 'bo'", "Add the user to the graph first")
    Traceback (most recent call last):
    coterie.errors.UnknownUserError: user 'zoe' is unknown; users are 'ana', 'bo'. Add the user to the graph first.
"""

from collections.abc import Iterable
from difflib import get_close_matches

from numpy.linalg import LinAlgError

from coterie.algebra.failures import CoterieError, FactorisationError, NumericalError

__all__ = [
    "FAILURES",
    "ArmError",
    "CandidatesError",
    "ClusterError",
    "ContextError",
    "CoterieError",
    "DecisionError",
    "DimensionError",
    "DuplicateIdError",
    "FactorisationError",
    "FitWarning",
    "GraphError",
    "InputError",
    "JournalError",
    "KernelError",
    "KernelMatrixError",
    "LearnerError",
    "MemoryLimitError",
    "MissingExtraError",
    "NumericalError",
    "ParameterError",
    "PrecisionError",
    "RewardError",
    "SavedFileError",
    "SettingError",
    "StoreError",
    "UnknownArmError",
    "UnknownNameError",
    "UnknownUserError",
    "listed",
    "or_similar",
]


# What a computation fails with when numbers do: in Coterie's words, numpy's and LAPACK's. A mistake in the code is not
# among them: a shape that does not fit raises a ValueError, and is never taken for a matrix that has no factor.
FAILURES: tuple[type[Exception], ...] = (NumericalError, LinAlgError, MemoryError)


class InputError(CoterieError, ValueError):
    """A caller's value breaks a rule; nothing was changed."""


class UnknownUserError(InputError, LookupError):
    """A user id that the graph does not hold."""


class UnknownArmError(InputError, LookupError):
    """An arm id that the pool does not hold."""


class UnknownNameError(InputError, LookupError):
    """A policy, engine, option or other name that does not exist."""


class DuplicateIdError(InputError):
    """An id that was given twice."""


class CandidatesError(InputError):
    """Candidates that are empty or repeated."""


class ContextError(InputError):
    """A context, or a table of features of users, that is not as its schema says."""


class DecisionError(InputError):
    """A decision that is unknown, rewarded already or no longer remembered."""


class RewardError(InputError):
    """A reward that is not a finite number, or too large."""


class ArmError(InputError):
    """Arm features that are not finite numbers, or too large, or too close together."""


class DimensionError(InputError):
    """An array of the wrong shape."""


class GraphError(InputError):
    """Edges or weights that do not make an undirected graph with non-negative weights."""


class KernelError(InputError):
    """A kernel parameter out of range, or a matrix that is not positive semi-definite."""


class ParameterError(InputError):
    """Any other setting out of its range."""


class KernelMatrixError(KernelError, NumericalError):
    """A kernel matrix that is not finite, symmetric and positive semi-definite."""


class PrecisionError(ParameterError, NumericalError):
    """Settings so far apart that float64 cannot tell noise from rounding."""


class FitWarning(UserWarning):
    """Hyperparameters could not be fitted; those from before stay. Given once; `describe()` counts."""


class SettingError(InputError):
    """A setting of a world or a study that is unknown, or whose value breaks a rule.

    Attributes:
        key: The name of the setting.
        path: Where it stands in the study, so that a reader of files can point to its line.
    """

    def __init__(
        self, problem: str, rule: str, remedy: str, *, key: str = "", path: tuple[str | int, ...] = ()
    ) -> None:
        super().__init__(problem, rule, remedy)
        self.key = key
        self.path = path or (key,)


class LearnerError(CoterieError):
    """A method of one's own that failed while it was played."""


class SavedFileError(CoterieError):
    """A saved bandit that cannot be read or written: damaged, cut off, or of a newer version."""


class JournalError(CoterieError):
    """A journal that is damaged, belongs to another bandit, lacks a decision or has another one."""


class StoreError(CoterieError):
    """A folder of results, or of a service, that is missing, finished, in use, damaged or of another version."""


class ClusterError(CoterieError):
    """A Ray cluster that is not there, has other versions, or cannot do the work."""


class MemoryLimitError(CoterieError, MemoryError):
    """A model that would not fit in the memory it may use."""


class MissingExtraError(CoterieError, ImportError):
    """A feature whose optional dependencies are not installed."""


def listed(names: Iterable[object], limit: int = 6) -> str:
    """Returns the names quoted and joined, cut after `limit` of them.

    Examples:
        >>> listed(["ana", 7])
        "'ana', 7"
    """
    shown = [repr(name) for name in names]
    rest = len(shown) - limit
    return ", ".join(shown[:limit]) + (f", ... ({rest} more)" if rest > 0 else "")


def counted(number: int | str, noun: str) -> str:
    """Returns how many there are of a thing, in the singular if one.

    Examples:
        >>> counted(1, "trial"), counted(5, "trial")
        ('1 trial', '5 trials')
    """
    return f"{number} {noun}" if str(number) == "1" else f"{number} {noun}s"


def or_similar(name: object, known: Iterable[object], otherwise: str) -> str:
    """Returns a remedy that names the known string most like `name`, or `otherwise` if there is none.

    Examples:
        >>> or_similar("Bo", ["ana", "bo"], "Use one of these")
        "Did you mean 'bo'?"
    """
    if not isinstance(name, str):
        return otherwise
    folded = {each.casefold(): each for each in known if isinstance(each, str)}
    close = get_close_matches(name.casefold(), list(folded)[:10_000], n=1, cutoff=0.6)
    return f"Did you mean {folded[close[0]]!r}?" if close else otherwise
