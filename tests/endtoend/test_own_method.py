"""Your own method in ten lines, as docs/studies.md shows it: saved beside a study, it plays and is tuned."""

import re
from pathlib import Path

from terminal import coterie, regrets

DOCUMENT = Path(__file__).parents[2] / "docs" / "studies.md"
STUDY = """\
trials = 2
[tuning]
trials = 1
horizon = 30
width = [0.5, 2.0]
[[worlds]]
n_users = 6
n_arms = 5
n_candidates = 3
dimension = 2
horizon = 60
[[policies]]
policy = "random"
"""


def test_the_documented_method_plays_in_a_study(tmp_path: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    (method,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "def hopeful" in block]
    (entry,) = [block for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL) if "mine:hopeful" in block]
    assert len([line for line in method.splitlines() if line.strip()]) <= 10
    (tmp_path / "mine.py").write_text(method, encoding="utf-8")
    (tmp_path / "study.toml").write_text(STUDY + entry, encoding="utf-8")
    done = coterie("run", "study.toml", "--jobs", 2, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = regrets(done.stdout)
    assert found["mine:hopeful"] < found["random"]
    assert '"width"' in (tmp_path / "results" / "study" / "tuned.json").read_text(encoding="utf-8")


def test_a_method_that_cannot_be_found_is_told(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY + '[[policies]]\npolicy = "mine:hopeful"\n', encoding="utf-8")
    done = coterie("run", "study.toml", "--jobs", 1, folder=tmp_path)
    assert done.returncode == 2
    assert "policy 'mine:hopeful' cannot be found" in done.stderr
    assert "Traceback" not in done.stderr
