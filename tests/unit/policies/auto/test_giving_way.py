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


def test_fits_of_a_service_give_way_until_they_are_waited_for() -> None:
    found, profilers = Found(FitContext(GRAPH, ARMS).prior(1.0).centre, 0.0), list[Any]()

    def find() -> Found:
        profilers.append(sys.getprofile())
        return found

    def fit() -> PendingFit:
        return PendingFit(8, 9, {}, find, lambda *_: None)

    assert fit().finish() == (found, None)
    with climbing_in(ClimbProcess()):
        pending = fit()
        assert pending.finish() == (found, None)
    assert pending.start().is_urgent
    assert profilers[0] is None
    assert profilers[1] is not None
