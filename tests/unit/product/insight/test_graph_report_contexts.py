"""The graph report of a bandit with contexts, or with features of users."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct

GRAPH = ct.make_graph("sbm", 24, seed=1, connected="retry")
TASTE = np.repeat(np.random.default_rng(1).normal(size=(4, 5)), 6, axis=0)


def taught(graph: ct.UserGraph, rounds: int = 300, **options: Any) -> ct.Bandit:
    """Returns a bandit whose users like arms by the community they are in, the more the later it is."""
    bandit, rng = ct.Bandit(graph=graph, arms=list("abcde"), **options), np.random.default_rng(2)
    for t in range(rounds):
        user, arm, hour = int(rng.integers(24)), int(rng.integers(5)), float(rng.uniform(0, 24))
        reward = TASTE[user, arm] * (0.5 + hour / 24) + 0.2 * rng.normal()
        context = {"hour": hour, "device": "pw"[t % 2]} if "context_schema" not in options else None
        bandit.learn(user, "abcde"[arm], float(reward), context)
    return bandit


def test_a_graph_that_follows_taste_helps_in_contexts_and_one_dealt_anew_does_not(tmp_path: Path) -> None:
    right, wrong = taught(GRAPH).graph_report(), taught(GRAPH.permuted(7)).graph_report()
    assert right.helps is True
    assert wrong.helps is not True
    assert right.evidence["graph"] > right.evidence["none"] + 10
    assert right.homophily is not None
    assert right.homophily < 0.8
    assert right.p_value == pytest.approx(0.005)
    assert wrong.p_value is not None
    assert wrong.p_value > 0.05
    assert str(right).startswith("The graph helps: after 300 rewards")
    assert "could have" not in str(right)
    right.draw(tmp_path / "graph.png")
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")


def test_what_goes_by_features_of_users_is_said(tmp_path: Path) -> None:
    users = {user: {"region": "nesw"[user // 6]} for user in GRAPH.users}  # type: ignore[operator]
    report = taught(ct.make_graph("ring", 24), users=users, context_schema={}).graph_report()
    assert set(report.shares[-1][1]) == {"graph", "own", "common", "traits"}
    assert report.shares[-1][1]["traits"] > 0.3
    assert "goes by the users' features" in str(report)
    assert report.helps is not True
    report.draw(tmp_path / "graph.png")


def test_arms_of_one_request_count_for_the_evidence_alone() -> None:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy")])
    bandit = ct.Bandit(graph=graph, arms={"a": [0.0], "b": [1.0]})
    for t in range(12):
        bandit.learn(["ana", "bo", "cy"][t % 3], {f"guest-{t}": [0.1 * t]}, float(t % 2), {"hour": t})
    report = bandit.graph_report()
    assert (report.n_rewards, report.homophily, report.p_value) == (12, None, None)
    assert "Too few neighbours" in str(report)


def test_a_report_in_contexts_without_rewards_says_so() -> None:
    report = ct.Bandit(graph=GRAPH, arms=list("abcde"), context_schema={"hour": "number"}).graph_report()
    assert report.helps is None
    assert report.has_contexts
    assert "Nothing is learned yet" in str(report)
