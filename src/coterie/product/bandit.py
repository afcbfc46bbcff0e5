"""The object people keep: decisions for their own users and arms, rewards whenever they come."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import numpy as np

from coterie.contracts import ArmId, UserId
from coterie.errors import CandidatesError, ContextError, JournalError, ParameterError, RewardError, listed
from coterie.errors.checks import as_list, check_whole, checked_binary, checked_reward
from coterie.errors.renamed import warn_renamed
from coterie.graphs import UserGraph
from coterie.kernels import ArmKernel, ArmPool, UserKernel
from coterie.kernels.schema import ContextSchema
from coterie.policies import SpectralSchedule, make_policy
from coterie.policies.auto.context_policy import ContextPolicy
from coterie.policies.factory.registry import refuse_unknown
from coterie.policies.rules.draws import Draws, checked_seed
from coterie.policies.rules.propensity import check_least, exploration
from coterie.policies.rules.scores import Scored, ScoreFunction
from coterie.policies.rules.widths import Width
from coterie.policies.slates import OpenPlaces, check_slate
from coterie.product.bandit_checks import (
    check_all_binary,
    check_choices,
    check_distinct,
    check_equally_many,
    checked_expiry,
    checked_memory,
    nothing_to_check,
)
from coterie.product.changes import (
    Before,
    atomic,
    journalled,
    mend,
    reading,
    recover,
    survive_forks,
    up_to_date,
)
from coterie.product.decisions import GUEST, Decision, Ledger, decision_number, decisions_of
from coterie.product.files.atomic import checked_path
from coterie.product.files.journal import Journal
from coterie.product.files.recording import Recorder, Steady
from coterie.product.inputs.arm_inputs import as_arm_pool, as_user_table, plain_features, with_arms, without_arms
from coterie.product.inputs.ids import check_ids
from coterie.product.inputs.requests import Requests, Shown
from coterie.product.inputs.rewards import first_context, read_rewards
from coterie.product.insight.explaining import Explanation, explained
from coterie.product.insight.graph_report import GraphReport, make_report
from coterie.product.learned import Learned, RewardEvents
from coterie.product.scoring import score_all
from coterie.product.slates import Slate, checked_places, examined_at

WAIT_FOR_FITS = False  # by default
COMBINED = ("event_counts", "event_scatters")  # arrays of a file, where rows stand for several rewards
UNSAID: Any = object()  # what a file's journal is when nothing was said about it


class Bandit:
    """A bandit on a graph of users that learns from rewards as they come, late or early, and tunes itself.

    Args:
        graph: Who is near whom.
        arms: What can be chosen: an ArmPool, a mapping from ids to features, a dataframe, an array of rows, or a list
            of ids where nothing is known of the arms.
        policy: By name; the default learns its own hyperparameters.
        seed: Fixes the randomness; a decision's depends on (seed, decision number) only. When a fit of the
            hyperparameters is taken depends on the machine, unless `wait_for_fits`.
        max_pending: How many decisions are remembered until their reward comes; the oldest are forgotten first.
        expire_after: Seconds after which a decision without reward is forgotten; none means never.
        forgetting: What a reward's weight is multiplied by with each reward after it; 1 keeps everything.
        window: How many of the last rewards count; none means all.
        pending: What decisions do while they wait: "ignore", or "hallucinate" to shrink the uncertainty of what was
            chosen at once and move the mean when the reward comes (GP-BUCB), so that decisions made together differ.
        min_propensity: The least probability of every candidate; above 0, uniform exploration is mixed in. A decision
            among so many candidates that not all can have it is refused.
        reward: "real" for any finite numbers, or "binary" for 0 and 1, when others are refused.
        likelihood: "gaussian", or "bernoulli" for binary rewards and an auto-* policy: means and stds are then those of
            probabilities.
        clock: Tells the time in seconds; only expiry asks for it.
        journal: A new file for a line of JSON for each change, by which any decision can be made again; none means no
            journal. It continues a saved bandit: save once, or what it holds cannot be loaded after a crash. A
            `Recorder` gets the lines instead of a file.
        wait_for_fits: Whether a reward waits for a fit of the hyperparameters that is due. By default nobody does: a
            fit is taken by the first call after it is ready. Waiting, the same calls give the same decisions on any
            machine.
        engine: Which engine computes the belief; by default the one that suits. This and what follows are options of
            `make_policy`, which says more of each. The default policy learns the kernels, the noise and the ridge.
        engine_options: Of that engine, such as memory_limit in bytes.
        expected_rounds: A hint for choosing the engine.
        arm_kernel: How alike two arms are.
        user_kernel: How alike two users are.
        laplacian_ridge: The paper's rho: the smaller, the farther users share.
        noise_var: The model's noise variance.
        width: What multiplies std: how wide to explore.
        sampling: For Thompson sampling, "independent" or "joint".
        similarity: For coop-kernel-*, how users are compared.
        score: A score of your own.
        cluster_width: For club, how far apart two users' estimates may be.
        context_schema: What a context holds: a mapping from names to "number", "flag", "category" or a list of
            categories, or how many numbers a row has. By default it is learned from the first context.
        request_features: Names of features of an arm that each request gives, such as a price.
        users: What is known of users beside the graph: features by id, each a mapping or a row of numbers, or a
            dataframe with a column "user" or "id".
        places: What the place of a slate does to a reward: by default nothing; "learned", where it is a category of the
            context and evidence decides; or a list such as [1.0, 0.6, 0.4], how likely each place is looked at beside
            the first, by which the expected reward is multiplied.
        **unknown: Refused, with the list of what is known.

    Examples:
        >>> graph = UserGraph.from_edges([("ana", "bo")])
        >>> bandit = Bandit(graph=graph, arms={"tea": [0.0], "coffee": [1.0]}, seed=0)
        >>> decision = bandit.decide("ana")
        >>> bandit.reward(decision.id, 1.0)
        >>> bandit.n_rewards, bandit.n_pending
        (1, 0)
        >>> bandit.reward(decision.id, 1.0)
        Traceback (most recent call last):
        coterie.errors.DecisionError: decision 0 was rewarded already; a decision is rewarded once. ...
    """

    def __init__(
        self,
        *,
        graph: UserGraph,
        arms: Any,
        policy: str = "auto-ucb",
        seed: int = 0,
        max_pending: int = 100_000,
        expire_after: float | None = None,
        forgetting: float = 1.0,
        window: int | None = None,
        pending: str = "ignore",
        min_propensity: float = 0.0,
        reward: str = "real",
        likelihood: str = "gaussian",
        clock: Callable[[], float] = time.time,
        journal: str | Path | Recorder | None = None,
        wait_for_fits: bool | None = None,
        engine: str | None = None,
        engine_options: Mapping[str, Any] | None = None,
        expected_rounds: int | None = None,
        arm_kernel: ArmKernel | None = None,
        user_kernel: UserKernel | None = None,
        laplacian_ridge: float | None = None,
        noise_var: float | SpectralSchedule | None = None,
        width: Width | None = None,
        sampling: str | None = None,
        similarity: str | None = None,
        score: ScoreFunction | None = None,
        cluster_width: float | None = None,
        context_schema: Any = None,
        request_features: Iterable[str] | None = None,
        users: Any = None,
        places: Any = None,
        **unknown: Any,
    ) -> None:
        refuse_unknown(unknown, ["graph", "arms", *(Bandit.__init__.__kwdefaults__ or {})])
        options = _given(
            engine=engine,
            engine_options=engine_options,
            expected_rounds=expected_rounds,
            arm_kernel=arm_kernel,
            user_kernel=user_kernel,
            laplacian_ridge=laplacian_ridge,
            noise_var=noise_var,
            width=width,
            sampling=sampling,
            similarity=similarity,
            score=score,
            cluster_width=cluster_width,
            context_schema=None if context_schema is None else ContextSchema.of(context_schema).given(),
            request_features=None if request_features is None else as_list("request_features", request_features),
        )
        check_whole("max_pending", max_pending)
        check_choices(pending=pending, reward=reward, likelihood=likelihood, min_propensity=min_propensity)
        self._min_propensity, self._pending = float(min_propensity), pending
        self._reward, self._likelihood = reward, likelihood
        self._name, self._seed = policy, checked_seed(seed)
        self._retired: set[ArmId] = set()
        self._clock = clock if isinstance(clock, Steady) else Steady(clock)
        self._ledger = Ledger(limit=int(max_pending), expire_after=checked_expiry(expire_after), clock=self._clock)
        self._journal: Recorder | None = None
        self._mark: list[Any] | None = None  # where the journal stood when the bandit was saved
        self._draws = Draws(self._seed)
        self._given_arms: list[ArmId] = []  # what the next decisions choose, in a replay that takes it as recorded
        self._lock: Any = threading.RLock()
        self._before: Before | None = None  # a change is being made
        survive_forks(self)
        # No method of the bandit's own, which would tie a knot that only the garbage collector undoes.
        make = partial(make_policy, policy, seed=self._seed, likelihood=likelihood)
        self._places = checked_places(places, likelihood)
        examination = self._places if isinstance(self._places, list) else []
        if isinstance(self._places, str):
            make = partial(make, places=self._places)
        waits = WAIT_FOR_FITS if wait_for_fits is None else bool(wait_for_fits)
        memory = checked_memory(forgetting, window)
        table = None if users is None else as_user_table(users)
        self._learned = Learned(
            make,
            options,
            graph,
            as_arm_pool(arms),
            memory,
            waits_for_fits=waits,
            user_features=table,
            examination=examination,
        )
        check_ids((*self.graph.users, *self.arms.ids))
        if journal is not None:
            begun = journal if isinstance(journal, Recorder) else Journal.begin(checked_path(journal), self)
            self._journal = begun

    def __repr__(self) -> str:
        return (
            f"Bandit({self._name!r}, {self.graph.n_users} users, {len(self.arms)} arms, {self.n_rewards} rewards, "
            f"{self.n_pending} pending)"
        )

    @property
    def graph(self) -> UserGraph:
        """Who is near whom, as of now."""
        mend(self)
        return self._learned.graph

    @property
    def arms(self) -> ArmPool:
        """All arms, the retired ones included: what was learned of them still counts."""
        mend(self)
        return self._learned.arms

    @property
    def users(self) -> tuple[UserId, ...]:
        """The ids of all users."""
        return self.graph.users

    @property
    def retired(self) -> tuple[ArmId, ...]:
        """The ids of the arms that are not shown by default, in the order of `arms`."""
        return tuple(arm for arm in self.arms.ids if arm in self._retired)

    @property
    @reading
    def pending(self) -> dict[int, tuple[UserId, ArmId]]:
        """User and arm of each decision that waits for its reward, by its id, oldest first."""
        users, arms = self.graph.user_at, self.arms.ids
        waiting = self._ledger.pending()
        return {n: (users(each.user), each.guest if each.arm == GUEST else arms[each.arm]) for n, each in waiting}

    @property
    def context_schema(self) -> ContextSchema | None:
        """What contexts hold, categories that came included; None while no context has come and none was stated."""
        mend(self)
        policy = self._learned.policy
        return policy.inputs.schema if isinstance(policy, ContextPolicy) else None

    @property
    def n_decisions(self) -> int:
        """Decisions made so far; also the id of the next one."""
        mend(self)
        return self._learned.policy.n_decisions

    @property
    def n_rewards(self) -> int:
        """Rewards learned so far."""
        mend(self)
        return self._learned.events.n_rewards

    @property
    @reading
    def n_pending(self) -> int:
        """Decisions that wait for their reward."""
        return len(self._ledger)

    @reading
    def is_pending(self, decision: int) -> bool:
        """Returns whether a decision waits for its reward."""
        return self._ledger.is_open(decision_number(decision))

    @journalled
    def decide(
        self,
        user: UserId,
        candidates: Iterable[ArmId] | Mapping[Any, Any] | None = None,
        context: Any = None,
        *,
        keep: bool = False,
    ) -> Decision:
        """Returns the decision for a user; its propensities and what was believed are computed when asked for.

        Args:
            user: One of the graph's users.
            candidates: Ids of arms, or a mapping from ids to features: of this request, or all of an arm that is new;
                none given means every arm that is not retired.
            context: What is different about this moment: a mapping from names to numbers, texts, True or False, or a
                row of numbers. The first one says what further ones hold, unless `context_schema` does.
            keep: Whether arms that are new join the pool; otherwise they are candidates of this decision only,
                which takes a bandit with contexts.
        """
        row, requests = self._learned.policy.graph.index_of(user), self._requests()
        shown = self._shown(requests, candidates, context, keep=keep)
        requests.take(self._change)  # after all checks: a call that is refused changes nothing
        return self._decide(row, shown)

    @journalled
    def rank(
        self,
        user: UserId,
        candidates: Iterable[ArmId] | Mapping[Any, Any] | None = None,
        k: int = 5,
        context: Any = None,
        *,
        keep: bool = False,
    ) -> Slate:
        """Returns an ordered slate of k places for a user, each a decision among the candidates that are left.

        A place has a decision's id, propensity (given the places before it) and reward of its own: slate[2] is the
        third. Its number is its own, too: `n_decisions` grows by k.

        Args:
            user: As for `decide`.
            candidates: As for `decide`.
            k: How many places there are; at most as many as candidates.
            context: As for `decide`.
            keep: As for `decide`.

        Examples:
            >>> graph = UserGraph.from_edges([("ana", "bo")])
            >>> bandit = Bandit(graph=graph, arms={"tea": [0.0], "ale": [1.0], "gin": [3.0]}, places=[1.0, 0.6])
            >>> slate = bandit.rank("ana", k=2)
            >>> bandit.reward_many([place.id for place in slate], [0.0, 1.0])  # a click on the second
            >>> len(slate), bandit.n_decisions, bandit.n_rewards
            (2, 2, 2)
        """
        learned, asked = self._learned, self._active(candidates)
        row = learned.policy.graph.index_of(user)
        asked = asked if asked is None or isinstance(asked, Mapping) else as_list("candidates", asked)
        check_slate(k, len(self.arms) if asked is None else len(asked))
        examined_at(learned.examination, k)
        requests = self._requests()
        shown = self._shown(requests, asked, context, keep=keep)
        requests.take(self._change)
        learned.touched = True
        if learned.stale and learned.needs_refreshing:
            self._relearn()
        places, made = OpenPlaces(learned.policy, row, shown.columns), []
        for _ in range(int(k)):
            if self._pending != "ignore":
                learned.refresh_pending_model(self._ledger)
            left, examined = places.left, examined_at(learned.examination, places.place)
            among = Shown(places.arms, [shown.ids[position] for position in left.tolist()], shown.rows[left])
            taken, decision = self._decided(row, places.consider(), among, examined)
            places.take(taken)
            made.append(decision)
        return Slate(made, context)

    @journalled
    def decide_many(
        self, users: Iterable[UserId], candidates: Iterable[ArmId] | None = None, contexts: Iterable[Any] | None = None
    ) -> list[Decision]:
        """Returns decisions for several users among the same candidates; the same as one after another, and faster.

        `contexts` has one for each user. One after another they are made with contexts, with pending="hallucinate",
        likelihood="bernoulli", certified choices, joint Thompson sampling, uniform or epsilon-greedy choices, and with
        a width or a score of your own.
        """
        asked = as_list("users", users)
        if isinstance(candidates, Mapping):
            what, rule = f"candidates are a mapping, with keys {listed(candidates)}", "all users choose among the same"
            raise CandidatesError(what, rule, "Pass a list of arms, or call decide for each user")
        at = [self.graph.index_of(user) for user in asked]  # all are known before any decision is made
        requests = self._requests()
        if contexts is not None or self._learned.policy.has_inputs:
            given = [None] * len(asked) if contexts is None else as_list("contexts", contexts)
            check_equally_many(users=asked, contexts=given)
            chosen = None if candidates is None else as_list("candidates", candidates)
            each = [self._shown(requests, chosen, context) for context in given]
            requests.take(self._change)
            return [self._decide(row, shown) for row, shown in zip(at, each, strict=True)]
        shown = self._shown(requests, candidates)
        self._learned.touched = True
        if self._learned.needs_refreshing:
            self._relearn()
        batch = self._learned.policy.consider_many(asked, shown.ids) if self._pending == "ignore" else None
        if batch is None:
            return [self.decide(user, shown.ids) for user in asked]
        columns, out = shown.rows.tolist(), []
        policy, least = self._learned.policy, self._min_propensity
        made = decisions_of(policy, batch, shown.ids, draws=self._draws, min_propensity=least, seed=self._seed)
        for row, place, decision in made:
            self._ledger.open(decision.id, user=row, arm=columns[place])
            out.append(decision)
        return out

    @journalled
    def reward(self, decision: int, reward: float, *, replace: bool = False) -> None:
        """Learns the reward of a decision, any time later, in any order; on an error nothing has changed.

        Args:
            decision: The id of a Decision.
            reward: A finite number; 0 or 1 where rewards are binary.
            replace: Whether a reward that came before gives way; the belief is then as if only this one had come.
        """
        value, number = self._checked_reward(reward), decision_number(decision)
        self._learn_reward(number, value, self._ledger.event_of(number) if replace else None)

    @journalled
    def learn(
        self,
        user: UserId,
        arm: ArmId | Mapping[Any, Any],
        reward: float,
        context: Any = None,
        *,
        place: int = 1,
    ) -> None:
        """Learns a reward that no decision of this bandit led to; on an error nothing has changed.

        Args:
            user: One of the graph's users.
            arm: The id of an arm; or a mapping from one id to its features, as for `decide`.
            reward: A finite number; 0 or 1 where rewards are binary.
            context: That in which it came, as for `decide`.
            place: That of a slate at which it came, from 1; it counts if the bandit was made with `places`.
        """
        value, row, requests = self._checked_reward(reward), self.graph.index_of(user), self._requests()
        examined, shown = examined_at(self._learned.examination, place), _one_arm(requests, arm, context)
        requests.take(self._change)
        shown = shown._replace(columns=self._learned.policy.at_place(shown.columns, int(place)))
        self._learn_shown(row, shown, value, examined)

    @journalled
    def reward_many(self, decisions: Iterable[int], rewards: Iterable[float], *, replace: bool = False) -> None:
        """Learns the rewards of several decisions, in this order, as one change; on an error none is learned.

        Args:
            decisions: Ids of Decisions, each once.
            rewards: One finite number for each; 0 or 1 where rewards are binary.
            replace: Whether rewards that came before give way, as for `reward`.
        """
        numbers = [decision_number(each) for each in as_list("decisions", decisions)]
        values = self._checked_rewards(rewards)
        check_equally_many(decisions=numbers, rewards=values)
        check_distinct("decisions", numbers)
        # All can be rewarded, before any is. Of the oldest rewards nobody knows the decision after further ones.
        events = [self._ledger.event_of(number) if replace else None for number in numbers]
        for number, event in zip(numbers, events, strict=True):
            if event is None:
                self._ledger.look(number, n_decisions=self._learned.policy.n_decisions)
        for number, value, event in zip(numbers, values, events, strict=True):
            self._learn_reward(number, value, event)

    @journalled
    def learn_many(
        self,
        users: Iterable[UserId],
        arms: Iterable[Any],
        rewards: Iterable[float],
        contexts: Iterable[Any] | None = None,
    ) -> None:
        """Learns rewards that no decision of this bandit led to, as one change; on an error none is learned.

        `contexts` has one for each, where there are contexts; arms are as for `learn`. A table of many thousands is
        learned faster, and at once, by `fit`.
        """
        asked, given = as_list("users", users), as_list("arms", arms)
        values = self._checked_rewards(rewards)
        within = [None] * len(asked) if contexts is None else as_list("contexts", contexts)
        check_equally_many(users=asked, arms=given, rewards=values, contexts=within)
        rows, requests = [self.graph.index_of(user) for user in asked], self._requests()
        shown = [_one_arm(requests, arm, context) for arm, context in zip(given, within, strict=True)]
        requests.take(self._change)  # all are known before any reward is learned
        for row, each, value in zip(rows, shown, values, strict=True):
            self._learn_shown(row, each, value)

    @atomic
    def fit(self, source: Any, *, progress: Callable[[str, int], None] | None = None) -> int:
        """Learns a table of rewards at once and returns how many; on an error nothing has changed.

        Args:
            source: What `read_rewards` takes: the path of a Parquet file, a dataframe, or batches of columns. Columns
                `context.NAME` are contexts; the first one says what they hold, unless `context_schema` does.
            progress: Called with "rows" and how many were read, then with "steps" and how many the solve has taken.
        """
        if self._journal is not None:
            what, rule = "a fit was asked for", "a journal has a line for each change, and a table is too long for one"
            raise JournalError(what, rule, "Fit before the journal begins: save, and load with journal=...")
        check = check_all_binary if self._reward == "binary" else nothing_to_check
        batches = read_rewards(source)
        first = list(islice(batches, 1))
        context = first_context(first[0]) if first else None
        if context is not None:
            requests = self._requests()
            try:
                requests.see(context)
            except ContextError as error:
                raise ContextError(f"row 0: {error.problem}", error.rule, error.remedy) from None
            requests.take(self._change)
        return self._learned.fit(chain(first, batches), check, progress)

    @atomic
    def _fit_combined(
        self, columns: Mapping[str, Any], *, start: Any = None, progress: Callable[[int, float], None] | None = None
    ) -> int:
        """Learns rewards that `product.bulk` has combined by pairs, and returns the steps of the solve.

        Of these the bandit keeps count, mean and scatter of each pair, and not one after another.
        """
        if self._journal is not None or self._reward == "binary":
            rule = "combined rewards are learned before a journal begins, and by a bandit of real rewards"
            raise ParameterError("a fit of combined rewards was asked for", rule, "Use fit, or such a bandit")
        return self._learned.fit_combined(columns, start, progress)

    @reading
    def score_all(self, /, arms: Iterable[ArmId] | None = None, **options: Any) -> dict[str, Any]:
        """Returns the best arms of every user; options are those of `coterie.score_all`. Retired arms are left out."""
        shown = self._active(arms)
        with up_to_date(self, self._learned.needs_refreshing) as policy:
            return score_all(policy, arms=shown, **options)

    @reading
    def predict(
        self,
        user: UserId,
        candidates: Iterable[ArmId] | Mapping[Any, Any] | None = None,
        context: Any = None,
        *,
        place: int = 1,
    ) -> dict[ArmId, tuple[float, float]]:
        """Returns the believed mean and std of each candidate, in a context if there are any, at a place of a slate."""
        row, examined = self.graph.index_of(user), examined_at(self._learned.examination, place)
        shown = self._requests(learns=False).read(self._active(candidates), context)
        with up_to_date(self, self._learned.needs_refreshing) as policy:
            mean, std = policy.predict_rows(row, policy.at_place(shown.columns, int(place)))
            mean, std = mean * examined, std * examined
            return dict(zip(shown.ids, zip(mean.tolist(), std.tolist(), strict=True), strict=True))

    @reading
    def describe(self) -> str:
        """Returns in words what the bandit runs on, why, and what it has learned of its settings."""
        return self._learned.policy.describe()

    def explain_model(self) -> str:
        """Returns what `describe` does, under its old name."""
        warn_renamed("Bandit.explain_model", "Bandit.describe")
        return self.describe()

    @reading
    def explain(self, user: UserId, arm: ArmId | Mapping[Any, Any], context: Any = None) -> Explanation:
        """Returns which users, arms and rewards moved this estimate, by how much, and what it would be alone.

        Args:
            user: Whose estimate.
            arm: The id of an arm; or a mapping from one id to its features, as for `decide`.
            context: In which it is shown, as for `decide`.
        """
        row, shown = self.graph.index_of(user), _one_arm(self._requests(learns=False), arm, context)
        with up_to_date(self, self._learned.stale > 0) as policy:
            believed = [float(each[0]) for each in policy.predict_rows(row, shown.columns)]
            return explained(self._learned, row, shown.columns[0], shown.ids[0], *believed)

    @reading
    def graph_report(self, progress: Callable[[str, int], None] | None = None) -> GraphReport:
        """Returns what the rewards say about the graph: print it, or draw it. Takes three fits.

        With contexts the evidence is that of the rewards in them, and neighbours are compared on the arms of the pool
        that both have met, whatever the contexts.

        Args:
            progress: Called with "fits" and how many of the three are done, from 0.
        """
        with up_to_date(self, self._learned.stale > 0) as policy:
            return make_report(
                self.graph,
                self.arms,
                self._learned.history(),
                fits=list(policy.fits),
                effective_dim=policy.model.effective_dim,
                seed=self._seed,
                bernoulli=self._likelihood == "bernoulli",
                inputs=policy.context if isinstance(policy, ContextPolicy) else None,
                by_arm=self._learned.history_by_arm() if policy.has_inputs else None,
                progress=progress,
            )

    # Saving: what is needed to go on exactly

    def save(self, path: str | Path) -> None:
        """Writes the bandit to one file, whole or not at all."""
        from coterie.product.files.saving import save_bandit

        save_bandit(self, checked_path(path))

    @classmethod
    def load(
        cls, path: str | Path, *, clock: Callable[[], float] = time.time, journal: str | Path | None = UNSAID
    ) -> "Bandit":
        """Returns the bandit of a file; it decides as the saved one would have.

        Args:
            path: The file.
            clock: As for the bandit.
            journal: The journal of the saved bandit, whose changes since then are made again and which goes on; or a
                new file. A bandit that kept one is not loaded without, unless None is given: it then has none any more.
        """
        from coterie.product.files.replaying import load_with_journal
        from coterie.product.files.saving import load_bandit

        if journal is None or journal is UNSAID:
            return load_bandit(checked_path(path), alone=journal is UNSAID, clock=clock)
        return load_with_journal(checked_path(path), checked_path(journal), clock=clock)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Bandit":
        """Returns what saving and loading give: the same bandit to the bit, with the same clock and no journal."""
        with TemporaryDirectory() as folder:
            self.save(Path(folder) / "copy")
            copy = type(self).load(Path(folder) / "copy", clock=self._clock.tell, journal=None)
        memo[id(self)] = copy
        return copy

    def __copy__(self) -> "Bandit":
        """Returns what a deep copy is: two bandits that share what they learned would be one."""
        return self.__deepcopy__({})

    def __reduce__(self) -> NoReturn:
        """Raises: a bandit holds a lock, and perhaps a journal."""
        raise TypeError(
            "a bandit is not pickled; use bandit.save(path) and Bandit.load(path), or copy.deepcopy(bandit)"
        )

    def export(self, folder: str | Path) -> None:
        """Writes the bandit to a new folder as JSON and arrays that anything can read, whole or not at all."""
        from coterie.product.files.export import export_bandit

        export_bandit(self, checked_path(folder))

    @contextmanager
    def frozen(self) -> Iterator[dict[str, Any]]:
        """Gives everything that the next decision depends on; nothing changes meanwhile."""
        nested = self._lock._is_owned()
        with self._lock:
            if not nested:
                recover(self)
            policy = self._learned.policy
            yield {
                "graph": self._learned.graph,
                "arms": self._learned.arms,
                "inputs": policy.inputs if isinstance(policy, ContextPolicy) else None,
                "user_features": self._learned.user_features,
                "settings": {
                    "policy": self._name,
                    "seed": self._seed,
                    "max_pending": self._ledger.limit,
                    "expire_after": self._ledger.expire_after,
                    "forgetting": self._learned.memory.forgetting,
                    "window": self._learned.memory.window,
                    "pending": self._pending,
                    "min_propensity": self._min_propensity,
                    "reward": self._reward,
                    "likelihood": self._likelihood,
                    "places": self._places,
                    "wait_for_fits": self._learned.waits_for_fits,
                    "options": dict(self._learned.options),
                },
                "retired": [arm for arm in self.arms.ids if arm in self._retired],
                "n_decisions": policy.n_decisions,
                "learned_at_once": self._learned.at_once,
                "stale": self._learned.stale,
                "belief": policy.state(),
                "journal": None if self._journal is None else self._journal.mark,
                "events": self._learned.events,
                "ledger": self._ledger.tables(),
            }

    def restore(self, state: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        """Takes what was saved, the belief as it was then, to the bit.

        Files of format 1 hold no belief, and policies whose belief depends on the order of the rewards (clusters, a
        learned similarity) give none: there the rewards are learned again as they were then.
        """
        inputs, guests = arrays.get("event_inputs", ()), state.get("inputs") or {}
        columns = arrays["event_users"], arrays["event_arms"], arrays["event_rewards"]
        examined, combined = arrays.get("event_examined", ()), [arrays.get(name, ()) for name in COMBINED]
        events = RewardEvents.of(*columns, inputs, dict(guests.get("event_guests", ())), examined, *combined)
        belief = state.get("belief")
        if belief is not None and "model" in belief:
            self._learned.events = events
            self._learned.stale, self._learned.at_once = state["stale"], state["learned_at_once"]
        else:
            self._learned.replay(events, at_once=state["learned_at_once"])
        if belief is not None:
            self._learned.policy.restore(belief)
            self._learned.lost = "model" in belief and not self._learned.policy.is_sound()
        self._mark = state.get("journal")
        self._learned.policy.n_decisions = state["n_decisions"]
        self._learned.options = dict(state["settings"]["options"])
        self._retired = set(state["retired"])
        made_at, waiting = arrays["pending_made_at"].tolist(), arrays["pending"].tolist()
        taken, unknown = arrays.get("pending_inputs", [None] * len(waiting)), dict(guests.get("pending_guests", ()))
        looked_at = np.asarray(arrays.get("pending_examined", np.ones(len(waiting)))).tolist()
        for (number, user, arm), when, given, examined in zip(waiting, made_at, taken, looked_at, strict=True):
            guest = unknown.get(number)
            self._ledger.open(number, user=user, arm=arm, made_at=when, input=given, guest=guest, examined=examined)
        self._ledger.remember(arrays["settled"].tolist())

    # Users, edges and arms come and go

    @journalled
    def add_user(
        self, user: UserId, friends: Mapping[Any, float] | Iterable[UserId] | None = None, features: Any = None
    ) -> None:
        """Adds a user; with friends they have the friends' belief at once, and with features that of users like them.

        Args:
            user: A new id.
            friends: Weights by friend, or a list of friends, whose edges then have weight 1.
            features: What is known of the user, where the bandit was made with `users`: as for the others.
        """
        check_ids([user])
        table = {} if features is None else {user: plain_features(features)}
        self._change(graph=self.graph.add_user(user, friends)[0], user_features=table)

    @journalled
    def add_users(
        self,
        users: Mapping[Any, Mapping[Any, float] | Iterable[UserId] | None],
        features: Mapping[Any, Any] | None = None,
    ) -> None:
        """Adds several users with their friends, who may be newcomers too, as one change.

        Args:
            users: The friends of each, or None.
            features: Those of each by id, where the bandit was made with `users`.
        """
        check_ids(users)
        table = {} if features is None else as_user_table(features)
        odd = [user for user in table if user not in users]
        if odd:
            what, rule = f"features of {listed(odd)} were given", "they are of the users that are added"
            raise ContextError(what, rule, "Leave them out, or add these users too")
        self._change(graph=self.graph.add_users(users)[0], user_features=table)

    @journalled
    def remove_user(self, user: UserId) -> None:
        """Removes a user, their rewards and their pending decisions."""
        self._change(graph=self.graph.remove_user(user)[0])

    @journalled
    def connect(self, user: UserId, other: UserId, weight: float = 1.0) -> None:
        """Joins two users, or changes the weight of their edge."""
        self._change(graph=self.graph.set_edge(user, other, weight)[0])

    @journalled
    def disconnect(self, user: UserId, other: UserId) -> None:
        """Takes the edge of two users away."""
        self._change(graph=self.graph.remove_edge(user, other)[0])

    @journalled
    def connect_many(self, edges: Iterable[tuple[UserId, UserId, float]]) -> None:
        """Gives pairs of users these weights, as one change; weight 0 takes an edge away.

        Args:
            edges: Two users and a weight each, no pair twice.
        """
        given = [tuple(edge) for edge in as_list("edges", edges)]
        odd = [edge for edge in given if len(edge) != 3]
        if odd:
            raise ParameterError(f"an edge is {odd[0]!r}", "edges are two users and a weight each", "Pass such")
        self._change(graph=self.graph.set_edges(given)[0])

    @journalled
    def add_arms(self, arms: Any) -> None:
        """Adds arms with their features, which go by name where they had names from the start."""
        new = as_arm_pool(arms)
        check_ids(new.ids)
        twice = [arm for arm in new.ids if arm in self.arms.index]
        if twice:
            raise ParameterError(
                f"there are arms {listed(twice)} already", "new arms have new ids", "Use update_features"
            )
        self._change(arms=with_arms(self.arms, new))

    @journalled
    def update_features(self, arms: Any) -> None:
        """Gives arms other features; what was learned of them is kept and belongs to the new features."""
        new = as_arm_pool(arms)
        for arm in new.ids:
            self.arms.index_of(arm)  # or raises, for these are there already
        self._change(arms=with_arms(self.arms, new))

    @journalled
    def retire_arms(self, arms: Iterable[ArmId]) -> None:
        """Takes arms out of what is shown by default; what was learned of them still counts for the others."""
        gone = {self.arms.ids[self.arms.index_of(arm)] for arm in as_list("arms", arms)}
        without_arms(self.arms.ids, self._retired | gone)
        self._retired = self._retired | gone

    @journalled
    def revive_arms(self, arms: Iterable[ArmId]) -> None:
        """Lets retired arms be shown again, with what was learned of them; others stay as they are."""
        self._retired = self._retired - {self.arms.ids[self.arms.index_of(arm)] for arm in as_list("arms", arms)}

    # Inside

    def _checked_rewards(self, rewards: Any) -> list[float]:
        """Returns rewards as numbers, or raises and says which of them is none."""
        values = []
        for place, reward in enumerate(as_list("rewards", rewards)):
            try:
                values.append(self._checked_reward(reward))
            except RewardError as error:
                raise RewardError(f"rewards[{place}]: {error.problem}", error.rule, error.remedy) from None
        return values

    def _checked_reward(self, reward: Any) -> float:
        return checked_binary(reward) if self._reward == "binary" else checked_reward(reward)

    def _requests(self, *, learns: bool = True) -> Requests:
        """Returns what reads the requests of a call."""
        return Requests(self._learned, self._ledger, learns=learns)

    def _active(self, candidates: Any) -> Any:
        """Returns the candidates, or where none are given all arms that are not retired; None for all there are."""
        return without_arms(self.arms.ids, self._retired) if candidates is None and self._retired else candidates

    def _shown(self, requests: Requests, candidates: Any, context: Any = None, *, keep: bool = False) -> Shown:
        """Returns candidates to decide among, or raises if no decision is possible; nothing has changed yet."""
        shown = requests.read(self._active(candidates), context, keep=keep)
        gone = [arm for arm in shown.ids if arm in self._retired] if self._retired else []
        if gone:
            what, rule = f"candidates {listed(gone)} are retired", "a retired arm is not chosen"
            raise CandidatesError(what, rule, "Leave them out, or revive them")
        if self._min_propensity:
            check_least(self._min_propensity, len(shown.ids))
        return shown

    def _learn_shown(self, row: int, shown: Shown, value: float, examined: float = 1.0) -> None:
        """Learns a reward of one arm for a user's row; all was checked."""
        arm, taken = shown.rows.item(0), shown.input_at(0)
        self._learned.learn(row, arm, value, taken, shown.guest_at(0), examined)
        self._learned.expect(row, arm if taken is None else taken, examined)

    def _decide(self, row: int, shown: Shown) -> Decision:
        """Returns the decision for a user's row among candidates that were checked."""
        learned = self._learned
        learned.touched = True
        if learned.stale and learned.needs_refreshing:
            self._relearn()
        if self._pending != "ignore":
            learned.refresh_pending_model(self._ledger)
        return self._decided(row, learned.policy.consider_rows(row, shown.columns), shown)[1]

    def _decided(self, row: int, scored: Scored, shown: Shown, examined: float = 1.0) -> tuple[int, Decision]:
        """Returns where the choice stands among the candidates, and the decision, which waits for its reward now.

        Args:
            row: The user's.
            scored: What it is made from; it is the last that the policy counted.
            shown: The candidates.
            examined: How likely its place is looked at beside the first.
        """
        policy = self._learned.policy
        number, share, place = policy.n_decisions - 1, 0.0, scored.best
        if self._min_propensity:
            share, drawn = exploration(self._draws, number, len(shown.ids), self._min_propensity)
            place = place if drawn is None else drawn
        if self._given_arms:
            place = shown.place_of(self._given_arms.pop(0))
        means, stds = scored.shown
        arm, taken, guest = shown.rows.item(place), shown.input_at(place), shown.guest_at(place)
        self._ledger.open(number, user=row, arm=arm, input=taken, guest=guest, examined=examined)
        if policy.pending_model is not None:
            self._learned.expect(row, arm if taken is None else taken, examined)
        return place, Decision(
            number=number,
            user=policy.graph.user_at(row),
            shown=shown.ids,
            place=place,
            mean=means.item(place),
            std=stds.item(place),
            score=scored.score.item(place),
            explored=place != scored.best,
            share=share,
            scored=scored,
            seed=self._seed,
            certain=scored.certain if place == scored.best else None,
        )

    def _learn_reward(self, number: int, value: float, event: int | None) -> None:
        """Learns the reward of a pending decision, or puts it in the place of an earlier one, if that is named."""
        if event is not None:
            self._learned.replace(event, value)
            return
        pending = self._ledger.look(number, n_decisions=self._learned.policy.n_decisions)
        self._learned.learn(pending.user, pending.arm, value, pending.input, pending.guest, pending.examined)
        self._ledger.settle(number, event=len(self._learned.events) - 1)

    @journalled
    def _relearn(self) -> None:  # journals know the refresh of the weights by this name
        self._learned.refresh()

    @journalled
    def _recover(self) -> None:
        self._learned.recover()

    @journalled
    def _take_fit(self, started: int, found: list[float]) -> None:
        self._learned.touched = True
        self._learned.policy.take_fit(started, found)

    def _change(self, **change: Any) -> None:
        moved = self._learned.change(**change)
        if moved is not None:
            self._ledger.renumber(*moved)


def _one_arm(requests: Requests, arm: Any, context: Any) -> Shown:
    """Returns an arm in a context; it is an id, or a mapping from one id to features."""
    shown = requests.read(arm if isinstance(arm, Mapping) else [arm], context)
    if len(shown.ids) > 1:
        raise CandidatesError(f"{len(shown.ids)} arms were given: {listed(shown.ids)}", "one is asked for", "Give one")
    return shown


def _given(**options: Any) -> dict[str, Any]:
    """Returns the options that were given: those of a saved bandit are the same whatever is added later."""
    return {name: value for name, value in options.items() if value is not None}
