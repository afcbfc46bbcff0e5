"""What is to be judged, and how: policies, and what each would have chosen on a log."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from coterie.contracts import Array, Index
from coterie.errors import ParameterError, UnknownArmError, UnknownNameError, UnknownUserError, listed, or_similar
from coterie.errors.checks import check_whole
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.policies import Policy
from coterie.policies.factory.recipes import RECIPES
from coterie.product.bandit_checks import check_all_binary
from coterie.product.evaluation.estimators import ESTIMATORS, Terms, accepted
from coterie.product.evaluation.logged import Logged, check_rows
from coterie.product.learned import RewardEvents

N_DRAWS = 1000
CACHED = 2**23  # numbers cached, for logs that show the same candidates again
EVERY = 100  # decisions from one call of `progress` to the next
Progress: TypeAlias = Callable[[str, int, int], None]  # what is done, how much of it, of how much


def silent(what: str, done: int, total: int) -> None:
    """Tells nobody."""


class Target(NamedTuple):
    """A policy to be judged.

    Attributes:
        name: Its name, as `make_policy` takes it.
        options: What `make_policy` takes besides.
        label: What it is called in the report.
    """

    name: str
    options: Mapping[str, Any]
    label: str

    @classmethod
    def of(cls, name: str, **options: Any) -> "Target":
        """Returns a policy that is called by its name and its options.

        Examples:
            >>> Target.of("lk-gp-ucb", width=0.5).label
            'lk-gp-ucb (width=0.5)'
        """
        given = ", ".join(f"{key}={value}" for key, value in options.items())
        return cls(name, options, f"{name} ({given})" if given else name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How policies are to be judged: the options of `evaluate` that all of them share, which says what each is."""

    estimators: Sequence[str] | None = None
    learning: bool = False
    fit_share: float = 0.5
    offset: float | Literal["mean"] = 0.0
    threshold: float | None = None
    reward_model: str = "auto-ucb"
    reward_options: Mapping[str, Any] = field(default_factory=dict)
    confidence: float = 0.95
    n_draws: int = N_DRAWS
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole("n_draws", self.n_draws)
        for name, value in (("fit_share", self.fit_share), ("confidence", self.confidence)):
            if not 0 < value < 1:
                raise ParameterError(f"{name} is {value!r}", "it lies between 0 and 1", "Choose, say, 0.5 or 0.95")
        if self.threshold is not None and not self.threshold >= 0:
            raise ParameterError(f"threshold is {self.threshold!r}", "it is a weight >= 0", "Choose, say, 10")
        if self.offset == "mean" and self.learning:
            rule = "a policy that learns as it is replayed does not know the mean of what is to come"
            raise ParameterError("offset is 'mean'", rule, "Give a number that was known before")

    def served(self, log: Logged) -> list[str]:
        """Returns the estimators asked for, or all that this log serves."""
        served = [name for name in ESTIMATORS if name != "switch-ips" or log.chances is not None]
        served = ["replay"] if self.learning else served
        if self.estimators is None:
            return served
        given = [self.estimators] if isinstance(self.estimators, str) else list(dict.fromkeys(self.estimators))
        for name in given:
            if name not in ESTIMATORS:
                remedy = or_similar(name, ESTIMATORS, "Use some of these")
                raise UnknownNameError(f"estimator {name!r} is unknown", f"they are {listed(ESTIMATORS, 9)}", remedy)
            if name not in served:
                rule = "a policy that learns is judged by replay only"
                rule = rule if self.learning else "it needs the log's `chances`"
                raise ParameterError(f"estimator {name!r} was asked for", rule, f"Ask for {listed(served, 9)}")
        return given


def check_binary(log: Logged, options: Mapping[str, Any]) -> None:
    """Raises if rewards are to be 0 or 1 and one is not."""
    if options.get("likelihood") == "bernoulli":
        check_all_binary(log.rewards, 0)


