"""What was learned: every reward, and the policy that knows them."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Any, NamedTuple

import numpy as np

from coterie.contracts import ArmId, Array, UserId
from coterie.errors import FAILURES, ContextError, ParameterError, listed
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.kernels.input_space import InputSpace
from coterie.kernels.schema import ContextSchema
from coterie.kernels.user_features import user_rows
from coterie.models import History, Model, make_model
from coterie.models.base import SolveProgress
from coterie.models.engines.sparse.reward_table import COLUMNS, collapsed
from coterie.policies import Policy
from coterie.policies.auto.context_policy import ContextPolicy
from coterie.policies.factory.engine_choice import feature_options
from coterie.policies.reward_batches import Progress
from coterie.product.decisions import GUEST, Ledger

FAR = 1e6  # a reward so many times as large as all others takes digits from them that matter
FORGOTTEN = 1e-6  # a lower weight counts as none: at most 14 / (1 - forgetting) rewards count
SLACK = 16  # of the rewards that count, one part in so many may be counted for longer than it should


@dataclass(slots=True)
class RewardEvents:
    """The rewards, one row each: user and arm as rows of graph and pool.

    Attributes:
        users: Rows of the graph.
        arms: Rows of the pool; `GUEST` for arms that are not of it.
        rewards: What came.
        inputs: The arm of each in its context, as the model knows it; empty where there are no contexts.
        guests: The ids of arms that are not of the pool, by the number of the reward.
        examined: How likely the place of each is looked at beside the first; empty where places have no given effect.
        counts: How many rewards each row stands for, whose mean its reward is; empty where each is one reward.
        scatters: Their sum of squares about that mean; empty likewise.

    Examples:
        >>> events = RewardEvents()
        >>> events.add(0, 2, 1.0), events.add(0, 2, 3.0)
        (0, 1)
        >>> events.history(np.array([1.0, 1.0])).means
        [2.0]
    """

    users: "array[int]" = field(default_factory=lambda: array("q"))
    arms: "array[int]" = field(default_factory=lambda: array("q"))
    rewards: "array[float]" = field(default_factory=lambda: array("d"))
    inputs: list[Array] = field(default_factory=list)
    guests: dict[int, ArmId] = field(default_factory=dict)
    examined: "array[float]" = field(default_factory=lambda: array("d"))
    counts: "array[float]" = field(default_factory=lambda: array("d"))
    scatters: "array[float]" = field(default_factory=lambda: array("d"))

    @classmethod
    def of(
        cls,
        users: Any,
        arms: Any,
        rewards: Any,
        inputs: Iterable[Array] = (),
        guests: Mapping[int, ArmId] | None = None,
        examined: Any = (),
        counts: Any = (),
        scatters: Any = (),
    ) -> "RewardEvents":
        """Returns the events of columns of numbers."""
        out = cls()
        out.extend(users, arms, rewards, inputs, examined)
        out.counts.frombytes(np.asarray(counts, np.float64).tobytes())
        out.scatters.frombytes(np.asarray(scatters, np.float64).tobytes())
        out.guests = dict(guests or {})
        return out

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def n_rewards(self) -> int:
        """How many rewards there are.

        Examples:
            >>> RewardEvents.of([0, 0], [1, 2], [0.5, 1.0], counts=[4, 1], scatters=[1, 0]).n_rewards
            5
        """
        return round(sum(self.counts)) if self.counts else len(self.rewards)

    def add(
        self,
        user: int,
        arm: int,
        reward: float,
        input: Array | None = None,
        guest: ArmId | None = None,
        examined: float | None = None,
    ) -> int:
        """Adds a reward and returns its number."""
        self.users.append(user)
        self.arms.append(arm)
        if input is not None:
            self.inputs.append(input)
        if guest is not None:
            self.guests[len(self.rewards)] = guest
        if examined is not None:
            self.examined.append(examined)
        if self.counts:
            self.counts.append(1.0)
            self.scatters.append(0.0)
        self.rewards.append(reward)
        return len(self.rewards) - 1

    def extend(self, users: Any, arms: Any, rewards: Any, inputs: Iterable[Array] = (), examined: Any = ()) -> None:
        """Adds many rewards."""
        self.inputs.extend(inputs)
        self.examined.frombytes(np.asarray(examined, np.float64).tobytes())
        self.users.frombytes(np.asarray(users, np.int64).tobytes())
        self.arms.frombytes(np.asarray(arms, np.int64).tobytes())
        self.rewards.frombytes(np.asarray(rewards, np.float64).tobytes())

    def extend_combined(self, columns: Mapping[str, Any]) -> None:
        """Adds rewards that were combined by pairs: a row for each pair."""
        if not self.counts:  # which says whether rows stand for several rewards: it comes last
            self.scatters = array("d", np.zeros(len(self)).tobytes())
            self.counts = array("d", np.ones(len(self)).tobytes())
        self.counts.frombytes(np.asarray(columns["counts"], np.float64).tobytes())
        self.scatters.frombytes(np.asarray(columns["scatters"], np.float64).tobytes())
        self.extend(columns["users"], columns["arms"], columns["means"])

    def copied(self) -> "RewardEvents":
        """Returns a copy that stays as it is."""
        columns = self.users[:], self.arms[:], self.rewards[:], self.inputs[:]
        return RewardEvents(*columns, dict(self.guests), self.examined[:], self.counts[:], self.scatters[:])

    def cut(self, length: int) -> None:
        """Drops all but the first rewards."""
        for column in (self.users, self.arms, self.rewards, self.inputs, self.examined, self.counts, self.scatters):
            del column[length:]
        for event in [each for each in self.guests if each >= length]:
            del self.guests[event]

    def column(self, event: int) -> Any:
        """Returns the arm of a reward as the model knows it: a row of the pool, or an input."""
        return self.inputs[event] if self.inputs else self.arms[event]

    def examined_at(self, event: int) -> float:
        """Returns how likely the place of a reward is looked at beside the first."""
        return self.examined[event] if self.examined else 1.0

    def observed(self) -> tuple[Array, Array]:
        """Returns each reward as one at the first place, and its weight: noise over e has the variance over e^2.

        Examples:
            >>> RewardEvents.of([0, 0], [1, 2], [1.0, 1.0], examined=[1.0, 0.5]).observed()
            (array([1., 2.]), array([1.  , 0.25]))
        """
        rewards, examined = np.array(self.rewards), np.array(self.examined)
        if self.counts:
            return rewards, np.array(self.counts)
        return (rewards / examined, examined**2) if self.examined else (rewards, np.ones(len(rewards)))

    def arm_ids(self, pool: Sequence[ArmId]) -> list[ArmId]:
        """Returns the id of the arm of each reward."""
        return [self.guests[event] if row == GUEST else pool[row] for event, row in enumerate(self.arms)]

    def with_reward(self, event: int, reward: float) -> "RewardEvents":
        """Returns the events with another reward in the place of one; these stay as they are."""
        rewards = self.rewards[:]
        rewards[event] = reward
        return replace(self, rewards=rewards)

    def history(self, weights: Array, model: Model | None = None) -> History:
        """Returns the collapsed history in which each reward counts as much as its weight says; none for weight 0.

        It has the form in which a model keeps it, if one is given.
        """
        if self.counts:
            return self._combined_history(weights, model)
        make = History.weighted if model is None else model.new_history
        if not self.examined:
            return make(self.users, self.inputs or self.arms, self.rewards, weights)
        values, precision = self.observed()
        out = make(self.users, self.inputs or self.arms, values.tolist(), weights * precision)
        out.spare = float(weights @ (1 - precision))
        return out

    def _combined_history(self, weights: Array, model: Model | None) -> History:
        """Returns the history of rows of which some stand for several rewards; these do not fade."""
        columns = self.users, self.arms, self.counts, self.rewards, self.scatters
        named = {name: np.array(each, kind) for (name, kind), each in zip(COLUMNS.items(), columns, strict=True)}
        named["counts"] *= weights
        state = {"n_observations": self.n_rewards, **collapsed(named, int(max(self.arms, default=0)) + 1)}
        return History.restored(state, lambda *pair: pair) if model is None else model.history_of(state)

    def by_arm(self, weights: Array) -> History:
        """Returns the history of `history` by arms of the pool alone, whatever the contexts; others are left out."""
        arms = np.array(self.arms, dtype=np.intp)
        return History.weighted(self.users, self.arms, self.rewards, np.where(arms == GUEST, 0.0, weights))

    def kept(self, users: dict[int, int], arms: dict[int, int]) -> tuple["RewardEvents", dict[int, int]]:
        """Returns the events in new rows, without those of users and arms that are gone, and their new places."""
        out, places = RewardEvents(), {}
        for number, (user, arm, reward) in enumerate(zip(self.users, self.arms, self.rewards, strict=True)):
            if user in users and (arm in arms or arm == GUEST):
                given = self.inputs[number] if self.inputs else None
                row = arms.get(arm, GUEST)
                examined = self.examined[number] if self.examined else None
                places[number] = out.add(users[user], row, reward, given, self.guests.get(number), examined)
        if self.counts:
            out.counts = array("d", [self.counts[number] for number in places])
            out.scatters = array("d", [self.scatters[number] for number in places])
        return out, places

    def with_features(self, inputs: InputSpace) -> "RewardEvents":
        """Returns the events with the features that arms of the pool have by now."""
        if not self.inputs:
            return self
        rows, moved = np.array(self.arms, dtype=np.intp), list(self.inputs)
        for event in np.flatnonzero(rows != GUEST).tolist():
            moved[event] = inputs.with_arm(moved[event], int(rows[event]))
        return RewardEvents(self.users, self.arms, self.rewards, moved, self.guests, self.examined)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How much an older reward counts.

    Attributes:
        forgetting: What a reward's weight is multiplied by with each reward after it, between 0 and 1; 1 keeps all.
        window: How many of the last rewards count; none means all.

    Examples:
        >>> Memory(forgetting=0.5).weights(3)
        array([0.25, 0.5 , 1.  ])
        >>> Memory(window=2).weights(3)
        array([0., 1., 1.])
    """

    forgetting: float = 1.0
    window: int | None = None

    @property
    def fades(self) -> bool:
        """Whether older rewards count less."""
        return self.forgetting < 1.0 or self.window is not None

    @property
    def span(self) -> float:
        """How many rewards count, in effect."""
        effective = inf if self.forgetting == 1 else 1 / (1 - self.forgetting)
        return min(effective, inf if self.window is None else self.window)

    def forgets_at(self, n_events: int) -> bool:
        """Returns whether older rewards lose weight by the last of so many."""
        return self.forgetting < 1 or (self.window is not None and n_events > self.window)

    def weights(self, n_events: int) -> Array:
        """Returns the weight of each of so many rewards, the newest last."""
        ages = np.arange(n_events - 1, -1, -1, dtype=np.float64)
        weights = self.forgetting**ages
        weights[weights < FORGOTTEN] = 0.0
        if self.window is not None:
            weights[ages >= self.window] = 0.0
        return np.asarray(weights)


