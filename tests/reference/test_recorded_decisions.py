"""Every policy, on every engine, chooses and believes what it did when the recording was made."""

import json

import numpy as np
import pytest

from recording import FILE, Subject, recorded, subjects

RECORDING = json.loads(FILE.read_text())


def test_all_subjects_are_in_the_recording() -> None:
    assert {str(each) for each in subjects()} == set(RECORDING)


@pytest.mark.parametrize("subject", list(subjects()), ids=str)
def test_a_policy_chooses_and_believes_as_it_did(subject: Subject) -> None:
    found, held = recorded(subject), RECORDING[str(subject)]
    assert found.get("refused") == held.get("refused")
    assert found.get("arms") == held.get("arms")
    for name in ("mean", "std"):
        np.testing.assert_allclose(found.get(name, []), held.get(name, []), rtol=1e-6, atol=1e-8)
