"""Every score there is keeps what `Score` promises: its number, its slope, its batches, its propensities."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coterie.contracts import Array
from coterie.policies.rules import scores
from coterie.policies.rules.draws import Draws
from coterie.policies.rules.propensity import tied
from coterie.policies.rules.scores import FunctionScore, InNoiseUnits, Score, Scored, as_score

PLAIN = [value for value in vars(scores).values() if isinstance(value, Score)]
SUBJECTS = [*PLAIN, *(InNoiseUnits(each) for each in PLAIN)]
WIDTHS: dict[Score, float] = {scores.epsilon_greedy: 0.3}
KNOWN = [each for each in SUBJECTS if each.knows_propensities]


def named(score: Score) -> str:
    return f"{type(score).__name__}-{type(getattr(score, 'score', score)).__name__}"


class Model(SimpleNamespace):
    """A belief about five arms, by hand."""

    n_observations, noise_var = 7, 1.0

    def covariance(self, user: int, arms: Any) -> Array:
        root = np.random.default_rng(user).normal(size=(9, 9))[list(arms)]
        return root @ root.T

    def prior_std(self, _: int, arms: Any) -> Array:
        return np.full(len(arms), 4.0)


def believed(user: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(user)
    return rng.normal(size=5), np.sqrt(np.diag(Model().covariance(user, range(5))))


def scored(score: Score, number: int = 3, user: int = 0) -> Scored:
    mean, std = believed(user)
    width = WIDTHS.get(getattr(score, "score", score), 1.5)
    context: dict[str, Any] = {
        "model": Model(),
        "user": user,
        "arms": np.arange(5),
        "draws": Draws(1),
        "number": number,
    }
    covariance = score.covariance(context["model"], user, context["arms"])
    values = score.of_one(mean, std, width, covariance, **context)
    assert values.tolist() == score(mean, std, width, **context).tolist()
    best = int(np.flatnonzero(tied(values, 0.0))[0])
    return Scored(score, mean, std, width, values, 0.0, Model.noise_var, best, covariance=covariance)


def test_every_class_of_score_is_a_subject() -> None:
    classes = {value for value in vars(scores).values() if isinstance(value, type) and issubclass(value, Score)}
    assert {type(each) for each in SUBJECTS} == classes - {Score, FunctionScore}


@pytest.mark.parametrize("score", SUBJECTS, ids=named)
def test_a_decision_is_scored_the_same_again(score: Score) -> None:
    assert scored(score).score.tolist() == scored(score).score.tolist()
    assert scored(score).score.shape == (5,)


@pytest.mark.parametrize("score", SUBJECTS, ids=named)
def test_a_deterministic_score_draws_nothing_and_is_mean_plus_slope_times_std(score: Score) -> None:
    same = scored(score, number=3).score.tolist() == scored(score, number=4).score.tolist()
    if not score.is_deterministic:
        assert not same or isinstance(getattr(score, "score", score), type(scores.epsilon_greedy))
        return
    assert same
    found = scored(score)
    np.testing.assert_array_equal(found.score, found.mean + score.slope(found.width, Model()) * found.std)


@pytest.mark.parametrize("score", SUBJECTS, ids=named)
def test_a_batch_is_scored_as_one_after_another(score: Score) -> None:
    singles = [scored(score, number=number, user=number) for number in range(4)]
    mean, std = np.array([each.mean for each in singles]), np.array([each.std for each in singles])
    found = score.of_many(mean, std, singles[0].width, model=Model(), draws=Draws(1), numbers=range(4))
    if found is None:
        assert not score.is_deterministic
        return
    np.testing.assert_array_equal(found, [each.score for each in singles])


@pytest.mark.parametrize("score", KNOWN, ids=named)
def test_propensities_sum_to_one_and_are_those_of_the_draws(score: Score) -> None:
    found = scored(score).propensities(np.random.default_rng(0))
    assert found is not None
    assert found.probabilities.sum() == pytest.approx(1)
    rounds = 1500
    chosen = np.bincount([scored(score, number).best for number in range(rounds)], minlength=5) / rounds
    error = np.sqrt(found.probabilities * (1 - found.probabilities) / rounds)
    error = np.hypot(error, 0.0 if found.standard_errors is None else found.standard_errors)
    assert (np.abs(chosen - found.probabilities) <= 4.5 * error + 1e-6).all()


def test_a_function_is_a_score_whose_propensities_are_not_known() -> None:
    mine = as_score(lambda mean, std, width, **_: mean - width * std)
    assert scored(mine).propensities() is None
    assert InNoiseUnits(mine).knows_propensities is False
