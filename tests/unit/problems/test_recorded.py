"""Logs as problems: what comes, how likely, and that nothing of the truth is shown."""

from collections import Counter
from dataclasses import replace
from itertools import islice, permutations
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from coterie.errors import CandidatesError, ParameterError, SettingError
from coterie.logs import Contexts, load_deezer, load_filmtrust, load_lastfm
from coterie.logs.log import Events, Log, Ragged
from coterie.problems.recorded import OnePositive, Others, Replay, can_ask_for_positives
from originals import real
from recorded import small_log


def pairs(log: Log, *, positive: bool) -> set[tuple[Any, Any]]:
    """Returns who had what: the positives, or everything."""
    events, users, arms = log.events, log.graph.users, log.arm_ids
    rows = zip(events.user, events.arm, events.reward > 0, strict=True)
    found = {(users[user], arms[arm]) for user, arm, liked in rows if liked or not positive}
    if log.had is not None and not positive:
        found |= {(users[user], arms[arm]) for user, arm in zip(log.had.user, log.had.arm, strict=True)}
    return found


@pytest.mark.parametrize("negatives", ["uniform", "popularity"])
def test_one_candidate_is_liked_and_the_others_were_never_had(negatives: Any) -> None:
    log = small_log()
    liked, had = pairs(log, positive=True), pairs(log, positive=False)
    problem = OnePositive(log, n_candidates=8, negatives=negatives)
    for shown in problem.rounds(300, seed=1):
        assert len(set(shown.candidates)) == 8
        best = [arm for arm in shown.candidates if (shown.user, arm) in liked]
        assert best == [problem.best(shown)]
        assert [arm for arm in shown.candidates if (shown.user, arm) in had] == best
        assert [problem.judge(shown, arm) for arm in shown.candidates].count((1.0, 0.0)) == 1


def test_rounds_depend_on_the_seed_alone_and_begin_alike_whatever_the_horizon() -> None:
    problem = OnePositive(small_log(), n_candidates=8)
    longer = list(problem.rounds(700, seed=3))
    assert list(problem.rounds(600, seed=3)) == longer[:600]
    assert list(OnePositive(small_log(), n_candidates=8).rounds(700, seed=3)) == longer
    assert list(problem.rounds(600, seed=4)) != longer[:600]
    assert [shown.t for shown in longer] == list(range(700))
    assert list(problem.rounds(0, seed=3)) == []


def test_users_and_positives_are_uniform_and_the_liked_one_stands_anywhere() -> None:
    log = small_log()
    few = log.events.user != 4  # user 4 keeps nine positives, and can no longer come
    kept = few | (np.cumsum(~few) <= 9)
    columns: dict[str, Any] = {name: getattr(log.events, name)[kept] for name in ("user", "arm", "reward")}
    problem = OnePositive(replace(log, events=Events(**columns)), n_candidates=5)
    rounds = list(problem.rounds(12_000, seed=0))
    users = Counter(shown.user for shown in rounds)
    assert set(users) == set(log.graph.users) - {log.graph.users[4]}
    assert max(abs(count - 12_000 / 11) for count in users.values()) < 5 * np.sqrt(12_000 / 11)
    places = Counter(shown.candidates.index(problem.best(shown)) for shown in rounds)
    assert max(abs(count - 2400) for count in places.values()) < 5 * np.sqrt(2400)
    again = Counter((shown.user, problem.best(shown)) for shown in rounds)
    assert len(again) == 11 * 12
    assert max(abs(count - 12_000 / 132) for count in again.values()) < 5.5 * np.sqrt(12_000 / 132)


