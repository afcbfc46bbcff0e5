"""Your own method in ten lines, as docs/studies.md shows it: saved beside a study, it plays and is tuned."""

import json
import re
from pathlib import Path

import pytest

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
    (scratch,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "class Follow" in block]
    folder = tmp_path / "studies"
    folder.mkdir()
    (folder / "mine.py").write_text(method + scratch, encoding="utf-8")
    own = '[[policies]]\npolicy = "mine:FollowTheFriends"\nlabel = "friends"\ntune = { epsilon = [0.01, 0.2] }\n'
    (folder / "study.toml").write_text(STUDY + entry + own, encoding="utf-8")
    done = coterie("run", "studies/study.toml", "--jobs", 2, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = regrets(done.stdout)
    assert found["mine:hopeful"] < found["random"]
    assert found["friends"] < found["random"]
    tuned = json.loads((tmp_path / "results" / "study" / "tuned.json").read_text(encoding="utf-8"))["world-1"]
    assert set(tuned["mine:hopeful"]["chosen"]) == {"width"}
    assert set(tuned["friends"]["chosen"]) == {"epsilon"}
    manifest = json.loads((tmp_path / "results" / "study" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["study"]["policies"][1]["width"] == 1.0  # the default of its signature is written out
    (folder / "mine.py").write_text(method + scratch + "# changed\n", encoding="utf-8")
    resumed = coterie("run", "studies/study.toml", "--jobs", 1, "--trials", 3, "--resume", folder=tmp_path)
    assert resumed.returncode == 2
    assert "has changed" in resumed.stderr


def test_a_method_that_cannot_be_found_is_told(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY + '[[policies]]\npolicy = "mine:hopeful"\n', encoding="utf-8")
    done = coterie("run", "study.toml", "--jobs", 1, folder=tmp_path)
    assert done.returncode == 2
    assert "policy 'mine:hopeful' cannot be found" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("def select(self, user, candidates): return 1 / 0", "ZeroDivisionError"),
        ("def select(self, user, candidates): return candidates[0]", "has no attribute 'arm'"),
        ("def select(self, user, candidates): return type('C', (), {'arm': 'nowhere'})", "nowhere"),
    ],
)
def test_a_method_that_fails_is_named_with_its_place(tmp_path: Path, body: str, told: str) -> None:
    code = (
        f"class Mine:\n    def __init__(self, *, graph, arms, seed): pass\n    {body}\n    def update(self, *_): pass\n"
    )
    (tmp_path / "faulty.py").write_text(code, encoding="utf-8")
    (tmp_path / "study.toml").write_text(STUDY + '[[policies]]\npolicy = "faulty:Mine"\n', encoding="utf-8")
    done = coterie("run", "study.toml", "--jobs", 1, folder=tmp_path)
    assert done.returncode == 2
    assert "'faulty:Mine' failed with" in done.stderr
    assert told in done.stderr
    assert "in trial 0 of 'world-1'" in done.stderr
    assert "Traceback" not in done.stderr
