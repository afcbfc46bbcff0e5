"""A bandit that learned a table at once decides, learns, changes and is saved as others are."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import coterie as ct
from coterie.errors import JournalError, ParameterError, RewardError, UnknownUserError

pytest.importorskip("numba")


def make(**options: Any) -> ct.Bandit:
    arms = ct.ArmPool(np.random.default_rng(0).normal(size=(6, 3)))
    given: dict[str, Any] = {
        "policy": "lk-gp-ucb",
        "engine": "sparse",
        "noise_var": 0.1,
    } | options
    return ct.Bandit(graph=ct.make_graph("sbm", 30, seed=1), arms=arms, **given)


def rewards(n_rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    values = rng.integers(2, size=n_rows).astype(float)
    return pd.DataFrame({"user": rng.integers(30, size=n_rows), "arm": rng.integers(6, size=n_rows), "reward": values})


def means(bandit: ct.Bandit) -> Any:
    return np.array([[mean for mean, _ in bandit.predict(user).values()] for user in range(30)])


def test_it_believes_what_one_that_learned_them_singly_does() -> None:
    fitted, single, table = make(), make(), rewards()
    assert fitted.fit(table) == fitted.n_rewards == 200
    for row in table.itertuples(index=False):
        single.learn(*row)
    bound = max(float(bandit._learned.policy.model.error_bound(0).max()) for bandit in (fitted, single))  # type: ignore[attr-defined]
    assert np.abs(means(fitted) - means(single)).max() <= 2 * bound
    for bandit in (fitted, single):
        bandit.reward(bandit.decide(3).id, 1.0)
    assert fitted.n_rewards == 201


def test_it_is_saved_and_changed_with_all_its_rewards(tmp_path: Path) -> None:
    bandit = make()
    bandit.fit(rewards())
    bandit.save(tmp_path / "bandit")
    loaded = ct.Bandit.load(tmp_path / "bandit")
    np.testing.assert_array_equal(means(loaded), means(bandit))
    assert loaded.n_rewards == 200
    loaded.connect(0, 17, 2.0)
    assert np.abs(means(loaded)[0] - means(bandit)[0]).max() > 0
    assert loaded.n_rewards == 200
    bandit.remove_user(4)
    assert bandit.n_rewards == 200 - int((rewards()["user"] == 4).sum())


def test_an_odd_row_changes_nothing() -> None:
    bandit, table = make(reward="binary"), rewards()
    table.loc[150, "reward"] = 0.5
    with pytest.raises(RewardError, match=r"row 150: the reward is 0.5"):
        bandit.fit([table[:100], table[100:]])
    table.loc[149, "user"] = 99
    with pytest.raises(UnknownUserError, match="row 149"):
        bandit.fit(table)
    assert bandit.n_rewards == 0
    assert not means(bandit).any()
    assert bandit.fit(rewards()) == 200


def test_where_order_matters_or_a_journal_is_kept_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="count by their order"):
        make(window=50).fit(rewards())
    with pytest.raises(JournalError, match="line for each change"):
        make(journal=tmp_path / "journal").fit(rewards())


def test_the_best_arms_of_everybody_leave_out_retired_ones() -> None:
    bandit = make()
    bandit.fit(rewards())
    bandit.retire_arms([2])
    found = bandit.score_all(top=5)
    assert set(found["arm"]) == {0, 1, 3, 4, 5}
    best = bandit.predict(7)
    assert found["mean"][35] == pytest.approx(max(mean for mean, _ in best.values()), rel=1e-12)
