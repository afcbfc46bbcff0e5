"""Threads that give way rest for most of the time, unless somebody waits for them; others never do."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter, thread_time
from typing import Any

from coterie.algebra.giving_way import RESTS, WORKS, gives_way, giving_way, rest


def in_thread(work: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def share() -> float:
    """Returns which share of the time this thread computes that may rest again and again."""
    began, computed = perf_counter(), thread_time()
    while perf_counter() - began < 0.3:
        rest()
    return (thread_time() - computed) / (perf_counter() - began)


def test_it_computes_for_a_small_share_of_the_time() -> None:
    def work() -> float:
        with giving_way():
            return share()

    assert in_thread(work) < 4 * WORKS / (WORKS + RESTS)


def test_it_does_not_rest_while_somebody_waits() -> None:
    asked: list[bool] = []

    def is_urgent() -> bool:
        asked.append(True)
        return True

    def work() -> None:
        with giving_way(is_urgent):
            share()

    in_thread(work)
    assert len(asked) > 1_000  # after a rest it would not ask for a while


def test_only_the_thread_in_the_context_gives_way_and_only_there() -> None:
    with giving_way():
        assert gives_way()
        assert not in_thread(gives_way)
    assert not gives_way()
