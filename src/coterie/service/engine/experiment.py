"""One experiment: its bandit, its settings, and the decisions whose rewards still count.

What an event means for the service is in `apply`, for those that just happened and for those that are made again. What
it means for the bandit is in the event's `changes`: made again by a replay, and done already by the live call.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec import UNSET

from coterie.product.bandit import Bandit
from coterie.product.changes import recover
from coterie.product.decisions import Decision
from coterie.product.files.recording import LineRecorder
from coterie.product.files.replaying import Replay
from coterie.product.inputs.arm_inputs import with_arms, without_arms
from coterie.service.engine.bandits import (
    arms_of,
    bandit_as_bytes,
    bandit_of_bytes,
    check_named_once,
    edges_of,
    graph_of,
    new_bandit,
)
from coterie.service.engine.events import (
    Activated,
    Archived,
    Body,
    Changed,
    Configured,
    Decided,
    Expired,
    Line,
    Reset,
    Rewarded,
)
from coterie.service.engine.pending import PendingDecision, PendingDecisions
from coterie.service.journal import Event
from coterie.service.records import (
    ArmsChange,
    DecisionRequest,
    ExperimentSettings,
    ExperimentView,
    NewExperiment,
    UsersChange,
)

DECIDING = frozenset({"decide", "rank"})  # lines of a bandit that leave its posterior as it is


class Experiment:
    """An experiment, on a bandit that makes lines of a journal again until `go_live`.

    Args:
        id: Its id.
        settings: How it decides and learns.
        bandit: Its bandit, and what makes its changes again.

    Attributes:
        is_archived: Whether it takes no further decisions.
        graph_version: How often the graph was changed.
        arms_version: How often the arms were changed.
        model_version: How often the posterior was changed.
        n_fits: Fits of hyperparameters that were taken since this was made or loaded.
        n_refused_fits: Fits that failed since then.
        n_changes: Lines of the bandit's journal since it was made or reset.
        last_seq: The number of its last event.
        pending: The decisions whose rewards count.
    """

    def __init__(self, id: str, settings: ExperimentSettings, bandit: tuple[Bandit, Replay]) -> None:
        self.id, self.settings = id, settings
        self.bandit, self._replay = bandit
        self.is_archived = False
        self.graph_version = self.arms_version = self.model_version = self.n_changes = self.last_seq = 0
        self.n_fits = self.n_refused_fits = 0
        self.pending = PendingDecisions()
        self._recorder: LineRecorder | None = None

    @classmethod
    def of(cls, id: str, given: NewExperiment) -> "Experiment":
        """Returns a new experiment, or raises if it cannot be one."""
        kept = {name: getattr(given, name) for name in ExperimentSettings.__struct_fields__}
        settings = ExperimentSettings(**kept)
        return cls(id, settings, new_bandit(settings, graph_of(given.graph), arms_of(given.arms)))

    def go_live(self) -> None:
        """Ends the replay: from now on the bandit's own changes are recorded."""
        if self._recorder is None:
            self._recorder = LineRecorder(self.n_changes)
            self._replay.end(self._recorder)

    def taken_lines(self) -> list[Line]:
        """Returns the lines that the bandit has recorded since they were last taken."""
        with self.bandit._lock:  # a reader in another thread may make it record one
            return [] if self._recorder is None else self._recorder.take()

    def settle(self) -> bool:
        """Lets the bandit do what is left of a call that failed; returns whether it has lines that no event holds."""
        with self.bandit._lock:
            recover(self.bandit)
            return self._recorder is not None and self._recorder.has_lines

    @property
    def odd_decisions(self) -> tuple[int, str]:
        """How many decisions came out otherwise when they were made again than they were logged, and the first."""
        return self._replay.n_odd, self._replay.first_odd

    @property
    def is_fitting(self) -> bool:
        """Whether hyperparameters are being fitted at the moment."""
        fit = self.bandit._learned.policy.pending_fit
        return fit is not None and not fit.is_ready

    def view(self, seq: int) -> ExperimentView:
        """Returns the experiment as it stands after an event."""
        return ExperimentView(
            id=self.id,
            is_archived=self.is_archived,
            settings=self.settings,
            n_users=self.bandit.graph.n_users,
            n_edges=self.bandit.graph.n_edges,
            n_arms=len(self.bandit.arms),
            n_decisions=self.bandit.n_decisions,
            n_rewards=self.bandit.n_rewards,
            n_pending=len(self.pending),
            graph_version=self.graph_version,
            arms_version=self.arms_version,
            model_version=self.model_version,
            seq=seq,
        )

    def decide(self, request: DecisionRequest) -> list[Decision]:
        """Returns the decision of each place that was asked for; on an error nothing has changed."""
        given, context = self._candidates(request), request.context
        more = {"keep": True} if isinstance(given, dict) and context is None and not self.has_contexts else {}
        if request.k is not None:
            return list(self.bandit.rank(request.user, given, request.k, context, **more))
        return [self.bandit.decide(request.user, given, context, **more)]

    @property
    def has_contexts(self) -> bool:
        """Whether decisions have contexts; where they have none, arms that come with a request join the pool."""
        return self.bandit.context_schema is not None

    def _candidates(self, request: DecisionRequest) -> list[Any] | dict[Any, Any] | None:
        """Returns what a request is to be decided among, as the bandit takes it."""
        out: set[Any] = set(request.exclude)
        given = request.candidates
        for arm in out - {each if isinstance(each, str) else each.id for each in given or ()}:
            self.bandit.arms.index_of(arm)  # raises if there is no such arm
        if given is None:
            out |= set(self.bandit.retired) if out else set()
            return [arm for arm in self.bandit.arms.ids if arm not in out] if out else None
        kept = [each for each in given if (each if isinstance(each, str) else each.id) not in out]
        ids = [each if isinstance(each, str) else each.id for each in kept]
        if all(isinstance(each, str) for each in kept) or len(set(ids)) < len(ids):
            return ids
        return {each: None if isinstance(arm, str) else arm.features for each, arm in zip(ids, kept, strict=True)}

    def change_arms(self, change: ArmsChange) -> None:
        """Adds arms or gives them other features, retires arms, and lets retired ones be shown again."""
        bandit, known = self.bandit, self.bandit.arms.index
        new = [arm for arm in change.put if arm.id not in known]
        old = [arm for arm in change.put if arm.id in known]
        after = with_arms(bandit.arms, arms_of(change.put)) if change.put else bandit.arms
        for arm in (*change.retire, *change.revive):
            after.index_of(arm)
        without_arms(after.ids, {*bandit.retired, *change.retire} - {*change.revive})  # raises, as the lines above do
        calls: list[Callable[[Bandit], object]] = []
        if new:
            calls.append(lambda bandit: bandit.add_arms(arms_of(new)))
        if old and after.has_features:
            calls.append(lambda bandit: bandit.update_features(arms_of(old)))
        if change.revive:
            calls.append(lambda bandit: bandit.revive_arms(change.revive))
        if change.retire:
            calls.append(lambda bandit: bandit.retire_arms(change.retire))
        self._make_all(calls)

    def change_users(self, change: UsersChange) -> None:
        """Adds users with their friends, and removes users with what was learned from them.

        One who is there already stays as they are, and is joined to the friends that are named: to add users again
        changes nothing.
        """
        check_named_once("users", [user.id for user in change.add])
        graph, gone = self.bandit.graph, list(dict.fromkeys(change.remove))
        new = {user.id: user.friends for user in change.add if user.id not in graph}
        joined = edges_of([user for user in change.add if user.id in graph])
        after = graph.add_users(new)[0] if new else graph
        after = after.set_edges(joined)[0] if joined else after
        for user in gone:
            after = after.remove_user(user)[0]  # raises, as the lines above do, before the bandit has changed
        calls: list[Callable[[Bandit], object]] = []
        if new:
            calls.append(lambda bandit: bandit.add_users(new))
        if joined:
            calls.append(lambda bandit: bandit.connect_many(joined))
        calls += [partial(Bandit.remove_user, user=user) for user in gone]
        self._make_all(calls)

    def _make_all(self, calls: Sequence[Callable[[Bandit], object]]) -> None:
        """Makes calls of the bandit, all or none: each is whole by itself, several are tried on a copy first."""
        if len(calls) > 1:
            copy, replay = bandit_of_bytes(bandit_as_bytes(self.bandit))
            replay.end()
            for call in calls:
                call(copy)
        for call in calls:
            call(self.bandit)

    def make_again(self, changes: Sequence[Line]) -> None:
        """Makes the bandit's part of an event again, as in a replay."""
        for line in changes:
            self._replay.make(line)

    def apply(self, body: Body, event: Event) -> None:
        """Takes an event into account: all but what its changes mean for the bandit."""
        key, self.last_seq = event.key, event.seq
        self.n_changes += len(body.changes)
        self.model_version += sum(line["call"] not in DECIDING for line in body.changes)
        self.n_fits += sum(line["call"] == "_take_fit" for line in body.changes)
        self.n_refused_fits += sum(line.get("refused", 0) for line in body.changes)
        match body:
            case Decided():
                n_places = 1 if body.answer.slate is UNSET else len(body.answer.slate)
                active, at, places = not body.deferred, event.at, (None,) * n_places
                made = PendingDecision(event_id=key, first=body.first, made_at=at, is_active=active, places=places)
                self.pending.put(made)
            case Activated(status="activated"):
                decision = self.pending.get(key)
                assert decision is not None
                self.pending.put(decision.activated())
            case Rewarded():
                self._apply_reward(body, key)
            case Expired():
                for event_id in body.ids:
                    self.pending.remove(event_id)
            case Changed(part="graph"):
                self.graph_version += 1
            case Changed(part="arms"):
                self.arms_version += 1
            case Configured():
                self._configure(body.settings)
            case Reset():
                self._reset()
            case Archived():
                self.is_archived = True
            case _:
                pass

    def _apply_reward(self, body: Rewarded, key: str) -> None:
        decision = self.pending.get(key)
        if decision is None or body.status == "late":
            return
        decision = decision.with_id(body.reward.reward_id)
        if body.status == "held":
            decision = decision.with_held(body.reward)
        if body.status == "applied":
            decision = decision.with_learned(body.reward)
        self.pending.put(decision)

    def _configure(self, settings: ExperimentSettings) -> None:
        """Takes other settings; the bandit has one of them too, which only its next decisions depend on."""
        self.settings = settings
        self.bandit._min_propensity = settings.exploration_floor

    def _reset(self) -> None:
        """Begins again, with the graph and the arms of now; decisions that wait are forgotten."""
        retired = self.bandit.retired
        was_live, made = self._recorder is not None, new_bandit(self.settings, self.bandit.graph, self.bandit.arms)
        if retired:
            made[0].retire_arms(retired)
        self.bandit, self._replay = made
        self.pending, self.n_changes, self._recorder = PendingDecisions(), 0, None
        if was_live:
            self.go_live()