class Moved(NamedTuple):
    """Where events, users and arms went in a change: their new rows by their old ones; who is gone has none.

    Attributes:
        events: The rewards.
        users: Of the graph.
        arms: Of the pool.
        inputs: What arms in contexts are by now; None where there are no contexts.
    """

    events: dict[int, int]
    users: dict[int, int]
    arms: dict[int, int]
    inputs: InputSpace | None


class Learned:
    """The rewards and a policy that has learned them, kept in step: on an error neither has changed.

    Args:
        make: Makes a policy from a graph, arms and options, all keywords.
        options: Of the policy.
        graph: The users.
        arms: The arms.
        memory: How much older rewards count.
        waits_for_fits: Whether a reward waits for a fit of the hyperparameters that is due.
        user_features: What is known of users beside the graph, if anything.
        examination: How likely each place of a slate is looked at beside the first, where that is given; else empty.

    Attributes:
        policy: What decides.
        events: All rewards.
        stale: Rewards since the last refresh of the weights that made older ones fade.
        at_once: How many of the first rewards a load without a saved belief learns in one batch.
        touched: Whether the change under way has reached the posterior, which changes in place.
        lost: Whether one that had was interrupted, so that `recover` is due.
    """

    def __init__(
        self,
        make: Callable[..., Policy],
        options: Mapping[str, Any],
        graph: UserGraph,
        arms: ArmPool,
        memory: Memory,
        *,
        waits_for_fits: bool = False,
        user_features: dict[UserId, Any] | None = None,
        examination: Sequence[float] = (),
    ) -> None:
        self._make, self.options, self.memory = make, dict(options), memory
        self.user_features, self.examination = user_features, list(examination)
        self.policy = self._made(graph, arms)
        self._take_user_features(graph, {})
        self.events = RewardEvents()
        self.stale = 0
        self.at_once = 0
        self.touched = self.lost = False
        self.waits_for_fits, self._fits_are_given = waits_for_fits, False
        self._set_fits(self.policy)
        _check_relearnable(self.policy, memory, self.examination)

    @property
    def graph(self) -> UserGraph:
        """Who is near whom."""
        return self.policy.graph

    @property
    def arms(self) -> ArmPool:
        """What can be chosen."""
        assert self.policy.arms is not None
        return self.policy.arms

    def give_fits(self, given: bool) -> None:
        """Says whether fits are not computed but given, as in a replay."""
        self._fits_are_given = given and not self.waits_for_fits
        self._set_fits(self.policy)

    def _set_fits(self, policy: Policy) -> None:
        policy.set_fits(when_ready=not self.waits_for_fits, given=self._fits_are_given)

    @property
    def needs_refreshing(self) -> bool:
        """Whether weights of older rewards are to be brought up to date: not at each reward, but in time.

        A window of w then holds w to w + w / 16 rewards; forgetting by g leaves weights at most 1 / 16 too large.
        """
        return self.stale > 0 and self.stale * SLACK >= self.memory.span

    def history(self) -> History:
        """Returns all rewards, collapsed, each with the weight that it has by now."""
        return self._collapsed(self.policy, self.events)

    def history_by_arm(self) -> History:
        """Returns the same by arms of the pool, whatever their contexts."""
        return self.events.by_arm(self.memory.weights(len(self.events)))

    def fit(self, batches: Iterable[Any], check: Callable[[Any, int], None], progress: Progress | None) -> int:
        """Learns a table of rewards at once, and returns how many; each batch of them is checked, too."""
        if self.memory.fades:
            rule = "with forgetting or a window rewards count by their order"
            raise ParameterError("a fit was asked for", rule, "Use learn, or a bandit that keeps all")
        more = RewardEvents()

        def checked_first() -> Iterator[Any]:
            yield from batches
            self.touched = True

        def keep(users: Any, arms: Any, rewards: Any, inputs: Iterable[Array] = ()) -> None:
            check(rewards, len(more))
            more.extend(users, arms, rewards, inputs)

        count = self.policy.fit(checked_first(), progress=progress, keep=keep)
        examined = np.ones(len(more) if self.examination else 0)
        if self.events.counts:
            self.events.counts.frombytes(np.ones(len(more)).tobytes())
            self.events.scatters.frombytes(np.zeros(len(more)).tobytes())
        self.events.extend(more.users, more.arms, more.rewards, more.inputs, examined)
        self.at_once = len(self.events)
        return count

    def fit_combined(self, columns: Mapping[str, Any], start: Array | None, progress: SolveProgress | None) -> int:
        """Learns rewards that were combined by pairs of rows, and returns the steps of the solve."""
        if self.memory.fades or self.examination or isinstance(self.policy, ContextPolicy):
            rule = "rewards that were combined by pairs have neither an order nor places or contexts"
            raise ParameterError("a fit of combined rewards was asked for", rule, "Use fit, or a bandit without these")
        kept = {name: np.array(column) for name, column in columns.items() if name in COLUMNS}  # the model takes those
        self.touched = True
        steps = self.policy.fit_combined(columns, start=start, progress=progress)
        self.events.extend_combined(kept)
        self.at_once = len(self.events)
        return steps

    def _collapsed(self, policy: Policy, events: RewardEvents) -> History:
        return events.history(self.memory.weights(len(events)), policy.model)

    def learn(
        self,
        user: int,
        arm: int,
        value: float,
        input: Array | None = None,
        guest: ArmId | None = None,
        examined: float = 1.0,
    ) -> None:
        """Learns a reward, of an arm in a context if the arm as the model knows it is given.

        At a place that is looked at e times as often as the first, a reward is e times that at the first, and noise:
        one over e is an observation of that at the first whose noise has the variance over e^2.
        """
        self.touched = True
        self.policy.learn(user, arm if input is None else input, value / examined, weight=examined**2)
        self.events.add(user, arm, value, input, guest, examined if self.examination else None)
        self.stale += self.memory.forgets_at(len(self.events))

    def replace(self, event: int, value: float) -> None:
        """Puts a reward in the place of an earlier one; hyperparameters stay as they are until the next fit.

        The posterior is revised in place where the engine can. Else it is conditioned again on all rewards, also if
        older ones fade, or if the earlier reward was a million times as large as the others, which have then lost
        digits beside it. There are two exceptions, in which hyperparameters are fitted again: before the first fit,
        when they follow the scale of all rewards; and if the earlier reward was also a million times as large as 1.
        """
        pair, before = (self.events.users[event], self.events.column(event)), self.events.rewards[event]
        beside = self._largest_beside(event, value)
        refit = self._is_unfitted() or abs(before) > FAR * max(abs(value), beside or 1.0)
        fades = self.memory.fades or self.events.examined_at(event) < 1
        in_place = not refit and not fades and abs(before) <= FAR * max(abs(value), beside)
        self.events = self.events.with_reward(event, value)
        if in_place and self._in_place(self.policy.revise, *pair, before, value):
            self.at_once = len(self.events)
            return
        self.relearn(None if refit else self.policy.hyperparameters())

    def _is_unfitted(self) -> bool:
        """Returns whether hyperparameters follow every reward still, as before the first fit."""
        return self.policy.refit_due(self.events.n_rewards) and not self.policy.fits

    def _in_place(self, change: Callable[..., bool], *given: Any) -> bool:
        """Returns whether the posterior could follow a change; where it could not, it was not touched."""
        before, self.touched = self.touched, True  # by an earlier step of the same change, perhaps
        could = change(*given)
        self.touched = before or could
        return could

    def _largest_beside(self, event: int, value: float) -> float:
        """Returns the size of the largest other reward; 0 where the new one is large enough for that not to matter."""
        if abs(self.events.rewards[event]) <= FAR * abs(value):
            return 0.0
        return max((abs(each) for i, each in enumerate(self.events.rewards) if i != event), default=0.0)

    def refresh(self) -> None:
        """Brings the weights of older rewards up to date; settings are fitted to them if that was due meanwhile."""
        n_rewards = len(self.events)
        due = any(self.policy.refit_due(t) for t in range(n_rewards - self.stale + 1, n_rewards + 1))
        self.relearn(None if due else self.policy.hyperparameters())

    def relearn(self, hyperparameters: dict[str, Any] | None) -> None:
        """Learns all rewards at once, with these hyperparameters, or else ones fitted to them."""
        self.policy = self._relearned(self.graph, self.arms, self.events, hyperparameters)
        self.stale, self.at_once = 0, len(self.events)

    def recover(self) -> None:
        """Conditions a new posterior on the rewards, at the hyperparameters that there are."""
        self.relearn(self.policy.hyperparameters())
        self.lost = False

    def change(
        self,
        *,
        graph: UserGraph | None = None,
        arms: ArmPool | None = None,
        user_features: Mapping[UserId, Any] | None = None,
    ) -> Moved | None:
        """Takes another graph or other arms, with the belief that the old rewards give there; on an error neither.

        What was learned of the settings stays when only the graph changes, or where arms have contexts. Where the
        belief can follow the change, it is not conditioned again; rewards that have faded since must be.

        Args:
            graph: Other users or edges.
            arms: Other arms.
            user_features: Those of newcomers, where users have features.

        Returns:
            Where everything went; None if all has stayed where it was.
        """
        if graph is not None:
            self._take_user_features(graph, user_features or {})
            relink = self._relink_to(graph)  # or raises, before anything has changed
            if arms is None and not self.stale and self._in_place(relink, graph):
                self.at_once = len(self.events)
                return None
        if graph is None and arms is not None and self._in_place(self.policy.take_arms, arms):
            return None
        inputs = replace(self.policy.inputs, arms=arms or self.arms) if isinstance(self.policy, ContextPolicy) else None
        kept = self.policy.hyperparameters() if arms is None or inputs is not None else None
        graph, arms = graph or self.graph, arms or self.arms
        users = {row: graph.index[user] for row, user in enumerate(self.graph.users) if user in graph.index}
        columns = {row: arms.index[arm] for row, arm in enumerate(self.arms.ids) if arm in arms.index}
        events, places = self.events.kept(users, columns)
        if inputs is not None:
            events = events.with_features(inputs)
        self.policy, self.events, self.stale = self._relearned(graph, arms, events, kept), events, 0
        self.at_once = len(events)
        return Moved(places, users, columns, inputs)

    def _take_user_features(self, graph: UserGraph, more: Mapping[UserId, Any]) -> None:
        """Takes the features of newcomers, and drops those of users who are gone; raises if they do not belong."""
        if self.user_features is None:
            if more:
                rule = "this bandit knows its users by the graph alone"
                raise ContextError(f"features of users {listed(more)} were given", rule, "Leave them out")
            return
        known = {**self.user_features, **more}
        self.user_features = {user: known[user] for user in graph.users if user in known}

    def _relink_to(self, graph: UserGraph) -> Callable[[UserGraph], bool]:
        """Returns what lets the policy take a graph, with the features of its users; raises if they are no good."""
        if self.user_features is None or not isinstance(self.policy, ContextPolicy):
            return self.policy.relink
        return partial(self.policy.relink, traits=user_rows(graph.users, self.user_features))

    def replay(self, events: RewardEvents, *, at_once: int) -> None:
        """Learns rewards as they were learned once: so many together, the others one by one."""
        first, inputs = slice(at_once), events.inputs
        guests = {event: arm for event, arm in events.guests.items() if event < at_once}
        self.events = RewardEvents(
            events.users[first],
            events.arms[first],
            events.rewards[first],
            inputs[first],
            guests,
            events.examined[first],
            events.counts[first],
            events.scatters[first],
        )
        if at_once:
            self.relearn(None)
        for event in range(at_once, len(events)):
            given = inputs[event] if inputs else None
            pair, guest = (events.users[event], events.arms[event]), events.guests.get(event)
            self.learn(*pair, events.rewards[event], given, guest, events.examined_at(event))

    def refresh_pending_model(self, ledger: Ledger) -> None:
        """Brings the model up to date that is also conditioned on the decisions without a reward, for their std alone.

        A reward of such a decision changes nothing here: that the pair was chosen was known. Decisions that were
        forgotten meanwhile are still known to it, up to one in 16 of what it knows; then, and with other
        hyperparameters, it is rebuilt.
        """
        model, pending = self.policy.model, self.policy.pending_model
        known = model.n_observations + len(ledger)
        same = pending is not None and pending.kernel is model.kernel and pending.noise_var == model.noise_var
        if same and pending is not None and 0 <= (pending.n_observations - known) * SLACK <= known:
            return
        history = self.history()
        for _, each in ledger.pending():
            column = each.arm if each.input is None else each.input
            key = (each.user, each.arm) if each.input is None else model.kernel.key(each.user, each.input)
            history.add(key, each.user, column, 0.0, weight=each.examined**2)
        named = self.options.get("engine", "auto") != "auto"  # options of "auto" are not those of what it chose
        given = self.options.get("engine_options") if named else None
        _, options = feature_options(model.engine, given)  # the kernel has its features
        made = make_model(model.kernel, noise_var=model.noise_var, engine=model.engine, engine_options=options)
        made.relearn(history)
        self.policy.pending_model = made

    def expect(self, user: int, arm: Any, examined: float = 1.0) -> None:
        """Conditions the pending model, if there is one, on a pair; where that fails, the next decision rebuilds it."""
        try:
            if self.policy.pending_model is not None:
                self.policy.pending_model.learn_noisier(user, arm, 0.0, weight=examined**2)
        except FAILURES:
            self.policy.pending_model = None

    def _made(self, graph: UserGraph, arms: ArmPool, **options: Any) -> Policy:
        """Returns a new policy, which has learned nothing; with these options beside, or in the place of, its own."""
        if self.user_features is not None:
            options["users"] = self.user_features
        return self._make(graph=graph, arms=arms, **{**self.options, **options})

    def with_schema(self, schema: ContextSchema) -> ContextPolicy:
        """Returns a policy that takes contexts, in the place of one that has learned nothing; or raises if none can."""
        policy = self._made(self.graph, self.arms, context_schema=schema.given())
        assert isinstance(policy, ContextPolicy)
        policy.continue_from(self.policy)
        self._set_fits(policy)
        return policy

    def take_policy(self, policy: ContextPolicy) -> None:
        """Lets rewards have contexts from now on; nothing was learned yet."""
        self.options = {**self.options, "context_schema": policy.inputs.schema.given()}
        self.policy = policy

    def _relearned(
        self, graph: UserGraph, arms: ArmPool, events: RewardEvents, hyperparameters: dict[str, Any] | None
    ) -> Policy:
        """Returns a new policy that has made as many decisions as the old one, and learned these rewards."""
        policy = self._made(graph, arms)
        policy.continue_from(self.policy)
        self._set_fits(policy)
        if hyperparameters is not None:
            policy.relearn_with(hyperparameters, self._collapsed(policy, events))
        elif policy.collapses:
            policy.relearn(self._collapsed(policy, events))
        else:
            users, columns = [graph.users[row] for row in events.users], [arms.ids[row] for row in events.arms]
            policy.update_many(users, columns, events.rewards.tolist())
        return policy


def _check_relearnable(policy: Policy, memory: Memory, examination: Sequence[float]) -> None:
    """Raises if rewards of this policy cannot be learned again, or not be forgotten as asked for."""
    if policy.learns_by_decisions:
        raise ParameterError(
            f"policy is {policy.name!r}",
            "its belief depends on its own decisions, so it can be neither changed nor saved",
            "Use 'auto-ucb' or 'lk-gp-ucb'",
        )
    if memory.fades and not policy.collapses:
        raise ParameterError(
            f"forgetting or a window was asked for with {policy.name!r}",
            "its belief depends on the order of its rewards, and cannot forget some",
            "Use 'auto-ucb' or 'lk-gp-ucb'",
        )
    if examination and not policy.collapses:
        raise ParameterError(
            f"effects of places were given with {policy.name!r}",
            "its belief depends on the order of its rewards, which all count alike",
            "Use 'auto-ucb' or 'lk-gp-ucb', or leave places out",
        )
