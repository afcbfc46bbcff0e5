"""The engine beside a plain model of it: any calls in any order, the clock, restarts; then the state of a replay."""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from coterie.errors import InputError
from coterie.service.engine.engine import Engine
from coterie.service.engine.failures import ConflictError
from coterie.service.engine.snapshots import state_digest
from coterie.service.journal import Snapshot
from coterie.service.records import (
    Arm,
    ArmsChange,
    DecisionRequest,
    Edge,
    RewardRequest,
    SettingsChange,
    User,
    UsersChange,
)
from service_engines import USERS, Kept, experiment
from service_model import REFUSED, Decided, Model

EVENTS = st.integers(0, 9).map("e{}".format)
VALUES = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 7.0])
REWARD_IDS = st.sampled_from([None, "r1", "r2"])


class EngineMachine(RuleBasedStateMachine):
    @initialize(
        wait_time=st.sampled_from([50.0, 5000.0]),
        default=st.sampled_from([None, 0.25]),
        how=st.sampled_from(["first", "last", "sum", "mean", "max"]),
        max_pending=st.sampled_from([3, 100]),
        policy=st.sampled_from(["auto-ucb", "auto-ts", "lk-gp-ucb", "random"]),
        forgetting=st.sampled_from([1.0, 1.0, 0.8]),
    )
    def begin(self, policy: str, forgetting: float, max_pending: int, **kept: Any) -> None:
        self.kept = Kept()
        self.model = Model(kept["wait_time"], kept["default"], kept["how"], max_pending)
        self.since: list[Decided] = []  # decisions since the last reset
        self.requests: dict[str, DecisionRequest] = {}
        self.users, self.n_new = list(USERS), 0
        given = {"wait_time": kept["wait_time"], "default_reward": kept["default"], "aggregation": kept["how"]}
        forgetting = 1.0 if policy == "random" else forgetting
        made = experiment(policy=policy, forgetting=forgetting, max_pending=max_pending, **given)
        self.kept.engine.create(made)

    @property
    def engine(self) -> Engine:
        return self.kept.engine

    @property
    def now(self) -> float:
        return self.engine.state.now()

    @rule(name=EVENTS, user=st.integers(0, 9), k=st.sampled_from([None, None, 1, 2]), deferred=st.booleans())
    def decide(self, name: str, user: int, k: int | None, deferred: bool) -> None:
        if name not in self.requests:
            self.decide_now(name, user, k, deferred)

    def decide_now(self, name: str, user: int, k: int | None, deferred: bool) -> None:
        who = self.users[user % len(self.users)]
        request = DecisionRequest(user=who, event_id=name, k=k, defer_activation=deferred, probabilities=True)
        answer, is_new = self.engine.decide("news", request)
        self.model.decide(name, who, self.now, k or 1, deferred)
        self.since.append(self.model.decisions[name])
        self.requests[name] = request
        assert is_new
        if answer.propensity is not None:
            assert isinstance(answer.probabilities, dict)
            assert answer.probabilities[answer.arm] == answer.propensity

    @precondition(lambda self: self.requests)
    @rule(name=EVENTS)
    def decide_again(self, name: str) -> None:
        if name not in self.requests:
            return
        request, before = self.requests[name], state_digest(self.engine.state)
        answer, is_new = self.engine.decide("news", request)
        assert (answer.event_id, is_new) == (name, False)
        with pytest.raises(ConflictError, match="was another request"):
            self.engine.decide("news", DecisionRequest(user=request.user, event_id=name, exclude=["gin"]))
        assert state_digest(self.engine.state) == before

    @rule(name=EVENTS, value=VALUES, reward_id=REWARD_IDS, place=st.sampled_from([1, 1, 1, 2]))
    def reward(self, name: str, value: float, reward_id: str | None, place: int) -> None:
        self.reward_now(name, value, reward_id, place)

    def reward_now(self, name: str, value: float, reward_id: str | None, place: int) -> None:
        given = {"value": value, "reward_id": reward_id, "place": place}
        try:
            status = self.engine.reward(name, RewardRequest(**given)).status  # type: ignore[arg-type]
        except InputError:
            status = REFUSED  # type: ignore[assignment]
        assert status == self.model.reward(name, given, self.now)

    @rule(user=st.integers(0, 9), rewards=st.lists(VALUES, max_size=3))
    def decide_and_reward(self, user: int, rewards: list[float]) -> None:
        self.n_new += 1
        self.decide_now(f"new-{self.n_new}", user, None, False)
        for value in rewards:
            self.reward_now(f"new-{self.n_new}", value, None, 1)

    @rule(name=EVENTS)
    def activate(self, name: str) -> None:
        if name in self.requests:
            assert self.engine.activate(name).status == self.model.activate(name, self.now)

    @rule(seconds=st.sampled_from([1.0, 30.0, 700.0]), ticks=st.booleans())
    def wait(self, seconds: float, ticks: bool) -> None:
        self.kept.now += seconds
        if ticks:
            self.engine.tick()
            self.model.tick(self.now)

    @rule()
    def reset(self) -> None:
        self.engine.reset("news")
        self.model.reset()
        self.since = []

    @rule(change=st.sampled_from(["put", "new", "retire", "revive"]))
    def change_arms(self, change: str) -> None:
        self.n_new += change == "new"
        changes = {
            "put": ArmsChange(put=[Arm(id="ale", features=[float(self.n_new), 2.0])]),
            "new": ArmsChange(put=[Arm(id=f"new-{self.n_new}", features=[1.0, float(self.n_new)])]),
            "retire": ArmsChange(retire=["gin"]),
            "revive": ArmsChange(revive=["gin"]),
        }
        self.engine.change_arms("news", changes[change])

    @rule(change=st.sampled_from(["add", "remove", "edge"]), user=st.integers(0, 9))
    def change_users(self, change: str, user: int) -> None:
        who = self.users[user % len(self.users)]
        if change == "edge" and who != self.users[0]:
            self.engine.set_edges("news", [Edge(user=self.users[0], other=who, weight=0.5 * (user % 3))])
        if change == "add":
            self.n_new += 1
            self.users.append(f"user-{self.n_new}")
            self.engine.change_users("news", UsersChange(add=[User(id=self.users[-1], friends=[who])]))
        if change == "remove" and len(self.users) > 2:
            self.users.remove(who)
            self.engine.change_users("news", UsersChange(remove=[who]))
            self.model.remove_user(who)
            self.model.n_rewards = self.model.count_rewards(self.since)

    @rule(
        how=st.sampled_from(["first", "last", "sum", "mean", "max"]),
        limits=st.sampled_from([None, (0.0, 1.0)]),
        floor=st.sampled_from([0.0, 0.02]),
        wait_time=st.sampled_from([50.0, 5000.0]),
    )
    def configure(self, how: Any, limits: Any, floor: float, wait_time: float) -> None:
        change = SettingsChange(aggregation=how, reward_range=limits, exploration_floor=floor, wait_time=wait_time)
        self.engine.configure("news", change)
        self.model.how, self.model.range, self.model.wait_time = how, limits, wait_time

    @rule(how=st.sampled_from(["journal", "snapshot", "damaged", "torn"]), jump=st.sampled_from([0.0, -500.0, 500.0]))
    def restart(self, how: str, jump: float) -> None:
        if how != "journal":
            self.kept.snapshot()
        if how in ("damaged", "torn"):
            seq, content = next(self.kept.journal.snapshots())
            damaged = content[: len(content) // 2] if how == "torn" else content[:-200] + bytes(200)
            self.kept.journal.put_snapshot(Snapshot(seq, damaged))
        self.kept.commit()
        live = state_digest(self.engine.state)
        again = Engine(self.kept.journal, clock=self.kept.clock())
        again.state.replay(self.kept.journal.read(1))
        assert state_digest(again.state) == live
        self.kept.jump += jump  # the computer's clock is set
        self.kept.restart(use_snapshots=how != "journal")
        fresh, _ = self.kept.opened(use_snapshots=False)
        assert state_digest(self.engine.state) == state_digest(fresh.state)
        if how in ("damaged", "torn"):
            assert self.kept.recovery.n_damaged >= 1
        self.kept.commit()

    @invariant()
    def counts_are_those_of_the_model(self) -> None:
        view = self.engine.view("news")
        assert view.n_decisions == self.model.n_decisions
        assert view.n_rewards == self.model.n_rewards
        assert view.n_pending == len(self.model.waiting)


def run(examples: int, steps: int) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    given = settings(max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=checks)
    run_state_machine_as_test(EngineMachine, settings=given)


def test_an_engine_does_what_a_plain_model_does() -> None:
    run(examples=15, steps=25)


@pytest.mark.slow
def test_an_engine_does_what_a_plain_model_does_for_long() -> None:
    run(examples=500, steps=60)
