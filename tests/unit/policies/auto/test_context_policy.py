"""A policy with contexts: the same choices after a restart and in any units, and bad contexts change nothing."""

import pickle
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import (
    ContextError,
    CoterieError,
    DimensionError,
    ParameterError,
    UnknownNameError,
    UnknownUserError,
)
from coterie.models import History
from coterie.policies.auto import AutoPolicy
from coterie.policies.auto.context_policy import ContextPolicy
from coterie.policies.auto.input_context import InputFitContext

GRAPH = ct.make_graph("sbm", 6, seed=3, connected="retry")
POOLS = {
    "features": ct.ArmPool(np.random.default_rng(1).normal(size=(5, 2)), ids=list("abcde")),
    "none": ct.ArmPool.without_features(list("abcde")),
}
SCHEMA = {"hour": "number", "load": "number", "device": "category"}
FEATURES = {user: {"age": 20.0 + 3 * user, "region": "north" if user % 2 else "south"} for user in range(6)}
every_pool = pytest.mark.parametrize("arms", list(POOLS))
Context = dict[str, Any]


def make(arms: str = "none", **options: Any) -> ContextPolicy:
    given: dict[str, Any] = {"context_schema": SCHEMA, "users": FEATURES} | options
    policy = ct.make_policy("auto-ucb", graph=GRAPH, arms=POOLS[arms], **given)
    assert isinstance(policy, ContextPolicy)
    return policy


def context_of(rng: np.random.Generator) -> Context:
    return {
        "hour": float(rng.uniform(0, 24)),
        "load": float(rng.normal()),
        "device": str(rng.choice(["phone", "desktop", "tv"])),
    }


