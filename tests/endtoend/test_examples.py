"""The documented examples run, write their pictures, and print what the page about them says."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(ROOT.glob("examples/*.py"))
NUMBER = re.compile(r"\d+(?:\.\d+)?")
PAGE = " ".join((ROOT / "docs" / "examples.md").read_text(encoding="utf-8").replace("\n> ", "\n").split())


def documented(line: str) -> re.Match[str] | None:
    """Returns where the page has this line, with whatever numbers."""
    words = " ".join(line.split())
    return re.search(f"({NUMBER.pattern})".join(map(re.escape, NUMBER.split(words))), PAGE)


def test_all_four_examples_are_there() -> None:
    assert [script.stem for script in SCRIPTS] == ["exercises", "music", "news", "prices"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_prints_what_its_page_says_and_draws(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [script.name, str(tmp_path), "--seeds", "1"])
    runpy.run_path(str(script), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert lines
    for line in lines:
        found = documented(line)
        assert found, f"docs/examples.md does not say: {line}"
        said = [float(number) for number in found.groups()]
        # other linear algebra may decide a tie in another way, and what follows differs a little
        assert [float(number) for number in NUMBER.findall(line)] == pytest.approx(said, rel=0.1, abs=0.03)
    assert (tmp_path / f"example-{script.stem}.png").read_bytes().startswith(b"\x89PNG")
