"""How every figure looks: one colour and line style per policy, readable in colour-blind vision and in grey."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from coterie.errors.extras import require_extra

Look = dict[str, Any]

# Okabe and Ito's colours and Tol's muted ones: distinct in colour-blind vision. Dashes and markers distinguish them in
# grey, where many have to share a lightness.
BLUE, SKY, VERMILLION, GREEN, PINK, ORANGE = "#0072B2", "#56B4E9", "#D55E00", "#009E73", "#CC79A7", "#E69F00"
BLACK, WINE, INDIGO, OLIVE, TEAL, BROWN = "#000000", "#882255", "#332288", "#999933", "#44AA99", "#661100"
PURPLE, FOREST, ROSE, SAND = "#AA4499", "#117733", "#CC6677", "#B8A44C"
DARK, GREY, LIGHT = "#555555", "#888888", "#B0B0B0"
FREE_COLOURS: tuple[str, ...] = (
    *(VERMILLION, BLUE, ORANGE, FOREST, PINK, INDIGO, SKY, WINE),
    *(GREEN, BLACK, OLIVE, PURPLE, TEAL, BROWN, ROSE, SAND),
)

SOLID, DASHED, DOTTED, DASH_DOT = "-", "--", ":", "-."
LONG, SHORT = (0, (8, 2)), (0, (2.5, 1.2))
DASH_DOT_DOT, LONG_DOT, PAIRS = (0, (4, 1, 1, 1, 1, 1)), (0, (9, 1.5, 1.5, 1.5)), (0, (4, 1, 4, 3))
FREE_STROKES: tuple[tuple[Any, str], ...] = (
    *((SOLID, "o"), (DASHED, "s"), (DASH_DOT, "^"), (LONG, "D"), (SHORT, "v")),
    *((DASH_DOT_DOT, "P"), (LONG_DOT, "X"), (PAIRS, "h"), (DOTTED, "<")),
)


def _look(colour: str, dashes: Any, marker: str, *, hollow: bool = False) -> Look:
    return {
        "color": colour,
        "linestyle": dashes,
        "marker": marker,
        "markerfacecolor": "white" if hollow else colour,
    }


KNOWN: Mapping[str, Look] = {
    "lk-gp-ucb": _look(BLUE, SOLID, "o"),
    "lk-gp-ts": _look(SKY, DASHED, "o", hollow=True),
    "coop-kernel-ucb": _look(VERMILLION, DASH_DOT, "s"),
    "gob-lin": _look(GREEN, LONG, "^"),
    "graph-ucb": _look(PINK, DASH_DOT_DOT, "v"),
    "gp-ucb": _look(ORANGE, PAIRS, "D"),
    "pooled-linucb": _look(BLACK, DOTTED, "X"),
    "per-user-linucb": _look(WINE, LONG_DOT, "P"),
    "per-user-gp-ucb": _look(INDIGO, SOLID, "*"),
    "exchangeable-gp-ucb": _look(OLIVE, SOLID, "h"),
    "sup-kernel-ucb": _look(BROWN, DASHED, "p"),
    "club": _look(TEAL, DASH_DOT, "<"),
    "auto-ucb": _look(PURPLE, SOLID, "D"),
    "auto-ts": _look(PURPLE, SHORT, "D", hollow=True),
    # A Thompson variant has the colour of its model, short dashes and a hollow marker.
    "coop-kernel-ts": _look(VERMILLION, SHORT, "s", hollow=True),
    "gob-lin-ts": _look(GREEN, SHORT, "^", hollow=True),
    "graph-ts": _look(PINK, SHORT, "v", hollow=True),
    "gp-ts": _look(ORANGE, SHORT, "D", hollow=True),
    "pooled-lints": _look(BLACK, SHORT, "X", hollow=True),
    "per-user-lints": _look(WINE, SHORT, "P", hollow=True),
    "per-user-gp-ts": _look(INDIGO, SHORT, "*", hollow=True),
    "exchangeable-gp-ts": _look(OLIVE, SHORT, "h", hollow=True),
    # The references are grey: they are there to be measured against.
    "random": _look(GREY, DOTTED, "x"),
    "popularity": _look(LIGHT, LONG, "d"),
    "greedy": _look(DARK, DASHED, ">"),
    "epsilon-greedy": _look(DARK, DASH_DOT, "<"),
    "oracle": _look(LIGHT, SOLID, "+"),
}


def look(policy: str) -> Look:
    """Returns the colour, line style and marker of a policy, the same in every figure, as keywords for `plot`.

    Examples:
        >>> look("lk-gp-ucb")["color"], look("lk-gp-ucb") == look("lk-gp-ts")
        ('#0072B2', False)
    """
    return looks([policy])[policy]


def looks(policies: Iterable[str]) -> dict[str, Look]:
    """Returns the look of each policy, no two alike.

    A name the library knows always looks the same. Any other label has a look of its own too, and gives way, in the
    order of the alphabet, where that is taken.

    Examples:
        >>> chosen = looks(["coop heat", "coop all_ones", "lk-gp-ucb"])
        >>> len({each["color"] for each in chosen.values()})
        3
    """
    names = list(dict.fromkeys(policies))
    chosen = {name: KNOWN[name] for name in names if name in KNOWN}
    for name in sorted(set(names) - set(chosen)):
        chosen[name] = _free_look(name, list(chosen.values()))
    return {name: dict(chosen[name]) for name in names}


def _free_look(label: str, taken: list[Look]) -> Look:
    """Returns the look nearest to the label's own that shares the least with those taken."""
    start = crc32(label.encode())
    pairs = {(each["color"], each["linestyle"]) for each in taken}
    colours, dashes = Counter(each["color"] for each in taken), Counter(each["linestyle"] for each in taken)

    def cost(choice: tuple[int, int]) -> tuple[object, ...]:
        colour, (dash, _) = FREE_COLOURS[choice[0]], FREE_STROKES[choice[1]]
        away = (choice[0] - start) % len(FREE_COLOURS), (choice[1] - start // 97) % len(FREE_STROKES)
        return (colour, dash) in pairs, colours[colour], dashes[dash], away

    colour, stroke = min(product(range(len(FREE_COLOURS)), range(len(FREE_STROKES))), key=cost)
    return _look(FREE_COLOURS[colour], *FREE_STROKES[stroke])


def new_figure(width: float = 7.2, height: float = 4.2, *, rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    """Returns a figure of this size in inches and its axes: one, or an array of them if there are several."""
    with require_extra("lab", "a picture"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns)


def plain(text: str) -> str:
    r"""Returns the text so that it is drawn as it is, not read as a formula.

    Examples:
        >>> plain("cost in $")
        'cost in \\$'
    """
    return text.replace("$", r"\$")


def finish(axes: Any, *, title: str = "", xlabel: str = "", ylabel: str = "") -> None:
    """Writes titles and takes away what is not data."""
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture in two files, with what it is called and how to read it."""

    title: str
    png: Path
    svg: Path
    caption: str


def save_picture(figure: Any, stem: Path, title: str, caption: str) -> Picture:
    """Returns the picture of a figure, written as PNG and SVG."""
    png, svg = save_figure(figure, stem)
    return Picture(title=title, png=png, svg=svg, caption=caption)


def save_figure(figure: Any, stem: Path) -> list[Path]:
    """Writes the figure as stem.png and stem.svg, the same bytes for the same figure, and returns both paths."""
    from matplotlib import rc_context

    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.parent / f"{stem.name}.png", stem.parent / f"{stem.name}.svg"]
    fonts = ["DejaVu Sans", "Verdana", "Arial"]
    with rc_context({"svg.hashsalt": "coterie", "svg.fonttype": "none", "font.sans-serif": fonts}):
        figure.savefig(paths[0], dpi=150, metadata={"Software": None})
        figure.savefig(paths[1], metadata={"Date": None, "Creator": None})
    _fewer_colours(paths[0])
    paths[1].write_text(_shorter(paths[1].read_text(encoding="utf-8")), encoding="utf-8")
    return paths


def _fewer_colours(path: Path) -> None:
    """Writes a PNG again with a palette of 96 colours: line art looks the same, in a quarter of the size."""
    from PIL import Image

    with Image.open(path) as picture:
        reduced = picture.convert("RGB").quantize(96, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    reduced.save(path, optimize=True)


def _shorter(svg: str) -> str:
    """Returns the drawing in half the size: no indents, and no figures that nobody sees.

    Long lines go in steps of a tenth of a point, everything else to a hundredth.
    """
    stepped = re.sub(r"M \S+ \S+\s+(?:L \S+ \S+\s+){9,}", lambda line: _in_steps(line.group()), svg)
    unindented = re.sub(r"\n +", "\n", stepped)
    return re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag.group()), unindented)


def _in_steps(line: str) -> str:
    """Returns a line of an SVG path with each point relative to the one before.

    Examples:
        >>> _in_steps("M 1.0 2.0 L 3.04 2.0 L 9.0 2.51 ")
        'M1 2l2 0 6 0.5 '
    """
    points = np.array(re.findall(r"-?[\d.]+", line), dtype=float).reshape(-1, 2).round(1)
    steps = [f"{x:.6g} {y:.6g}" for x, y in np.diff(points, axis=0, prepend=0.0)]
    return f"M{steps[0]}l{' '.join(steps[1:])} "
