"""A log with contexts or slates: contexts reach the policies that take them, and slates are judged place by place."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.__main__ import main
from coterie.errors import ContextError, DimensionError, InputError, ParameterError
from coterie.logs import Contexts, Events, Log, Ragged, write_log
from coterie.product.evaluation import Asked, Evaluation, Logged, Target, compare, evaluate
from coterie.product.evaluation.evaluating import split_in_time
from coterie.product.evaluation.material import material_of, material_of_journal
from coterie.product.evaluation.targets import choice_probabilities, context_of, fitted, predictions, replay_learning

GRAPH, ARMS = (
    ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy")]),
    ct.ArmPool.without_features(["tea", "milk", "gin"]),
)
RIGHT = {"morning": 0, "noon": 1, "night": 2}


def moments(n: int, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng([seed, 7])
    return [{"time": str(rng.choice(list(RIGHT))), "rain": float(rng.normal())} for _ in range(n)]


def a_log(n: int = 300, seed: int = 0, **more: Any) -> Logged:
    """Returns what a uniform logger did among three arms, of which another is right at each time of day."""
    rng, contexts = np.random.default_rng(seed), moments(n, seed)
    users, arms = rng.integers(3, size=n), rng.integers(3, size=n)
    right = np.array([RIGHT[each["time"]] for each in contexts])
    rewards = (arms == right) + 0.1 * rng.normal(size=n)
    given: dict[str, Any] = {"contexts": contexts} | more
    return Logged.of(users.tolist(), [range(3)] * n, arms.tolist(), rewards.tolist(), [1 / 3] * n, **given)


def judged(log: Logged, **settings: Any) -> Evaluation:
    given: dict[str, Any] = {"graph": GRAPH, "arms": ARMS, "policy": "auto-ucb"} | settings
    return evaluate(log, **given)


def test_a_policy_that_sees_contexts_finds_what_is_right() -> None:
    log = a_log()
    shown, hidden = judged(log), judged(log, context_schema=None)
    for name in ("replay", "ips", "snips", "dm", "dr", "switch"):
        assert shown.estimates[name].value > 0.8, name
    assert hidden.estimates["dr"].value < 0.6
    assert shown.estimates["dr"].low > hidden.estimates["dr"].high


def test_the_reward_model_sees_them_too() -> None:
    log = a_log()
    with_them, without = (
        judged(log, policy="random"),
        judged(log, policy="random", reward_options={"context_schema": None}),
    )
    assert with_them.estimates["dr"].high - with_them.estimates["dr"].low < 0.5 * (
        without.estimates["dr"].high - without.estimates["dr"].low
    )


def test_a_policy_that_learns_sees_them() -> None:
    log = a_log(600)
    shown, hidden = judged(log, learning=True), judged(log, learning=True, context_schema=None)
    assert shown.estimates["replay"].value > hidden.estimates["replay"].value + 0.2


@pytest.mark.parametrize("policy", ["lk-gp-ucb", "lk-gp-ts", "popularity", "random"])
@pytest.mark.parametrize("learning", [False, True])
def test_policies_without_contexts_are_judged_as_if_there_were_none(policy: str, learning: bool) -> None:
    log = a_log(120)
    plain = replace(log, contexts=None)
    options: dict[str, Any] = {"policy": policy, "learning": learning, "reward_model": "lk-gp-ucb"}
    assert judged(log, **options) == judged(plain, **options)
    hidden = {"learning": learning, "reward_options": {"context_schema": None}, "context_schema": None}
    assert judged(log, **hidden) == judged(plain, learning=learning)
    binary = replace(log, rewards=(log.rewards > 0.5).astype(float))
    logits: dict[str, Any] = {"likelihood": "bernoulli", "reward_model": "lk-gp-ucb", "learning": learning}
    assert judged(binary, **logits) == judged(replace(binary, contexts=None), **logits)


def learned(log: Logged) -> ct.Policy:
    schema = log.contexts.schema if log.contexts is not None else None
    return fitted(ct.make_policy("auto-ts", graph=GRAPH, arms=ARMS, context_schema=schema), log)


def test_choices_and_predictions_are_those_in_each_context() -> None:
    policy, later = learned(a_log(90)), a_log(20, seed=5)
    chances, means = choice_probabilities(policy, later), predictions(policy, later, 0.5)
    for row, user in enumerate(later.users.tolist()):
        shown, context = later.shown(row), context_of(policy, later, row)
        found = policy.propensities(user, policy.in_context(shown, context, learn=False))
        assert found is not None
        some = slice(later.starts[row], later.starts[row + 1])
        np.testing.assert_array_equal(chances[some], found.probabilities)
        np.testing.assert_array_equal(means[some], policy.predict(GRAPH.users[user], context=context)[0] + 0.5)
    np.testing.assert_array_equal(choice_probabilities(policy, later, cached=0), chances)


def test_what_is_learned_is_the_earlier_part_in_its_contexts() -> None:
    log, policy = a_log(90), learned(a_log(90))
    one = ct.make_policy("auto-ts", graph=GRAPH, arms=ARMS, context_schema={"time": "category", "rain": "number"})
    assert log.contexts is not None
    names = [ARMS.ids[row] for row in log.arms.tolist()]
    users = [GRAPH.users[row] for row in log.users.tolist()]
    one.fit([(users, names, log.rewards, [log.contexts[row] for row in range(90)])])
    context = {"time": "noon", "rain": 0.3}
    np.testing.assert_allclose(policy.predict("bo", context=context), one.predict("bo", context=context), atol=1e-6)


def test_a_category_that_comes_later_is_new_and_no_error() -> None:
    policy, later = learned(a_log(60)), a_log(10, seed=1)
    assert later.contexts is not None
    late = replace(later, contexts=Contexts.of([{"time": "dusk", "rain": 0.0}] * 10))
    sums = np.add.reduceat(choice_probabilities(policy, late), late.starts[:-1])
    np.testing.assert_allclose(sums, 1.0)


def test_features_of_users_need_no_contexts() -> None:
    users = {user: {"age": age} for user, age in zip(GRAPH.users, (20.0, 30.0, 60.0), strict=True)}
    found = judged(replace(a_log(), contexts=None), users=users)
    assert np.isfinite(found.estimates["dr"].value)


def test_with_and_without_are_compared_on_the_same_draws() -> None:
    targets = [Target.of("auto-ucb"), Target.of("auto-ucb", context_schema=None)]
    found = compare(a_log(), targets, graph=GRAPH, arms=ARMS, asked=Asked(estimators=["dr"]))
    assert found.best == "auto-ucb"
    assert found.gaps[0].low > 0


def test_contexts_are_one_for_each_decision_and_of_one_kind() -> None:
    with pytest.raises(DimensionError, match="there are 10 users and 9 contexts"):
        a_log(10, contexts=moments(9))
    with pytest.raises(ContextError, match="row 3: the context has the unknown name 'wind'"):
        a_log(4, contexts=[*moments(3), {"wind": 1.0}])


# Slates


def test_slates_of_one_place_change_nothing() -> None:
    plain = replace(a_log(120), contexts=None)
    for learning in (False, True):
        alone = replace(plain, slates=np.arange(120))
        assert judged(alone, policy="lk-gp-ts", learning=learning) == judged(
            plain, policy="lk-gp-ts", learning=learning
        )


def test_the_places_of_a_slate_are_no_independent_decisions() -> None:
    """Each decision stands there twice, as two places that fare alike: the interval is that of half as many."""
    log = replace(a_log(200), contexts=None)
    twice = log.take(np.repeat(np.arange(200), 2))
    slates = replace(twice, slates=np.repeat(np.arange(200), 2))
    widths = {}
    for name, each in {"once": log, "rows": twice, "slates": slates}.items():
        found = judged(each, policy="random", reward_model="lk-gp-ucb", seed=3)
        widths[name] = found.estimates["ips"].high - found.estimates["ips"].low
        assert found.n_decisions == len(each) // 2
    assert widths["slates"] == pytest.approx(widths["once"], rel=1e-9)
    assert widths["rows"] < 0.85 * widths["once"]


def test_a_slate_is_not_cut_in_two() -> None:
    log = replace(a_log(9), slates=np.array([0, 0, 1, 1, 1, 1, 1, 2, 2]))
    for share, first in ((0.1, 2), (0.5, 7), (0.9, 7)):
        earlier, later = split_in_time(log, share)
        assert (len(earlier), len(later)) == (first, 9 - first)
    with pytest.raises(ParameterError, match="the log has one slate"):
        split_in_time(replace(log, slates=np.zeros(9, dtype=np.intp)), 0.5)


def test_slates_come_whole_in_the_order_of_time() -> None:
    log = replace(a_log(6), slates=np.array([5, 2, 5, 2, 9, 5]), times=np.array([3.0, 1.0, 2.0, 7.0, 1.0, 2.0]))
    assert log.in_order().slates is not None
    assert log.in_order().slates.tolist() == [2, 2, 9, 5, 5, 5]  # type: ignore[union-attr] # it has them
    assert log.in_order().rewards.tolist() == log.rewards[[1, 3, 4, 0, 2, 5]].tolist()
    assert replace(log, times=None).in_order().rewards.tolist() == log.rewards[[0, 2, 5, 1, 3, 4]].tolist()
    assert replace(log, slates=None).in_order().rewards.tolist() == log.rewards[[1, 4, 2, 5, 0, 3]].tolist()


def test_rewards_of_a_slate_are_learned_after_its_last_place(monkeypatch: pytest.MonkeyPatch) -> None:
    log = replace(a_log(8), slates=np.array([0, 0, 0, 1, 1, 2, 2, 2]), contexts=None)
    policy, calls = ct.make_policy("random", graph=GRAPH, arms=ARMS), []
    select, update = policy.select, policy.update
    choices = iter([ARMS.ids[row] for row in log.arms.tolist()])

    def chosen(*given: Any, **more: Any) -> Any:
        calls.append("select")
        return replace(select(*given, **more), arm=next(choices))

    def taught(*given: Any, **more: Any) -> None:
        calls.append("update")
        update(*given, **more)

    monkeypatch.setattr(policy, "select", chosen)
    monkeypatch.setattr(policy, "update", taught)
    assert replay_learning(policy, log).effective == 8
    expected = [*["select"] * 3, *["update"] * 3, *["select"] * 2, *["update"] * 2, *["select"] * 3, *["update"] * 3]
    assert calls == expected


def placed(n: int = 300) -> Logged:
    """Returns slates of two places: an arm pays at a place of its own, another one at each."""
    rng = np.random.default_rng(4)
    first = rng.integers(3, size=n)
    arms = np.stack([first, (first + rng.integers(1, 3, size=n)) % 3], axis=1).ravel()
    left = [[arm for arm in range(3) if arm != other] for other in first.tolist()]
    shown = [each for second in left for each in ([0, 1, 2], second)]
    places, rewards = np.tile([1, 2], n), 0.1 * rng.normal(size=2 * n)
    return Logged.of(
        np.repeat(rng.integers(3, size=n), 2).tolist(),
        shown,
        arms.tolist(),
        (rewards + (arms == places - 1)).tolist(),
        [1 / len(each) for each in shown],
        slates=np.repeat(np.arange(n), 2).tolist(),
        shown_at=places.tolist(),
    )


@pytest.mark.parametrize("learning", [False, True])
def test_a_policy_that_learns_places_is_told_them(learning: bool) -> None:
    log, by = placed(), "replay" if learning else "dr"
    told = judged(log, places="learned", learning=learning).estimates[by]
    untold = judged(log, learning=learning).estimates[by]
    assert told.value > untold.value + 0.2
    assert judged(replace(log, shown_at=None), learning=learning).estimates[by] == untold


def test_places_count_from_one() -> None:
    with pytest.raises(ParameterError, match="row 2: the place is 0"):
        replace(placed(3), shown_at=np.array([1, 2, 0, 2, 1, 2]))


# Logs in tables, journals and the command line


def tables(n: int = 60, **changes: Any) -> Log:
    log = a_log(n)
    columns: dict[str, Any] = {
        "user": log.users,
        "arm": log.arms,
        "reward": log.rewards,
        "propensity": log.propensities,
        "context": log.contexts,
    }
    return Log(graph=GRAPH, arms=ARMS.ids, events=Events(**(columns | changes)))


def test_a_log_in_tables_brings_its_contexts() -> None:
    found = material_of(tables())
    assert found.logged.contexts is not None
    assert found.logged.contexts[0] == moments(60)[0]
    assert not found.arms.has_features
    told = "The contexts ('time', 'rain') are shown to auto-* policies of likelihood gaussian; others do without."
    assert told in found.notes
    without = material_of(tables(), contexts=False)
    assert without.logged.contexts is None
    assert not without.arms.has_features
    assert told not in without.notes


def test_a_slate_in_tables_is_judged_among_those_left() -> None:
    slate, place = np.array([4, -1, 4, 4]), np.array([2, -1, 1, 3])
    events = {"user": np.zeros(4, dtype=np.int64), "arm": np.array([1, 0, 2, 0]), "slate": slate, "place": place}
    found = material_of(tables(4, context=None, candidates=Ragged.of([[], [], [2, 1], []]), **events))
    log = found.logged
    assert log.arms.tolist() == [2, 1, 0, 0]
    assert log.slates is not None
    assert log.slates.tolist() == [0, 0, 0, 1]
    assert log.shown_at is not None
    assert log.shown_at.tolist() == [1, 2, 3, 1]
    assert [log.shown(row).tolist() for row in range(4)] == [[2, 1], [0, 1], [0], [0, 1, 2]]
    told = "3 decisions are the places of 1 slate: each is judged among the candidates that earlier places left."
    assert told in found.notes


def test_a_folder_is_evaluated_with_and_without_contexts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tables(200), tmp_path / "log")
    command = [
        "evaluate",
        str(tmp_path / "log"),
        "--policy",
        "auto-ucb",
        "--policy",
        "lk-gp-ucb",
        "--estimator",
        "snips",
    ]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "The contexts ('time', 'rain') are shown to auto-*" in shown
    assert "ahead of lk-gp-ucb" in shown
    assert main([*command, "--contexts", "none"]) == 0
    hidden = capsys.readouterr().out
    assert "contexts" not in hidden
    assert "not clearly ahead of" in hidden


def lived(folder: Path, **settings: Any) -> ct.Bandit:
    bandit = ct.Bandit(graph=GRAPH, arms=list(ARMS.ids), policy="auto-ts", journal=folder / "journal", **settings)
    bandit.save(folder / "start")
    return bandit


def test_a_journal_brings_its_contexts(tmp_path: Path) -> None:
    schema = {"time": "category", "rain": {"kind": "number", "default": 0.0}}
    bandit, contexts = lived(tmp_path, context_schema=schema, min_propensity=0.1), moments(12)
    made = [bandit.decide("ana", context=contexts[0]), bandit.decide("bo", context={"time": "noon"})]
    made += bandit.decide_many(["cy"] * 10, contexts=contexts[2:])
    for each in made:
        bandit.reward(each.id, 1.0)
    log = material_of_journal(tmp_path / "start", tmp_path / "journal").logged
    assert log.contexts is not None
    assert [log.contexts[row] for row in range(12)] == [contexts[0], {"time": "noon", "rain": 0.0}, *contexts[2:]]
    hidden = material_of_journal(tmp_path / "start", tmp_path / "journal", contexts=False)
    assert hidden.logged.contexts is None


def test_a_journal_brings_its_slates(tmp_path: Path) -> None:
    bandit = lived(tmp_path, context_schema={"rain": "number"}, places="learned")
    first = bandit.decide("ana", context={"rain": 1.0})
    slate = bandit.rank("bo", k=3, context={"rain": 2.0})
    bandit.reward_many([first.id, slate[0].id, slate[2].id], [1.0, 0.0, 1.0])
    log = material_of_journal(tmp_path / "start", tmp_path / "journal").logged
    assert log.slates is not None
    assert log.shown_at is not None
    assert log.contexts is not None
    assert log.slates.tolist() == [first.id, slate.id, slate.id]
    assert log.shown_at.tolist() == [1, 1, 3]
    assert [log.contexts[row]["rain"] for row in range(3)] == [1.0, 2.0, 2.0]
    assert log.sizes.tolist() == [3, 3, 1]
    assert log.propensities.tolist() == [first.propensity, slate[0].propensity, slate[2].propensity]


def test_what_a_request_alone_gives_cannot_be_judged(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    priced = lived(tmp_path / "a", request_features=["price"])
    priced.reward(priced.decide("ana", {arm: {"price": 1.0} for arm in ARMS.ids}).id, 1.0)
    with pytest.raises(InputError, match="each request gives 'price' of its candidates"):
        material_of_journal(tmp_path / "a" / "start", tmp_path / "a" / "journal")
    (tmp_path / "b").mkdir()
    arms = {"tea": [0.0], "milk": [1.0]}
    guests = ct.Bandit(graph=GRAPH, arms=arms, journal=tmp_path / "b" / "journal", context_schema={"rain": "number"})
    guests.save(tmp_path / "b" / "start")
    guests.reward(guests.decide("ana", {"tea": None, "new": [0.5]}, {"rain": 1.0}).id, 1.0)
    with pytest.raises(InputError, match="decision 0 has the candidate 'new', which the pool does not have"):
        material_of_journal(tmp_path / "b" / "start", tmp_path / "b" / "journal")