def check_known(log: Logged, graph: UserGraph, arms: ArmPool) -> None:
    """Raises if the log has a user or an arm that is not there."""
    unknown = (log.users < 0) | (log.users >= graph.n_users)
    rule = f"users are rows 0 to {graph.n_users - 1}"
    check_rows(unknown, UnknownUserError, lambda row: f"the user is {log.users[row]}", rule)
    unknown = (log.candidates < 0) | (log.candidates >= len(arms))
    odd = np.logical_or.reduceat(unknown, log.starts[:-1])
    rule = f"arms are rows 0 to {len(arms) - 1}"
    check_rows(odd, UnknownArmError, lambda _: f"a candidate is {log.candidates[unknown][0]}", rule)


def fitted(policy: Policy, log: Logged, offset: float = 0.0) -> Policy:
    """Returns the policy, having learned the rewards less an offset; at once, if it does not ask for their order."""
    rewards = log.rewards - offset
    if not policy.collapses:
        assert policy.arms is not None
        users = [policy.graph.user_at(row) for row in log.users.tolist()]
        policy.update_many(users, [policy.arms.ids[row] for row in log.arms.tolist()], rewards.tolist())
        return policy
    events = RewardEvents.of(log.users, log.arms, rewards, _inputs(policy, log))
    policy.relearn(events.history(np.ones(len(log)), policy.model))
    return policy


def _inputs(policy: Policy, log: Logged) -> Iterator[Array]:
    """Yields each chosen arm in its context, as the model knows it; nothing where it knows no contexts."""
    if policy.has_inputs:
        for row, arm in enumerate(log.arms.tolist()):
            yield known_arms(policy, log, row, [arm], learn=True)[0]


def known_arms(policy: Policy, log: Logged, row: int, arms: Any, *, learn: bool = False) -> Any:
    """Returns arms as the model of a policy knows them in one decision: in its context, at its place of a slate.

    Args:
        policy: Whose model.
        log: The decisions.
        row: Which of them.
        arms: Rows of the pool.
        learn: Whether categories that are new are learned.
    """
    known = policy.in_context(arms, context_of(policy, log, row), learn=learn)
    return policy.at_place(known, place_of(log, row))


def place_of(log: Logged, row: int) -> int:
    """Returns the place of a slate at which a decision was shown, from 1."""
    return 1 if log.shown_at is None else int(log.shown_at[row])


def context_of(policy: Policy, log: Logged, row: int) -> Any:
    """Returns the context of a decision, for a policy that takes contexts; None for others."""
    return log.contexts[row] if log.contexts is not None and policy.takes_contexts else None


def _moments(policy: Policy, log: Logged) -> Index:
    """Returns a number for each decision, the same where context and place say the same to a policy."""
    moments = np.zeros(len(log), dtype=np.intp)
    if log.contexts is not None and policy.takes_contexts:
        moments = log.contexts.codes()
    if log.shown_at is not None and policy.has_places:
        moments = moments * (int(log.shown_at.max()) + 1) + log.shown_at
    return moments


def options_of(name: str, given: Mapping[str, Any], log: Logged) -> dict[str, Any]:
    """Returns what a policy is made with: those that can learn from contexts are told what the log's hold.

    A `context_schema` among the options takes precedence; None means that the policy is shown no contexts.
    """
    learns = name in RECIPES and RECIPES[name].auto and given.get("likelihood", "gaussian") == "gaussian"
    if log.contexts is None or not learns:
        return dict(given)
    return {"context_schema": log.contexts.schema, **given}


def choice_probabilities(
    policy: Policy,
    log: Logged,
    *,
    seed: int = 0,
    progress: Progress = silent,
    label: str = "the policy",
    cached: int = CACHED,
) -> Array:
    """Returns with which probability a policy that learns no more chooses each candidate, as `log.candidates`.

    The same user among the same candidates in the same context is asked once, as long as no more than `cached` numbers
    are kept. Joint Thompson sampling is simulated.
    """
    check_freezable(policy)
    rng, known = np.random.default_rng([seed, 3]), dict[tuple[int, int, bytes], Array]()
    out, held, moments = np.empty(len(log.candidates)), 0, _moments(policy, log).tolist()
    for row, user in enumerate(log.users.tolist()):
        if row % EVERY == 0:
            progress(f"{label}: is asked", row, len(log))
        shown = log.shown(row)
        key = user, moments[row], shown.tobytes()
        found = known.get(key)
        if found is None:
            found = _probabilities(policy, user, known_arms(policy, log, row, shown), rng)
            if held < cached:
                known[key] = found
                held += 2 * len(shown)
        out[log.starts[row] : log.starts[row + 1]] = found
    return out


