"""A request that is refused names what is wrong with it and changes nothing: the bandit is saved to the same bytes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import (
    ArmError,
    CandidatesError,
    ContextError,
    CoterieError,
    DimensionError,
    InputError,
    ParameterError,
    RewardError,
    UnknownArmError,
    UnknownUserError,
)

GRAPH = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy")])
ARMS = {
    "tea": {"hot": 1.0, "sweet": 0.2},
    "cola": {"hot": 0.0, "sweet": 0.9},
    "ale": {"hot": 0.1, "sweet": 0.4},
}
NIGHT = {"hour": 21, "device": "phone"}
NAN = float("nan")
Make = Callable[[], ct.Bandit]
Call = Callable[[ct.Bandit], Any]


def fresh(**options: Any) -> ct.Bandit:
    return ct.Bandit(**{"graph": GRAPH, "arms": ARMS, "seed": 3, **options})


def used(**options: Any) -> ct.Bandit:
    """Returns a bandit with rewards, fits, pending decisions, guests and an arm that joined."""
    bandit, rng = fresh(**options), np.random.default_rng(0)
    for t in range(14):
        context = {"hour": t, "device": ["phone", "desktop"][t % 2]}
        shown: Any = {"tea": None, f"new-{t}": [0.3, 0.1 * t]} if t % 5 == 0 else None
        decision = bandit.decide(GRAPH.users[t % 3], shown, context, keep=t == 5)
        if t % 4:
            bandit.reward(decision.id, float(rng.normal()))
    return bandit


def priced() -> ct.Bandit:
    return fresh(request_features=["price"], context_schema={"hour": "number"})


def retired() -> ct.Bandit:
    bandit = used()
    bandit.retire_arms(["tea"])
    return bandit


def saved(bandit: ct.Bandit, folder: Path) -> bytes:
    bandit.save(folder / "saved")
    return (folder / "saved").read_bytes()


def decide(candidates: Any = None, context: Any = NIGHT, *, user: str = "ana", **options: Any) -> Call:
    return lambda bandit: bandit.decide(user, candidates, context, **options)


ANY_TIME: dict[str, tuple[Call, type[CoterieError], str]] = {
    "a list of texts": (decide(context=["a", "b"]), ContextError, "the context is a"),
    "rows of two lengths": (decide(context=[1, [2, 3]]), ContextError, "the context is"),
    "a text": (decide(context="late"), ContextError, "the context is"),
    "a number": (decide(context=3), ContextError, "the context is"),
    "an object": (decide(context=object()), ContextError, "object"),
    "NaN": (decide(context={**NIGHT, "hour": NAN}), ContextError, "'hour' of the context is nan"),
    "too large": (decide(context={**NIGHT, "hour": 1e300}), ContextError, r"'hour' of the context is 1e\+300"),
    "beyond floats": (decide(context={**NIGHT, "hour": 10**400}), ContextError, "'hour' of the context is 1000"),
    "half a character": (decide(context={**NIGHT, "device": "\ud800"}), ContextError, r"'device' of the context is"),
    "a list for a number": (decide(context={**NIGHT, "hour": [1]}), ContextError, r"'hour' of the context is \[1\]"),
    "an object for a number": (decide(context={**NIGHT, "hour": object()}), ContextError, "object object at"),
    "a name that is no text": (decide(context={3: 1.0}), ContextError, "name"),
    "None": (decide(context={**NIGHT, "hour": None}), ContextError, "'hour'"),
    "an unknown arm": (decide(["x"]), UnknownArmError, "arm 'x' is unknown"),
    "an arm twice": (decide(["tea", "tea"]), CandidatesError, "'tea' is given twice"),
    "an unknown user": (decide(user="zoe"), UnknownUserError, "user 'zoe' is unknown"),
    "no candidates": (decide([]), CandidatesError, "there are no candidates"),
    "an empty mapping": (decide({}), CandidatesError, "there are no candidates"),
    "too few features": (decide({"new": [1.0]}), DimensionError, "candidate 'new' has 1 feature; a row has 2"),
    "too many features": (decide({"new": [1.0, 2.0, 3.0]}), DimensionError, "candidate 'new' has 3 features"),
    "features of two lengths": (decide({"new": [1.0, [2.0]]}), DimensionError, "candidate 'new' has features"),
    "features that are a text": (decide({"new": "ab"}), DimensionError, "candidate 'new' has features 'ab'"),
    "a feature that is NaN": (decide({"new": [1.0, NAN]}), ArmError, "feature 1 of candidate 'new' is nan"),
    "a feature that is a flag": (decide({"new": [1.0, True]}), ArmError, "feature 1 of candidate 'new' is True"),
    "a huge feature": (decide({"new": [1.0, 1e300]}), ArmError, r"feature 1 of candidate 'new' is 1e\+300"),
    "an unknown feature": (decide({"new": {"hot": 1.0, "swet": 1.0}}), ArmError, "the unknown feature 'swet'"),
    "a missing feature": (decide({"new": {"hot": 1.0}}), ArmError, "candidate 'new' lacks 'sweet'"),
    "other features of the pool": (
        decide({"tea": {"hot": 0.5, "sweet": 0.2}}),
        ArmError,
        "feature 'hot' of candidate 'tea' is 0.5; it is 1.0 for this arm of the pool",
    ),
    "other numbers of the pool": (decide({"tea": [1.0, 0.3]}), ArmError, "feature 'sweet' of candidate 'tea' is 0.3"),
    "no features": (decide({"new": None}), ArmError, "candidate 'new' is not in the pool and has no features"),
    "features that are an object": (decide({"new": object()}), InputError, "object object at"),
    "an id that is a tuple": (decide({("a", 1): [1.0, 2.0]}), InputError, r"\('a', 1\)"),
    "an id that is a flag": (decide({True: [1.0, 2.0]}), InputError, "id True is of type bool"),
    "one of two that stay": (
        decide({"new": [1.0, 2.0], "newer": [1.0]}, keep=True),
        DimensionError,
        "candidate 'newer' has 1 feature",
    ),
    "a context of one that stays": (
        decide({"new": [1.0, 2.0]}, {**NIGHT, "hour": NAN}, keep=True),
        ContextError,
        "is nan",
    ),
    "a user of one that stays": (decide({"new": [1.0, 2.0]}, user="zoe", keep=True), UnknownUserError, "'zoe'"),
    "a reward of two arms": (
        lambda bandit: bandit.learn("ana", {"new": [1.0, 2.0], "newer": [1.0, 2.0]}, 1.0, NIGHT),
        CandidatesError,
        "2 arms were given: 'new', 'newer'",
    ),
    "a reward that is NaN": (lambda bandit: bandit.learn("ana", "tea", NAN, NIGHT), RewardError, "reward is nan"),
    "a reward's context": (
        lambda bandit: bandit.learn("ana", "tea", 1.0, {**NIGHT, "device": b"phone"}),
        ContextError,
        "'device' of the context is b'phone'",
    ),
    "the last of many contexts": (
        lambda bandit: bandit.decide_many(["ana", "bo"], None, [NIGHT, {**NIGHT, "hour": "late"}]),
        ContextError,
        "'hour' of the context is 'late'",
    ),
    "the last of many candidates": (
        lambda bandit: bandit.decide_many(["ana", "bo"], ["tea", "x"], [NIGHT, NIGHT]),
        UnknownArmError,
        "arm 'x' is unknown",
    ),
    "fewer contexts than users": (
        lambda bandit: bandit.decide_many(["ana", "bo"], None, [NIGHT]),
        DimensionError,
        "2 users, 1 contexts",
    ),
    "contexts that are a text": (lambda bandit: bandit.decide_many(["ana"], None, "a"), CandidatesError, "a list"),
    "the last of many rewards": (
        lambda bandit: bandit.learn_many(["ana", "bo"], ["tea", "x"], [1.0, 0.0], [NIGHT, NIGHT]),
        UnknownArmError,
        "arm 'x' is unknown",
    ),
    "the last context of many rewards": (
        lambda bandit: bandit.learn_many(["ana", "bo"], ["tea", "tea"], [1.0, 0.0], [NIGHT, {"hour": 3}]),
        ContextError,
        "the context has no 'device'",
    ),
    "one without a context": (
        lambda bandit: bandit.learn_many(["ana", "bo"], ["tea", "tea"], [1.0, 0.0], [None, NIGHT]),
        ContextError,
        "without any|no 'hour'",
    ),
    "a reading": (lambda bandit: bandit.predict("ana", None, {**NIGHT, "hour": NAN}), ContextError, "is nan"),
    "arms without features": (lambda bandit: bandit.add_arms(["x", "y"]), ArmError, "arm 'x' has no features"),
}


@pytest.mark.parametrize("journal", [False, True])
@pytest.mark.parametrize("make", [fresh, used])
@pytest.mark.parametrize("name", ANY_TIME)
def test_a_refused_request_changes_nothing(tmp_path: Path, name: str, make: Make, journal: bool) -> None:
    check_refused(tmp_path, make, *ANY_TIME[name], journal=journal)


def check_refused(
    folder: Path, make: Make, call: Call, error: type[CoterieError], words: str, *, journal: bool = False
) -> None:
    bandit = make()
    if journal:
        bandit.save(folder / "snapshot")
        bandit = ct.Bandit.load(folder / "snapshot", journal=folder / "journal")
    before = saved(bandit, folder)
    with pytest.raises(error, match=words) as caught:
        call(bandit)
    assert all([caught.value.problem, caught.value.rule, caught.value.remedy])
    assert saved(bandit, folder) == before


LATER: dict[str, tuple[Call, str]] = {
    "none": (decide(context=None), "the context has no 'hour'"),
    "none of many": (lambda bandit: bandit.decide_many(["ana"]), "the context has no 'hour'"),
    "none of a reward": (lambda bandit: bandit.learn("ana", "tea", 1.0), "the context has no 'hour'"),
    "none of a reading": (lambda bandit: bandit.predict("ana"), "the context has no 'hour'"),
    "none of an explanation": (lambda bandit: bandit.explain("ana", "tea"), "the context has no 'hour'"),
    "none of all scores": (lambda bandit: bandit.score_all(), "the context has no 'hour'"),
    "a name less": (decide(context={"hour": 3}), "the context has no 'device'"),
    "a name more": (decide(context={**NIGHT, "page": 3}), "unknown name 'page'; names are 'hour', 'device'"),
    "another name": (decide(context={"hour": 3, "devise": "x"}), "Did you mean 'device'?"),
    "a category for a number": (decide(context={**NIGHT, "hour": "nine"}), "'hour' of the context is 'nine'"),
    "a number for a category": (decide(context={**NIGHT, "device": 3}), "'device' of the context is 3; it is a cat"),
    "a flag for a number": (decide(context={**NIGHT, "hour": True}), "'hour' of the context is True; it is a num"),
    "a row for names": (decide(context=[21.0, 1.0]), "the context is a list; it maps the names 'hour', 'device'"),
    "a table": (lambda bandit: bandit.fit([("ana", "tea", 1.0)]), "row 0: the context has no 'hour'"),
}


@pytest.mark.parametrize("name", LATER)
def test_a_context_that_is_not_as_the_first_changes_nothing(tmp_path: Path, name: str) -> None:
    check_refused(tmp_path, used, LATER[name][0], ContextError, LATER[name][1])


OF_ROWS: list[tuple[Any, str]] = [
    ([1.0], "the context is a row of 1 numbers; it is a row of 2 numbers"),
    ([1.0, NAN], "number 1 of the context is nan"),
    ([1.0, "x"], "the context is a row of type"),
    (None, "no context was given; it is a row of 2"),
    (NIGHT, "the context is a dict; it is a row of 2"),
]


@pytest.mark.parametrize(("context", "words"), OF_ROWS)
def test_a_row_that_is_not_as_the_first_changes_nothing(tmp_path: Path, context: Any, words: str) -> None:
    def make() -> ct.Bandit:
        bandit = fresh()
        bandit.learn("ana", "tea", 1.0, [1.0, 2.0])
        return bandit

    check_refused(tmp_path, make, decide(context=context), ContextError, words)


OF_REQUESTS: dict[str, tuple[Call, type[CoterieError], str]] = {
    "ids": (decide(["tea"], {"hour": 1}), ContextError, "candidates are ids, without features of the request"),
    "all ids": (decide(None, {"hour": 1}), ContextError, "each has 'price'"),
    "none": (decide({"tea": None}, {"hour": 1}), ArmError, "candidate 'tea' lacks 'price'"),
    "another": (decide({"tea": {"price": 1.0, "cost": 2.0}}, {"hour": 1}), ArmError, "unknown feature 'cost'"),
    "NaN": (decide({"tea": {"price": NAN}}, {"hour": 1}), ArmError, "feature 'price' of candidate 'tea' is nan"),
    "huge": (decide({"tea": [1e300]}, {"hour": 1}), ArmError, r"of candidate 'tea' is 1e\+300"),
    "too long": (decide({"tea": [1.0, 2.0]}, {"hour": 1}), DimensionError, "a row has 3, or 1 for an arm of the"),
    "a guest's": (decide({"x": {"hot": 1.0, "sweet": 1.0}}, {"hour": 1}), ArmError, "candidate 'x' lacks 'price'"),
    "a guest's own": (decide({"x": {"price": 1.0}}, {"hour": 1}), ArmError, "not in the pool and has no features"),
    "a reading's": (lambda bandit: bandit.predict("ana", ["tea"], {"hour": 1}), ContextError, "'price'"),
    "an explanation's": (lambda bandit: bandit.explain("ana", "tea", {"hour": 1}), ContextError, "'price'"),
    "those of all scores": (lambda bandit: bandit.score_all(context={"hour": 1}), DimensionError, "'price'"),
    "a reward's": (lambda bandit: bandit.learn("ana", "tea", 1.0, {"hour": 1}), ContextError, "'price'"),
    "those of many": (lambda b: b.decide_many(["ana"], ["tea"], [{"hour": 1}]), ContextError, "'price'"),
}


@pytest.mark.parametrize("name", OF_REQUESTS)
def test_features_of_a_request_are_all_there_and_no_others(tmp_path: Path, name: str) -> None:
    check_refused(tmp_path, priced, *OF_REQUESTS[name])


def test_many_rewards_may_have_features_of_the_request() -> None:
    bandit, other = priced(), priced()
    contexts = [{"hour": 1}, {"hour": 2}]
    bandit.learn_many(["ana", "bo"], [{"tea": [2.0]}, {"x": [1.0, 0.5, 3.0]}], [1.0, 0.0], contexts)
    other.learn("ana", {"tea": {"price": 2.0}}, 1.0, {"hour": 1})
    other.learn("bo", {"x": {"hot": 1.0, "sweet": 0.5, "price": 3.0}}, 0.0, {"hour": 2})
    shown = {"tea": {"price": 1.0}, "ale": {"price": 4.0}}
    assert bandit.predict("cy", shown, {"hour": 3}) == other.predict("cy", shown, {"hour": 3})


def test_a_context_after_rewards_without_any_changes_nothing(tmp_path: Path) -> None:
    def rewarded() -> ct.Bandit:
        bandit = fresh()
        bandit.learn("ana", "tea", 1.0)
        return bandit

    def decided() -> ct.Bandit:
        bandit = fresh()
        bandit.decide("ana")
        return bandit

    words = "a context was given, and {} have come without any"
    check_refused(tmp_path, rewarded, decide(), ContextError, words.format("1 reward and 0 decisions"))
    check_refused(tmp_path, decided, decide(), ContextError, words.format("0 rewards and 1 decision"))


def test_candidates_that_the_rules_of_the_bandit_refuse_do_not_join(tmp_path: Path) -> None:
    kept = decide({"tea": None, "new": [1.0, 2.0]}, keep=True)
    check_refused(tmp_path, retired, kept, CandidatesError, "candidates 'tea' are retired")
    options: dict[str, Any] = {"min_propensity": 0.3, "arms": {"tea": [1.0, 0.2]}, "context_schema": {"hour": "number"}}
    four = decide({f"new-{i}": [1.0, 0.1 * i] for i in range(4)}, {"hour": 3}, keep=True)
    check_refused(tmp_path, lambda: fresh(**options), four, ParameterError, "min_propensity is 0.3 with 4")


@pytest.mark.parametrize("options", [{"policy": "lk-gp-ucb"}, {"policy": "club"}, {"policy": "lk-gp-ts"}])
def test_other_policies_say_that_they_take_no_contexts(tmp_path: Path, options: dict[str, Any]) -> None:
    words = f"were given to '{options['policy']}' with likelihood 'gaussian'; an auto-\\* policy"
    check_refused(tmp_path, lambda: fresh(**options), decide(), ParameterError, words)
    for given in ({"context_schema": {"hour": "number"}}, {"request_features": ["price"]}):
        with pytest.raises(ParameterError, match=words):
            fresh(**options, **given)


def test_the_bernoulli_likelihood_says_that_it_takes_no_contexts(tmp_path: Path) -> None:
    options = {"reward": "binary", "likelihood": "bernoulli"}
    words = r"with likelihood 'bernoulli'; an auto-\* policy of likelihood 'gaussian' learns from them"
    check_refused(tmp_path, lambda: fresh(**options), decide(), ParameterError, words)
    with pytest.raises(ParameterError, match=words):
        fresh(**options, context_schema={"hour": "number"})


def test_a_mapping_needs_contexts_or_features_of_the_request(tmp_path: Path) -> None:
    call = decide({"new": [1.0, 2.0]}, None)
    check_refused(tmp_path, fresh, call, CandidatesError, "candidates are a mapping, with keys 'new'")


def test_a_feature_is_the_arms_or_the_requests() -> None:
    with pytest.raises(ParameterError, match="request_features 'hot' are features of the arms"):
        fresh(request_features=["hot"])


WITHOUT: list[tuple[Call, type[CoterieError], str]] = [
    (decide({"tea": [1.0]}), DimensionError, "candidate 'tea' has 1 feature; arms have no features here"),
    (decide({"new": None}), ArmError, "candidate 'new' is not in the pool; arms without features are those of the"),
    (decide({"new": [1.0]}, keep=True), DimensionError, "candidate 'new' has 1 feature"),
    (lambda bandit: bandit.add_arms({"x": [1.0, 2.0]}), ArmError, "arm 'x' has features; the arms that are there"),
    (lambda bandit: bandit.update_features({"tea": [1.0, 2.0]}), ArmError, "arm 'tea' has features"),
]


@pytest.mark.parametrize("number", range(len(WITHOUT)))
def test_arms_without_features_take_none(tmp_path: Path, number: int) -> None:
    check_refused(tmp_path, lambda: used_without_features(), *WITHOUT[number])


def used_without_features() -> ct.Bandit:
    bandit = fresh(arms=list(ARMS))
    for t in range(10):
        bandit.learn(GRAPH.users[t % 3], list(ARMS)[t % 3], float(t % 2), {**NIGHT, "hour": t})
    return bandit


def test_an_arm_without_features_joins_and_is_one_of_the_pool() -> None:
    bandit, other = used_without_features(), used_without_features()
    decision = bandit.decide("ana", {"tea": None, "mate": None}, NIGHT, keep=True)
    other.add_arms(["mate"])
    assert bandit.arms.ids == other.arms.ids == ("tea", "cola", "ale", "mate")
    assert not bandit.arms.has_features
    assert decision == other.decide("ana", ["tea", "mate"], NIGHT)


def test_an_arm_of_one_request_leaves_the_pool_as_it_is_and_its_reward_counts() -> None:
    bandit = fresh()
    decision = bandit.decide("ana", {np.int64(7): [0.5, 0.5]}, NIGHT)
    assert (decision.arm, type(decision.arm), bandit.arms.ids) == (7, int, tuple(ARMS))
    assert bandit.pending == {0: ("ana", 7)}
    bandit.reward(decision.id, 5.0)
    bandit.learn("ana", "tea", 0.0, NIGHT)
    near, far = bandit.predict("ana", {"near": [0.5, 0.5], "far": [0.9, 0.1]}, NIGHT).values()
    assert near[0] > far[0]
    assert [arm for _, _, arm, _, _ in bandit.explain("ana", "tea", NIGHT).by_event] == ["tea", 7]


def test_an_arm_that_stays_is_as_one_that_was_added() -> None:
    bandit, other = used(), used()
    decision = bandit.decide("bo", {"ale": None, "mate": [0.8, 0.3]}, NIGHT, keep=True)
    other.add_arms({"mate": [0.8, 0.3]})
    assert decision == other.decide("bo", ["ale", "mate"], NIGHT)
    for each in (bandit, other):
        each.reward(decision.id, 1.0)
    assert bandit.predict("cy", None, NIGHT) == other.predict("cy", None, NIGHT)


@pytest.mark.parametrize("given", [{"request_features": ["price"]}, {"users": {"ana": [1], "bo": [2], "cy": [1]}}])
def test_the_first_context_is_learned_whatever_else_is_known(given: dict[str, Any]) -> None:
    bandit = fresh(**given)
    shown = {arm: {"price": 1.0} for arm in ARMS} if "request_features" in given else None
    decision = bandit.decide("ana", shown, NIGHT)
    bandit.reward(decision.id, 1.0)
    assert bandit.context_schema is not None
    assert [field.name for field in bandit.context_schema.fields] == ["hour", "device"]
    with pytest.raises(ContextError, match="unknown name 'page'"):
        bandit.decide("ana", shown, {**NIGHT, "page": 1})


def test_before_the_first_context_nothing_can_be_read_in_one() -> None:
    calls: list[Call] = [
        lambda bandit: bandit.predict("ana", None, NIGHT),
        lambda bandit: bandit.explain("ana", "tea", NIGHT),
    ]
    for call in calls:
        with pytest.raises(ContextError, match="a context was given, and none has come; the first one"):
            call(fresh())
    with pytest.raises(ContextError, match="the context is empty"):
        fresh().decide("ana", None, {})


def test_an_unknown_category_is_counted_by_decisions_and_rewards_and_by_no_reader() -> None:
    bandit = fresh(context_schema={"device": ["phone", "desktop"]})
    odd = {"device": "fridge"}
    bandit.decide("ana", None, odd)
    bandit.learn("bo", "tea", 1.0, odd)
    bandit.predict("ana", None, odd)
    bandit.explain("ana", "tea", odd)
    bandit.score_all(context=odd)
    assert bandit.context_schema is not None
    assert bandit.context_schema.n_unknown == {"device": 2}
    assert "Unknown categories: {'device': 2}" in bandit.describe()


def test_a_default_stands_for_what_a_context_does_not_say() -> None:
    bandit = fresh(context_schema={"hour": {"kind": "number", "default": 12}, "on": {"kind": "flag", "default": False}})
    decision, other = bandit.decide("ana", ["tea", "ale"]), {"hour": 12, "on": False}
    bandit.reward(decision.id, 1.0)
    bandit.learn("bo", "ale", 0.0, {"hour": 3})
    assert bandit.predict("bo") == bandit.predict("bo", None, other) == bandit.predict("bo", None, {"hour": None})
    assert bandit.predict("bo") != bandit.predict("bo", None, {"hour": 3})


@pytest.mark.parametrize("many", [False, True])
def test_decisions_together_are_those_one_after_another(many: bool) -> None:
    bandit = used(policy="auto-ts", min_propensity=0.05)
    contexts = [{"hour": t, "device": f"device-{t % 3}"} for t in range(6)]
    users = ["ana", "bo", "cy"] * 2
    one = [bandit.decide(user, ["tea", "ale"], context) for user, context in zip(users, contexts, strict=True)]
    again = used(policy="auto-ts", min_propensity=0.05)
    assert again.decide_many(iter(users), ("tea", "ale"), iter(contexts)) == one
    if many:
        for each in (bandit, again):
            each.reward_many([decision.id for decision in one], [1.0, 0.0, 0.5, 1.0, 0.0, 0.5])
    assert bandit.context_schema == again.context_schema
    assert bandit.predict("ana", None, NIGHT) == again.predict("ana", None, NIGHT)


def test_a_decision_keeps_one_input_and_not_those_of_all_candidates() -> None:
    bandit = fresh(context_schema={"hour": "number"})
    bandit.decide("ana", None, {"hour": 3})
    bandit.learn("ana", "tea", 1.0, {"hour": 3})
    [(_, waiting)] = bandit._ledger.pending()
    assert waiting.input is not None
    assert waiting.input.base is None
    assert bandit._learned.events.inputs[0].base is None


FAR: list[tuple[float, ...]] = [
    (0.0, 5e-324),
    (1e-300, 1e-290),
    (-0.0, 0.0),
    (1.7e9, 1.7e9 + 1),
    (1e50, -1e50),
    (1e-50, 1e50),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("engine", ["local", "exact"])
@pytest.mark.parametrize("numbers", FAR, ids=str)
def test_numbers_of_any_size_are_learned_from_and_shifted(
    tmp_path: Path, numbers: tuple[float, ...], engine: str
) -> None:
    """Contexts near one another, then as far as numbers go: nothing drowns, fails or is lost in a file."""
    bandit, rng = fresh(arms=list(ARMS), engine=engine), np.random.default_rng(0)
    for t in range(60):
        number = float(rng.normal()) if t % 20 < 10 else numbers[t % len(numbers)]
        decision = bandit.decide(GRAPH.users[t % 3], None, {"number": number, "hour": t % 24})
        assert np.isfinite([decision.mean, decision.std]).all()
        bandit.reward(decision.id, float(rng.normal()))
    for number in (*numbers, 0.5):
        explained = bandit.explain("bo", "tea", {"number": number, "hour": 3})
        assert np.isfinite(explained.mean)
    bandit.save(tmp_path / "bandit")
    context = {"number": numbers[0], "hour": 3}
    assert ct.Bandit.load(tmp_path / "bandit").decide("ana", None, context) == bandit.decide("ana", None, context)


def test_zero_has_one_sign() -> None:
    bandit = fresh(window=4, context_schema={"number": "number"})
    for t in range(12):
        bandit.learn("ana", "tea", float(t), {"number": [0.0, -0.0, 1.0][t % 3]})
    bandit.predict("ana", None, {"number": 0.0})
    model = bandit._learned.policy.model
    assert len(model.history) == len(model.history.means) == 2
