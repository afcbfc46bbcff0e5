"""The graph report: it tells a graph that helps from one that does not."""

from pathlib import Path

import numpy as np
import pytest

import coterie as ct
from coterie.models import History
from coterie.product.bandit import Bandit
from coterie.product.insight.graph_report import GraphReport, homophily

GRAPH = ct.make_graph("sbm", 24, seed=1, connected="retry")
ARMS = ct.ArmPool(np.random.default_rng(0).normal(size=(8, 3)))
TASTE = np.repeat(np.random.default_rng(1).normal(size=(4, 8)), 6, axis=0)


def taught(graph: ct.UserGraph, rounds: int = 400) -> Bandit:
    bandit, rng = Bandit(graph=graph, arms=ARMS), np.random.default_rng(2)
    for _ in range(rounds):
        user, arm = int(rng.integers(24)), int(rng.integers(8))
        bandit.learn(user, arm, float(TASTE[user, arm] + 0.3 * rng.normal()))
    return bandit


def test_a_graph_that_follows_taste_helps_and_one_dealt_anew_does_not(tmp_path: Path) -> None:
    right, wrong = taught(GRAPH).graph_report(), taught(GRAPH.permuted(7)).graph_report()
    assert right.helps is True
    assert wrong.helps is not True
    assert right.evidence["graph"] > right.evidence["none"] + 10
    assert right.homophily is not None
    assert right.homophily < 0.7
    assert right.p_value == pytest.approx(0.005)
    assert wrong.p_value is not None
    assert wrong.p_value > 0.05
    assert str(right).startswith("The graph helps: after 400 rewards")
    assert f"about {right.effective_dim:.1f} independent quantities" in str(right)
    assert "24 users x 8 arms could have 192" in str(right)
    assert "the two differ" not in str(right)
    assert "not clearly" in str(wrong)
    assert sum(right.shares[-1][1].values()) == pytest.approx(1.0)
    right.draw(str(tmp_path / "pictures" / "graph.png"))
    assert (tmp_path / "pictures" / "graph.png").read_bytes().startswith(b"\x89PNG")


def test_a_report_without_rewards_says_so() -> None:
    report = Bandit(graph=GRAPH, arms=ARMS).graph_report()
    assert report.helps is None
    assert "not clear yet" in str(report)
    assert "Nothing is learned yet" in str(report)
    assert "Too few neighbours" in str(report)


def test_homophily_of_twins_is_none_at_all() -> None:
    graph, history = ct.UserGraph.from_edges([(0, 1), (2, 3)]), History()
    for user, value in ((0, 1.0), (1, 1.0), (2, -1.0), (3, -1.0)):
        for arm in range(2):
            history.add((user, arm), user, arm, value * (1 + arm))
    ratio, p_value = homophily(graph, history, 2, seed=0)
    assert ratio == 0.0
    assert p_value is not None
    assert 0.2 < p_value < 0.5  # one of three ways to pair four users


def test_homophily_does_not_depend_on_the_rewards_units() -> None:
    rng, one, other = np.random.default_rng(0), History(), History()
    for user in range(24):
        for arm in range(8):
            value = float(rng.normal())
            one.add((user, arm), user, arm, value)
            other.add((user, arm), user, arm, 100 * value - 7)
    first, second = (homophily(GRAPH, each, 8, seed=0) for each in (one, other))
    assert first == pytest.approx(second)


def test_a_graph_without_edges_is_told_as_such() -> None:
    report = taught(ct.make_graph("empty", 24), rounds=60).graph_report()
    assert report.helps is None
    assert str(report).startswith("There are no edges")
    assert "along the graph" not in str(report)


@pytest.mark.parametrize(("policy", "rounds"), [("auto-ucb", 0), ("auto-ucb", 5), ("lk-gp-ucb", 30)])
def test_a_report_is_drawn_before_anything_was_fitted(policy: str, rounds: int, tmp_path: Path) -> None:
    bandit = Bandit(graph=GRAPH, arms=ARMS, policy=policy)
    for user in range(rounds):
        bandit.learn(user % 24, user % 8, float(user % 3))
    report = bandit.graph_report()
    assert not report.shares
    report.draw(tmp_path / "graph.png")
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("gain", "p_value", "told"), [(9.0, 0.2, True), (0.0, 0.01, True), (9.0, 0.01, False)])
def test_evidence_and_homophily_that_differ_are_reconciled(gain: float, p_value: float, told: bool) -> None:
    report = GraphReport(
        n_rewards=50,
        shares=[],
        evidence={"graph": gain, "none": 0.0, "permuted": 0.0},
        homophily=0.5,
        p_value=p_value,
        effective_dim=7.0,
        n_users=24,
        n_arms=8,
        n_edges=30,
    )
    assert ("That the two differ is possible" in str(report)) is told
