from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.errors import MemoryLimitError, UnknownNameError
from coterie.models import requirements

ARMS = ct.ArmPool(np.eye(3))


@pytest.mark.parametrize(
    "options",
    [
        {"name": "lk-gp-ucb", "engine": "exact"},
        {"name": "lk-gp-ucb", "user_kernel": ct.Green(power=2.0)},
        {"name": "auto-ucb", "engine": "grid"},
        {"name": "auto-ucb", "likelihood": "bernoulli"},
    ],
)
def test_users_whose_matrices_exceed_the_machine_are_refused_before_they_are_made(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = ct.make_graph("ring", 50)
    ct.make_policy(graph=graph, arms=ARMS, **options)
    monkeypatch.setattr(requirements, "machine_memory", lambda: 16 * 50**2 - 1)
    with pytest.raises(
        MemoryLimitError, match=r"50 users need .* Use 'auto-ucb' without an engine, or .* engine='sparse'"
    ):
        ct.make_policy(graph=graph, arms=ARMS, **options)
    monkeypatch.setattr(requirements, "machine_memory", lambda: 16 * 50**2)
    ct.make_policy(graph=graph, arms=ARMS, **options)


def test_an_unknown_option_of_sparse_is_told_with_those_of_the_features() -> None:
    with pytest.raises(UnknownNameError, match=r"'epsilon' is unknown.*'eps', 'feature_error', 'max_features'"):
        ct.make_policy(
            "lk-gp-ucb", graph=ct.make_graph("ring", 5), arms=ARMS, engine="sparse", engine_options={"epsilon": 0.1}
        )
