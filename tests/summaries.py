"""Summaries of studies made by hand."""

from typing import Any


def record(worlds: dict[str, dict[str, float]], growths: dict[str, float] | None = None) -> dict[str, Any]:
    """Returns the summary of a study whose policies have these mean regrets, one apart from trial to trial."""
    policies = {
        world: {
            policy: {
                "finals": [mean - 1, mean - 0.5, mean, mean, mean + 0.5, mean + 1],
                "growth": (growths or {}).get(policy, 0.5),
                "tuned": {},
                "width_at": "low",
            }
            for policy, mean in means.items()
        }
        for world, means in worlds.items()
    }
    return {
        "name": "study",
        "title": "A study",
        "reference": "lk-gp-ucb",
        "trials": 3,
        "versions": {"coterie": "0"},
        "worlds": {world: {"policies": each} for world, each in policies.items()},
    }


def ordered(best_first: list[str]) -> dict[str, float]:
    """Returns a mean regret for each policy, the best first."""
    return {policy: 100.0 + 10 * place for place, policy in enumerate(best_first)}
