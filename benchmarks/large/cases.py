"""Every case: a name, what one run of it measures, and what was hoped of its medians.

To add one (a certified decision, a batch fit, ...): write what one run measures as a function of the seed that returns
numbers by name, add a `Case` to `CASES`, and a section to `page.py`. Runs that are kept already are not made again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from benchmarks.large.measures import drift_of, error_of, fit_of, memory_of, rounds_of
from benchmarks.large.peers import against_global, against_linear

SIZES = (10_000, 100_000, 1_000_000)
KINDS = ("communities", "barabasi-albert")
RIDGES = (0.01, 0.1, 1.0)
EPS = (1.0, 0.1)  # the fast setting, and the default
FIGURE_EPS = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01)


@dataclass(frozen=True, slots=True)
class Case:
    """One case.

    Attributes:
        key: Its name in docs/scale.json.
        run: One run; takes a seed, and returns numbers by name.
        quick: The same, so small that it only shows that it works.
        targets: The most that the median of a number may be, by its name.
        once: Whether one run is enough.
    """

    key: str
    run: Callable[[int], dict[str, float]]
    quick: Callable[[int], dict[str, float]]
    targets: Mapping[str, float] = field(default_factory=dict)
    once: bool = False


def _targets(kind: str, ridge: float, eps: float) -> dict[str, float]:
    hubs = kind == "barabasi-albert"
    if ridge < 0.1:
        return {}
    if eps == 1.0:
        reward = {"reward_p50": 1.0 if hubs else 0.7, "reward_p99": 5.0}
    else:
        reward = {"reward_p50": 2.0 if hubs else 1.6, "reward_p99": 20.0 if hubs else 10.0}
    return reward | {"decide_p50": 0.15, "decide_p99": 10.0, "built": 120.0}


def play_key(kind: str, n_users: int, ridge: float, eps: float) -> str:
    return f"play {kind} n={n_users} rho={ridge:g} eps={eps:g}"


def _play_case(kind: str, n_users: int, ridge: float, eps: float) -> Case:
    run = partial(rounds_of, kind, n_users, ridge, eps, rounds=5_000 if ridge >= 0.1 else 1_000)
    quick = partial(rounds_of, kind, n_users // 100, ridge, eps, rounds=50)
    return Case(play_key(kind, n_users, ridge, eps), run, quick, _targets(kind, ridge, eps))


def _error_case(ridge: float, eps: float) -> Case:
    run = partial(error_of, ridge, eps, n_users=10_000, rounds=3_000)
    quick = partial(error_of, ridge, eps, n_users=300, rounds=50)
    return Case(f"error rho={ridge:g} eps={eps:g}", run, quick, once=True)


def _memory_case(*, decided: bool) -> Case:
    name = "memory, decided and learned" if decided else "memory, learned only"
    run = partial(memory_of, 1_000_000, 100_000, 1_000_000, decided=decided)
    return Case(name, run, partial(memory_of, 10_000, 1_000, 2_000, decided=decided), {"peak": 3.0}, once=True)


def certain_key(n_users: int, ridge: float, eps: float) -> str:
    return f"certified n={n_users} rho={ridge:g} eps={eps:g}"


def _certain_case(n_users: int, ridge: float, eps: float) -> Case:
    run = partial(rounds_of, "communities", n_users, ridge, eps, rounds=3_000, certified=True)
    quick = partial(rounds_of, "communities", n_users // 100, ridge, eps, rounds=50, certified=True)
    return Case(certain_key(n_users, ridge, eps), run, quick, {"decide_p50": 1.5, "decide_p99": 10.0})


CERTAIN = [(n, ridge, eps) for ridge, eps in ((0.1, 0.1), (1.0, 0.1), (1.0, 0.01)) for n in SIZES]

CASES: list[Case] = [
    *(_play_case(kind, n, ridge, eps) for n in SIZES for kind in KINDS for ridge in RIDGES for eps in EPS),
    *(_certain_case(*each) for each in CERTAIN),
    Case("fit", partial(fit_of, 1_000_000, 10_000_000), partial(fit_of, 2_000, 20_000), {"seconds": 900.0}, once=True),
    *(_memory_case(decided=decided) for decided in (False, True)),
    Case(
        "against linear",
        partial(against_linear, rounds=2_000, plain_rounds=10),
        partial(against_linear, rounds=20, plain_rounds=1),
    ),
    *(
        Case(
            f"against global rho={ridge:g}",
            partial(against_global, ridge=ridge, rounds=5_000),
            partial(against_global, ridge=ridge, rounds=20, solves=1),
        )
        for ridge in (0.1, 1.0)
    ),
    *(_error_case(ridge, eps) for ridge in (0.1, 1.0) for eps in FIGURE_EPS),
    Case("drift", partial(drift_of, 1_000_000), partial(drift_of, 1_000), once=True),
]
