"""One look per policy: stable, and no two alike in one study."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.policies.factory.recipes import RECIPES
from coterie.runs.report.style import FREE_COLOURS, KNOWN, finish, look, looks, new_figure, plain, save_figure

MAIN = (
    "lk-gp-ucb",
    "lk-gp-ts",
    "coop-kernel-ucb",
    "gob-lin",
    "graph-ucb",
    "gp-ucb",
    "pooled-linucb",
    "per-user-linucb",
)


def stroke(policy: str) -> tuple[object, object]:
    return look(policy)["color"], look(policy)["linestyle"]


def test_every_recipe_and_reference_has_a_look_of_its_own() -> None:
    names = {*RECIPES, "oracle", "popularity", "club", "sup-kernel-ucb"}
    assert names <= set(KNOWN)
    assert len({stroke(name) for name in names}) == len(names)


def test_the_main_eight_differ_in_colour_in_dashes_and_in_marker() -> None:
    assert len({look(name)["color"] for name in MAIN}) == 8
    assert len({str(look(name)["linestyle"]) for name in MAIN}) == 8
    assert len({(look(name)["marker"], look(name)["markerfacecolor"] == "white") for name in MAIN}) == 8


def luminance(colour: str) -> float:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return float(0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2)


@pytest.mark.parametrize("colour", sorted({*FREE_COLOURS, *(each["color"] for each in KNOWN.values())}))
def test_every_colour_can_be_seen_on_white(colour: str) -> None:
    assert 1.05 / (luminance(colour) + 0.05) > 2.0


@given(st.lists(st.text(max_size=12) | st.sampled_from(sorted(KNOWN)), max_size=24, unique=True))
def test_no_two_policies_of_a_study_look_alike(names: list[str]) -> None:
    chosen = looks(names)
    assert list(chosen) == names
    assert len({(each["color"], str(each["linestyle"])) for each in chosen.values()}) == len(names)


@given(st.lists(st.text(max_size=12).filter(lambda name: name not in KNOWN), max_size=16, unique=True))
def test_free_labels_have_colours_apart_whatever_their_order(names: list[str]) -> None:
    chosen = looks(names)
    assert len({each["color"] for each in chosen.values()}) == len(names)
    assert looks(names[::-1]) == chosen


def test_a_known_name_never_gives_way() -> None:
    alone = look("coop heat")
    crowded = looks(["coop heat", *KNOWN])
    assert all(crowded[name] == look(name) for name in KNOWN)
    assert crowded["coop heat"] != alone or alone["color"] not in {each["color"] for each in KNOWN.values()}


def test_a_look_is_a_copy() -> None:
    look("lk-gp-ucb")["color"] = "red"
    assert look("lk-gp-ucb")["color"] != "red"


def test_an_svg_keeps_its_lines_and_its_words(tmp_path: Path) -> None:
    figure, axes = new_figure(4, 3)
    axes.plot(np.linspace(0, 1, 50), np.linspace(0, 1, 50) ** 2)
    finish(axes, title=plain("costs $2 and $3"), xlabel="0.123456 of it")
    _, svg = save_figure(figure, tmp_path / "deep" / "one")
    text = svg.read_text(encoding="utf-8")
    words = [node.text for node in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]
    assert "costs $2 and $3" in words
    assert "0.123456 of it" in words
    steps = next(line for line in text.split('d="') if line.startswith("M") and "l" in line.split('"')[0])
    numbers = np.array(steps.split('"')[0].replace("M", "").replace("l", " ").split(), dtype=float).reshape(-1, 2)
    box = axes.get_window_extent()
    travelled = np.abs(numbers[1:].sum(axis=0)) / np.array([box.width, box.height]) * figure.dpi / 72
    np.testing.assert_allclose(travelled, 1 / 1.1, rtol=5e-3)  # from corner to corner, less the margins
