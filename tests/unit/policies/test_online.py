"""Features of a learner's own past: what they count, when, and that neither future nor truth gets in."""

import gc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from coterie.errors import ParameterError
from coterie.graphs import UserGraph, make_graph
from coterie.kernels import ArmPool
from coterie.logs.log import Events, Log
from coterie.policies import make_policy
from coterie.policies.online import Levels, MostHits, OnlineFeatures, levelled_pool
from coterie.problems import Round
from coterie.problems.recorded import OnePositive
from recorded import small_log

COUNTS: Any = ("popularity", "friends")


def learner(problem: OnePositive, counts: Any = COUNTS, policy: str = "gob-lin") -> OnlineFeatures:
    def make(pool: ArmPool) -> Any:
        engine = "exact" if policy == "lk-gp-ucb" else "auto"
        return make_policy(policy, graph=problem.graph, arms=pool, engine=engine, seed=5)

    return OnlineFeatures(make, graph=problem.graph, arms=problem.arms, counts=counts)


def played(
    made: Any, rounds: Iterable[Round], judge: Callable[[Round, Any], tuple[float, float]]
) -> Iterator[tuple[Any, float, Any]]:
    """Yields the choice, its reward, and the features of all candidates before the choice."""
    for shown in rounds:
        counts = getattr(made, "features_of", None)
        seen = [counts(shown.user, arm) for arm in shown.candidates] if counts else []
        arm = made.select(shown.user, shown.candidates).arm
        reward = judge(shown, arm)[0]
        made.update(shown.user, arm, reward)
        yield arm, reward, seen


@pytest.fixture
def problem() -> OnePositive:
    return OnePositive(small_log(n_arms=14, liked=5), n_candidates=4, least_positives=5)


def test_levels_double_and_the_last_has_no_end() -> None:
    levels = Levels(9)
    for level, (least, following) in enumerate(zip(levels.least, [*levels.least[1:], 10**6], strict=True)):
        assert {levels.of(count) for count in (least, following - 1)} == {level}
    with pytest.raises(ParameterError, match="n_levels is 1"):
        Levels(1)


def test_the_pool_has_every_arm_at_every_level_and_counts_as_long_as_the_arms() -> None:
    arms = ArmPool(np.random.default_rng(0).standard_normal((5, 2)))
    pool = levelled_pool(arms, [Levels(4), Levels(3)])
    assert len(pool) == 5 * 4 * 3
    assert np.array_equal(pool.features[:, :2], np.tile(arms.features, (12, 1)))
    popular, friends = pool.features[(2 * 3 + 1) * 5, 2:]
    length = np.sqrt((arms.features**2).sum(axis=1).mean())
    assert popular == pytest.approx(length * np.log1p(2) / np.log1p(3))
    assert friends == pytest.approx(length * np.log1p(1) / np.log1p(2))


def test_counts_are_hits_so_far_of_everybody_and_of_friends() -> None:
    graph = UserGraph.from_edges([("ana", "bo"), ("bo", "cy")])
    made = OnlineFeatures(lambda pool: MostHits(), graph=graph, arms=ArmPool(np.eye(2), ids="xy"), counts=COUNTS)  # noqa: ARG005 - counts only
    for user, arm, reward in (("ana", "x", 1.0), ("cy", "x", 0.5), ("bo", "x", 0.0), ("ana", "y", -1.0)):
        made.update(user, arm, reward)
    assert made.features_of("bo", "x") == {"popularity": 2, "friends": 2}
    assert made.features_of("ana", "x") == {"popularity": 2, "friends": 0}
    assert made.features_of("bo", "y") == {"popularity": 0, "friends": 0}


def test_a_late_reward_is_learned_for_the_features_of_the_decision() -> None:
    told: list[tuple[Any, Any, float]] = []

    class Recorder(MostHits):
        def update(self, user: Any, arm: Any, reward: float) -> None:
            told.append((user, arm, reward))

    arms = ArmPool(np.eye(2), ids="xy")
    made = OnlineFeatures(lambda pool: Recorder(), graph=UserGraph.from_edges([("ana", "bo")]), arms=arms)  # noqa: ARG005 - ids only
    assert made.select("ana", ["y"]).arm == "y"
    made.update("bo", "y", 1.0)  # a hit between the decision and its reward
    made.update("ana", "y", 1.0)
    made.update("ana", "y", 1.0)  # and one that nobody decided: as it stands now
    assert told == [("bo", 1, 1.0), ("ana", 1, 1.0), ("ana", 2 * 2 + 1, 1.0)]


