"""A bandit from combined events: options given or fitted, and weights that were solved elsewhere."""

from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import DimensionError, ParameterError
from coterie.policies.reward_batches import Combined
from coterie.product.bulk.fitting import FitSettings, bandit_of, choose_options, error_bound, in_words

pytest.importorskip("numba")

rng = np.random.default_rng(5)
GRAPH = ct.make_graph("watts-strogatz", 300, k=6, seed=0)
ARMS = ct.ArmPool(rng.normal(size=(20, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 0.0])
USERS, CHOSEN = rng.integers(300, size=3000).astype(np.int32), rng.integers(20, size=3000).astype(np.int32)
REWARDS = 1.0 + ARMS.features[CHOSEN, 0] * np.sin(USERS / 50) + 0.3 * rng.normal(size=3000)
GIVEN = FitSettings(laplacian_ridge=0.5, lengthscale=2.0, noise_var=0.1)


def columns() -> dict[str, Any]:
    found = Combined(len(ARMS))
    found.add(USERS, CHOSEN, REWARDS)
    return found.columns()


def test_given_options_are_those_of_the_policy() -> None:
    options = choose_options(GIVEN, GRAPH, ARMS, columns())
    fit = bandit_of(options, GRAPH, ARMS, columns())
    bandit = ct.Bandit(graph=GRAPH, arms=ARMS, **options)
    assert options["laplacian_ridge"] == 0.5
    assert options["arm_kernel"] == ct.SquaredExponential(2.0)
    bandit.fit([(USERS, CHOSEN, REWARDS)])
    assert bandit.predict(7) == fit.bandit.predict(7)
    assert fit.bandit.n_rewards == 3000
    assert fit.steps > 0
    assert fit.error_bound is not None
    means = np.array([fit.bandit.predict(user)[3][0] for user in (1, 2)])
    exact = ct.Bandit(graph=GRAPH, arms=ARMS, **{**options, "engine": "exact"})
    exact.fit([(USERS, CHOSEN, REWARDS)])
    wrong = np.abs(means - [exact.predict(user)[3][0] for user in (1, 2)])
    assert wrong.max() < fit.error_bound + 0.01  # and what the features miss


def test_solved_weights_give_the_same_bandit_without_a_step() -> None:
    options = choose_options(GIVEN, GRAPH, ARMS, columns())
    first = bandit_of(options, GRAPH, ARMS, columns())
    weights = first.bandit._learned.policy.model._posterior.weights.copy()  # type: ignore[attr-defined]
    with pytest.raises(DimensionError, match="the weights to start from have shape"):
        bandit_of(options, GRAPH, ARMS, columns(), weights=weights[:, :1])
    again = bandit_of(options, GRAPH, ARMS, columns(), weights=weights)
    assert again.steps == 0
    assert again.bandit.predict(7) == first.bandit.predict(7)


@pytest.mark.parametrize("linear", [False, True])
def test_fitted_hyperparameters_explain_the_rewards(linear: bool) -> None:
    settings, given = FitSettings(linear=linear, seed=1), columns()
    options = choose_options(settings, GRAPH, ARMS, given)
    assert 0.03 < options["noise_var"] < 0.3  # it is 0.09
    assert all(np.array_equal(each, columns()[name]) for name, each in given.items())
    fit = bandit_of(options, GRAPH, ARMS, given)
    usual = bandit_of(choose_options(GIVEN, GRAPH, ARMS, columns()), GRAPH, ARMS, columns())
    models = [each.bandit._learned.policy.model for each in (fit, usual)]
    assert models[0].log_marginal_likelihood > models[1].log_marginal_likelihood
    assert "noise variance" in in_words(options)
    assert error_bound(models[0]) == fit.error_bound


def test_what_is_given_is_held() -> None:
    held = FitSettings(laplacian_ridge=0.7, noise_var=0.25)
    options = choose_options(held, GRAPH, ARMS, columns())
    assert options["user_kernel"].laplacian_ridge == 0.7
    assert options["noise_var"] == 0.25
    options = choose_options(FitSettings(lengthscale=3.0), GRAPH, ARMS, columns())
    assert "SquaredExponential(3)" in in_words(options)


def test_auto_learns_its_own() -> None:
    options = choose_options(FitSettings(policy="auto-ucb"), GRAPH, ARMS, columns())
    assert options == {"policy": "auto-ucb", "seed": 0}
    fit = bandit_of(options, GRAPH, ARMS, columns())
    assert (fit.steps, fit.error_bound) == (0, None)
    bandit = ct.Bandit(graph=GRAPH, arms=ARMS)
    bandit.fit([(USERS, CHOSEN, REWARDS)])
    assert bandit.predict(7) == fit.bandit.predict(7)
    with pytest.raises(ParameterError, match="a warm start was given"):
        bandit_of(options, GRAPH, ARMS, columns(), weights=np.zeros((300, 3)))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"policy": "club"}, "policy is 'club'"),
        ({"policy": "auto-ucb", "noise_var": 1.0}, "noise_var is given"),
        ({"policy": "auto-ucb", "linear": True}, "linear is given"),
        ({"linear": True, "lengthscale": 1.0}, "both linear and a lengthscale"),
        ({"laplacian_ridge": -1.0}, "laplacian_ridge is -1"),
        ({"noise_var": float("nan")}, "noise_var is nan"),
    ],
)
def test_settings_that_do_not_go_together(options: Any, told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        FitSettings(**options)
