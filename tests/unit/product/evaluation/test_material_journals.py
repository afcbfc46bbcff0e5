"""A bandit's journal as a log: decisions made again, with the propensities of all candidates."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.__main__ import main
from coterie.errors import InputError
from coterie.graphs import UserGraph
from coterie.product.bandit import Bandit
from coterie.product.evaluation.material import material_of_journal

EDGES = [("ana", "bo"), ("bo", "cy")]
ARMS = {"tea": [0.0, 1.0], "milk": [1.0, 0.0], "gin": [1.0, 1.0]}
WORTH = {"tea": 1.0, "milk": 0.0, "gin": -1.0}


def lived(folder: Path, n: int, **settings: Any) -> tuple[Bandit, list[Any]]:
    """Returns a bandit after so many decisions, each rewarded but the last, and these."""
    given: dict[str, Any] = {"policy": "lk-gp-ts", "min_propensity": 0.05, "width": 2.0} | settings
    bandit = Bandit(graph=UserGraph.from_edges(EDGES), arms=ARMS, journal=folder / "journal", **given)
    bandit.save(folder / "start")
    rng, made = np.random.default_rng(0), []
    for turn in range(n):
        made.append(bandit.decide(["ana", "bo", "cy"][turn % 3], ["tea", "gin"] if turn % 4 == 0 else None))
        if turn < n - 1:
            bandit.reward(made[-1].id, WORTH[str(made[-1].arm)] + 0.1 * rng.normal())
    return bandit, made


def test_decisions_come_back_with_their_propensities(tmp_path: Path) -> None:
    bandit, made = lived(tmp_path, 9)
    bandit.reward(made[2].id, -7.0, replace=True)
    found = material_of_journal(tmp_path / "start", tmp_path / "journal")
    log = found.logged
    assert len(log) == 8
    assert log.users.tolist() == [bandit.graph.index_of(each.user) for each in made[:8]]
    assert log.arms.tolist() == [bandit.arms.index_of(each.arm) for each in made[:8]]
    np.testing.assert_allclose(log.propensities, [each.propensity for each in made[:8]], rtol=1e-6)
    assert log.sizes.tolist() == [2, 3, 3, 3, 2, 3, 3, 3]
    assert log.rewards[2] == -7.0
    assert log.chances is not None
    np.testing.assert_allclose(np.add.reduceat(log.chances, log.starts[:-1]), 1.0)
    assert found.notes == ("Of 9 decisions 8 have a reward in the journal; the others are left out.",)


def test_users_who_are_gone_are_left_out_and_told(tmp_path: Path) -> None:
    bandit, _ = lived(tmp_path, 10)
    bandit.remove_user("cy")
    found = material_of_journal(tmp_path / "start", tmp_path / "journal", graph=False)
    assert len(found.logged) == 6
    assert (found.graph.n_users, found.graph.n_edges) == (2, 0)
    assert "Left out: 3 decisions for users who are gone since." in found.notes


def test_only_what_came_after_the_snapshot_is_judged_by(tmp_path: Path) -> None:
    bandit, _ = lived(tmp_path, 5)
    bandit.save(tmp_path / "later")
    with pytest.raises(InputError, match="no rewarded decision since the snapshot"):
        material_of_journal(tmp_path / "later", tmp_path / "journal")
    bandit.reward(bandit.decide("ana").id, 1.0)
    found = material_of_journal(tmp_path / "later", tmp_path / "journal")
    assert len(found.logged) == 1
    assert "Left out: 4 decisions before the snapshot." in found.notes


def test_decisions_without_propensities_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lived(tmp_path, 3)
    monkeypatch.setattr("coterie.policies.rules.scores.Scored.propensities", lambda *_: None)
    with pytest.raises(InputError, match="decision 0 has no propensities"):
        material_of_journal(tmp_path / "start", tmp_path / "journal")


def test_a_journal_is_evaluated_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lived(tmp_path, 121)
    journal = str(tmp_path / "journal")
    policies = ["--policy", "random", "--policy", "greedy"]
    assert main(["evaluate", journal, "--bandit", str(tmp_path / "start"), *policies, "--reward-model", "gp-ucb"]) == 0
    told = capsys.readouterr().out
    assert "120 decisions for 3 users (2 edges), among 3 arms" in told
    assert "switch-ips" in told
    assert "By dr, greedy would have earned the most; ahead of random" in told
    assert main(["evaluate", journal, "--policy", "random"]) == 2
    assert "is a file" in capsys.readouterr().err
