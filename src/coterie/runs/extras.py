"""Optional dependencies, and a plain word where one is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from coterie.errors import MissingExtraError


@contextmanager
def require_extra(extra: str, what: str) -> Iterator[None]:
    """Turns a failed import inside into an error that says which extra to install.

    Examples:
        >>> with require_extra("lab", "a picture"):
        ...     import no_such_library
        Traceback (most recent call last):
        coterie.errors.MissingExtraError: a picture needs 'no_such_library', which is not installed; ...
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        raise MissingExtraError(
            f"{what} needs {missing.name!r}, which is not installed",
            f"it belongs to the extra '{extra}'",
            f"Install it: pip install '.[{extra}]' in a clone of the project",
        ) from None
