"""A reward that takes the place of another: as if only the last had come."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.models import ENGINES, FeaturesModel, HybridModel, Model
from coterie.models.history import History
from strategies import Case, cases

ABLE = ["features", "grid", "hybrid", "linear"]


def make(engine: str, case: Case) -> Model:
    if engine == "hybrid":
        return HybridModel(case.kernel, noise_var=case.noise_var, switch_after=0)
    return ENGINES[engine](case.kernel, noise_var=case.noise_var)


def loses_digits(case: Case) -> bool:
    """Whether observations are too precise beside the prior, or rewards of this size (at most 12 apart) too large."""
    largest = case.kernel.max_variance([])
    return largest > 1e4 * case.noise_var or 1e4 * np.sqrt(largest) < 12.0


def everything(model: Model) -> list[Any]:
    users = range(model.n_users)
    return [
        np.array([model.predict(user)[0] for user in users]),
        np.array([model.covariance(user) for user in users]),
        model.info_gain,
        model.log_marginal_likelihood,
        np.array([model.history.means, model.history.scatters]),
    ]


def assert_same(model: Model, other: Model) -> None:
    square = other.history.largest**2 / other.noise_var  # the evidence is a sum of terms of this size
    for mine, theirs in zip(everything(model), everything(other), strict=True):
        scale = max(1.0, 0.01 * square, float(np.max(np.abs(theirs), initial=0.0)))
        np.testing.assert_allclose(mine, theirs, atol=1e-9 * scale, rtol=0)


@pytest.mark.parametrize("engine", ABLE)
@given(case=cases(smallest_noise=1e-2), places=st.lists(st.integers(0, 24), min_size=1, max_size=3))
def test_it_equals_learning_the_last_alone(engine: str, case: Case, places: list[int]) -> None:
    history = list(case.history)
    model, other = make(engine, case), make(engine, case)
    for each in history:
        model.update(*each)
    could = True
    for number, place in enumerate(places):
        if place < len(history):
            user, arm, before = history[place]
            history[place] = (user, arm, 2.5 - number)
            could = could and model.revise(user, arm, before, 2.5 - number)
    if not could:
        assert loses_digits(case)
        return
    for each in history:
        other.update(*each)
    assert_same(model, other)


@pytest.mark.parametrize("engine", sorted({*ABLE} - {"hybrid"}))  # which is `exact` until the reward after that
@given(case=cases(smallest_noise=1e-2), weight=st.sampled_from([1.0, 3.0]))
def test_it_finds_the_pair_in_a_history_that_was_learned_at_once(engine: str, case: Case, weight: float) -> None:
    if not case.history or loses_digits(case):
        return
    user, arm, before = case.history[0]
    after, want, got = History(), make(engine, case), make(engine, case)
    for model, last in ((got, before), (want, 4.0)):
        after = History()
        for place, (u, a, reward) in enumerate(case.history):
            after.add((u, a), u, a, reward if place else last, weight=weight if place else 1.0)
        model.relearn(after)
    assert got.revise(user, arm, before, 4.0)
    assert_same(got, want)
    for model in (got, want):
        model.update(user, arm, 1.0)
        assert len(model.history) == len(after)  # the same pair is the same row
    assert_same(got, want)


@pytest.mark.parametrize("engine", sorted(set(ENGINES) - set(ABLE)))
@given(case=cases())
def test_what_cannot_says_so(engine: str, case: Case) -> None:
    model = make(engine, case)
    for each in case.history:
        model.update(*each)
        assert not model.revise(*each, 9.0)


@given(case=cases())
def test_truncated_features_and_pairs_never_met_are_left_alone(case: Case) -> None:
    model = FeaturesModel(case.kernel, noise_var=case.noise_var, user_rank=1, arm_rank=1)
    for each in case.history:
        model.update(*each)
        assert not (model.revise(*each, 9.0) and model.prior_error)
    assert not make("grid", case).revise(0, 0, 1.0, 2.0)
