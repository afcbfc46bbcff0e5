"""Several policies on one log: fitted on the same part, judged by the same decisions, ordered with intervals."""

from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import ParameterError, UnknownNameError
from coterie.product.evaluation import Asked, Comparison, Logged, Target, compare, evaluate
from coterie.product.evaluation.evaluating import measured, split_in_time

N_USERS, N_ARMS = 8, 5
GRAPH = ct.make_graph("watts-strogatz", N_USERS, k=2)
ARMS = ct.ArmPool(np.random.default_rng(0).normal(size=(N_ARMS, 2)))
TRUTH = np.random.default_rng(1).normal(size=(N_USERS, N_ARMS))


def a_log(n: int = 600, seed: int = 2) -> Logged:
    rng = np.random.default_rng(seed)
    users, arms = rng.integers(N_USERS, size=n), rng.integers(N_ARMS, size=n)
    rewards = TRUTH[users, arms] + 0.1 * rng.normal(size=n)
    return Logged.of(users.tolist(), [range(N_ARMS)] * n, arms.tolist(), rewards.tolist(), [1 / N_ARMS] * n)


def compared(*targets: Target, log: Logged | None = None, **asked: Any) -> Comparison:
    how = Asked(estimators=None if asked.get("learning") else ["snips", "ips"], **asked)
    return compare(a_log() if log is None else log, targets, graph=GRAPH, arms=ARMS, asked=how)


def test_each_policy_is_judged_as_if_it_were_alone() -> None:
    found = compare(a_log(), [Target.of("random"), Target.of("greedy", noise_var=0.1)], graph=GRAPH, arms=ARMS)
    alone = evaluate(a_log(), graph=GRAPH, arms=ARMS, policy="greedy", noise_var=0.1)
    assert found.evaluations[1].policy == "greedy (noise_var=0.1)"
    assert found.evaluations[1].estimates == alone.estimates
    assert found.by == "dr"


def test_the_best_is_named_with_its_lead() -> None:
    found = compared(Target.of("random"), Target.of("greedy"), Target.of("greedy", noise_var=0.02))
    gaps = {gap.behind: gap for gap in found.gaps}
    assert found.best.startswith("greedy")
    assert gaps["random"].low > 0
    words = str(found).splitlines()[-1]
    assert f"By snips, {found.best} would have earned the most" in words
    assert "ahead of random (+" in words
    assert "not clearly ahead of greedy" in words


def test_the_lead_is_that_of_the_same_draws() -> None:
    """Two policies of which one is the other have no lead, where two separate intervals would overlap widely."""
    twin = Target("greedy", {}, label="twin")
    gap = compared(Target.of("greedy"), twin).gaps[0]
    assert (gap.value, gap.low, gap.high) == (0.0, 0.0, 0.0)


def test_what_is_wrong_with_one_policy_is_told_before_any_is_fitted() -> None:
    told: list[str] = []
    targets = [Target.of("lk-gp-ucb"), Target.of("gredy")]
    with pytest.raises(UnknownNameError, match="'gredy'"):
        compare(a_log(), targets, graph=GRAPH, arms=ARMS, progress=lambda *what: told.append(what[0]))
    with pytest.raises(ParameterError, match="--learning"):
        compare(a_log(), [Target.of("sup-kernel-ucb")], graph=GRAPH, arms=ARMS, progress=lambda *w: told.append(w[0]))
    assert told == []
    with pytest.raises(ParameterError, match="'random' is given twice"):
        compared(Target.of("random"), Target.of("random"))
    with pytest.raises(ParameterError, match="there is no policy"):
        compared()


def test_where_nothing_is_known_no_best_is_named() -> None:
    n = 60
    log = Logged.of([0] * n, [[0, 1]] * n, [0] * n, [0.0, -1.0] * (n // 2), [1.0] * n)
    found = compared(Target.of("greedy"), Target.of("greedy", noise_var=0.1), log=log)
    assert found.best == ""
    assert "does not say which of them" in str(found)


def test_learning_policies_are_compared_by_replay() -> None:
    found = compared(Target.of("random"), Target.of("lk-gp-ucb", width=0.3), learning=True)
    assert (found.by, found.best) == ("replay", "lk-gp-ucb (width=0.3)")
    with pytest.raises(ParameterError, match="does not know the mean"):
        Asked(learning=True, offset="mean")


@pytest.mark.parametrize("policy", ["lk-gp-ts", "auto-ucb", "club", "popularity"])
def test_nothing_of_the_later_part_is_learned(policy: str) -> None:
    """The later rewards move no choice probability and no prediction, whatever they are."""
    log = a_log(200)
    rewards = np.where(np.arange(200) < 100, log.rewards, 1000.0 - log.rewards)
    other = Logged.of(
        log.users.tolist(), [range(N_ARMS)] * 200, log.arms.tolist(), rewards.tolist(), log.propensities.tolist()
    )
    found, changed = (
        next(measured(each, [Target.of(policy)], graph=GRAPH, arms=ARMS, asked=Asked(offset="mean")))
        for each in (log, other)
    )
    np.testing.assert_array_equal(found.terms["dm"].above, changed.terms["dm"].above)
    np.testing.assert_array_equal(found.terms["snips"].below, changed.terms["snips"].below)
    assert found.terms["ips"].above.sum() != changed.terms["ips"].above.sum()


def test_the_offset_is_the_mean_of_the_earlier_part() -> None:
    log = a_log(200)
    earlier, _ = split_in_time(log, 0.5)
    by_name, by_number, by_another = (
        evaluate(log, graph=GRAPH, arms=ARMS, policy="lk-gp-ts", noise_var=5.0, estimators=["ips"], offset=offset)
        for offset in ("mean", float(earlier.rewards.mean()), 10.0)
    )
    assert by_name == by_number != by_another


def test_a_warning_that_all_have_is_told_once() -> None:
    log = a_log(60)
    drifting = Logged.of(
        log.users.tolist(),
        [range(N_ARMS)] * 60,
        log.arms.tolist(),
        (log.rewards + 10.0 * (np.arange(60) >= 30)).tolist(),
        log.propensities.tolist(),
    )
    found = compared(Target.of("random"), Target.of("greedy"), log=drifting)
    assert all(any("The log drifts" in each for each in one.warnings) for one in found.evaluations)
    assert str(found).count("The log drifts") == 1
    assert str(found).count("The weights are as good as") == 2
