"""`coterie evaluate` as people call it: a planted truth in a plain folder, and what is refused."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.__main__ import main
from originals import real

N_USERS, N_ARMS, N_SHOWN, N = 12, 6, 3, 2400
QUALITY = np.array([0.0, 3.0, 1.0, 5.0, 2.0, 4.0])  # of the arms, for everybody
TASTE = 0.3 * np.where((np.arange(N_USERS)[:, None] < 6) == (np.arange(N_ARMS)[None, :] % 2 == 0), 1.0, -1.0)
TRUTH = QUALITY + TASTE
# Ten intervals are to hold their truths at once, so each is to be a wide one.
QUICK = ["--reward-model", "lk-gp-ucb", "--draws", "2000", "--confidence", "0.999"]


def table(path: Path, names: list[str], rows: Any) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])


class Planted:
    """A folder whose logger prefers poor arms, with three of six candidates each time; the rows are out of order."""

    def __init__(self, folder: Path, *, seed: int = 0, n: int = N, propensities: bool = True) -> None:
        rng, self.folder = np.random.default_rng(seed), folder
        folder.mkdir()
        self.users, self.shown = rng.integers(N_USERS, size=n), rng.permuted(np.tile(np.arange(N_ARMS), (n, 1)), axis=1)
        self.shown = self.shown[:, :N_SHOWN]
        lean = np.exp(-0.3 * TRUTH[self.users[:, None], self.shown])
        chances = lean / lean.sum(axis=1, keepdims=True)
        places = (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        arms, told = self.shown[np.arange(n), places], chances[np.arange(n), places]
        rewards = TRUTH[self.users, arms] + rng.normal(size=n)
        self.later = np.arange(n) >= n // 2
        edges = [(f"u{i}", f"u{j}") for i in range(N_USERS) for j in range(i) if (i < 6) == (j < 6)]
        table(folder / "edges.csv", ["user", "other"], edges)
        table(folder / "arms.csv", ["arm", "quality", "side"], [(f"a{i}", QUALITY[i], i % 2) for i in range(N_ARMS)])
        names = ["user", "arm", "reward", "candidates", "time"] + ["propensity"] * propensities
        rows = [
            (f"u{self.users[i]}", f"a{arms[i]}", rewards[i], "|".join(f"a{a}" for a in self.shown[i]), i, told[i])
            for i in rng.permutation(n)
        ]
        table(folder / "events.csv", names, [row[: len(names)] for row in rows])

    def value(self, choose: Any) -> float:
        """Returns the true value, on the later half, of a rule that gives each candidate a probability."""
        users, shown = self.users[self.later][:, None], self.shown[self.later]
        return float((TRUTH[users, shown] * choose(shown)).sum(axis=1).mean())


def best_first(shown: Any) -> Any:
    return np.eye(N_SHOWN)[QUALITY[shown].argmax(axis=1)]


def evaluated(folder: Path, *options: str) -> Any:
    out = folder.parent / "found.json"
    assert main(["evaluate", str(folder), *options, "--out", str(out)]) == 0
    return json.loads(out.read_text())


def test_a_planted_truth_is_recovered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planted = Planted(tmp_path / "log")
    found = evaluated(planted.folder, "--policy", "random", "--policy", "popularity", *QUICK)
    truths = [planted.value(lambda shown: np.full(shown.shape, 1 / N_SHOWN)), planted.value(best_first)]
    for one, truth in zip(found["policies"], truths, strict=True):
        assert (one["n_fitted"], one["n_decisions"], one["warnings"]) == (N // 2, N // 2, [])
        assert set(one["estimates"]) == {"replay", "ips", "snips", "dm", "dr", "switch"}
        for name in ("replay", "ips", "snips", "dr", "switch"):
            assert one["estimates"][name]["low"] < truth < one["estimates"][name]["high"], (one["name"], name)
        assert one["estimates"]["dr"]["value"] == pytest.approx(truth, abs=0.15)
    assert (found["best"], found["by"]) == ("popularity", "dr")
    assert found["gaps"][0]["value"] == pytest.approx(truths[1] - truths[0], abs=0.2)
    told = capsys.readouterr()
    assert f"{N} decisions for 12 users (30 edges), among 6 arms" in told.out
    assert told.out.count("it would have earned more than the log") == 2
    assert "By dr, popularity would have earned the most; ahead of random (+" in told.out
    assert "reward model, lk-gp-ucb: learns, 1200 decisions" in told.err


def test_a_learning_policy_is_replayed_on_the_whole_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planted = Planted(tmp_path / "log", n=600)
    found = evaluated(planted.folder, "--policy", "gp-ucb", "--option", "noise_var=1", "--learning")
    (one,) = found["policies"]
    assert (one["policy"], one["learning"], one["n_decisions"]) == ("gp-ucb (noise_var=1)", True, 600)
    assert list(one["estimates"]) == ["replay"]
    assert "learning as it is replayed, on 600 decisions" in capsys.readouterr().out


def test_the_graph_can_be_left_out_and_the_share_be_chosen(tmp_path: Path) -> None:
    planted = Planted(tmp_path / "log", n=400)
    options = ["--policy", "greedy", "--fit-share", "0.25", "--graph", "none", "--estimator", "ips"]
    found = evaluated(planted.folder, *options)
    assert (found["graph"], found["asked"]["fit_share"]) == ("none", 0.25)
    assert found["policies"][0]["n_fitted"] == 100


def refused(*options: object, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["evaluate", *map(str, options)]) == 2
    return capsys.readouterr().err


def test_what_is_wrong_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    without = Planted(tmp_path / "without", n=40, propensities=False).folder
    assert "the log has no propensities" in refused(without, "--policy", "random", capsys=capsys)
    log = Planted(tmp_path / "log", n=40).folder
    assert "policy 'gredy' is unknown" in refused(log, "--policy", "gredy", capsys=capsys)
    told = refused(log, "--policy", "greedy", "--option", "widht=1", capsys=capsys)
    assert "option 'widht' is unknown" in told
    told = refused(log, "--policy", "random", "--option", "width=2", capsys=capsys)
    assert "width was given to 'random'; 'random' takes 'arm_kernel'" in told
    assert "the same for all" in refused(log, "--policy", "greedy", "--option", "seed=1", capsys=capsys)
    few = Planted(tmp_path / "few", n=12).folder
    assert "the log has 12 decisions" in refused(few, "--policy", "random", capsys=capsys)
    assert "there is no folder" in refused(tmp_path / "nowhere", "--policy", "random", capsys=capsys)
    (tmp_path / "old.json").write_text("{}")
    told = refused(log, "--policy", "random", "--out", tmp_path / "old.json", capsys=capsys)
    assert "nothing is overwritten" in told
    assert (tmp_path / "old.json").read_text() == "{}"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--option", "width=1", "--policy", "greedy"], "belongs to the --policy before it"),
        (["--policy", "greedy", "--option", "width"], "is not KEY=VALUE"),
        (["--policy", "greedy", "--offset", "median"], "neither a number nor 'mean'"),
        ([], "--policy"),
    ],
)
def test_words_that_make_no_sense_are_refused(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["evaluate", "log", *options])
    assert words in capsys.readouterr().err


def test_the_logger_s_own_value_from_its_own_log_on_open_bandit(tmp_path: Path) -> None:
    folder = tmp_path / "choices"
    assert main(["data", "convert", "open-bandit", str(real("open-bandit-small")), str(folder)]) == 0
    found = evaluated(folder, "--policy", "random", "--estimator", "ips", "--estimator", "replay")
    (one,) = found["policies"]
    assert one["estimates"]["ips"]["value"] == pytest.approx(one["logger"]["value"], rel=1e-12)
    assert one["estimates"]["replay"]["ess"] == one["n_decisions"] == 5000
    assert one["warnings"] == []
