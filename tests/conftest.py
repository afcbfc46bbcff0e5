"""Settings that every test shares.

People try new examples each time; CI tries the same ones, so that what fails there is the change and not a find. A find
gets an example of its own.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(autouse=True)
def same_calls_same_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a bandit wait for its fits by default: a test can compare two of them call by call."""
    monkeypatch.setattr("coterie.product.bandit.WAIT_FOR_FITS", True)
