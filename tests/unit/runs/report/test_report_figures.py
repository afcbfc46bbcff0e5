"""The pictures of a report: valid, labelled, small, and the same for the same study."""

import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest

from coterie.runs.report.figures import draw_curves, draw_finals, draw_regrets
from coterie.runs.report.style import save_figure
from coterie.runs.results import Results
from played import random_results, results_of

TEXT = "{http://www.w3.org/2000/svg}text"
FIVE = ["lk-gp-ucb", "gp-ucb", "gob-lin", "club", "coop heat"]


def png_size(data: bytes) -> tuple[int, int]:
    """Returns width and height, and fails if the bytes are no PNG."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert data.endswith(b"IEND\xaeB`\x82")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def words(svg: Path) -> set[str]:
    return {node.text or "" for node in ElementTree.fromstring(svg.read_bytes()).iter(TEXT)}


@pytest.mark.parametrize("worlds", [1, 2])
def test_pictures_are_valid_and_name_every_policy_and_world(tmp_path: Path, worlds: int) -> None:
    results = random_results(FIVE, worlds=worlds)
    for picture in draw_regrets(results, tmp_path / "new"):
        width, _ = png_size(picture.png.read_bytes())
        assert 7 * 150 <= width <= 11 * 150
        assert words(picture.svg) >= {*FIVE, *results.worlds}
        assert "3 trials" in picture.caption


def test_the_same_study_gives_the_same_bytes(tmp_path: Path) -> None:
    results = random_results(FIVE[:2])
    first, second = draw_regrets(results, tmp_path / "a"), draw_regrets(results, tmp_path / "b")
    for one, other in zip(first, second, strict=True):
        assert one.png.read_bytes() == other.png.read_bytes()
        assert one.svg.read_bytes() == other.svg.read_bytes()


def test_a_large_study_makes_a_small_svg(tmp_path: Path) -> None:
    results = random_results([f"policy {i}" for i in range(16)], worlds=3, trials=2, horizon=2000)
    assert save_figure(draw_curves(results), tmp_path / "regret")[1].stat().st_size < 300_000


def test_lines_and_dots_end_at_the_final_regret() -> None:
    results = results_of({"w": {"a": [1, 3], "b": [10, 14]}}, horizon=5000)
    (curves,) = draw_curves(results).axes
    assert [line.get_ydata()[-1] for line in curves.lines] == pytest.approx([2.0, 12.0])
    assert [line.get_xdata()[-1] for line in curves.lines] == [5000, 5000]
    assert max(len(line.get_xdata()) for line in curves.lines) <= 400
    (dots,) = draw_finals(results).axes
    assert {tick.get_text() for tick in dots.get_yticklabels()} == {"a", "b"}
    assert [line.get_xdata()[0] for line in dots.lines if len(line.get_xdata()) == 1] == pytest.approx([2.0, 12.0])


def test_lines_are_named_at_their_ends_only_where_the_names_have_room() -> None:
    apart, close = (
        draw_curves(results_of({"w": {"a": [1], "b": [9]}})),
        draw_curves(results_of({"w": {"a": [1], "b": [1.01]}})),
    )
    assert {text.get_text() for text in apart.axes[0].texts} == {"a", "b"}
    assert not apart.legends
    assert not close.axes[0].texts
    assert [text.get_text() for text in close.legends[0].get_texts()] == ["a", "b"]


def test_a_legend_covers_no_data() -> None:
    figure = draw_curves(random_results([f"policy {i}" for i in range(16)], worlds=2))
    figure.canvas.draw()
    legend = figure.legends[0].get_window_extent()
    assert len(figure.legends[0].get_texts()) == 16
    assert not any(axes.get_window_extent().overlaps(legend) for axes in figure.axes)
    assert legend.x0 >= 0
    assert legend.x1 <= figure.bbox.x1


def test_the_oracle_is_not_drawn() -> None:
    (axes,) = draw_curves(results_of({"w": {"a": [5], "oracle": [0]}})).axes
    assert [text.get_text() for text in axes.texts] == ["a"]


@pytest.mark.parametrize(
    "results",
    [
        random_results(["a", "b"], trials=1, horizon=1),
        random_results(["a"], trials=2, horizon=2),
        results_of({"w": {"a": [0, 0], "b": [0, 0]}}),
        results_of({"w": {"a": [1, 2], "b": [3, 4]}, "v": {"b": [1, 2]}}),
        random_results(["$x^2$ and $", "_hidden", "<b>&", "a\nb"]),
    ],
    ids=["one round", "two rounds", "no regret", "absent policy", "odd labels"],
)
def test_odd_studies_can_be_drawn(tmp_path: Path, results: Results) -> None:
    for picture in draw_regrets(results, tmp_path):
        assert png_size(picture.png.read_bytes())[1] > 100
        assert words(picture.svg) >= set(results.worlds)


def test_odd_labels_are_shown_as_they_are(tmp_path: Path) -> None:
    names = ["$x^2$ and $y$", "_hidden", "<b>&"]
    for picture in draw_regrets(random_results(names, worlds=2), tmp_path):
        assert words(picture.svg) >= set(names)


def test_a_random_policy_far_above_the_others_leaves_the_panel(tmp_path: Path) -> None:
    results = results_of({"easy": {"lk-gp-ucb": [9.0, 11.0], "random": [90.0, 110.0]}})
    (axes,) = draw_curves(results).axes
    assert 10.0 < axes.get_ylim()[1] < 30.0
    curves, dots = draw_regrets(results, tmp_path)
    assert "leaves the panel" in curves.caption
    assert "leaves the panel" not in dots.caption
    near = results_of({"easy": {"lk-gp-ucb": [9.0, 11.0], "random": [12.0, 14.0]}})
    (axes,) = draw_curves(near).axes
    assert axes.get_ylim()[1] > 13.0


def test_regrets_that_differ_much_have_a_logarithmic_axis(tmp_path: Path) -> None:
    results = results_of(
        {"wide": {"lk-gp-ucb": [9.0, 11.0], "gp-ucb": [90.0, 110.0]}, "near": {"greedy": [9.0, 11.0], "club": [20, 22]}}
    )
    assert [axes.get_xscale() for axes in draw_finals(results).axes] == ["log", "linear"]
    _, dots = draw_regrets(results, tmp_path)
    assert "logarithmic" in dots.caption


@pytest.mark.parametrize(("trials", "told"), [(4, False), (5, True)])
def test_the_caption_speaks_of_intervals_only_where_they_are_drawn(tmp_path: Path, trials: int, told: bool) -> None:
    _, dots = draw_regrets(results_of({"easy": {"lk-gp-ucb": list(range(1, trials + 1))}}), tmp_path)
    assert ("interval" in dots.caption) == told
