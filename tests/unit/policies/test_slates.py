"""Slates of a policy: decisions one after another among the candidates that are left."""

from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import CandidatesError, ContextError, ParameterError, UnknownUserError

FEATURES = np.random.default_rng(0).normal(size=(6, 2))
ARMS = ct.ArmPool(FEATURES, ids=list("abcdef"))


def made(name: str, **options: Any) -> ct.Policy:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy", 0.5)])
    policy = ct.make_policy(name, graph=graph, arms=ARMS, seed=4, **options)
    rng = np.random.default_rng(1)
    for t in range(12):
        policy.update("ana" if t % 2 else "bo", "abcdef"[t % 4], float(rng.normal()))
    return policy


def one_after_another(policy: ct.Policy, user: str, candidates: list[Any], k: int) -> list[ct.Choice]:
    left, out = list(candidates), []
    for _ in range(k):
        out.append(policy.select(user, left))
        left.remove(out[-1].arm)
    return out


def noisy(mean: Any, std: Any, width: float, **rest: Any) -> Any:
    """A score of one's own that draws."""
    return mean - width * std * rest["draws"].normals(rest["number"], len(mean))


def told(choice: ct.Choice) -> tuple[Any, ...]:
    return choice.user, choice.arm, choice.number, choice.certain


@pytest.mark.parametrize(
    "options",
    [
        {"name": "lk-gp-ucb"},
        {"name": "lk-gp-ts"},
        {"name": "lk-gp-ts", "sampling": "joint"},
        {"name": "lk-gp-ts", "engine": "dense", "width": lambda t, _: 1.0 + 0.01 * t},
        {"name": "epsilon-greedy", "width": 0.5},
        {"name": "random"},
        {"name": "club"},
        {"name": "sup-kernel-ucb"},
        {"name": "lk-gp-ucb", "score": noisy},
    ],
    ids=str,
)
def test_a_slate_is_decisions_one_after_another_among_those_left(options: dict[str, Any]) -> None:
    slate = ct.rank(made(**options), "ana", list("fbdace"), 4)
    wanted = one_after_another(made(**options), "ana", list("fbdace"), 4)
    assert [told(each) for each in slate] == [told(each) for each in wanted]
    np.testing.assert_allclose([each.score for each in slate], [each.score for each in wanted], atol=1e-9)
    np.testing.assert_allclose([each.mean for each in slate], [each.mean for each in wanted], atol=1e-9)
    assert ["fbdace"[each.index] for each in slate] == [each.arm for each in slate]


def test_a_certified_slate_says_of_each_place_whether_it_is_certain() -> None:
    pytest.importorskip("numba")
    options: dict[str, Any] = {"engine": "sparse", "engine_options": {"certified": True}}
    slate = ct.rank(made("lk-gp-ucb", **options), "ana", k=3)
    wanted = one_after_another(made("lk-gp-ucb", **options), "ana", list("abcdef"), 3)
    assert [told(each) for each in slate] == [told(each) for each in wanted]
    assert all(isinstance(each.certain, bool) for each in slate)


def test_a_slate_of_vectors_needs_no_pool() -> None:
    graph = ct.UserGraph.from_edges([("ana", "bo")])
    policy = ct.make_policy("lk-gp-ts", graph=graph, arm_kernel=ct.SquaredExponential(1.0))
    slate = ct.rank(policy, "ana", FEATURES, 6)
    assert sorted(each.index for each in slate) == list(range(6))
    for each in slate:
        np.testing.assert_array_equal(each.arm, FEATURES[each.index])


def reads_of(policy: ct.Policy, monkeypatch: pytest.MonkeyPatch, k: int) -> int:
    """Returns how often the model is read for a slate of k."""
    return calls_of(policy, "read", monkeypatch, k)


def calls_of(policy: ct.Policy, name: str, monkeypatch: pytest.MonkeyPatch, k: int) -> int:
    method, calls = getattr(policy.model, name), []

    def counted(*at: Any) -> Any:
        calls.append(at)
        return method(*at)

    monkeypatch.setattr(policy.model, name, counted)
    ct.rank(policy, "ana", k=k)
    return len(calls)


@pytest.mark.parametrize("name", ["lk-gp-ts", "auto-ucb", "auto-ts"])
def test_the_belief_is_read_once_for_all_places(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert reads_of(made(name), monkeypatch, 5) == 1


def test_the_covariance_of_joint_draws_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calls_of(made("lk-gp-ts", sampling="joint"), "read_covariance", monkeypatch, 5) == 1


def test_where_places_are_learned_the_belief_is_read_at_each(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reads_of(made("auto-ucb", places="learned"), monkeypatch, 4) == 4


def test_a_policy_learns_that_the_second_place_pays_less() -> None:
    policy, rng = made("auto-ucb", places="learned"), np.random.default_rng(2)
    for _ in range(40):
        for place, choice in enumerate(ct.rank(policy, "ana", k=2), start=1):
            paid = (3.0 if place == 1 else 1.0) + 0.1 * rng.normal()
            policy.update("ana", choice.arm, paid, place=place)
    first, second = ct.rank(policy, "ana", k=2)
    assert first.mean == pytest.approx(3.0, abs=0.4)
    assert second.mean == pytest.approx(1.0, abs=0.4)


def test_a_slate_in_a_context() -> None:
    schema = {"device": ["phone", "desktop"]}
    policy = ct.make_policy("auto-ts", graph=ct.UserGraph.from_edges([("ana", "bo")]), arms=ARMS, context_schema=schema)
    assert len(ct.rank(policy, "ana", k=3, context={"device": "phone"})) == 3
    with pytest.raises(ContextError):
        ct.rank(policy, "ana", k=3)


@pytest.mark.parametrize("k", [0, -1, 1.5, "2", None, float("nan"), True])
def test_a_number_of_places_that_is_none_is_refused(k: Any) -> None:
    policy = made("lk-gp-ts")
    with pytest.raises(ParameterError, match="k is"):
        ct.rank(policy, "ana", k=k)
    assert policy.n_decisions == 0


def test_what_cannot_be_ranked_is_refused_and_nothing_counted() -> None:
    policy = made("lk-gp-ts")
    with pytest.raises(CandidatesError, match="k is 3 with 2 candidates"):
        ct.rank(policy, "ana", ["a", "b"], 3)
    with pytest.raises(CandidatesError, match="twice"):
        ct.rank(policy, "ana", ["a", "a"], 1)
    with pytest.raises(UnknownUserError):
        ct.rank(policy, "zoe", k=1)
    with pytest.raises(ParameterError, match=r"bandit\.rank"):
        ct.rank(object(), "ana", k=1)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="place is 0"):
        policy.update("ana", "a", 1.0, place=0)
    assert policy.n_decisions == 0
    assert policy.n_rewards == 12


def test_places_are_learned_by_policies_that_take_contexts_alone() -> None:
    with pytest.raises(ParameterError, match="places"):
        made("lk-gp-ucb", places="learned")
    with pytest.raises(ParameterError, match="places is 'given'"):
        made("auto-ucb", places="given")