def worth(user: int, arm: int, context: Context) -> float:
    best = int(context["hour"] // 5) % 5
    return float(arm == best) + 0.5 * float(context["device"] == "tv") * (arm == 0) + 0.1 * user


def play(
    policy: ct.Policy,
    rounds: int,
    *,
    start: int = 0,
    reward: Callable[[float], float] = lambda value: value,
    given: Callable[[Context], Any] = lambda context: context,
) -> list[Any]:
    chosen = []
    for number in range(start, start + rounds):
        rng = np.random.default_rng(number)
        user, context = int(rng.integers(6)), context_of(rng)
        choice = policy.select(user, context=given(context))
        value = worth(user, choice.index, context) + 0.2 * float(rng.normal())
        policy.update(user, choice.arm, reward(value), context=given(context))
        chosen.append(choice.arm)
    return chosen


ASKED = {"hour": 7.0, "load": 0.3, "device": "tv"}


def beliefs(policy: ct.Policy) -> Any:
    return np.array([policy.predict(user, context=ASKED) for user in range(6)])


@every_pool
@pytest.mark.parametrize("at", [0, 5, 20, 32, 33, 48, 50, 140])
def test_it_goes_on_to_the_bit_from_its_state_also_during_a_fit(arms: str, at: int) -> None:
    policy, other = make(arms), make(arms, seed=0)
    play(policy, at)
    assert (policy.pending_fit is not None) == (at in (32, 33, 48, 50))
    other.restore(deepcopy(policy.state()))
    assert other.is_sound()
    assert play(policy, 40, start=at) == play(other, 40, start=at)
    assert policy.hyper == other.hyper
    assert policy.context.scales() == other.context.scales()
    np.testing.assert_array_equal(beliefs(policy), beliefs(other))


SMALL = {"exact_rows": 12, "trend_features": 20}


@pytest.mark.parametrize(("engine", "options"), [("exact", {}), ("dense", {}), ("features", SMALL)])
def test_it_goes_on_from_its_state_on_other_engines(engine: str, options: dict[str, int]) -> None:
    policy, other = (make(engine=engine, engine_options=options) for _ in range(2))
    play(policy, 20)
    other.restore(deepcopy(policy.state()))
    assert other.is_sound()
    assert play(policy, 20, start=20) == play(other, 20, start=20)
    np.testing.assert_array_equal(beliefs(policy), beliefs(other))


@every_pool
def test_features_say_what_they_leave_out(arms: str) -> None:
    policy = make(arms, engine="features", engine_options=SMALL)
    play(policy, 60)
    assert "engine 'features': asked for by name" in policy.describe()
    assert "The features leave out 0." in policy.describe()
    assert policy.model.engine == "features"


@every_pool
@pytest.mark.parametrize("again", [deepcopy, lambda policy: pickle.loads(pickle.dumps(policy))])
def test_a_copy_goes_on_as_the_original_would(arms: str, again: Callable[[Any], Any]) -> None:
    policy = make(arms)
    play(policy, 45)  # no fit goes on just then: a thread is not copied
    copy = again(policy)
    assert play(policy, 20, start=45) == play(copy, 20, start=45)
    np.testing.assert_array_equal(beliefs(policy), beliefs(copy))


def same_share(one: list[Any], other: list[Any]) -> float:
    return float(np.mean([a == b for a, b in zip(one, other, strict=True)]))


@every_pool
@pytest.mark.parametrize(("scale", "offset"), [(1000.0, 5e4), (0.01, 0.0), (1.0, -300.0)])
def test_rewards_in_other_units_give_the_same_choices(arms: str, scale: float, offset: float) -> None:
    """By rounding a fit may end elsewhere on a flat ridge, so a few choices may differ late."""
    plain, moved = play(make(arms), 80), play(make(arms), 80, reward=lambda value: offset + scale * value)
    assert plain[:20] == moved[:20]
    assert same_share(plain, moved) > 0.9


@every_pool
def test_contexts_in_other_units_give_the_same_choices(arms: str) -> None:
    def moved(context: Context) -> Context:
        return context | {"hour": 1000 * context["hour"] + 5e6, "load": 1e-3 * context["load"] - 7}

    plain, other = play(make(arms), 80), play(make(arms), 80, given=moved)
    assert plain[:20] == other[:20]
    assert same_share(plain, other) > 0.9


def test_names_of_categories_and_the_order_of_names_make_no_difference() -> None:
    def moved(context: Context) -> Context:
        return {name: context[name] if name != "device" else f"a {context[name]}" for name in reversed(context)}

    assert play(make(), 60) == play(make(), 60, given=moved)


BAD = [
    ({"hour": "late"}, "'hour' of the context is 'late'"),
    ({"hour": float("nan")}, "'hour' of the context is nan"),
    ({"device": 3}, "'device' of the context is 3"),
    ({"devices": "tv"}, "the unknown name 'devices'"),
    ({"hour": None}, "the context has no 'hour'"),
]


@pytest.mark.parametrize(("odd", "problem"), BAD)
def test_a_refused_context_leaves_the_policy_as_it_was(odd: Context, problem: str) -> None:
    policy = make()
    play(policy, 20)
    before, state = beliefs(policy), deepcopy(policy.state())
    context = ASKED | {"device": "never seen"} | odd
    calls: list[Callable[[], Any]] = [
        lambda: policy.select(0, context=context),
        lambda: policy.update(0, "a", 1.0, context=context),
        lambda: policy.predict(0, context=context),
        lambda: policy.covariance(0, context=context),
        lambda: policy.update_many([0, 0], ["a", "b"], [1.0, 1.0], contexts=[ASKED | {"device": "new"}, context]),
    ]
    for call in calls:
        with pytest.raises(ContextError, match=problem):
            call()
    assert policy.inputs.schema.as_plain() == state["schema"]
    assert policy.n_decisions == state["n_decisions"]
    assert policy.n_rewards == 20
    np.testing.assert_array_equal(beliefs(policy), before)


def test_nothing_is_learned_of_a_context_where_anything_else_is_refused() -> None:
    policy = make()
    play(policy, 10)
    held, new = policy.inputs, ASKED | {"device": "never seen"}
    calls: list[Callable[[], Any]] = [
        lambda: policy.select("nobody", context=new),
        lambda: policy.select(0, ["no arm"], context=new),
        lambda: policy.update("nobody", "a", 1.0, context=new),
        lambda: policy.update(0, "no arm", 1.0, context=new),
        lambda: policy.update(0, "a", float("nan"), context=new),
        lambda: policy.predict("nobody", context=new),
        lambda: policy.update_many([0], ["a"], [float("inf")], contexts=[new]),
        lambda: policy.update_many([0], ["a"], [1.0, 2.0], contexts=[new]),
    ]
    for call in calls:
        with pytest.raises(CoterieError):
            call()
        assert policy.inputs is held
    policy.predict(0, context=new)
    policy.covariance(0, context=new)
    assert policy.inputs is held  # reading leaves no trace
    policy.select(0, context=new)
    assert policy.inputs.schema.fields[2].categories[-1] == "never seen"


def test_unknown_categories_are_counted_and_told() -> None:
    policy = make(context_schema={"hour": "number", "load": "number", "device": ["phone", "desktop"]})
    play(policy, 30)
    counted = policy.inputs.schema.n_unknown["device"]
    assert counted > 0
    assert f"Unknown categories: {{'device': {counted}}}." in policy.describe()
    assert "Inputs: arm" in policy.describe()


def test_rows_of_numbers_are_contexts_too() -> None:
    policy = make(context_schema=2)
    chosen = play(policy, 60, given=lambda context: [context["hour"], context["load"]])
    assert len(set(chosen)) > 1
    with pytest.raises(ContextError, match="the context is a row of 3 numbers"):
        policy.select(0, context=[1.0, 2.0, 3.0])
    with pytest.raises(ContextError, match="no context was given"):
        policy.select(0)


def test_many_rewards_are_learned_as_one_by_one() -> None:
    one, many = make(), make()
    rng = np.random.default_rng(0)
    users, arms = rng.integers(6, size=30).tolist(), rng.choice(list("abcde"), size=30).tolist()
    rewards, contexts = rng.normal(size=30).tolist(), [context_of(rng) for _ in range(30)]
    for user, arm, reward, context in zip(users, arms, rewards, contexts, strict=True):
        one.update(user, arm, reward, context=context)
    many.update_many(users, arms, rewards, contexts=contexts)
    np.testing.assert_array_equal(beliefs(one), beliefs(many))
    assert one.inputs.schema == many.inputs.schema
    many.update_many([], [], [])
    with pytest.raises(DimensionError, match="2 users, 2 arms, 2 rewards and 1 contexts"):
        many.update_many([0, 1], ["a", "b"], [1.0, 2.0], contexts=contexts[:1])


@every_pool
def test_a_table_is_learned_at_once_as_its_rows_one_by_one(arms: str) -> None:
    table, rng = make(arms), np.random.default_rng(4)
    users, chosen = rng.integers(6, size=30).tolist(), rng.integers(5, size=30)
    rewards, contexts = rng.normal(size=30).tolist(), [context_of(rng) for _ in range(30)]
    names = [str(table.arm_ids[row]) for row in chosen]
    assert table.fit([(users[:10], names[:10], rewards[:10], contexts[:10])]) == 10
    before, schema = beliefs(table), table.inputs.schema
    odd = [*contexts[10:29], contexts[29] | {"hour": "late"}]
    with pytest.raises(ContextError, match="row 19: 'hour' of the context is 'late'"):
        table.fit([(users[10:], names[10:], rewards[10:], odd)])
    np.testing.assert_array_equal(beliefs(table), before)
    assert table.inputs.schema == schema
    columns = {name: [context[name] for context in contexts[10:]] for name in SCHEMA}
    assert table.fit([(users[10:], names[10:], rewards[10:], columns)]) == 20
    one = make(arms)
    one.relearn_with(table.hyperparameters(), History())
    for user, arm, reward, context in zip(users, chosen.tolist(), rewards, contexts, strict=True):
        one.model.learn(user, one.in_context([arm], context)[0], reward - one.centre)
    assert table.n_rewards == one.n_rewards == 30
    assert table.inputs.schema == one.inputs.schema
    np.testing.assert_allclose(beliefs(table), beliefs(one), atol=1e-8)


def test_it_learns_which_arm_suits_which_moment() -> None:
    policy, rng = make(), np.random.default_rng(5)
    play(policy, 300)
    right = []
    for _ in range(60):
        context, user = context_of(rng) | {"device": "phone"}, int(rng.integers(6))
        values = [worth(user, arm, context) for arm in range(5)]
        right.append(values[int(np.argmax(policy.predict(user, context=context)[0]))] == max(values))
    assert np.mean(right) > 0.6


def test_what_follows_from_the_context_alone_is_learned_too() -> None:
    policy, rng = make(users=None), np.random.default_rng(0)
    for _ in range(200):
        context = context_of(rng)
        policy.update(
            int(rng.integers(6)), str(rng.choice(list("abcde"))), 3 * np.sin(context["load"]), context=context
        )
    low, high = (policy.predict(0, context=ASKED | {"load": load})[0] for load in (-1.5, 1.5))
    assert np.all(high - low > 4.0)
    assert policy.hyper.input_shares()["context"] > policy.hyper.input_shares()["interaction"]
    assert "traits" not in policy.hyper.shares()


def test_a_friendless_user_starts_from_those_who_are_alike() -> None:
    graph = ct.make_graph("empty", 12)
    ages = {user: {"age": 20.0 if user < 6 else 60.0} for user in range(12)}
    policy = ct.make_policy("auto-ucb", graph=graph, arms=POOLS["none"], users=ages)
    rng = np.random.default_rng(0)
    for _ in range(200):
        user, arm = int(rng.choice([0, 1, 2, 3, 4, 6, 7, 8, 9, 10])), int(rng.integers(5))
        likes = 1 if user < 6 else 3
        policy.update(user, "abcde"[arm], float(arm == likes) + 0.1 * float(rng.normal()))
    assert isinstance(policy, ContextPolicy)
    assert policy.hyper.shares()["traits"] > 0.3
    assert int(np.argmax(policy.predict(5)[0])) == 1  # who has never come
    assert int(np.argmax(policy.predict(11)[0])) == 3


def test_features_that_a_request_gives_are_part_of_an_input() -> None:
    policy, rng = make(request_features=["price"], users=None), np.random.default_rng(0)
    with pytest.raises(DimensionError, match="a request gives 0 features of an arm; it gives 1: 'price'"):
        policy.select(0, context=ASKED)
    with pytest.raises(DimensionError, match="a request gives 1 features of an arm; none are declared"):
        make().inputs_of(np.zeros((1, 1)), ASKED, np.ones((1, 1)))
    rows = policy.inputs.of_arms(np.arange(5))
    for _ in range(150):
        prices = 5e6 + 1000 * rng.uniform(size=(5, 1))
        inputs = policy.inputs_of(rows, context_of(rng), prices)
        found = policy.consider_rows(0, inputs)
        value = -(prices[found.best, 0] - 5e6) / 1000 + 0.5 * float(found.best == 2)
        policy.learn(0, inputs[found.best], value + 0.05 * float(rng.normal()))
    prices = 5e6 + np.array([[900.0], [500.0], [500.0], [100.0], [500.0]])
    mean, _ = policy.model.peek(0, policy.inputs_of(rows, ASKED, prices))
    assert mean[3] > mean[1] > mean[0]  # the cheaper the better,
    assert mean[2] > mean[4]  # and which arm it is counts too


def test_the_row_that_is_kept_is_a_copy() -> None:
    policy = make()
    inputs = policy.in_context(np.arange(5), ASKED)
    policy.learn(0, inputs[1], 1.0)
    inputs[:] = 0.0
    assert policy.model.history.arms[0].base is None
    np.testing.assert_array_equal(policy.model.history.arms[0], [1.0, 7.0, 0.3, 1.0])


def test_options_that_do_not_go_together_are_refused() -> None:
    arms = POOLS["none"]
    with pytest.raises(ParameterError, match="contexts, places or features of users were given to 'lk-gp-ucb'"):
        ct.make_policy("lk-gp-ucb", graph=GRAPH, arms=arms, context_schema=SCHEMA)
    with pytest.raises(ParameterError, match="with likelihood 'bernoulli'"):
        ct.make_policy("auto-ucb", graph=GRAPH, arms=arms, context_schema=SCHEMA, likelihood="bernoulli")
    with pytest.raises(UnknownNameError, match=r"option 'context_schemas' is unknown.*Did you mean 'context_schema'"):
        ct.make_policy("auto-ucb", graph=GRAPH, arms=arms, context_schemas=SCHEMA)
    with pytest.raises(ParameterError, match="request_features are 'price', 'price'"):
        ct.make_policy("auto-ucb", graph=GRAPH, arms=arms, request_features=["price", "price"])
    with pytest.raises(ContextError, match="context_schema is 'hour'"):
        ct.make_policy("auto-ucb", graph=GRAPH, arms=arms, context_schema="hour")
    with pytest.raises(ContextError, match="users 5 have no features"):
        ct.make_policy("auto-ucb", graph=GRAPH, arms=arms, users={user: [1.0] for user in range(5)})
    with pytest.raises(ParameterError, match="'auto-ucb' was asked for without arms"):
        ct.make_policy("auto-ucb", graph=GRAPH, context_schema=SCHEMA)
    for engine in ("grid", "linear", "sparse"):
        with pytest.raises(ParameterError, match=f"engine '{engine}' was asked for"):
            make(engine=engine)


def test_without_contexts_it_is_as_before() -> None:
    policy = ct.make_policy("auto-ucb", graph=GRAPH, arms=POOLS["features"])
    assert type(policy) is AutoPolicy
    assert not isinstance(policy.context, InputFitContext)
    for call in (policy.select, policy.predict, policy.covariance):
        with pytest.raises(ContextError, match="a context was given; 'auto-ucb' was made without contexts"):
            call(0, context={"hour": 3})
    with pytest.raises(ContextError):
        policy.update(0, "a", 1.0, context={"hour": 3})
    with pytest.raises(UnknownUserError):
        policy.select("nobody", context={"hour": 3})
    assert policy.n_rewards == policy.n_decisions == 0
