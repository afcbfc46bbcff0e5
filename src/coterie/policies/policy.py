"""A policy chooses: a model and a score, on the caller's own user and arm ids."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, product
from math import sqrt
from operator import itemgetter
from typing import Any

import numpy as np

from coterie.contracts import Array, Choice, Index, UserId
from coterie.errors import (
    FAILURES,
    CandidatesError,
    ContextError,
    DimensionError,
    FitWarning,
    NumericalError,
    ParameterError,
    UnknownArmError,
    UnknownUserError,
    listed,
    or_similar,
)
from coterie.errors.checks import as_list, check_same, check_whole, checked_reward
from coterie.errors.renamed import warn_renamed
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool, JointKernel, PoolKernel, UserKernel
from coterie.kernels.joint import OnPool
from coterie.kernels.links import GraphCovariance
from coterie.models import History, Model, restore_model
from coterie.models.base import SolveProgress
from coterie.policies.adaptation.followers import Follower
from coterie.policies.added_edges import follow_graph
from coterie.policies.reward_batches import condition_on, fit_model
from coterie.policies.rules.draws import Draws
from coterie.policies.rules.propensity import N_DRAWS, Propensities
from coterie.policies.rules.scores import (
    Prospects,
    Score,
    Scored,
    ScoredBatch,
    ScoreFunction,
    as_score,
    best_of_each,
    best_of_one,
)
from coterie.policies.rules.widths import Width, WidthRule, checked_width, width_at

TIE_TOLERANCE = 1e-10


class Policy:
    """Chooses arms for users and learns from the rewards. Made by `make_policy`.

    Decisions do not change the belief; rewards and changes of the graph do. `select` counts decisions: a decision's
    randomness depends on the seed and its number alone, so the same seed gives the same run on every exact engine.

    Attributes:
        decides_together: Whether decisions for several users can be computed at once (`consider_many`).
        has_inputs: Whether arms have contexts: the model knows them as inputs.
        has_places: Whether the place of a slate is part of an input.
        learns_by_decisions: Whether what a reward teaches depends on the decision that led to it.
        centre: The prior mean of rewards. The model knows rewards less this number.
        width_rule: Multiplies the width where not all of the posterior is worth exploring alike; None otherwise.
        inverse_link: Turns mean and std of the posterior into those of rewards, where it is about something else.
        pending_model: A model that is also conditioned on pending decisions: std is read there, the mean from the
            posterior. None where decisions do not count before their rewards.
        pending_fit: A fit of the hyperparameters that goes on, where they are learned.
        fits: Of policies that learn hyperparameters: after how many rewards, and what was found.
    """

    decides_together = True
    has_inputs = False
    has_places = False
    learns_by_decisions = False

    def __init__(
        self,
        *,
        name: str,
        graph: UserGraph,
        arms: ArmPool | None,
        model: Model,
        score: Score | ScoreFunction,
        width: Width,
        followers: Sequence[Follower] = (),
        seed: int = 0,
        user_kernel: UserKernel | None = None,
    ) -> None:
        _check_parts(graph, arms, model, score)
        self.name = name
        self._take_graph(graph)
        self.arms = arms
        self._model = model
        self.width = checked_width(width)
        self.seed = seed
        self.n_decisions = 0
        self._score = as_score(score)
        self._followers = tuple(followers)
        self._refused, self.n_refused = "", 0
        self.n_to_refuse = 0  # of the next settings, in a replay: they failed then, for lack of memory perhaps
        self.fits: list[tuple[int, Any]] = []
        self.centre = 0.0
        self.width_rule: WidthRule | None = None
        self.inverse_link: Callable[[Array, Array], tuple[Array, Array]] | None = None
        self.pending_fit: Any = None
        self._checked_reward: Callable[[Any], float] = checked_reward
        self._draws = Draws(seed)
        self._user_kernel = user_kernel
        self.arm_ids = arms.ids if arms else ()
        self._arm_index = dict(arms.index) if arms else {}
        self.pending_model: Model | None = None
        self._tie_kernel: object = None
        self._largest_arm = 0.0

    def __repr__(self) -> str:
        return f"Policy({self.name!r}, {self.graph.n_users} users, {self.model.n_observations} observations)"

    @property
    def model(self) -> Model:
        """The belief, from all rewards."""
        return self._model

    @property
    def n_rewards(self) -> int:
        """Rewards learned so far."""
        return self._model.history.n_observations

    @property
    def takes_contexts(self) -> bool:
        """Whether decisions are made in contexts."""
        return False

    def select(self, user: UserId, candidates: Any = None, *, context: Any = None) -> Choice:
        """Returns the choice for this user among the candidates.

        Args:
            user: One of `graph.users`.
            candidates: Any iterable of arm ids, None for the whole pool; without a pool, an array with one row each.
            context: What is different about this moment, for policies with a `context_schema`.
        """
        return self.consider(user, candidates, context=context)[0]

    def consider(self, user: UserId, candidates: Any = None, *, context: Any = None) -> tuple[Choice, Scored]:
        """Returns the choice, as `select` does, and what was believed of every candidate."""
        row, arms = self._user_row(user), self._candidates(candidates)
        found = self._decide(row, self.in_context(arms, context), self.n_decisions)
        return self._chosen(row, arms, found), found

    def in_context(self, arms: Any, context: Any, *, learn: bool = True) -> Any:  # noqa: ARG002 - contexts may be new
        """Returns arms as the model knows them in a context; raises where there is one and it knows of none."""
        if context is not None:
            rule = f"{self.name!r} was made without contexts"
            raise ContextError("a context was given", rule, "Make an auto-* policy with context_schema=...")
        return arms

    def consider_rows(self, row: int, arms: Any, prospects: Prospects | None = None) -> Scored:
        """Returns what the next decision is made from, and counts it; user and arms are rows that were checked.

        Args:
            row: The user's row.
            arms: The candidates as the model knows them.
            prospects: What is believed of them, where it was read before.
        """
        number = self.n_decisions
        found = self._decide(row, arms, number) if prospects is None else self._choose(row, prospects, number)
        self.n_decisions = number + 1
        return found

    def prospects(self, row: int, arms: Any) -> Prospects | None:
        """Returns what is believed of candidates now, for several decisions; None where each reads for itself."""
        return self._read(row, arms)

    def at_place(self, arms: Any, place: int) -> Any:  # noqa: ARG002 - only some know places
        """Returns arms, as the model knows them, at a place of a slate, from 1."""
        return arms

    def consider_many(self, users: Iterable[UserId], candidates: Any = None) -> ScoredBatch | None:
        """Returns what `consider` would for one user after another, or None where it must be asked so."""
        rows = [self._user_row(user) for user in users]
        together = self.decides_together and not callable(self.width) and self.pending_model is None
        if not together or self.arms is None or not rows:
            return None
        arms = self._candidates(candidates)
        model, first, tolerances = self._model, self.n_decisions, [self._tolerance(row, arms) for row in rows]
        mean, std = model.read_many(np.array(rows, dtype=np.intp), arms)
        width, numbers = self.widths(np.array(rows), arms, std), range(first, first + len(rows))
        score = self._score.of_many(mean, std, width, model=model, draws=self._draws, numbers=numbers)
        best = None if score is None else best_of_each(score, np.array(tolerances), self._draws, numbers)
        if score is None or best is None:
            return None
        self.n_decisions += len(rows)
        if self.centre:
            mean, score = mean + self.centre, score + self.centre
        return ScoredBatch(self._score, first, rows, mean, std, width, score, tolerances, model.noise_var, best)

    def update(self, user: UserId, arm: Any, reward: float, *, context: Any = None, place: int = 1) -> None:
        """Learns the reward of an arm for a user; on an error nothing has changed.

        Args:
            user: One of `graph.users`.
            arm: The id of an arm; without a pool, a vector.
            reward: A finite number.
            context: That in which it came, as for `select`.
            place: That of a slate at which it came, from 1, for policies with places="learned"; others take no heed.
        """
        row = self._user_row(user)
        value = self._checked_reward(reward)
        check_whole("place", place)
        column = self._model.checked_arm(arm) if self.arms is None else self._arm_row(arm)
        self.learn(row, self.at_place(self.in_context([column], context), int(place))[0], value)

    def learn(self, row: int, column: Any, value: float, *, weight: float = 1.0) -> None:
        """Learns a reward from a user's row, an arm as the model knows it and a number, which were checked already.

        One of a weight below 1 has a noise variance of `noise_var` / weight: only where the belief `collapses`.
        """
        if weight < 1:
            self._model.learn_noisier(row, column, value, weight=weight)
            return
        self._learn(row, column, value)
        if self._followers:
            self._follow(self.n_rewards, row, column, value)

    def update_many(self, users: Iterable[UserId], arms: Iterable[Any], rewards: Iterable[float]) -> None:
        """Learns many rewards at once; the same belief as one by one, faster; on an error nothing has changed."""
        rows = [self._user_row(user) for user in as_list("users", users)]
        given = as_list("arms", arms)
        columns = given if self.arms is None else [self._arm_row(arm) for arm in given]
        values = as_list("rewards", rewards)
        before = self.n_rewards
        self._learn_many(rows, columns, values)
        if self._followers:
            for t, row, column, value in zip(count(before + 1), rows, columns, values, strict=False):
                self._follow(t, row, self._model.checked_arm(column), checked_reward(value))

    def fit(
        self,
        batches: Iterable[Any],
        *,
        progress: Callable[[str, int], None] | None = None,
        keep: Callable[..., None] | None = None,
    ) -> int:
        """Learns any number of rewards at once; returns how many. On an error nothing has changed.

        The belief is that of learning them one by one, on `sparse` within the model's `error_bound`; there it is one
        solve for all users, and memory grows with the pairs of user and arm that were observed.

        Args:
            batches: Each is three columns of the same length: users, arms and rewards; `read_rewards` makes them. A
                fourth one has contexts: a list of them, or columns by name.
            progress: Called with "rows" and how many were read, then with "steps" and how many the solve has taken.
            keep: Called with each batch once it is checked: rows of users and of arms, and rewards, and where there are
                contexts the arms as the model knows them; it may raise.
        """
        self._check_fit()
        count = fit_model(self._model, dict(self._user_index), self._arm_index, batches, progress, keep)
        self.pending_model = None
        return count

    def fit_combined(
        self, columns: Mapping[str, Any], *, start: Array | None = None, progress: SolveProgress | None = None
    ) -> int:
        """Learns rewards that were combined by pairs of rows, as `fit` does; returns the steps of the solve.

        Args:
            columns: Users and arms as rows, counts, means and scatters of each pair; and n_observations.
            start: Weights that the solve starts from, a row for each user, where it is one for all users.
            progress: Called with the number of each step, and how far above its limit the residual is.
        """
        self._check_fit()
        more = self._model.history_of(dict(columns))
        steps = 0
        if not self._model.can_fit:
            condition_on(self._model, more)
        elif len(more):
            steps = self._model.fit(more, progress, start=start)
        self.pending_model = None
        return steps

    def _check_fit(self) -> None:
        if self.arms is None or not self.collapses:
            rule = "a fit needs a pool of arms, and settings that do not depend on the rewards or their order"
            raise ParameterError(f"a fit was asked for with {self.name!r}", rule, "Use 'lk-gp-ucb', or update_many")

    def continue_from(self, other: "Policy") -> None:
        """Counts decisions and failures on from those of another policy, in whose place this one comes."""
        self.n_decisions, self._refused = other.n_decisions, other._refused
        self.n_refused, self.n_to_refuse = other.n_refused, other.n_to_refuse

    @property
    def collapses(self) -> bool:
        """Whether the belief depends on the rewards of each pair alone, not on the order in which they came."""
        return not self._followers

    def relearn(self, history: History) -> None:
        """Forgets all rewards and learns this history of (user row, arm row) pairs instead; settings stay."""
        self._model.relearn(history)

    def state(self) -> dict[str, Any]:
        """Returns what decisions depend on beside the settings: arrays and plain values by name, in nested tables.

        Kernel and model are part of it only where the belief `collapses`. Where it depends on the order of the rewards
        (clusters, a learned similarity, a schedule, stages) they are to be learned again, in that order. Nothing large
        is copied: it holds until the policy learns.
        """
        kernel, out = self._model.kernel, {"n_decisions": self.n_decisions, "refused": self._refused}
        out["n_refused"] = self.n_refused
        if self.collapses:
            out["model"] = self._model.state()
            if isinstance(kernel, PoolKernel):
                out["kernel"] = {"user_cov": kernel.user_cov, "arm_cov": kernel.arm_cov}
        if self.pending_model is not None and self.pending_model.kernel is kernel:
            out["doubt"] = self.pending_model.state()
        return out

    def restore(self, state: dict[str, Any]) -> None:
        """Takes the state of a policy with the same settings, and its arrays; it then decides the same to the bit."""
        self.n_decisions, self._refused = state["n_decisions"], state["refused"]
        self.n_refused = state.get("n_refused", int(bool(self._refused)))
        kernel = self._restored_kernel(state)
        if "model" in state:
            self._model = restore_model(state["model"], kernel)
            kernel = self._model.kernel  # one that has grown is the model's own
        if "doubt" in state:
            check_same("noise variance", state["doubt"]["noise_var"], self._model.noise_var)
        held = restore_model(state["doubt"], kernel) if "doubt" in state else None
        self.pending_model = held if held is not None and held.is_sound() else None  # else it is rebuilt when needed

    def is_sound(self) -> bool:
        """Returns whether a restored posterior is that of its rewards, up to rounding; if not it is to be relearned."""
        return self._model.is_sound()

    def _restored_kernel(self, state: dict[str, Any]) -> JointKernel:
        """Returns the kernel of a state, or raises if it is not the one that the settings give, up to rounding."""
        if "model" in state:
            check_same("noise variance", state["model"]["noise_var"], self._model.noise_var)
        return self._checked_kernel(state, self._model.kernel)

    def _checked_kernel(self, state: dict[str, Any], made: JointKernel) -> JointKernel:
        if "kernel" not in state:
            return made
        for name, held in state["kernel"].items():
            check_same(name, held, getattr(made, name))
        return PoolKernel(**state["kernel"])

    def revise(self, row: int, column: Any, before: float, after: float) -> bool:
        """Puts a reward in the place of one learned before, for a user's row and an arm as the model knows it.

        Returns whether it could, at less than the cost of learning all rewards again; settings stay as they are.
        """
        return self.collapses and self._model.revise(row, column, before, after)

    # Hyperparameters: what a policy that learns none says of them

    def refit_due(self, t: int) -> bool:  # noqa: ARG002 - only some learn settings
        """Returns whether hyperparameters are fitted after so many rewards."""
        return False

    @property
    def ready_fit(self) -> tuple[int, list[float]] | None:
        """After how many rewards a fit started that can be taken now, and the numbers it found; None without one."""
        return None

    def take_fit(self, started: int, numbers: Iterable[float]) -> None:
        """Takes the fit that goes on, these being the numbers it found."""

    def set_fits(self, *, when_ready: bool, given: bool) -> None:
        """Says how fits are taken, where hyperparameters are learned."""

    def hyperparameters(self) -> dict[str, Any] | None:
        """Returns the hyperparameters learned so far as plain values that mean the same on another graph, if any."""
        return None

    def relearn_with(self, hyperparameters: Mapping[str, Any], history: History) -> None:  # noqa: ARG002 - only some learn settings
        """Forgets all rewards and learns this history, with these hyperparameters."""
        self.relearn(history)

    # The graph

    def relink(self, graph: UserGraph) -> bool:
        """Takes a graph with more users or heavier edges at less than the cost of a rebuild; returns whether it could.

        The belief is then the one that the same rewards give on that graph, with the same settings. Where it could not,
        nothing has changed: make a policy on that graph, and let it learn them. On `sparse` any edges may change, at a
        cost that does not depend on the number of users, if the graph was made from this policy's by edits.
        """
        if not (self.collapses and follow_graph(self._model, self.graph, graph, self._form())):
            return False
        self._take_graph(graph)
        self.pending_model = None
        return True

    def take_arms(self, arms: ArmPool) -> bool:  # noqa: ARG002 - only some can
        """Takes a pool with more arms after those there are, if nothing need be learned again; returns whether."""
        return False

    # What is believed

    def predict(self, user: UserId, candidates: Any = None, *, context: Any = None) -> tuple[Array, Array]:
        """Returns the believed mean and std of the candidates, in the order asked; std is without noise."""
        row = self._user_row(user)
        return self.predict_rows(row, self.in_context(self._candidates(candidates), context, learn=False))

    def predict_rows(self, row: int, arms: Any) -> tuple[Array, Array]:
        """Returns what `predict` does, of a user's row and arms as the model knows them."""
        mean, std = self.model.peek(row, arms)
        if self.centre:
            mean = mean + self.centre
        return (mean, std) if self.inverse_link is None else self.inverse_link(mean, std)

    def covariance(self, user: UserId, candidates: Any = None, *, context: Any = None) -> Array:
        """Returns the joint covariance of the candidates for this user, in the order asked."""
        row = self._user_row(user)
        return self.model.read_covariance(row, self.in_context(self._candidates(candidates), context, learn=False))

    @property
    def score(self) -> Score:
        """The rule that orders the candidates."""
        return self._score

    def rows_of(self, candidates: Any) -> Index:
        """Returns the rows of candidates in the pool, or raises if they are not arms of it, each given once."""
        return np.asarray(self._candidates(candidates))

    def propensities(
        self, row: int, arms: Any, *, rng: np.random.Generator | None = None, n_draws: int = N_DRAWS
    ) -> Propensities | None:
        """Returns the probability of each candidate in the next decision, which is not made; None if not known.

        It is not known for a score that is a function of the caller's, and for decisions in stages.

        Args:
            row: The user's row.
            arms: The candidates as the model knows them: rows of the pool, or vectors.
            rng: For joint Thompson sampling only, which is simulated.
            n_draws: As for `rng`.
        """
        if not self._score.knows_propensities:
            return None
        return self._decide(row, arms, self.n_decisions).propensities(rng, n_draws)

    def widths(self, rows: Any, arms: Any, std: Array) -> float | Array:
        """Returns how wide to explore now: a number, or one for each std, of these arms for a user's row or more."""
        width = self.width
        plain = width_at(width, self._model.n_observations + 1, self._model) if callable(width) else width
        return plain if self.width_rule is None else plain * self.width_rule(self._model, rows, arms, std)

    def describe(self) -> str:
        """Returns in words what this policy runs on and why."""
        return f"{self.name}: {self.model.describe()}{self._refusals()}"

    def explain(self) -> str:
        """Returns what `describe` does, under its old name."""
        warn_renamed("Policy.explain", "Policy.describe")
        return self.describe()

    def _refusals(self) -> str:
        if not self.n_refused:
            return ""
        counted = f" That was failure {self.n_refused}." if self.n_refused > 1 else ""
        return f" {self._refused}{counted}"

    def _fail_as_recorded(self) -> None:
        """Raises, in a replay, where settings are due that failed when this was first done."""
        if self.n_to_refuse:
            self.n_to_refuse -= 1
            raise NumericalError("it failed when this was first done", "a replay does the same", "Fit again later")

    def _refuse(self, what: str, failure: Exception) -> None:
        """Takes note that settings could not be computed: those at hand stay, `describe` tells, and the first warns."""
        self._refused, self.n_refused = f"{what}: {str(failure) or repr(failure):.500}", self.n_refused + 1
        if self.n_refused == 1:
            warnings.warn(f"{self.name}: {self._refused} The settings stay as they were.", FitWarning, stacklevel=2)

    def _take_graph(self, graph: UserGraph) -> None:
        self.graph, self._user_index = graph, graph.index

    def _form(self) -> GraphCovariance | None:
        """Returns what the user covariance is made of, if its changes have a closed form."""
        return GraphCovariance.of(self._user_kernel)

    # Users and arms by the caller's own ids, as rows and vectors that a model knows

    def _user_row(self, user: UserId) -> int:
        try:
            return self._user_index[user]
        except (KeyError, TypeError):
            remedy = "Add the user to the graph, make a policy on it and replay the rewards with update_many"
            raise UnknownUserError(
                f"user {user!r} is unknown",
                f"the graph's users are {listed(self.graph.users)}",
                or_similar(user, self.graph.users, remedy),
            ) from None

    def _arm_row(self, arm: Any) -> int:
        try:
            return self._arm_index[arm]
        except (KeyError, TypeError):
            if isinstance(arm, Choice):
                raise UnknownArmError(
                    "the arm is a whole Choice", "an arm is named by its id", "Pass choice.arm"
                ) from None
            assert self.arms is not None
            return self.arms.index_of(arm)

    def _candidates(self, candidates: Any) -> Any:
        """Returns the candidates as the model knows them: rows of the pool, or vectors."""
        if self.arms is None:
            return self._vectors(candidates)
        if candidates is None:
            return np.arange(len(self.arm_ids))
        ids = as_list("candidates", candidates)
        if not ids:
            raise CandidatesError("there are no candidates", "at least one is needed", "Name arms, or none to mean all")
        try:
            rows = itemgetter(*ids)(self._arm_index) if len(ids) > 1 else (self._arm_index[ids[0]],)
        except (KeyError, TypeError):
            rows = [self._arm_row(arm) for arm in ids]
        if len(set(rows)) < len(rows):
            repeated = next(arm for i, arm in enumerate(ids) if arm in ids[:i])
            raise CandidatesError(f"candidate {repeated!r} is given twice", "candidates are distinct", "Drop one")
        return np.array(rows, dtype=np.intp)

    def _vectors(self, candidates: Any) -> Any:
        if isinstance(candidates, Iterator):
            candidates = list(candidates)
        if candidates is not None and np.size(candidates) == 0:
            raise CandidatesError(
                "there are no candidates", "at least one is needed", "Pass an array with one row each"
            )
        rows = self._model.checked_arms(candidates)
        if len({row.tobytes() for row in rows}) < len(rows):
            raise CandidatesError("a candidate vector is given twice", "candidates are distinct", "Drop repeated rows")
        return rows

    # Inside

    def _chosen(self, row: int, arms: Any, found: Scored) -> Choice:
        """Counts the decision and returns its record."""
        number = self.n_decisions
        self.n_decisions = number + 1
        return self._record(row, arms, found, number)

    def _record(self, row: int, arms: Any, found: Scored, number: int) -> Choice:
        """Returns the record of a decision among these arms: rows of the pool, or vectors."""
        best = found.best
        arm = arms[best] if self.arms is None else self.arm_ids[arms.item(best)]
        (mean, std), score = found.shown, found.score.item(best)
        believed = mean.item(best), std.item(best), score
        return Choice(self.graph.user_at(row), arm, best, *believed, number, found.certain)

    def _decide(self, row: int, arms: Any, number: int) -> Scored:
        """Returns what a decision is made from, the chosen candidate included."""
        return self._choose(row, self._read(row, arms), number)

    def _read(self, row: int, arms: Any) -> Prospects:
        """Returns what is believed of candidates."""
        model = self._model
        mean, std = model.read(row, arms)
        known = model
        if self.pending_model is not None:
            std = self.pending_model.read(row, arms)[1]
            known = self.pending_model if self._score.is_joint else model
        covariance = self._score.covariance(known, row, arms)
        return Prospects(known, arms, mean, std, self.widths(row, arms, std), covariance)

    def _choose(self, row: int, prospects: Prospects, number: int) -> Scored:
        """Returns what a decision among these candidates is made from, the chosen one included."""
        known, arms, mean, std, width, covariance = prospects
        context = {"model": known, "user": row, "arms": arms, "draws": self._draws, "number": number}
        score = self._score.of_one(mean, std, width, covariance, **context)
        if getattr(score, "shape", None) != mean.shape:
            raise DimensionError(
                f"the score has shape {np.shape(score)}",
                f"it is one number for each of {len(mean)} candidates",
                "Mend it",
            )
        found = self._scored(row, arms, number, mean, std, width, score)
        return found if covariance is None else found._replace(covariance=covariance)

    def _scored(
        self, row: int, arms: Any, number: int, mean: Array, std: Array, width: float | Array, score: Array
    ) -> Scored:
        """Returns what a decision is made from, the best candidate included."""
        tolerance = self._tolerance(row, arms)
        best, n_ties = best_of_one(score, tolerance, self._draws, number)
        if self.centre:
            mean, score = mean + self.centre, score + self.centre
        in_rewards = None if self.inverse_link is None else self.inverse_link(mean, std)
        given = mean, std, width, score, tolerance, self._model.noise_var, best, n_ties
        return Scored(self._score, *given, on_reward_scale=in_rewards)

    def _learn(self, row: int, column: Any, value: float) -> None:
        """Learns one reward from values that were checked already."""
        self._model.learn(row, column, value)

    def _learn_many(self, rows: list[int], columns: list[Any], values: list[Any]) -> None:
        """Learns many rewards, and raises before any change if one of them is no good."""
        self._model.update_many(rows, columns, values)

    def _followed(self) -> Iterable[Model]:
        """Returns the models whose settings follow the rewards."""
        return (self._model,)

    def _tolerance(self, row: int, arms: Any) -> float:
        """Returns the gap within which scores are tied: 1e-10 of the user's largest prior std and the largest reward.

        Rounding errors of a std are proportional to the one, those of a mean to the other. They grow with the prior
        variance over the noise variance too: engines agree on ties while that is below 1e4, whatever BLAS they run on.
        """
        kernel, largest = self._model.kernel, self._model.history.largest
        if not isinstance(kernel, OnPool):
            return TIE_TOLERANCE * (sqrt(kernel.user_variance(row) * float(kernel.arm_diag(arms).max())) + largest)
        if self._tie_kernel is not kernel:
            self._tie_kernel, self._largest_arm = kernel, float(kernel.arm_diag(np.arange(kernel.n_arms)).max())
        return TIE_TOLERANCE * (sqrt(kernel.user_variance(row) * self._largest_arm) + largest)

    def _follow(self, t: int, row: int, column: Any, value: float) -> None:
        """Lets the model's settings follow reward number t.

        The reward is learned by now, so a change that the model refuses is no error of the caller's: the model keeps
        the settings it has, and `describe` tells.
        """
        for follower, model in product(self._followers, self._followed()):
            try:
                self._fail_as_recorded()
                follower.follow(model, t, row, column, value)
            except FAILURES as refusal:
                self._refuse(f"The change due after {t} rewards was not made", refusal)


def _check_parts(graph: UserGraph, arms: ArmPool | None, model: Model, score: Any) -> None:
    """Raises if the parts do not belong together."""
    if not callable(score):
        raise ParameterError(f"score is {score!r}", "it is a function of mean, std and width", "Pass such a function")
    if model.n_users != graph.n_users:
        raise DimensionError(
            f"a model of {model.n_users} users on a graph of {graph.n_users}",
            "they are the same users",
            "Make the model on this graph",
        )
    n_arms = getattr(model.kernel, "n_arms", None)
    if not model.kernel.has_inputs and n_arms != (len(arms) if arms else None):
        raise DimensionError(
            f"a model of {n_arms or 'no pool of'} arms with {arms!r}",
            "they are the same arms",
            "Make the model on these arms",
        )
