"""What is said when an optional library is missing."""

import importlib

import pytest

from coterie.errors import CoterieError, MissingExtraError
from coterie.errors.extras import require_extra


def test_a_missing_library_is_named_with_its_extra() -> None:
    with pytest.raises(MissingExtraError) as caught, require_extra("lab", "a picture"):
        importlib.import_module("no_such_library_at_all")
    message = str(caught.value)
    assert message.startswith("a picture needs 'no_such_library_at_all', which is not installed")
    assert "the extra 'lab'" in message
    assert "pip install 'coterie[lab]'" in message
    assert isinstance(caught.value, CoterieError)
    assert isinstance(caught.value, ImportError)


def test_nothing_else_is_turned_into_a_missing_extra() -> None:
    with pytest.raises(ZeroDivisionError), require_extra("lab", "a picture"):
        _ = 1 // 0
    with require_extra("lab", "a picture"):
        importlib.import_module("math")