@pytest.mark.parametrize("policy", ["gob-lin", "lk-gp-ucb"])
def test_no_future_what_comes_later_changes_nothing_before(problem: OnePositive, policy: str) -> None:
    rounds, others = list(problem.rounds(60, seed=0)), list(problem.rounds(60, seed=1))
    one = list(played(learner(problem, policy=policy), rounds, problem.judge))
    two = list(played(learner(problem, policy=policy), [*rounds[:30], *others[30:]], problem.judge))
    assert one[:30] == two[:30]
    assert one[30:] != two[30:]


def test_no_truth_another_positive_changes_nothing_before_it_is_told(problem: OnePositive) -> None:
    rounds = list(problem.rounds(60, seed=0))

    def shuffled(shown: Round, arm: Any) -> tuple[float, float]:
        """Judges by the positive until round 30, and then by another candidate."""
        if shown.t < 30:
            return problem.judge(shown, arm)
        return float(arm == shown.candidates[shown.t % 4]), 0.0

    one = list(played(learner(problem), rounds, problem.judge))
    two = list(played(learner(problem), rounds, shuffled))
    assert one[:30] == two[:30]
    assert [each[0] for each in one[:31]] == [each[0] for each in two[:31]]
    assert one[31][2] != two[31][2] or one[31:] != two[31:]


def test_neither_a_round_nor_a_learner_holds_the_truth(problem: OnePositive) -> None:
    made = learner(problem)
    rounds = list(problem.rounds(5, seed=0))
    list(played(made, rounds, problem.judge))
    hidden = {id(getattr(problem, name)) for name in ("_positives", "_rows", "_starts", "_others")} | {id(problem)}
    seen: set[int] = set()
    waiting: list[Any] = [made._pending, made._hits, made._friends, made._levels, vars(made._inside), *rounds]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, type) or callable(each):
            continue
        seen.add(id(each))
        waiting.extend(gc.get_referents(each))
        waiting.extend(each.values() if isinstance(each, dict) else getattr(each, "__dict__", {}).values())
    assert len(seen) > 100
    assert not hidden & seen


def test_popularity_helps_where_others_are_uniform() -> None:
    rng = np.random.default_rng(0)
    likely = np.r_[np.full(10, 0.08), np.full(50, 0.004)]
    liked = np.array([rng.choice(60, 12, replace=False, p=likely) for _ in range(20)])
    events = Events(user=np.repeat(np.arange(20), 12), arm=liked.ravel(), reward=np.ones(240))
    log = Log(graph=make_graph("ring", 20), arms=ArmPool(rng.standard_normal((60, 3))), events=events)
    problem = OnePositive(log, n_candidates=6)
    rounds = list(problem.rounds(400, seed=0))

    def hits(made: Any) -> float:
        return float(np.mean([each[1] for each in played(made, rounds, problem.judge)]))

    plain = make_policy("pooled-linucb", graph=log.graph, arms=problem.arms, seed=5)
    assert hits(learner(problem, ("popularity",), "pooled-linucb")) > 1.3 * hits(plain)
    assert hits(MostHits(seed=0)) > 1.3 * hits(plain)


def test_ties_are_broken_at_random_and_the_same_for_the_same_seed() -> None:
    first = [MostHits(seed=seed).select("ana", range(10)).arm for seed in range(50)]
    assert len(set(first)) > 5
    assert first == [MostHits(seed=seed).select("ana", range(10)).arm for seed in range(50)]


def test_counts_that_there_are_not_are_refused(problem: OnePositive) -> None:
    with pytest.raises(
        ParameterError, match=r"counts are \('likes',\); they are one or more of 'popularity', 'friends'"
    ):
        learner(problem, ("likes",))
