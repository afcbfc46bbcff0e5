"""Every policy that has a name keeps what `Policy` promises, whatever its kernels, score and engine."""

import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import CandidatesError, CoterieError, RewardError, UnknownArmError, UnknownUserError
from coterie.policies.factory.recipes import RECIPES, Recipe

GRAPH = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy", 0.5), ("cy", "dee")], users=["ana", "bo", "cy", "dee"])
ARMS = ct.ArmPool(np.random.default_rng(0).normal(size=(8, 3)), ids=[f"song-{i}" for i in range(8)])
TRUTH = np.random.default_rng(1).normal(size=(4, 8))
FEATURES = {user: {"age": 20 + 5 * i, "region": "north" if i % 2 else "south"} for i, user in enumerate(GRAPH.users)}


def subjects() -> list[Any]:
    """Returns every policy, and every way of sampling and similarity that one has a choice of."""
    out: list[Any] = []
    for name, recipe in sorted(RECIPES.items()):
        options: list[dict[str, Any]] = [{}, *({"sampling": each} for each in list(recipe.scores)[1:])]
        options += [{"similarity": each} for each in list(recipe.similarities or {})[1:]]
        options += [{"likelihood": "bernoulli"}, {"users": FEATURES}] if recipe.auto else []
        out += [pytest.param(name, each, id="-".join([name, *map(_label, each.items())])) for each in options]
    return out


def _label(option: tuple[str, Any]) -> str:
    return option[1] if isinstance(option[1], str) else option[0]


SUBJECTS = pytest.mark.parametrize(("name", "options"), subjects())


def make(name: str, options: dict[str, Any], seed: int = 5) -> ct.Policy:
    return ct.make_policy(name, graph=GRAPH, arms=ARMS, seed=seed, **options)


def play(policy: ct.Policy, rounds: int, options: dict[str, Any], start: int = 0) -> list[ct.Choice]:
    choices = []
    for number in range(start, start + rounds):
        rng = np.random.default_rng(number)
        row, shown = int(rng.integers(4)), [f"song-{i}" for i in rng.permutation(8)[:4]]
        choice = policy.select(GRAPH.users[row], shown)
        reward = float(TRUTH[row, ARMS.index[choice.arm]] + 0.1 * rng.normal())
        policy.update(GRAPH.users[row], choice.arm, float(reward > 0) if "likelihood" in options else reward)
        choices.append(choice)
    return choices


def beliefs(policy: ct.Policy) -> np.ndarray:
    return np.array([policy.predict(user) for user in GRAPH.users])


@SUBJECTS
def test_the_same_seed_and_rewards_give_the_same_choices_and_beliefs(name: str, options: dict[str, Any]) -> None:
    one, other = make(name, options), make(name, options)
    assert play(one, 40, options) == play(other, 40, options)
    np.testing.assert_array_equal(beliefs(one), beliefs(other))


@SUBJECTS
def test_reading_changes_nothing(name: str, options: dict[str, Any]) -> None:
    one, other = make(name, options), make(name, options)
    play(one, 20, options)
    play(other, 20, options)
    for _ in range(3):
        other.predict("bo", ["song-2"])
        other.covariance("ana", ["song-1", "song-3"])
        other.describe()
        other.propensities(1, other.in_context(np.arange(3), None), rng=np.random.default_rng(0))
    assert play(one, 10, options, start=20) == play(other, 10, options, start=20)


@SUBJECTS
def test_a_choice_is_one_of_the_candidates_and_says_what_is_believed_of_it(name: str, options: dict[str, Any]) -> None:
    policy = make(name, options)
    play(policy, 30, options)
    for number, shown in enumerate((["song-7"], ["song-1", "song-4", "song-0"], None)):
        choice = policy.select("cy", shown)
        assert choice.number == 30 + number
        assert choice.arm in (shown or ARMS.ids)
        if name != "sup-kernel-ucb":  # whose stages have posteriors of their own
            mean, std = policy.predict("cy", [choice.arm])
            np.testing.assert_allclose((choice.mean, choice.std), (mean[0], std[0]), atol=1e-8)


@SUBJECTS
@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda policy: policy.select("eve"), UnknownUserError),
        (lambda policy: policy.select("ana", ["nothing"]), UnknownArmError),
        (lambda policy: policy.select("ana", []), CandidatesError),
        (lambda policy: policy.select("ana", ["song-1", "song-1"]), CandidatesError),
        (lambda policy: policy.update("eve", "song-1", 1.0), UnknownUserError),
        (lambda policy: policy.update("ana", "nothing", 1.0), UnknownArmError),
        (lambda policy: policy.update("ana", "song-1", float("nan")), RewardError),
        (lambda policy: policy.update_many(["ana", "bo"], ["song-1", "song-2"], [1.0, float("inf")]), RewardError),
        (lambda policy: policy.update_many(["ana", "bo"], ["song-1", "song-2"], [1.0]), CoterieError),
    ],
)
def test_bad_input_is_named_and_changes_nothing(name: str, options: dict[str, Any], call: Any, error: Any) -> None:
    policy = make(name, options)
    play(policy, 12, options)
    before = beliefs(policy), policy.n_decisions, policy.n_rewards
    with pytest.raises(error):
        call(policy)
    np.testing.assert_array_equal(beliefs(policy), before[0])
    assert (policy.n_decisions, policy.n_rewards) == before[1:]


@SUBJECTS
def test_propensities_are_probabilities_and_the_choice_has_one(name: str, options: dict[str, Any]) -> None:
    policy = make(name, options)
    play(policy, 30, options)
    rows = policy.in_context(policy.rows_of(["song-0", "song-3", "song-5"]), None)
    found = policy.propensities(2, rows, rng=np.random.default_rng(0))
    if found is None:
        assert not policy.score.knows_propensities
        return
    assert found.probabilities.sum() == pytest.approx(1.0)
    assert (found.probabilities >= 0).all()
    chosen = policy.select("cy", ["song-0", "song-3", "song-5"])
    assert found.probabilities[chosen.index] > 0


@SUBJECTS
def test_a_copy_goes_on_as_the_original_would(name: str, options: dict[str, Any]) -> None:
    policy = make(name, options)
    play(policy, 23, options)  # no fit goes on just then: a thread is not copied
    again = pickle.loads(pickle.dumps(policy))
    assert play(policy, 8, options, start=23) == play(again, 8, options, start=23)


@SUBJECTS
def test_a_state_makes_another_policy_go_on_the_same(name: str, options: dict[str, Any]) -> None:
    policy, other = make(name, options), make(name, options, seed=5)
    play(policy, 25, options)
    if not policy.collapses:
        return  # its rewards are learned again, in their order
    other.restore(deepcopy(policy.state()))  # it shares its arrays with the policy
    assert play(policy, 8, options, start=25) == play(other, 8, options, start=25)


def test_every_recipe_is_a_subject() -> None:
    assert all(isinstance(recipe, Recipe) for recipe in RECIPES.values())
    assert {each.values[0] for each in subjects()} == set(ct.list_policies()) - {"oracle"}