def successive(weights: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """Returns how likely each arm is among the first `count` of arms drawn by weight without replacement."""
    chance = np.zeros(len(weights))
    for order in permutations(range(len(weights)), count):
        left, likely = weights.sum(), 1.0
        for arm in order:
            likely, left = likely * weights[arm] / left, left - weights[arm]
        chance[list(order)] += likely
    return chance


@pytest.mark.parametrize("count", [1, 2, 4])  # with 4 of 5 most rows run out of draws and are finished by clocks
def test_others_are_drawn_by_weight_without_replacement(count: int) -> None:
    weights = np.array([50.0, 9.0, 4.0, 0.0, 2.0, 1.0, 7.0])
    others = Others(had=np.array([6, 7 + 0]), weights=weights)  # user 0 had arm 6, user 1 arm 0
    assert others.left(2).tolist() == [5, 5]
    drawn = others.draw(np.zeros(20_000, dtype=np.int64), count, np.random.default_rng(0))
    met = np.bincount(drawn.ravel(), minlength=7) / 20_000
    open_ = np.array([0, 1, 2, 4, 5])
    expected = np.zeros(7)
    expected[open_] = successive(weights[open_], count)
    assert np.abs(met - expected).max() < 0.02
    assert met[[3, 6]].max() == 0


def test_popularity_counts_positives_and_uniform_does_not() -> None:
    log = small_log(n_users=30)
    rate = np.bincount(log.events.arm[log.events.reward > 0], minlength=40)

    def shown(negatives: Any) -> np.ndarray[Any, Any]:
        problem = OnePositive(log, n_candidates=4, negatives=negatives)
        others = Counter(
            arm for each in problem.rounds(4000, seed=0) for arm in each.candidates if problem.judge(each, arm)[0] == 0
        )
        return np.array([others[arm] for arm in log.arm_ids])

    assert np.corrcoef(rate, shown("popularity"))[0, 1] > 0.5
    assert np.corrcoef(rate, shown("uniform"))[0, 1] < 0.1


def test_what_cannot_be_is_refused_and_says_why() -> None:
    log = small_log()
    with pytest.raises(ParameterError, match="n_candidates is 30, and no user can come"):
        OnePositive(log, n_candidates=30)
    with pytest.raises(SettingError, match="negatives is 'popular'; it is one of"):
        OnePositive(log, negatives="popular")  # type: ignore[arg-type] # refused for this very reason
    problem = OnePositive(log, n_candidates=5)
    with pytest.raises(CandidatesError, match="'tea' was not shown"):
        problem.judge(next(problem.rounds(1, seed=0)), "tea")
    with pytest.raises(SettingError, match="horizon is -1"):
        problem.rounds(-1, seed=0)


def test_users_for_whom_too_few_arms_are_left_cannot_come_and_are_counted() -> None:
    log = small_log(n_arms=40, liked=12)
    more = Events(
        user=np.r_[log.events.user, np.zeros(30, dtype=np.int64)],
        arm=np.r_[log.events.arm, np.arange(30)],
        reward=np.r_[log.events.reward, np.zeros(30)],
    )
    problem = OnePositive(replace(log, events=more), n_candidates=20)
    assert problem.n_short == 1
    assert 0 not in problem.served


def replayed(**parts: Any) -> Replay:
    log = small_log(n_users=2, n_arms=6, liked=2)
    columns: dict[str, Any] = {
        "user": np.array([0, 1, 0]),
        "arm": np.array([1, 5, 2]),
        "reward": np.array([0.5, -1.0, 3.0]),
    }
    return Replay(replace(log, events=Events(**columns, **parts), had=None))


def test_replay_tells_the_reward_of_what_was_logged_and_nothing_of_the_rest() -> None:
    replay = replayed(candidates=Ragged.of([[1, 4], [], [0, 2]]))
    first, second, third = replay.rounds()
    assert first.candidates == ("song-1", "song-4")
    assert second.candidates == replay.arms.ids
    assert replay.judge(first, "song-1")[0] == 0.5
    assert np.isnan(replay.judge(first, "song-4")).all()
    assert replay.judge(third, "song-2")[0] == 3.0
    with pytest.raises(CandidatesError, match="'song-5' was not shown"):
        replay.judge(first, "song-5")


def test_replay_shows_the_context_of_each_row() -> None:
    assert replayed().context_schema is None
    assert [shown.context for shown in replayed().rounds()] == [None] * 3
    rows = [{"hour": 9.0, "device": "phone"}, {"hour": 21.0, "device": "phone"}, {"hour": 7.0, "device": "tv"}]
    replay = replayed(context=Contexts.of(rows), time=np.array([3.0, 1.0, 2.0]))
    assert replay.context_schema == {"hour": "number", "device": "category"}
    assert [shown.context for shown in replay.rounds()] == [rows[1], rows[2], rows[0]]


def test_replay_shows_the_arms_that_earlier_places_left() -> None:
    replay = replayed(slate=np.array([4, -1, 4]), place=np.array([1, -1, 2]))
    every = replay.arms.ids
    left = tuple(arm for arm in every if arm != "song-1")
    assert [shown.candidates for shown in replay.rounds()] == [every, every, left]


@pytest.mark.parametrize(
    ("time", "order"),
    [(None, [0, 1, 2]), ([3.0, 1.0, 2.0], [1, 2, 0]), ([3.0, float("nan"), 2.0], [0, 1, 2]), ([1, 1, 0], [2, 0, 1])],
)
def test_replay_goes_by_time_where_every_row_has_one(time: Any, order: list[int]) -> None:
    replay = replayed(time=None if time is None else np.array(time, dtype=float))
    logged = ["song-1", "song-5", "song-2"]
    rewards = [replay.judge(shown, logged[row])[0] for shown, row in zip(replay.rounds(), order, strict=True)]
    assert rewards == [[0.5, -1.0, 3.0][row] for row in order]
    assert len(list(replay.rounds(2))) == 2


@pytest.mark.parametrize(
    ("folder", "load", "served"),
    [
        ("hetrec2011-lastfm-2k", lambda folder: load_lastfm(folder).log(), 1871),
        ("deezer-ro", lambda folder: load_deezer(folder).log(), 8900),
        ("filmtrust", lambda folder: load_filmtrust(folder).log(), 461),
    ],
)
def test_real_logs_make_rounds_fast(folder: str, load: Any, served: int) -> None:
    log = load(real(folder))
    problem = OnePositive(log, negatives="popularity")
    assert (len(problem.served), problem.n_short) == (served, 0)
    start = perf_counter()
    shown = list(islice(problem.rounds(2048, seed=0), 2048))
    assert perf_counter() - start < 2048 * 1e-3  # 0.03 ms when nobody else is at work
    assert all(problem.judge(each, problem.best(each))[0] == 1 for each in shown[:50])


def test_positives_that_repeat_count_once() -> None:
    log = small_log(n_users=2, n_arms=20, liked=3)
    user, arm, reward = np.tile(log.events.user, 5), np.tile(log.events.arm, 5), np.tile(log.events.reward, 5)
    repeated = replace(log, events=Events(user=user, arm=arm, reward=reward))
    assert not can_ask_for_positives(repeated, least=4)
    assert can_ask_for_positives(repeated, least=3)
