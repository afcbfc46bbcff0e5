"""`auto` learns beside the decisions: fits that hold up nobody, the same choices each time, and graphs that grow."""

import gc
import subprocess
import sys
import time
from copy import deepcopy
from pathlib import Path
from threading import Semaphore
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.algebra.giving_way import gives_way
from coterie.errors import FitWarning, NumericalError, ParameterError
from coterie.kernels import PoolKernel
from coterie.models import History, make_model
from coterie.policies.auto import AutoPolicy, climbing
from coterie.policies.auto.fits import Found, PendingFit
from coterie.policies.auto.hyper import Hyper

ARMS = ct.ArmPool(np.random.default_rng(1).normal(size=(12, 3)))


def world(n_users: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.repeat(rng.normal(size=(-(-n_users // 5), 3)), 5, axis=0)[:n_users] @ ARMS.features.T


def play(policy: ct.Policy, rounds: int, *, start: int = 0, seed: int = 0) -> list[int]:
    rng, truth = np.random.default_rng([seed, start]), world(policy.graph.n_users)
    chosen = []
    for _ in range(rounds):
        user = int(rng.integers(min(policy.graph.n_users, 40)))
        arm = policy.select(user).arm
        policy.update(user, arm, float(5.0 + truth[user, arm] + 0.3 * rng.normal()))
        chosen.append(int(arm))
    return chosen


def make(n_users: int = 60, **options: Any) -> AutoPolicy:
    graph = ct.make_graph("sbm", n_users, seed=2)
    policy = ct.make_policy("auto-ucb", graph=graph, arms=ARMS, **options)
    assert isinstance(policy, AutoPolicy)
    return policy


@pytest.mark.parametrize("name", ["auto-ucb", "auto-ts"])
def test_it_learns_on_its_own_engine_what_it_does_on_an_exact_one(name: str) -> None:
    graph = ct.make_graph("sbm", 40, seed=2)
    exact = ct.make_policy(name, graph=graph, arms=ARMS, engine="exact")
    found = ct.make_policy(name, graph=graph, arms=ARMS)
    rng, truth = np.random.default_rng(0), world(40)
    for _ in range(60):  # all of them are near
        user, arm = int(rng.integers(40)), int(rng.integers(12))
        reward = float(5.0 + truth[user, arm] + 0.3 * rng.normal())
        exact.update(user, arm, reward)
        found.update(user, arm, reward)
    assert isinstance(found, AutoPolicy)
    assert found.model.engine == "local"
    assert [t for t, _ in found.fits] == [t for t, _ in exact.fits]
    np.testing.assert_allclose(np.array(found.hyper), np.array(exact.hyper), rtol=1e-9)  # type: ignore[attr-defined]
    for user in range(40):
        for one, two in zip(exact.predict(user), found.predict(user), strict=True):
            np.testing.assert_allclose(two, one, atol=1e-8)


def test_a_fit_is_taken_after_a_sixteenth_more_rewards_and_the_same_each_time() -> None:
    one, two = make(), make()
    assert play(one, 100) == play(two, 100)
    assert one.hyper == two.hyper
    assert [t for t, _ in one.fits] == [8, 12, 16, 24, 32, 48, 64]
    assert one.centre > 2.0
    assert one.model.n_observations == 100
    assert "A fit to 96 rewards goes on." in one.describe()


@pytest.mark.parametrize("at", [20, 32, 33, 34, 48, 50])
def test_it_goes_on_to_the_bit_after_saving_also_during_a_fit(at: int) -> None:
    policy, other = make(), make()
    play(policy, at)
    other.restore(deepcopy(policy.state()))
    assert play(policy, 40, start=at) == play(other, 40, start=at)
    assert policy.hyper == other.hyper
    np.testing.assert_array_equal(policy.predict(3)[0], other.predict(3)[0])


def test_a_fit_that_fails_leaves_the_belief_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = make()
    play(policy, 23)

    def refuse(*_: Any, **__: Any) -> Any:
        raise NumericalError("no", "never", "Do not")

    monkeypatch.setattr(climbing, "fit", refuse)
    with pytest.warns(FitWarning, match="after 24 rewards"):
        play(policy, 10, start=23)
    assert "rewards was not made: no" in policy.describe()
    assert policy.model.n_observations == 33


def test_all_rewards_at_once_are_fitted_at_once() -> None:
    policy, fresh = make(), make()
    play(policy, 60)
    fresh.relearn(policy.model.history)
    assert fresh.fits[-1][0] == 60
    assert "goes on" not in fresh.describe()


@pytest.mark.parametrize("engine", ["sparse", "groups"])
def test_engines_that_are_for_other_kernels_are_refused(engine: str) -> None:
    with pytest.raises(ParameterError, match=f"engine '{engine}' was asked for with a policy that learns"):
        make(engine=engine)


def grown(policy: ct.Policy, number: int) -> None:
    """Lets a newcomer join, and a weight change; every third time an edge goes."""
    graph, n = policy.graph, policy.graph.n_users
    graph = graph.add_user(n, {number: 1.0, number + 1: 0.5})[0].set_edge(number, number + 7, 0.8)[0]
    if number % 3 == 0:
        graph = graph.remove_edge(n, number)[0]
    assert policy.relink(graph)


def play_growing(policy: ct.Policy, rounds: int, *, start: int = 0) -> list[int]:
    chosen = []
    for number in range(start, start + rounds):
        chosen += play(policy, 1, start=number)
        if number % 3 == 2:
            grown(policy, number)
    return chosen


def test_it_follows_a_growing_graph_also_during_a_fit() -> None:
    one, two = make(), make()
    for policy in (one, two):
        play(policy, 23)
    assert play_growing(one, 9, start=23) == play_growing(two, 9, start=23)
    assert one.model.n_users == one.graph.n_users == 63
    fresh = ct.make_policy("auto-ucb", graph=one.graph, arms=ARMS)
    kept, history = one.hyperparameters(), deepcopy(one.model.history)
    history.shift(one.centre)
    fresh.relearn_with(kept, history)
    for user in (0, 33, 62):
        for a, b in zip(one.predict(user), fresh.predict(user), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)


def test_what_was_learned_means_the_same_on_the_changed_graph() -> None:
    policy = make()
    play(policy, 17)
    before = policy.hyperparameters()
    for number in range(12):
        grown(policy, number)
    after = policy.hyperparameters()
    assert after["log_scale"] == before["log_scale"]
    assert after["hyper"] != before["hyper"]


@pytest.mark.parametrize("at", [24, 31])
def test_a_growing_one_goes_on_to_the_bit_after_saving(at: int) -> None:
    policy = make()
    play(policy, 20)
    play_growing(policy, at - 20, start=20)
    assert ("goes on" in policy.describe()) == (at == 24)
    weights = policy.graph.weights
    graph = ct.UserGraph(users=policy.graph.users, weights=weights.copy())
    other = ct.make_policy("auto-ucb", graph=graph, arms=ARMS)
    other.restore(deepcopy(policy.state()))
    assert play_growing(policy, 5, start=at) == play_growing(other, 5, start=at)
    np.testing.assert_array_equal(policy.predict(3)[0], other.predict(3)[0])


def test_a_mistake_in_the_code_of_a_fit_is_raised_where_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = make()
    play(policy, 23)
    monkeypatch.setattr(climbing, "fit", lambda *_, **__: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        play(policy, 10, start=23)
    assert policy.pending_fit is None
    play(policy, 1, start=31)


def test_a_policy_that_is_dropped_during_a_fit_takes_its_thread_along() -> None:
    policy = make()
    play(policy, 24)
    assert policy.pending_fit is not None
    assert policy.pending_fit._work is not None
    thread = policy.pending_fit._thread
    assert thread is not None
    del policy
    gc.collect()
    thread.join(timeout=60)
    assert not thread.is_alive()


def test_a_reward_in_the_place_of_another_lets_a_fit_that_goes_on_begin_anew() -> None:
    policy = make(engine="grid")
    play(policy, 24)
    before = policy.pending_fit
    row, column = policy.model.history.users[3], policy.model.history.arms[3]
    assert before is not None
    assert policy.revise(row, column, policy.model.history.means[3] + policy.centre, 7.0)
    assert policy.pending_fit is not None
    assert policy.pending_fit is not before


# Taken when they are ready


def ready(policy: AutoPolicy) -> tuple[int, list[float]]:
    for _ in range(12_000):
        found = policy.ready_fit
        if found is not None:
            return found
        time.sleep(0.005)
    raise AssertionError("no fit was ready within a minute")


def test_with_takes_when_ready_nobody_waits_and_the_fit_is_there_for_the_taking() -> None:
    policy = make()
    policy.takes_when_ready = True
    play(policy, 9)
    play(policy, 20, start=9)
    assert policy.fits == []
    started, hyper = ready(policy)
    policy.take_fit(started, hyper)
    assert [t for t, _ in policy.fits] == [8]
    assert policy.ready_fit is None
    assert policy.model.n_observations == 29


def test_a_fit_that_is_given_makes_the_same_belief_as_one_that_was_computed() -> None:
    policy, other = make(), make()
    for each in (policy, other):
        each.takes_when_ready = True
    other.fits_are_given = True
    play(policy, 14)
    for row, (user, arm) in enumerate(zip(policy.model.history.users, policy.model.history.arms, strict=True)):
        assert policy.model.history.counts[row] == 1
        other.update(user, arm, policy.model.history.means[row] + policy.centre)
    assert other.ready_fit is None
    started, hyper = ready(policy)
    for each in (policy, other):
        each.take_fit(started, hyper)
    assert policy.hyper == other.hyper
    np.testing.assert_allclose(policy.predict(3)[0], other.predict(3)[0], atol=1e-12)


def test_a_fit_that_nobody_gave_is_computed_once_fits_begin_again() -> None:
    policy = make()
    policy.takes_when_ready = policy.fits_are_given = True
    play(policy, 10)
    assert policy.ready_fit is None
    policy.set_fits(when_ready=True, given=False)
    started, hyper = ready(policy)
    policy.take_fit(started, hyper)
    assert [t for t, _ in policy.fits] == [8]


def test_a_process_that_ends_lets_its_fit_come_to_an_end_first(tmp_path: Path) -> None:
    script = tmp_path / "short.py"
    script.write_text(
        "import atexit, threading\n"
        "left = lambda: [each.name for each in threading.enumerate() if each.name == 'coterie-refit']\n"
        "atexit.register(lambda: print(left()))  # the first to be registered is the last to be called\n"
        "import numpy as np, coterie as ct\n"
        "graph, arms = ct.make_graph('ring', 900), ct.ArmPool(np.random.default_rng(0).normal(size=(50, 4)))\n"
        "bandit, rng = ct.Bandit(graph=graph, arms=arms), np.random.default_rng(0)\n"
        "while bandit._learned.policy.n_rewards < 900 or not left():\n"
        "    bandit.learn(int(rng.integers(900)), int(rng.integers(50)), float(rng.normal()))\n"
    )
    ended = subprocess.run([sys.executable, str(script)], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "[]\n")


# A fit by itself


STARTED = Hyper(-1.0, -2.0, -1.5, -0.5, 0.3, 0.2, -2.0, -2.0)


def test_a_pending_fit_learns_every_reward_and_raises_what_went_wrong() -> None:
    model, found = make_model(PoolKernel(np.eye(1), np.eye(1)), noise_var=1.0), Found(STARTED, 0.5)
    pending = PendingFit(8, 9, History().state(), lambda: found, lambda *_: model)
    assert pending.found() == found
    pending.follow((0, 0, 2.0))
    taken, made = pending.finish()
    assert made is not None
    assert (taken, made.n_observations, made.history.means) == (found, 1, [1.5])
    broken = PendingFit(8, 9, History().state(), lambda: 1 // 0, lambda *_: model)  # type: ignore[arg-type, return-value]
    with pytest.raises(ZeroDivisionError):
        broken.found()
    with pytest.raises(ZeroDivisionError):
        broken.finish()


def test_in_a_forked_process_a_fit_starts_again_and_comes_to_the_same() -> None:
    def find() -> Found:
        started.append(1)
        return Found(STARTED, 0.0)

    started: list[int] = []
    make = PoolKernel(np.eye(1), np.eye(3))
    pending = PendingFit(8, 9, History().state(), find, lambda *_: make_model(make, noise_var=1.0))
    pending.follow((0, 1, 1.0))
    pending.finish()
    pending._process = -1  # as a child sees it, where no thread is left
    pending.follow((0, 2, 3.0))
    _, made = pending.finish()
    assert made is not None
    assert (made.history.arms, made.history.means) == ([1, 2], [1.0, 3.0])
    assert started == [1, 1]


class Held:
    """A model that learns only as often as it is let."""

    def __init__(self) -> None:
        self.may_learn, self.n_learned = Semaphore(0), 0

    def learn_noisier(self, *_: Any, **__: Any) -> None:
        self.may_learn.acquire()
        self.n_learned += 1


def test_a_model_that_has_much_to_learn_yet_is_not_ready() -> None:
    found = Found(Hyper(*np.zeros(8).tolist()), 0.0)
    model: Any = Held()
    fit = PendingFit(8, 9, {}, lambda: found, lambda *_: model)
    for _ in range(10):
        fit.follow((0, 0, 1.0))
    fit.start().is_made.wait()
    assert not fit.is_ready
    model.may_learn.release(6)
    while model.n_learned < 6:
        time.sleep(0.001)
    assert fit.is_ready
    model.may_learn.release(4)
    fit.finish()
    assert model.n_learned == 10


class Learner:
    """Stands for a model: says whether the thread in which it learns gives way."""

    def __init__(self) -> None:
        self.told: list[bool] = []

    def learn_noisier(self, *_: Any, **__: Any) -> None:
        self.told.append(gives_way())


def fitted_in_thread() -> tuple[list[bool], list[bool]]:
    """Returns whether the thread of a fit gives way while it finds and makes, and while its model learns."""
    found, seen, learner = Found(Hyper(*[0.1] * len(Hyper._fields)), 0.0), list[bool](), Learner()

    def find() -> Found:
        seen.append(gives_way())
        return found

    def make(*_: Any) -> Any:
        seen.append(gives_way())
        return learner

    pending = PendingFit(8, 9, {}, find, make)
    pending.follow((0, 1, 0.5))
    assert not pending.start().is_urgent
    pending.finish()
    assert pending.start().is_urgent
    return seen, learner.told


def test_fits_of_a_service_give_way() -> None:
    assert fitted_in_thread() == ([False, False], [False])
    with climbing.climbing_in(climbing.ClimbProcess()):
        assert fitted_in_thread() == ([True, True], [True])


def test_a_fit_that_gives_way_catches_up_with_rewards_that_come_fast() -> None:
    class Slow(Learner):
        def learn_noisier(self, *_: Any, **__: Any) -> None:
            time.sleep(0.0004)

    found = Found(Hyper(*[0.1] * len(Hyper._fields)), 0.0)
    slow: Any = Slow()
    with climbing.climbing_in(climbing.ClimbProcess()):
        pending = PendingFit(8, 9, {}, lambda: found, lambda *_: slow)
        for _ in range(100):
            pending.follow((0, 1, 0.5))
        end = time.monotonic() + 20
        while not pending.is_ready:
            assert time.monotonic() < end
            pending.follow((0, 1, 0.5))
            time.sleep(0.002)
        pending.finish()
