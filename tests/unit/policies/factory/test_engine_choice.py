"""Pooled users and users alone on engine `groups`: the choices of the exact engines, and no matrix for many."""

from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import MemoryLimitError
from coterie.models import requirements

RNG = np.random.default_rng(0)
GRAPH = ct.make_graph("ring", 12)
ARMS = ct.ArmPool(RNG.normal(size=(15, 3)))
TRUTH = RNG.normal(size=(12, 15))
NAMES = [
    *("pooled-linucb", "pooled-lints", "per-user-linucb", "per-user-lints", "gp-ucb", "gp-ts"),
    *("per-user-gp-ucb", "per-user-gp-ts", "popularity", "random"),
]


def choices(policy: ct.Policy, rounds: int = 120) -> list[Any]:
    rng, out = np.random.default_rng(1), []
    for _ in range(rounds):
        user, arms = int(rng.integers(12)), rng.choice(15, size=5, replace=False).tolist()
        out.append(policy.select(user, arms).arm)
        policy.update(user, out[-1], float(TRUTH[user, out[-1]] + 0.1 * rng.normal()))
    return out


@pytest.mark.parametrize("name", NAMES)
def test_choices_are_those_of_the_exact_engines(name: str) -> None:
    exact = ct.make_policy(name, graph=GRAPH, arms=ARMS)
    groups = ct.make_policy(name, graph=GRAPH, arms=ARMS, engine="groups", engine_options={"feature_error": 0.0})
    assert (exact.model.engine, groups.model.engine) != ("groups", "groups")
    assert choices(groups) == choices(exact)


@pytest.mark.parametrize("name", NAMES)
def test_many_users_and_arms_take_groups_by_themselves(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "machine_memory", lambda: 1)  # a matrix over users would be refused
    policy = ct.make_policy(name, graph=ct.make_graph("empty", 2_001), arms=ARMS)
    assert policy.model.engine == "groups"
    policy.update(7, policy.select(7).arm, 1.0)


@pytest.mark.parametrize("name", ["exchangeable-gp-ucb", "coop-kernel-ucb", "sup-kernel-ucb"])
def test_who_needs_a_matrix_over_users_is_refused_before_it_is_made(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "machine_memory", lambda: 1)
    with pytest.raises(MemoryLimitError, match="12 users need"):
        ct.make_policy(name, graph=GRAPH, arms=ARMS)


def test_a_schedule_of_the_noise_is_followed() -> None:
    schedule = ct.SpectralSchedule(base=1.0, horizon=100, first_epoch=10, ceiling=2.0, floor=0.01)
    policies = [
        ct.make_policy("pooled-linucb", graph=GRAPH, arms=ARMS, noise_var=schedule, engine=engine)
        for engine in ("auto", "groups")
    ]
    one, other = (choices(policy) for policy in policies)
    assert one == other
    assert policies[0].model.noise_var == policies[1].model.noise_var
