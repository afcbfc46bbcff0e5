from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from coterie.errors import ParameterError
from coterie.service.client import Retries


def test_waits_grow_up_to_a_limit_and_are_drawn_from_the_upper_half() -> None:
    low, high = (Retries(attempts=9, first_wait=1.0, longest_wait=4.0, draw=lambda end=end: end) for end in (0.0, 1.0))  # type: ignore[misc]
    assert [high.wait(tried) for tried in (1, 2, 3, 4, 8, 9)] == [1.0, 2.0, 4.0, 4.0, 4.0, None]
    assert [low.wait(tried) for tried in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 2.0]


def test_a_date_is_waited_for() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=4), usegmt=True)
    wait = Retries(first_wait=0.0, longest_wait=5.0).wait(1, date)
    assert wait is not None
    assert 2.0 < wait <= 4.0


@pytest.mark.parametrize("odd", ["", "soon", "nan", "-3", "Wed, 99 Oct"])
def test_what_is_no_time_is_none(odd: str) -> None:
    assert Retries(first_wait=0.0).wait(1, odd) == 0.0


def test_settings_are_checked() -> None:
    with pytest.raises(ParameterError, match="attempts is 0"):
        Retries(attempts=0)
    with pytest.raises(ParameterError, match="longest_wait is -1"):
        Retries(longest_wait=-1)
