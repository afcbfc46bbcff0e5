"""The picture of a duel, and what is said when the library that draws it is missing."""

import importlib
import struct
from pathlib import Path

import numpy as np
import pytest

from coterie.errors import CoterieError, MissingExtraError
from coterie.runs.duel import Duel
from coterie.runs.extras import require_extra
from coterie.runs.figure import draw_regret


def make_duel(trials: int = 3, horizon: int = 50, slope: float = 1.0) -> Duel:
    rng = np.random.default_rng(0)
    names = ("lk-gp-ucb", "gp-ucb", "per-user-gp-ucb")
    return Duel(
        horizon,
        {name: [slope * (i + rng.random(horizon)) for _ in range(trials)] for i, name in enumerate(names)},
    )


def png_size(data: bytes) -> tuple[int, int]:
    """Returns width and height, and fails if the bytes are no PNG."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert data.endswith(b"IEND\xaeB`\x82")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def test_writes_a_png_and_makes_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "regret.png"
    draw_regret(make_duel(), path, title="A title", subtitle="A subtitle")
    data = path.read_bytes()
    assert png_size(data) == (1080, 630)
    assert 15_000 < len(data) < 500_000


def test_an_older_picture_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "regret.png"
    path.write_bytes(b"old")
    draw_regret(make_duel(), path, title="A title", subtitle="A subtitle")
    assert png_size(path.read_bytes()) == (1080, 630)


def test_the_picture_shows_the_duel_and_its_title(tmp_path: Path) -> None:
    def drawn(name: str, duel: Duel, title: str) -> bytes:
        draw_regret(duel, tmp_path / name, title=title, subtitle="")
        return (tmp_path / name).read_bytes()

    first = drawn("a.png", make_duel(), "A title")
    assert drawn("b.png", make_duel(), "A title") == first
    assert drawn("c.png", make_duel(slope=2.0), "A title") != first
    assert drawn("d.png", make_duel(), "Another title") != first


@pytest.mark.parametrize(("trials", "horizon", "slope"), [(1, 20, 1.0), (1, 1, 1.0), (2, 5, 0.0)])
def test_small_and_flat_duels_can_be_drawn(tmp_path: Path, trials: int, horizon: int, slope: float) -> None:
    draw_regret(make_duel(trials, horizon, slope), tmp_path / "a.png", title="", subtitle="")
    assert png_size((tmp_path / "a.png").read_bytes()) == (1080, 630)


def test_a_missing_library_is_named_with_its_extra() -> None:
    with pytest.raises(MissingExtraError) as caught, require_extra("lab", "a picture"):
        importlib.import_module("no_such_library_at_all")
    message = str(caught.value)
    assert message.startswith("a picture needs 'no_such_library_at_all', which is not installed")
    assert "the extra 'lab'" in message
    assert "pip install '.[lab]'" in message
    assert isinstance(caught.value, CoterieError)
    assert isinstance(caught.value, ImportError)


def test_nothing_else_is_turned_into_a_missing_extra() -> None:
    with pytest.raises(ZeroDivisionError), require_extra("lab", "a picture"):
        _ = 1 // 0
    with require_extra("lab", "a picture"):
        importlib.import_module("math")
