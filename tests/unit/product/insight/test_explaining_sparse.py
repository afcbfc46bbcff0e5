"""On `sparse` an estimate is taken apart as on an exact engine, and what cannot be done on a large graph is said."""

from typing import Any

import numpy as np
import pytest

import coterie as ct

pytest.importorskip("numba")

ARMS = np.random.default_rng(0).normal(size=(12, 3))


def played(engine: str, eps: float | None = None) -> ct.Bandit:
    options: dict[str, Any] = {} if eps is None else {"engine_options": {"eps": eps}}
    graph = ct.make_graph("sbm", 30, seed=1)
    bandit = ct.Bandit(graph=graph, arms=ARMS, policy="graph-ucb", engine=engine, forgetting=0.9, **options)
    rng = np.random.default_rng(2)
    for _ in range(60):
        bandit.learn(int(rng.integers(30)), int(rng.integers(12)), float(rng.normal()))
    return bandit


def test_contributions_are_those_of_an_exact_engine() -> None:
    ours, exact = played("sparse", 1e-6).explain(3, 5), played("exact").explain(3, 5)
    assert ours.by_user.keys() == exact.by_user.keys()
    for user, share in exact.by_user.items():
        assert ours.by_user[user] == pytest.approx(share, abs=1e-5)
    assert sum(ours.by_user.values()) == pytest.approx(ours.mean, abs=1e-5)
    assert ours.alone == pytest.approx(exact.alone, rel=0.05)


def test_with_the_default_eps_they_add_up_within_it() -> None:
    bandit = played("sparse")
    why = bandit.explain(3, 5)
    assert sum(why.by_user.values()) == pytest.approx(why.mean, abs=0.1 * 2 * why.std)


def test_a_look_at_why_changes_nothing() -> None:
    looked, left = played("sparse"), played("sparse")
    looked.explain(3, 5)
    for bandit in (looked, left):
        bandit.learn(4, 2, 1.0)
    assert looked.predict(3) == left.predict(3)


def test_a_report_on_a_large_graph_looks_at_neighbourhoods() -> None:
    bandit = ct.Bandit(graph=ct.make_graph("ring", 100_000), arms=ARMS, policy="graph-ucb")
    rng = np.random.default_rng(0)
    taste = np.repeat(rng.normal(size=(10, 3)), 10, axis=0)
    for _ in range(150):
        user, arm = int(rng.integers(50)), int(rng.integers(12))
        bandit.learn(user, arm, float(ARMS[arm] @ taste[user] + 0.1 * rng.normal()))
    report = bandit.graph_report()
    assert report.helps is True
    assert report.p_value is not None


@pytest.mark.parametrize(
    "options",
    [
        {"engine": "sparse", "policy": "lk-gp-ucb", "engine_options": {"eps": 1.0}},
        {"engine": "grid", "policy": "lk-gp-ucb", "noise_var": 1e-10},
        {"policy": "auto-ucb", "reward": "binary", "likelihood": "bernoulli"},
    ],
)
def test_what_the_contributions_leave_over_is_told(options: dict[str, Any]) -> None:
    bandit = ct.Bandit(graph=ct.make_graph("sbm", 30, seed=1), arms=ARMS, **options)
    rng = np.random.default_rng(2)
    for _ in range(60):
        bandit.learn(int(rng.integers(30)), int(rng.integers(12)), float(rng.integers(2)))
    whys = [bandit.explain(user, 5) for user in range(30)]
    for why in whys:
        whole = why.mean if why.logit is None else why.logit
        assert why.level + sum(why.by_user.values()) + why.rest == pytest.approx(whole, abs=1e-9)
        assert ("Left over" in str(why)) == (abs(why.rest) > 1e-3 * why.std)
    if options.get("engine") == "sparse":
        assert any("Left over" in str(why) for why in whys)
