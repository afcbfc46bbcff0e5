"""Optional dependencies: an error that says which extra brings the one that is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from coterie.errors import MissingExtraError


@contextmanager
def require_extra(extra: str, what: str, *, otherwise: str = "") -> Iterator[None]:
    """Turns a failed import inside into an error that says which extra to install.

    Args:
        extra: The extra of this package.
        what: What is asked for.
        otherwise: What can be done without it, if anything: "or write CSV".

    Examples:
        >>> with require_extra("lab", "a picture"):
        ...     import no_such_library
        Traceback (most recent call last):
        coterie.errors.MissingExtraError: a picture needs 'no_such_library', which is not installed; ...
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        raise missing_extra(extra, f"{what} needs {missing.name!r}, which is not installed", otherwise) from None


def missing_extra(extra: str, problem: str, otherwise: str = "") -> MissingExtraError:
    """Returns the error for a problem that an extra would solve."""
    install = f"Install it: {how_to_install(extra)}{'; ' if otherwise else ''}{otherwise}"
    return MissingExtraError(problem, f"it belongs to the extra '{extra}'", install)


def how_to_install(extra: str) -> str:
    """Returns the command that installs an extra.

    Examples:
        >>> how_to_install("lab")
        "pip install 'coterie[lab]'"
    """
    return f"pip install 'coterie[{extra}]'"


def is_installed(library: str) -> bool:
    """Returns whether a library is there; looked up, not imported, which may take a second.

    Examples:
        >>> is_installed("numpy"), is_installed("no_such_library")
        (True, False)
    """
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:
        return False
