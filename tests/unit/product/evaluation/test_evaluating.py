"""A policy judged by a log: what is learned when, what is asked of whom, and what the answer says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import ParameterError, RewardError, UnknownArmError, UnknownNameError, UnknownUserError
from coterie.kernels import SquaredExponential
from coterie.logs import write_log
from coterie.policies import make_policy
from coterie.product.evaluation import Evaluation, Logged, evaluate
from coterie.product.evaluation.targets import choice_probabilities, fitted, predictions, replay_learning
from coterie.product.regressor import LaplacianKernelRegressor
from recorded import small_log

N_USERS, N_ARMS, N_SHOWN = 8, 6, 3
GRAPH = ct.make_graph("watts-strogatz", N_USERS, k=2)
ARMS = ct.ArmPool(np.random.default_rng(0).normal(size=(N_ARMS, 2)))
TRUTH = np.random.default_rng(1).normal(size=(N_USERS, N_ARMS))


def a_log(n: int = 400, seed: int = 2, *, noise: float = 0.1, **more: Any) -> Logged:
    """Returns what a uniform logger did."""
    rng = np.random.default_rng(seed)
    users = rng.integers(N_USERS, size=n)
    shown = [rng.choice(N_ARMS, N_SHOWN, replace=False).tolist() for _ in range(n)]
    arms = [each[rng.integers(N_SHOWN)] for each in shown]
    rewards = TRUTH[users, arms] + noise * rng.normal(size=n)
    return Logged.of(users.tolist(), shown, arms, rewards.tolist(), [1 / N_SHOWN] * n, **more)


def judged(log: Logged | None = None, **settings: Any) -> Evaluation:
    given: dict[str, Any] = {"graph": GRAPH, "arms": ARMS, "policy": "greedy"} | settings
    return evaluate(a_log() if log is None else log, **given)


def value_of_greedy(log: Logged, n_fitted: int) -> float:
    """Returns the true value, on the later decisions, of a greedy policy that learned the earlier ones."""
    policy = make_policy("greedy", graph=GRAPH, arms=ARMS)
    for row in range(n_fitted):
        policy.update(int(log.users[row]), int(log.arms[row]), float(log.rewards[row]))
    rows = range(n_fitted, len(log))
    return float(np.mean([TRUTH[u := int(log.users[i]), policy.select(u, log.shown(i).tolist()).arm] for i in rows]))


def test_a_planted_truth_is_recovered() -> None:
    found, truth = judged(), value_of_greedy(a_log(), 200)
    assert set(found.estimates) == {"replay", "ips", "snips", "dm", "dr", "switch"}
    assert found.n_fitted == found.n_decisions == 200
    for name in ("replay", "ips", "snips", "dr"):
        assert found.estimates[name].low < truth < found.estimates[name].high, name
    assert found.estimates["dr"].value == pytest.approx(truth, abs=0.1)
    assert found.logger.value == pytest.approx(a_log().rewards[200:].mean())
    assert found.estimates["dr"].gain == pytest.approx(found.estimates["dr"].value - found.logger.value)


def test_the_earlier_part_is_that_of_the_clock() -> None:
    log = a_log()
    order = np.random.default_rng(3).permutation(len(log))
    times = np.arange(len(log), dtype=float)
    shuffled = Logged.of(
        log.users[order].tolist(),
        [log.shown(row).tolist() for row in order],
        log.arms[order].tolist(),
        log.rewards[order].tolist(),
        log.propensities[order].tolist(),
        times=times[order].tolist(),
    )
    assert judged(shuffled).estimates == judged(log).estimates


def test_the_same_seed_gives_the_same_figures_and_another_others() -> None:
    assert judged(seed=1) == judged(seed=1)
    assert judged(seed=1).estimates["ips"].low != judged(seed=2).estimates["ips"].low


def test_choice_probabilities_are_those_of_the_decisions() -> None:
    log = a_log(30)
    policy = fitted(make_policy("lk-gp-ts", graph=GRAPH, arms=ARMS), log)
    found = choice_probabilities(policy, log)
    sums = np.add.reduceat(found, log.starts[:-1])
    np.testing.assert_allclose(sums, 1.0)
    frequencies = np.zeros(N_SHOWN)
    for _ in range(2000):
        frequencies[policy.select(int(log.users[0]), log.shown(0).tolist()).index] += 1 / 2000
    np.testing.assert_allclose(frequencies, found[:N_SHOWN], atol=0.05)


def test_nothing_depends_on_what_is_cached() -> None:
    log, policy = a_log(60), fitted(make_policy("lk-gp-ts", graph=GRAPH, arms=ARMS), a_log(30))
    np.testing.assert_array_equal(choice_probabilities(policy, log, cached=0), choice_probabilities(policy, log))


def test_the_reward_model_is_the_laplacian_kernel_regressor() -> None:
    log, later = a_log(120), a_log(40, seed=9)
    ours = make_policy("lk-gp-ucb", graph=GRAPH, arms=ARMS, arm_kernel=SquaredExponential(1.0), noise_var=0.1)
    offset = float(log.rewards.mean())
    found = predictions(fitted(ours, log, offset), later, offset)
    regressor = LaplacianKernelRegressor(graph=GRAPH, lengthscale=1.0, users="rows")
    regressor.fit(np.column_stack([log.users, ARMS.features[log.arms]]), log.rewards)
    asked = np.column_stack([np.repeat(later.users, N_SHOWN), ARMS.features[later.candidates]])
    np.testing.assert_allclose(found, regressor.predict(asked), atol=1e-8)


def test_a_large_log_can_be_judged_on_sparse() -> None:
    pytest.importorskip("numba")
    options: dict[str, Any] = {"noise_var": 0.1, "laplacian_ridge": 1.0}
    settings: dict[str, Any] = options | {"reward_model": "lk-gp-ucb", "estimators": ["dr"]}
    exact = judged(reward_options=options, **settings)
    sparse = judged(reward_options=options | {"engine": "sparse"}, engine="sparse", **settings)
    assert sparse.estimates["dr"].value == pytest.approx(exact.estimates["dr"].value, abs=1e-3)


def test_a_policy_that_depends_on_the_order_is_taught_in_order() -> None:
    log = a_log(60)
    policy = fitted(make_policy("club", graph=GRAPH, arms=ARMS), log)
    other = make_policy("club", graph=GRAPH, arms=ARMS)
    for user, arm, reward in zip(log.users.tolist(), log.arms.tolist(), log.rewards.tolist(), strict=True):
        other.update(user, arm, reward)
    np.testing.assert_allclose(policy.predict(0)[0], other.predict(0)[0], atol=1e-8)


def test_a_learning_policy_learns_from_agreements_alone() -> None:
    log, policy, again = a_log(200), *(make_policy("lk-gp-ucb", graph=GRAPH, arms=ARMS) for _ in range(2))
    terms = replay_learning(policy, log)
    assert policy.n_rewards == terms.effective == terms.below.sum()
    for row in np.flatnonzero(terms.below):
        again.update(int(log.users[row]), int(log.arms[row]), float(log.rewards[row]))
    np.testing.assert_allclose(policy.predict(0)[0], again.predict(0)[0], atol=1e-8)


def test_replay_of_an_uneven_logger_accepts_every_choice_alike() -> None:
    rng, n = np.random.default_rng(4), 3000
    arms = (rng.random(n) < 0.2).astype(int)
    propensities = np.where(arms == 1, 0.2, 0.8)
    log = Logged.of([0] * n, [[0, 1]] * n, arms.tolist(), arms.astype(float).tolist(), propensities.tolist())
    terms = replay_learning(make_policy("random", graph=GRAPH, arms=ARMS, engine="exact"), log)
    assert terms.effective == pytest.approx(0.2 * n, rel=0.1)
    assert terms.above.sum() / terms.effective == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("policy", ["auto-ucb", "sup-kernel-ucb", "club"])
def test_learning_is_judged_by_replay(policy: str) -> None:
    found = judged(a_log(90), policy=policy, learning=True)
    assert list(found.estimates) == ["replay"]
    assert found.n_decisions == 90
    assert "learning as it is replayed, on 90 decisions" in str(found)
    assert any("Replay has accepted" in each for each in found.warnings)


def test_switch_ips_comes_with_the_propensities_of_all() -> None:
    log = a_log(100, chances=[[1 / N_SHOWN] * N_SHOWN] * 100)
    assert "switch-ips" in judged(log).estimates
    with pytest.raises(ParameterError, match="needs the log's `chances`"):
        judged(estimators=["switch-ips"])


def test_without_a_model_none_is_fitted() -> None:
    found = judged(estimators=["ips"], reward_model="no such policy")
    assert list(found.estimates) == ["ips"]
    assert found.model == ""


def test_binary_rewards_may_be_probabilities() -> None:
    log = a_log(120)
    won = Logged.of(
        log.users.tolist(),
        [log.shown(row).tolist() for row in range(120)],
        log.arms.tolist(),
        (log.rewards > 0).astype(float).tolist(),
        log.propensities.tolist(),
    )
    found = judged(won, policy="auto-ucb", likelihood="bernoulli", reward_options={"likelihood": "bernoulli"})
    assert 0 < found.estimates["dm"].value < 1
    with pytest.raises(RewardError, match="row 0"):
        judged(log, policy="auto-ucb", likelihood="bernoulli")


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"policy": "lk-gp"}, UnknownNameError, "policy 'lk-gp' is unknown"),
        ({"estimators": ["ipw"]}, UnknownNameError, "estimator 'ipw' is unknown"),
        ({"learning": True, "estimators": ["ips"]}, ParameterError, "judged by replay only"),
        ({"fit_share": 1.0}, ParameterError, "fit_share is 1.0"),
        ({"confidence": 95}, ParameterError, "confidence is 95"),
        ({"threshold": -1.0}, ParameterError, "threshold is -1.0"),
        ({"n_draws": 0}, ParameterError, "n_draws"),
        ({"policy": "sup-kernel-ucb"}, ParameterError, "learning=True"),
        ({"arms": ARMS.features[:4]}, UnknownArmError, "row 0: a candidate is"),
        ({"graph": ct.make_graph("watts-strogatz", 5, k=2)}, UnknownUserError, "the user is"),
        ({"log": Logged.of([0], [[0]], [0], [1.0], [1.0])}, ParameterError, "one decision"),
    ],
)
def test_a_setting_that_is_wrong_is_named(settings: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        judged(**settings)


def test_a_log_and_its_folder_are_evaluated_as_they_are(tmp_path: Path) -> None:
    log = small_log(propensity=np.full(12 * 15, 0.5))
    write_log(log, tmp_path / "log")
    folder = evaluate(tmp_path / "log", policy="greedy", estimators=["snips"])
    assert evaluate(log, policy="greedy", estimators=["snips"]).estimates == folder.estimates
    with pytest.raises(ParameterError, match=r"the log is a dict; it is a Log"):
        evaluate({}, policy="greedy")  # type: ignore[arg-type]
