"""SupKernelUCB: the stages against a naive copy, where rewards go, and what is believed from all of them."""

from math import ceil, log2, sqrt
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import DimensionError, ParameterError, RewardError
from coterie.models import DenseModel
from coterie.policies.staged import StagedPolicy

GRAPH = ct.make_graph("erdos-renyi", 5, edge_prob=0.5, seed=1)
ARMS = ct.ArmPool(np.random.default_rng(0).normal(size=(8, 3)))
TRUTH = np.random.default_rng(1).normal(size=(5, 8))


def sup(**options: Any) -> StagedPolicy:
    settings: dict[str, Any] = {"graph": GRAPH, "arms": ARMS} | options
    policy = ct.make_policy("sup-kernel-ucb", **settings)
    assert isinstance(policy, StagedPolicy)
    return policy


class Naive:
    """The method as it stands in print, on dense models; returns every arm that may be chosen."""

    def __init__(self, policy: ct.Policy, rounds: int, width: float) -> None:
        kernel, noise_var = policy.model.kernel, policy.model.noise_var
        self.rounds, self.width = rounds, width
        self.scale = sqrt(kernel.max_variance([]))
        self.stages = {s: DenseModel(kernel, noise_var=noise_var) for s in range(1, ceil(log2(rounds)) + 1)}

    def choose(self, user: int, candidates: list[int]) -> tuple[int, list[int]]:
        for s, model in self.stages.items():
            mean, std = model.predict(user, candidates)
            spread, upper = self.width * std, mean + self.width * std
            if np.all(spread <= self.scale / sqrt(self.rounds)):
                return 0, [c for c, value in zip(candidates, upper, strict=True) if value > upper.max() - 1e-9]
            if np.any(spread > self.scale * 2.0**-s):
                return s, [c for c, value in zip(candidates, spread, strict=True) if value > spread.max() - 1e-9]
            bar = upper.max() - self.scale * 2.0 ** (1 - s)
            candidates = [c for c, value in zip(candidates, upper, strict=True) if value >= bar]
        raise AssertionError("the last stage chooses")


@pytest.mark.parametrize("engine", ["auto", "exact"])
@pytest.mark.parametrize("width", [1.0, 0.3])
def test_the_stages_are_those_of_the_method(engine: str, width: float) -> None:
    policy = sup(expected_rounds=300, width=width, noise_var=0.09, engine=engine)
    naive = Naive(policy, 300, width)
    rng = np.random.default_rng(2)
    met = set()
    for _ in range(200):
        user, candidates = int(rng.integers(5)), [int(i) for i in rng.permutation(8)[:4]]
        stage, allowed = naive.choose(user, candidates)
        arm = policy.select(user, candidates).arm
        reward = float(TRUTH[user, arm] + 0.3 * rng.normal())
        assert arm in allowed
        policy.update(user, arm, reward)
        if stage:
            naive.stages[stage].update(user, arm, reward)
        met.add(stage)
    learned = {s: model.n_observations for s, model in naive.stages.items() if model.n_observations}
    assert {s: model.n_observations for s, model in policy._stages.items() if model.n_observations} == learned
    assert 0 in met
    assert len(met) > 4


def test_all_rewards_make_the_belief() -> None:
    policy, plain = sup(noise_var=0.09), ct.make_policy("lk-gp-ucb", graph=GRAPH, arms=ARMS, noise_var=0.09)
    rng = np.random.default_rng(3)
    for i in range(60):
        user = int(rng.integers(5))
        arm = policy.select(user).arm
        for each in (policy, plain):
            each.update(user, arm, float(TRUTH[user, arm]))
        if i % 20 == 0:
            np.testing.assert_allclose(policy.predict(user), plain.predict(user), atol=1e-9)
    np.testing.assert_allclose(policy.covariance(2), plain.covariance(2), atol=1e-9)
    assert policy.model.info_gain == pytest.approx(plain.model.info_gain)
    assert policy.n_rewards == policy.model.n_observations == 60


def test_choosing_reads_no_belief_but_the_stages_and_those_are_made_when_needed() -> None:
    policy = sup()
    for _ in range(5):
        policy.update(0, policy.select(0).arm, 1.0)
    assert policy._whole is None
    assert 1 in policy._stages
    assert len(policy._stages) < policy.n_stages
    assert all(stage.kernel is policy.model.kernel for stage in policy._stages.values())


def test_rewards_that_nobody_decided_go_to_stage_one() -> None:
    policy = sup()
    policy.update(0, 3, 1.0)
    policy.update_many([1, 2], [4, 4], [0.5, 0.5])
    assert policy._stages[1].n_observations == 3
    many, one = sup(), sup()
    many.update_many([0, 1, 2], [3, 4, 4], [1.0, 0.5, 0.5])
    for row in ((0, 3, 1.0), (1, 4, 0.5), (2, 4, 0.5)):
        one.update(*row)
    np.testing.assert_allclose(many.predict(1), one.predict(1), atol=1e-12)


def test_a_bad_batch_changes_nothing() -> None:
    policy = sup()
    with pytest.raises(RewardError):
        policy.update_many([0, 1], [3, 4], [1.0, float("nan")])
    assert policy.n_rewards == policy.model.n_observations == 0


def test_every_stage_follows_the_noise_schedule() -> None:
    schedule = ct.SpectralSchedule(base=0.1, horizon=20, first_epoch=20)
    policy = sup(noise_var=schedule)
    assert policy.rounds == 20
    for t in range(40):
        policy.update(t % 5, policy.select(t % 5).arm, 1.0)
    expected = pytest.approx(schedule.value(40, spectral_ratio=GRAPH.spectral_ratio))
    assert policy.model.noise_var == expected
    assert len(policy._stages) > 1
    assert all(stage.noise_var == expected for stage in policy._stages.values())


def test_without_a_pool() -> None:
    policy = sup(arms=None, arm_kernel=ct.SquaredExponential(1.0), width=1e-6)
    rng = np.random.default_rng(4)
    for _ in range(6):
        vectors = rng.normal(size=(4, 3))
        policy.update(1, policy.select(1, vectors).arm, 1.0)
    assert policy._stages[1].n_observations == 1  # the first; the widths are too small for a stage to want another
    assert policy.n_rewards == 6
    with pytest.raises(DimensionError, match="2 features"):
        policy.update(1, [0.0, 1.0], 1.0)
    assert policy.n_rewards == 6


def test_the_width_of_a_stage_may_depend_on_its_belief() -> None:
    seen: list[tuple[int, int]] = []

    def width(t: int, model: Any) -> float:
        seen.append((t, model.n_observations))
        return 1.0

    policy = sup(width=width)
    policy.update(0, policy.select(0).arm, 1.0)
    policy.select(0)
    assert seen[:2] == [(1, 0), (2, 1)]


def test_explain_counts_the_rewards_of_the_stages() -> None:
    policy = sup(expected_rounds=100)
    policy.update(0, policy.select(0).arm, 1.0)
    text = policy.describe()
    assert "4 stages for 100 rounds; of 1 rewards 1 in stage 1 and 0 in none" in text
    assert "engine 'grid'" in text
    assert sup().rounds == 1000


def test_its_score_is_its_own() -> None:
    with pytest.raises(ParameterError, match="score was given to 'sup-kernel-ucb'"):
        sup(score=lambda mean, *_, **__: mean)
    with pytest.raises(ParameterError, match=r"2\.5"):
        sup(expected_rounds=2.5)


def test_an_engine_that_has_bounds_of_prior_stds_is_refused() -> None:
    with pytest.raises(ParameterError, match="prior stds"):
        sup(engine="sparse")
