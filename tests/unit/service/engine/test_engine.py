"""What the engine does in odd moments, each named by its test."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.errors import CoterieError, UnknownArmError
from coterie.service.engine import engine as engine_module
from coterie.service.engine.engine import Engine
from coterie.service.engine.failures import ConflictError, NotThereError
from coterie.service.engine.snapshots import state_digest
from coterie.service.records import (
    Arm,
    ArmsChange,
    DecisionRequest,
    Edge,
    Graph,
    RewardRequest,
    SettingsChange,
    User,
    UsersChange,
)
from service_engines import ARMS, USERS, Kept, experiment


def kept(**settings: Any) -> Kept:
    out = Kept()
    out.engine.create(experiment(**settings))
    return out


def counts(of: Kept) -> tuple[int, int, int]:
    view = of.engine.view("news")
    return view.n_decisions, view.n_rewards, view.n_pending


# Refusals

REFUSED: dict[str, Callable[[Engine], Any]] = {
    "unknown experiment": lambda e: e.decide("blog", DecisionRequest(user="ana")),
    "unknown user": lambda e: e.decide("news", DecisionRequest(user="zoe")),
    "unknown candidate": lambda e: e.decide("news", DecisionRequest(user="ana", candidates=["tea", "rum"])),
    "candidate twice": lambda e: e.decide("news", DecisionRequest(user="ana", candidates=["tea", "tea"])),
    "all excluded": lambda e: e.decide("news", DecisionRequest(user="ana", exclude=list(ARMS))),
    "too many places": lambda e: e.decide("news", DecisionRequest(user="ana", k=50)),
    "a context too late": lambda e: e.decide("news", DecisionRequest(user="ana", context={"hour": 1.0})),
    "a guest without contexts": lambda e: e.decide("news", DecisionRequest(user="ana", candidates=[Arm(id="new")])),
    "another body": lambda e: e.decide("news", DecisionRequest(user="bo", event_id="e1")),
    "out of range": lambda e: e.reward("e1", RewardRequest(value=7.0)),
    "no such place": lambda e: e.reward("e1", RewardRequest(value=0.5, place=2)),
    "activate unknown": lambda e: e.activate("e99"),
    "taken id": lambda e: e.create(experiment()),
    "user twice": lambda e: e.create(experiment("other", graph=Graph(users=["ana", "ana"]))),
    "arm twice": lambda e: e.create(experiment("other", arms=[Arm(id="a"), Arm(id="a")])),
    "some features": lambda e: e.create(experiment("other", arms=[Arm(id="a"), Arm(id="b", features=[1.0])])),
    "unknown policy": lambda e: e.create(experiment("other", policy="magic")),
    "odd default": lambda e: e.configure("news", SettingsChange(default_reward=7.0)),
    "odd range": lambda e: e.configure("news", SettingsChange(reward_range=(1.0, 0.0))),
    "retire unknown": lambda e: e.change_arms("news", ArmsChange(put=[Arm(id="a", features=[1.0, 1.0])], retire=["x"])),
    "retire all": lambda e: e.change_arms("news", ArmsChange(retire=list(ARMS))),
    "odd features": lambda e: e.change_arms("news", ArmsChange(put=[Arm(id="a", features=[1.0])])),
    "remove unknown": lambda e: e.change_users("news", UsersChange(add=[User(id="new")], remove=["zoe"])),
    "unknown friend": lambda e: e.change_users("news", UsersChange(add=[User(id="new", friends=["zoe"])])),
    "unknown end": lambda e: e.set_edges("news", [Edge(user="ana", other="bo"), Edge(user="ana", other="zoe")]),
    "an edge to oneself": lambda e: e.set_edges("news", [Edge(user="ana", other="ana")]),
    "an edge twice": lambda e: e.set_edges("news", [Edge(user="ana", other="bo"), Edge(user="bo", other="ana")]),
    "unknown key": lambda e: e.revoke_key("nobody"),
}


@settings(max_examples=15, deadline=None)
@given(calls=st.lists(st.sampled_from(sorted(REFUSED)), min_size=1, max_size=12))
def test_a_refused_call_changes_nothing(calls: list[str]) -> None:
    some = kept(reward_range=(0.0, 1.0))
    some.decide(event_id="e1")
    some.reward(some.decide("bo"), 0.5)
    some.commit()
    before = state_digest(some.engine.state)
    for name in calls:
        with pytest.raises(CoterieError):
            REFUSED[name](some.engine)
        assert state_digest(some.engine.state) == before, name
    assert some.engine.state.take_batch() == []


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_every_bad_call_is_refused(name: str) -> None:
    some = kept(reward_range=(0.0, 1.0))
    some.decide(event_id="e1")
    some.reward(some.decide("bo"), 0.5)
    before = state_digest(some.engine.state)
    with pytest.raises(CoterieError):
        REFUSED[name](some.engine)
    assert state_digest(some.engine.state) == before


# Ids


def test_reward_ids_are_known_before_they_are_durable_and_after_they_expired() -> None:
    some = kept(wait_time=10.0)
    event = some.decide()
    assert some.reward(event, reward_id="r") == "applied"
    some.now += 11.0
    some.engine.tick()
    assert some.reward(event, reward_id="r") == "duplicate"  # not durable yet
    assert some.reward(event, reward_id="s") == "late"
    assert some.reward(event, reward_id="s") == "duplicate"
    some.restart()
    assert [some.reward(event, reward_id=name) for name in "rst"] == ["duplicate", "duplicate", "late"]


def test_reward_ids_of_waiting_decisions_survive_a_restart() -> None:
    some = kept(aggregation="sum")
    event, deferred = some.decide(), some.decide("bo", defer_activation=True)
    assert (some.reward(event, reward_id="r"), some.reward(deferred, reward_id="r")) == ("applied", "held")
    some.snapshot()
    some.restart()
    assert (some.reward(event, reward_id="r"), some.reward(deferred, reward_id="r")) == ("duplicate", "duplicate")


def test_decisions_are_found_again_in_the_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    from coterie.service.engine import state

    monkeypatch.setattr(state, "RECENT", 2)
    some = kept()
    for step in range(6):
        some.decide(event_id=f"e{step}")
    assert some.engine.experiment_of("e0") == "news"  # not durable yet, and not among the last
    some.commit()
    assert some.engine.decide("news", DecisionRequest(user="ana", event_id="e0"))[1] is False
    assert some.engine.experiment_of("e9") is None
    assert some.reward("e0") == "applied"


def test_ids_that_look_alike_are_different() -> None:
    users = ["ana", "Ana", "ana ", "an\u0061\u0301", "an\u00e1", "1", "1.0", "01"]
    some = Kept()
    some.engine.create(experiment(graph=Graph(users=users), arms=[Arm(id=each) for each in users]))
    for user in users:
        some.reward(some.decide(user, candidates=[user]))
    some.restart()
    assert some.engine.view("news").n_rewards == len(users)
    assert set(some.engine.state.experiments["news"].bandit.users) == set(users)


# Held rewards


def test_a_reward_before_its_decision_counts_when_that_comes() -> None:
    some = kept()
    assert some.reward("e1", 0.5, reward_id="r") == "held"
    assert some.reward("e1", 0.5, reward_id="r") == "duplicate"
    some.snapshot()
    some.restart()
    some.decide(event_id="e1")
    assert counts(some) == (1, 1, 1)
    assert some.reward("e1", 0.5, reward_id="r") == "duplicate"


def test_a_held_reward_that_may_not_count_is_logged_as_late() -> None:
    some = kept(reward_range=(0.0, 1.0))
    some.engine.reward("e1", RewardRequest(value=0.5), may_reward=["other"])
    some.engine.reward("e1", RewardRequest(value=7.0), may_reward=["news"])
    some.decide(event_id="e1")
    some.commit()
    late = [event for event in some.journal.find("e1") if event.kind == "rewarded" and b'"late"' in event.body]
    assert (len(late), counts(some)) == (2, (1, 0, 1))


def test_held_rewards_are_let_go_after_a_while_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "MOST_UNCLAIMED", 2)
    some = kept()
    for step in range(3):
        some.reward(f"e{step}")
    some.now += 601.0
    assert some.engine.tick() is True
    assert len(some.engine.state.held) == 1
    assert some.engine.tick() is False
    some.decide(event_id="e0")
    assert counts(some) == (1, 0, 1)


def test_rewards_held_for_a_deferred_decision_that_may_not_count_any_more_are_logged() -> None:
    some = kept(aggregation="sum")
    event = some.decide(defer_activation=True)
    assert [some.reward(event, value) for value in (0.5, 7.0, 0.25)] == ["held"] * 3
    some.engine.configure("news", SettingsChange(reward_range=(0.0, 1.0)))
    assert some.engine.activate(event).status == "activated"
    some.commit()
    statuses = [event.body.count(b'"late"') for event in some.journal.find(event) if event.kind == "rewarded"]
    assert (sum(statuses), counts(some)) == (1, (1, 1, 1))


# Time


def test_a_decision_that_waited_too_long_counts_as_the_default() -> None:
    some = kept(wait_time=10.0, default_reward=-1.0, aggregation="sum")
    unrewarded, rewarded, deferred = some.decide(), some.decide("bo"), some.decide("cy", defer_activation=True)
    some.reward(rewarded, 2.0)
    some.now += 10.0
    some.engine.tick()
    assert counts(some) == (3, 1, 3)  # at the very end of the time rewards count still
    some.now += 0.1
    assert some.engine.activate(deferred).status == "late"
    assert counts(some) == (3, 2, 0)
    assert some.reward(unrewarded) == "late"


def test_a_late_reward_is_late_though_others_expire_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "MOST_EXPIRED", 2)
    some = kept(wait_time=10.0, default_reward=0.0)
    events = [some.decide() for _ in range(6)]
    some.now += 11.0
    assert some.reward(events[-1]) == "late"
    assert counts(some)[2] == 4
    while some.engine.tick():
        pass
    assert counts(some) == (6, 6, 0)


def test_an_archived_experiment_learns_nothing_more() -> None:
    some = kept(wait_time=10.0, default_reward=0.0)
    event = some.decide()
    some.engine.archive("news")
    some.now += 11.0
    some.engine.tick()
    assert some.reward(event) == "late"
    assert some.engine.activate(event).status == "late"
    assert counts(some) == (1, 0, 1)
    for call in (some.engine.archive, some.engine.reset):
        with pytest.raises(ConflictError, match="is archived"):
            call("news")
    some.restart()
    assert some.engine.view("news").is_archived


@pytest.mark.parametrize("jump", [-1e6, 1e6])
def test_no_jump_of_the_clock_lets_decisions_expire_while_the_process_runs(jump: float) -> None:
    some = kept(wait_time=10.0, default_reward=0.0)
    event = some.decide()
    some.jump = jump
    some.engine.tick()
    assert some.reward(event) == "applied"


def test_the_time_of_events_never_goes_back() -> None:
    some = kept(wait_time=10.0)
    event = some.decide()
    some.jump = -1e6
    some.restart()
    assert some.reward(event) == "applied"
    some.now += 11.0
    some.decide()
    some.commit()
    times = [each.at for each in some.journal.read(1)]
    assert times == sorted(times)
    assert times[-1] - times[0] == 11.0


# Slates, aggregation, what is removed


def test_places_of_a_slate_are_rewarded_each_for_itself() -> None:
    some = kept(default_reward=0.0, wait_time=10.0)
    event = some.decide(k=3)
    assert some.reward(event, place=2) == "applied"
    assert some.reward(event, place=2) == "duplicate"
    some.now += 11.0
    some.engine.tick()
    assert counts(some) == (3, 3, 0)


def test_more_decisions_than_may_wait_let_the_oldest_expire_by_places() -> None:
    some = kept(max_pending=4, default_reward=0.0)
    first, second = some.decide(k=2), some.decide(k=2)
    some.decide()
    assert (some.reward(first), some.reward(second)) == ("late", "applied")
    assert counts(some) == (5, 3, 2)
    some.decide(k=3)
    assert counts(some)[2] == 2


@pytest.mark.parametrize("how", ["last", "sum", "mean", "max"])
def test_rewards_come_together_for_as_long_as_the_decision_waits(how: Any) -> None:
    some = kept(aggregation=how, max_pending=5)
    events = [some.decide(USERS[step % 4]) for step in range(5)]
    some.reward(events[4], 1.0)
    for event in events[:4]:
        some.reward(event, 0.0)
    for _ in range(4):  # the first four expire, and their rewards are newer than that of the fifth
        some.reward(some.decide(), 0.0)
    assert some.reward(events[4], 4.0) == "applied"
    rewards = some.engine.state.experiments["news"].bandit._learned.events.rewards
    assert rewards[0] == {"last": 4.0, "sum": 5.0, "mean": 2.5, "max": 4.0}[how]


def test_rewards_of_users_who_are_gone_are_late() -> None:
    some = kept(aggregation="last", default_reward=0.0, wait_time=10.0)
    one, two, other = some.decide("cy"), some.decide("cy"), some.decide("ana")
    some.reward(one)
    some.engine.change_users("news", UsersChange(remove=["cy"]))
    assert [some.reward(event) for event in (one, two, other)] == ["late", "late", "applied"]
    some.now += 11.0
    some.engine.tick()
    assert counts(some) == (3, 1, 0)
    some.restart()
    assert counts(some) == (3, 1, 0)


def test_a_reset_forgets_rewards_and_decisions_that_wait() -> None:
    some = kept()
    old, waiting = some.decide(), some.decide()
    some.reward(old, reward_id="r")
    some.engine.change_arms("news", ArmsChange(retire=["gin"]))
    some.engine.reset("news")
    assert counts(some) == (0, 0, 0)
    assert (some.reward(waiting), some.reward(old, reward_id="r")) == ("late", "duplicate")
    assert some.engine.activate(waiting).status == "late"
    some.reward(some.decide())
    some.restart()
    assert counts(some) == (1, 1, 1)
    assert some.engine.state.experiments["news"].bandit.retired == ("gin",)


def test_arms_that_come_with_a_request_are_candidates_of_it_alone() -> None:
    some = kept()
    asked = [Arm(id="new", features=[5.0, 5.0])]
    event = some.decide(candidates=asked, context={"hour": 1.0})
    assert some.reward(event) == "applied"
    assert some.engine.view("news").n_arms == 3
    some.restart()
    some.reward(some.decide(candidates=["tea", *asked], context={"hour": 2.0}))
    assert some.engine.view("news").n_rewards == 2


def test_the_first_context_says_what_others_hold_after_a_restart_too() -> None:
    some = kept()
    some.decide(context={"hour": 1.0, "device": "phone"})
    some.snapshot()
    some.restart()
    with pytest.raises(CoterieError, match="has no 'device'"):
        some.decide(context={"hour": 1.0})
    some.decide(context={"hour": 1.0, "device": "desk"})


def test_an_exploration_floor_holds_from_then_on() -> None:
    some = kept(policy="auto-ucb")
    some.reward(some.decide())
    some.engine.configure("news", SettingsChange(exploration_floor=0.2))
    for _ in range(2):
        asked = DecisionRequest(user="ana", probabilities=True)
        found = some.engine.decide("news", asked)[0].probabilities
        assert isinstance(found, dict)
        assert min(found.values()) == pytest.approx(0.2)
        some.restart()


def test_all_experiments_can_be_listed() -> None:
    some = kept()
    some.engine.create(experiment("other"))
    assert [view.id for view in some.engine.views()] == ["news", "other"]
    with pytest.raises(NotThereError):
        some.engine.view("blog")


def test_new_arms_join_an_experiment_without_contexts_and_are_there_after_a_restart() -> None:
    some = kept()
    asked = DecisionRequest(user="ana", candidates=["tea", Arm(id="new", features=[5.0, 5.0])], event_id="e1")
    assert some.engine.decide("news", asked)[0].arm in ("tea", "new")
    assert some.engine.view("news").n_arms == len(ARMS) + 1
    some.engine.decide("news", DecisionRequest(user="bo", candidates=["new"], event_id="e2"))
    some.engine.reward("e2", RewardRequest(value=1.0))
    slate = DecisionRequest(user="bo", candidates=["new", Arm(id="newer", features=[0.0, 5.0])], k=2)
    some.engine.decide("news", slate)
    some.commit()
    again = some.opened(use_snapshots=False)[0]
    assert again.state.get("news").bandit.arms.ids == (*ARMS, "new", "newer")
    assert again.state.get("news").bandit.predict("bo") == some.engine.state.get("news").bandit.predict("bo")


def test_an_arm_that_is_not_there_cannot_be_excluded() -> None:
    kept = Kept()
    kept.engine.create(experiment())
    with pytest.raises(UnknownArmError, match="'wine'"):
        kept.decide("ana", exclude=["wine"])
    with pytest.raises(UnknownArmError, match="'wine'"):
        kept.decide("ana", candidates=["tea", "ale"], exclude=["wine"])
    kept.decide("ana", candidates=["tea", "ale"], exclude=["gin", "tea"])
