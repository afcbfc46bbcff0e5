"""One self-contained HTML page: nothing is fetched, everything is escaped, the same study gives the same bytes."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from coterie.runs.report.style import Picture
from coterie.runs.report.tables import TextTable

SHORT_TABLE = 30  # rows that fit on a printed page


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page, in the order it is shown: words, list, pictures, tables, commands.

    Attributes:
        title: Its heading.
        paragraphs: Plain text.
        points: The lines of a list.
        pictures: Pictures, put into the page as SVG.
        tables: Tables that the reader can sort.
        commands: Lines for the command line.
        folded: Whether pictures and tables are shown only on request.
    """

    title: str
    paragraphs: Sequence[str] = ()
    points: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[TextTable] = ()
    commands: Sequence[str] = ()
    folded: bool = False


def write_page(path: Path, *, title: str, answer: str, sections: Sequence[Section]) -> Path:
    """Returns the path of the page, written whole: a title, the answer, and then the sections."""
    prefixes = (f"picture{number}-" for number in range(1, 1 + sum(len(each.pictures) for each in sections)))
    body = "\n".join(_section(section, [next(prefixes) for _ in section.pictures]) for section in sections)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{_asset("sheet.css")}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p class="answer">{escape(answer)}</p>
</header>
<main>
{body}
</main>
<script>
{_asset("sheet.js")}</script>
</body>
</html>
""",
        encoding="utf-8",
    )
    return path


def _asset(name: str) -> str:
    return files("coterie.runs.report").joinpath(name).read_text(encoding="utf-8")


def _section(section: Section, prefixes: Sequence[str]) -> str:
    words = [f"<p>{escape(each)}</p>" for each in section.paragraphs]
    points = "".join(f"<li>{escape(each)}</li>\n" for each in section.points)
    shown = [_figure(each, prefix) for each, prefix in zip(section.pictures, prefixes, strict=True)]
    shown += [_table(each, within=section.title) for each in section.tables]
    if section.folded:
        shown = ["<details><summary>Show (printed only when open)</summary>", *shown, "</details>"]
    commands = "\n".join(map(escape, section.commands))
    parts = [
        f"<h2>{escape(section.title)}</h2>",
        *words,
        f"<ul>\n{points}</ul>" if points else "",
        *shown,
        f"<pre><code>{commands}</code></pre>" if commands else "",
    ]
    return "\n".join(["<section>", *filter(None, parts), "</section>"])


def _figure(picture: Picture, prefix: str) -> str:
    caption = f"<strong>{escape(picture.title)}.</strong> {escape(picture.caption)}"
    drawing = _inline(picture.svg.read_text(encoding="utf-8"), prefix, label=picture.title)
    return f'<figure>\n<div class="wide">\n{drawing}</div>\n<figcaption>{caption}</figcaption>\n</figure>'


def _inline(svg: str, prefix: str, *, label: str) -> str:
    """Returns the drawing as a part of a page: no prologue, no addresses, and ids that no other drawing has.

    Examples:
        >>> svg = '<?xml?><svg xmlns="somewhere" width="9"><path id="a"/><use xlink:href="#a"/></svg>'
        >>> _inline(svg, "p1-", label="b")
        '<svg role="img" aria-label="b" width="9"><path id="p1-a"/><use href="#p1-a"/></svg>'
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (xmlns|xmlns:xlink)="[^"]*"', "", svg).replace(" xlink:href=", " href=")
    svg = re.sub(r'( id="| href="#|url\(#)', rf"\1{prefix}", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)


def _table(table: TextTable, *, within: str) -> str:
    heads = "".join(
        f'<th scope="col" aria-sort="none"{_kind(table, i)}><button type="button">{escape(column)}</button></th>'
        for i, column in enumerate(table.columns)
    )
    rows = "\n".join(f"<tr>{_cells(table, row)}</tr>" for row in table.rows)
    title = "" if table.title == within else f"<strong>{escape(table.title)}.</strong> "
    short = ' class="short"' if len(table.rows) <= SHORT_TABLE else ""
    return (
        f'<div class="wide">\n<table{short}>\n<caption>{title}{escape(table.note)}</caption>\n'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


def _cells(table: TextTable, row: Iterable[str]) -> str:
    return "".join(f"<td{_kind(table, i)}>{escape(cell)}</td>" for i, cell in enumerate(row))


def _kind(table: TextTable, position: int) -> str:
    return ' class="words"' if position in table.words else ""