def _probabilities(policy: Policy, user: int, arms: Any, rng: np.random.Generator) -> Array:
    found = policy.propensities(user, arms, rng=rng)
    assert found is not None, "checked by check_freezable"
    return found.probabilities


def predictions(policy: Policy, log: Logged, offset: float = 0.0) -> Array:
    """Returns the mean that a policy believes of each candidate, plus an offset, as `log.candidates`."""
    moments = _moments(policy, log)
    asked = log.users * (int(moments.max()) + 1) + moments
    rows, out = np.repeat(np.arange(len(log)), log.sizes), np.empty(len(log.candidates))
    for at in _groups(asked[rows]):
        row = int(rows[at[0]])
        shown, back = np.unique(log.candidates[at], return_inverse=True)
        mean, _ = policy.predict_rows(int(log.users[row]), known_arms(policy, log, row, shown))
        out[at] = mean[back]
    return out + offset


def replay_learning(
    policy: Policy,
    log: Logged,
    *,
    offset: float = 0.0,
    seed: int = 0,
    progress: Progress = silent,
    label: str = "the policy",
) -> Terms:
    """Returns the mean reward of the decisions on which a policy agreed; it learns from these alone, one by one.

    A decision counts if the policy chooses what the logger chose, and then with probability (smallest propensity of
    the log) / (its propensity): so every decision counts with the same probability, and the rewards are those of a
    run of the policy. With a uniform logger and equally many candidates all agreements count. Rewards of a slate are
    learned after its last place.
    """
    assert policy.arms is not None
    counts, waiting = np.zeros(len(log), dtype=bool), []
    ends = {*(log.slate_starts - 1).tolist(), len(log) - 1}
    coins = np.random.default_rng([seed, 1]).random(len(log)) * log.propensities < log.propensities.min()
    ids, users, arms, rewards = policy.arms.ids, log.users.tolist(), log.arms.tolist(), (log.rewards - offset).tolist()
    for row in range(len(log)):
        if row % EVERY == 0:
            progress(f"{label}: is replayed", row, len(log))
        user, arm, context = policy.graph.user_at(users[row]), ids[arms[row]], context_of(policy, log, row)
        chosen = _choice(policy, log, row)
        if coins[row] and chosen == arm:
            waiting.append((user, arm, rewards[row], context, place_of(log, row)))
            counts[row] = True
        if row in ends:
            for *learned, context, place in waiting:
                policy.update(*learned, context=context, place=place)
            waiting = []
    return accepted(log, counts)


def _choice(policy: Policy, log: Logged, row: int) -> Any:
    """Returns what a policy chooses in a decision, which counts as one of its own."""
    assert policy.arms is not None
    shown, ids = log.shown(row), policy.arms.ids
    if not policy.has_places:
        user, context = policy.graph.user_at(int(log.users[row])), context_of(policy, log, row)
        return policy.select(user, [ids[each] for each in shown.tolist()], context=context).arm
    found = policy.consider_rows(int(log.users[row]), known_arms(policy, log, row, shown, learn=True))
    return ids[shown[found.best]]


def check_freezable(policy: Policy) -> None:
    """Raises if the choice probabilities of a policy that learns no more are not known."""
    if not policy.score.knows_propensities:
        rule, remedy = "a frozen policy's choice probabilities must be known", "Replay it: learning=True, or --learning"
        raise ParameterError(f"policy is {policy.name!r}", rule, remedy)


def _groups(keys: Index) -> Iterator[Index]:
    """Yields the places where a key is, key by key."""
    order = np.argsort(keys, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
