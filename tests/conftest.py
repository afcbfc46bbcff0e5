"""Settings that every test shares."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("default")


@pytest.fixture(autouse=True)
def same_calls_same_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a bandit that is told nothing else wait for its fits: a test can compare two of them call by call."""
    monkeypatch.setattr("coterie.product.bandit.WAIT_FOR_FITS", True)
