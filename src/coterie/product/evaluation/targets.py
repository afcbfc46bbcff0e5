"""What is to be judged: a policy frozen after the earlier part of a log, or one that learns as it is replayed."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.errors import ParameterError, UnknownArmError, UnknownUserError
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.policies import Policy
from coterie.product.evaluation.asked import Progress, silent
from coterie.product.evaluation.estimators import Terms, accepted
from coterie.product.evaluation.logged import Index, Logged
from coterie.product.events import RewardEvents

KEPT = 2**23  # numbers remembered, for logs that show the same candidates again
TOLD = 100  # decisions from one word on progress to the next


def check_known(log: Logged, graph: UserGraph, arms: ArmPool) -> None:
    """Raises if the log has a user or an arm that is not there."""
    odd = np.flatnonzero((log.users < 0) | (log.users >= graph.n_users))
    if odd.size:
        problem, rule = f"row {odd[0]}: the user is {log.users[odd[0]]}", f"users are rows 0 to {graph.n_users - 1}"
        raise UnknownUserError(problem, rule, "Mend or drop that row")
    odd = np.flatnonzero((log.candidates < 0) | (log.candidates >= len(arms)))
    if odd.size:
        row = int(np.searchsorted(log.starts, odd[0], side="right")) - 1
        problem, rule = f"row {row}: a candidate is {log.candidates[odd[0]]}", f"arms are rows 0 to {len(arms) - 1}"
        raise UnknownArmError(problem, rule, "Mend or drop that row")


def taught(policy: Policy, log: Logged, offset: float = 0.0) -> Policy:
    """Returns the policy, having learned the rewards less an offset; at once, if it does not ask for their order."""
    rewards = log.rewards - offset
    if not policy.collapses:
        assert policy.arms is not None
        users = [policy.graph.user_at(row) for row in log.users.tolist()]
        policy.update_many(users, [policy.arms.ids[row] for row in log.arms.tolist()], rewards.tolist())
        return policy
    events = RewardEvents.of(log.users, log.arms, rewards)
    policy.relearn(events.history(np.ones(len(log)), policy.model))
    return policy


def choice_probabilities(
    policy: Policy, log: Logged, *, seed: int = 0, progress: Progress = silent, label: str = "the policy"
) -> Array:
    """Returns with which probability a policy that learns no more chooses each candidate, as `log.candidates`.

    The same user among the same candidates is asked once. Joint Thompson sampling is simulated.
    """
    rng, known = np.random.default_rng([seed, 3]), dict[tuple[int, bytes], Array]()
    out, held = np.empty(len(log.candidates)), 0
    for row, user in enumerate(log.users.tolist()):
        if row % TOLD == 0:
            progress(f"{label}: is asked", row, len(log))
        shown = log.shown(row)
        key = user, shown.tobytes()
        found = known.get(key)
        if found is None:
            found = _asked(policy, user, shown, rng)
            if held < KEPT:
                known[key] = found
                held += 2 * len(shown)
        out[log.starts[row] : log.starts[row + 1]] = found
    return out


def predictions(policy: Policy, log: Logged, offset: float = 0.0) -> Array:
    """Returns the mean that a policy believes of each candidate, plus an offset, as `log.candidates`."""
    assert policy.arms is not None
    out, of_user, ids = np.empty(len(log.candidates)), np.repeat(log.users, log.sizes), policy.arms.ids
    for user, at in _groups(of_user):
        shown, back = np.unique(log.candidates[at], return_inverse=True)
        mean, _ = policy.predict(policy.graph.user_at(user), [ids[row] for row in shown.tolist()])
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
    run of the policy. With a uniform logger and equally many candidates all agreements count.
    """
    assert policy.arms is not None
    counts = np.zeros(len(log), dtype=bool)
    coins = np.random.default_rng([seed, 1]).random(len(log)) * log.propensities < log.propensities.min()
    ids, users, arms, rewards = policy.arms.ids, log.users.tolist(), log.arms.tolist(), (log.rewards - offset).tolist()
    for row in range(len(log)):
        if row % TOLD == 0:
            progress(f"{label}: is replayed", row, len(log))
        user, arm = policy.graph.user_at(users[row]), ids[arms[row]]
        choice = policy.select(user, [ids[each] for each in log.shown(row).tolist()])
        if coins[row] and choice.arm == arm:
            policy.update(user, arm, rewards[row])
            counts[row] = True
    return accepted(log, counts)


def check_freezable(policy: Policy) -> None:
    """Raises if the choice probabilities of a policy that learns no more are not known."""
    if not policy.score.knows_propensities:
        raise _unknown_chances(policy)


def _asked(policy: Policy, user: int, shown: Index, rng: np.random.Generator) -> Array:
    found = policy.propensities(user, shown, rng=rng)
    if found is None:
        raise _unknown_chances(policy)
    return found.probabilities


def _unknown_chances(policy: Policy) -> ParameterError:
    rule, remedy = "a frozen policy's choice probabilities must be known", "Replay it: learning=True, or --learning"
    return ParameterError(f"policy is {policy.name!r}", rule, remedy)


def _groups(users: Index) -> Iterator[tuple[int, Any]]:
    """Yields each user with the places where they are."""
    order = np.argsort(users, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(users[order])) + 1):
        yield int(users[places[0]]), places
