"""Threads that give way rest for most of the time, unless somebody waits for them, and leave no profiler behind."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter, thread_time
from typing import Any

import coterie as ct
from coterie.policies.auto.climbing import ClimbProcess, climbing_in
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.fits import Found, PendingFit
from coterie.policies.auto.giving_way import RESTS, WORKS, giving_way

GRAPH, ARMS = ct.make_graph("sbm", 6, seed=2), ct.ArmPool([[0.0], [1.0]])


def share_of(work: Callable[[], Any], seconds: float = 0.3) -> float:
    """Returns which share of the time a thread computes that calls something again and again."""
    began, computed = perf_counter(), thread_time()
    while perf_counter() - began < seconds:
        work()
    return (thread_time() - computed) / (perf_counter() - began)


def in_thread(work: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_it_computes_for_a_small_share_of_the_time() -> None:
    def work() -> float:
        with giving_way():
            return share_of(lambda: sum(range(100)))

    assert in_thread(work) < 4 * WORKS / (WORKS + RESTS)


def test_it_does_not_rest_while_somebody_waits() -> None:
    asked: list[bool] = []

    def is_urgent() -> bool:
        asked.append(True)
        return True

    def work() -> None:
        with giving_way(is_urgent):
            for _ in range(100_000):
                len("")

    in_thread(work)
    assert len(asked) > 1_000  # after a rest it would not ask for a while


def test_a_profiler_that_is_there_stays() -> None:
    def profiler(*_: Any) -> None:
        return

    def work() -> tuple[Any, Any, Any]:
        with giving_way():
            alone = sys.getprofile()
        after = sys.getprofile()
        sys.setprofile(profiler)
        try:
            with giving_way():
                return alone, after, sys.getprofile()
        finally:
            sys.setprofile(None)

    alone, after, there = in_thread(work)
    assert alone is not None
    assert after is None
    assert there is profiler


class Learner:
    """Stands for a model: says what looks at the thread in which it learns."""

    def __init__(self) -> None:
        self.profilers: list[Any] = []

    def learn_noisier(self, *_: Any, **__: Any) -> None:
        self.profilers.append(sys.getprofile())


def fitted() -> tuple[Any, Any, Learner]:
    """Returns what looks at the thread of a fit while it finds, while it makes, and a model that learned a reward."""
    found, seen = Found(FitContext(GRAPH, ARMS).prior(1.0).centre, 0.0), list[Any]()
    learner: Any = Learner()

    def find() -> Found:
        seen.append(sys.getprofile())
        return found

    def make(*_: Any) -> Any:
        seen.append(sys.getprofile())
        return learner

    pending = PendingFit(8, 9, {}, find, make)
    pending.follow((0, 1, 0.5))
    assert not pending.start().is_urgent
    assert pending.finish() == (found, learner)
    assert pending.start().is_urgent
    return seen[0], seen[1], learner


def test_fits_of_a_service_give_way_until_there_is_a_model_to_catch_up() -> None:
    finding, making, learner = fitted()
    assert (finding, making, learner.profilers) == (None, None, [None])
    with climbing_in(ClimbProcess()):
        finding, making, learner = fitted()
    assert finding is not None
    assert making is not None
    assert learner.profilers == [None]
