"""Large arrays of a saved bandit are mapped, not read: the same to the bit, never written back, damage noticed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import SavedFileError
from coterie.product.files.container import read_container, write_container

pytest.importorskip("numba")


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.product.files.container.MAPPED", 1)


def is_mapped(array: Any) -> bool:
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


def test_arrays_are_mapped_and_what_is_written_to_them_stays_out_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "c"
    given = {"rows": np.arange(12.0).reshape(3, 4), "turned": np.asfortranarray(np.arange(6).reshape(2, 3))}
    write_container(path, {}, given | {"nothing": np.zeros(0)})
    before, (_, arrays) = path.read_bytes(), read_container(path)
    assert is_mapped(arrays["rows"])
    assert type(arrays["rows"]) is np.ndarray  # compiled code takes no other kind
    for name, array in given.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].flags.f_contiguous == array.flags.f_contiguous
    arrays["rows"] += 1.0
    assert path.read_bytes() == before
    write_container(path, {}, {"rows": np.zeros(3)})
    assert arrays["rows"][2, 3] == 12.0


def test_a_damaged_array_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "c"
    write_container(path, {}, {"rows": np.ones(100)})
    held = bytearray(path.read_bytes())
    held[-1] ^= 1
    path.write_bytes(held)
    with pytest.raises(SavedFileError, match="'rows' is damaged"):
        read_container(path)


def test_a_bandit_of_mapped_arrays_goes_on_to_the_bit_and_is_saved_again(tmp_path: Path) -> None:
    graph = ct.make_graph("sbm", 40, seed=1)
    arms = ct.ArmPool(np.random.default_rng(0).normal(size=(8, 3)))
    saved = ct.Bandit(graph=graph, arms=arms, policy="lk-gp-ucb", engine="sparse", seed=1)
    for number in range(60):
        saved.reward(saved.decide(number % 40).id, float(number % 3))
    saved.save(tmp_path / "bandit")
    loaded = ct.Bandit.load(tmp_path / "bandit")
    model: Any = loaded._learned.policy.model
    assert all(map(is_mapped, (model._residual.weights, model._data.inverse, model.history.counts)))
    for number in range(60):
        choices = [bandit.decide(number % 40) for bandit in (saved, loaded)]
        assert choices[0].arm == choices[1].arm
        for bandit, choice in zip((saved, loaded), choices, strict=True):
            bandit.reward(choice.id, 1.0)
    loaded.save(tmp_path / "bandit")
    again = ct.Bandit.load(tmp_path / "bandit")
    assert again.predict(3) == loaded.predict(3) == saved.predict(3)
