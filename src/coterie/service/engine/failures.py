"""What a request can be refused for, beside bad values."""

from coterie.errors import CoterieError, InputError


class NotThereError(InputError, LookupError):
    """An experiment, a decision or a key that is not there."""


class ConflictError(InputError):
    """A request that contradicts an earlier one: an id that is taken, an experiment that is archived."""


class UnavailableError(CoterieError):
    """The service can take no change at the moment: it is starting, its disk is full, or it has too much to do."""
