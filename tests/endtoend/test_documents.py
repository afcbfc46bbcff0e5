"""Every Python example in the documents runs as printed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
WITH_A_SERVICE = ROOT / "docs" / "service.md"  # its examples run in test_service.py, which has one
WITH_EXAMPLES = [
    path for path in DOCUMENTS if path != WITH_A_SERVICE and EXAMPLE.search(path.read_text(encoding="utf-8"))
]


def test_the_readme_has_an_example_of_eleven_lines() -> None:
    readme = ROOT / "README.md"
    assert readme in WITH_EXAMPLES
    lines = EXAMPLE.findall(readme.read_text(encoding="utf-8"))[0].splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 11


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for example in EXAMPLE.findall(path.read_text(encoding="utf-8")):
        exec(compile(example, str(path), "exec"), {"__name__": "example"})


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    prose = re.sub(r"`[^`]*`", "", path.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_the_reference_is_what_the_docstrings_say() -> None:
    pytest.importorskip("sklearn", reason="the regressor is in the reference, and comes with the extra 'sklearn'")
    command = [sys.executable, str(ROOT / "scripts" / "api"), "--check"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
