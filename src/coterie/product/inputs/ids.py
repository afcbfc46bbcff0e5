"""Which ids a bandit takes: those that a saved file and a journal can hold."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from coterie.errors import InputError

ID_RULE = "ids are texts (str) or whole numbers (int)"


def check_ids(ids: Iterable[Any]) -> None:
    """Raises if one of these ids is neither a text nor a whole number, for no other could be saved.

    Examples:
        >>> check_ids(["ana", 7])
        >>> check_ids(["ana", ("bo", 7)])
        Traceback (most recent call last):
        coterie.errors.InputError: id ('bo', 7) is of type tuple; ids are texts (str) or whole numbers (int). Use ...
    """
    given = list(ids)
    odd = {kind for kind in set(map(type, given)) if not issubclass(kind, str | int | np.integer) or kind is bool}
    if odd:
        first = next(each for each in given if type(each) in odd)
        what, remedy = f"id {first!r} is of type {type(first).__name__}", "Use such an id: others cannot be saved"
        raise InputError(what, ID_RULE, remedy)
