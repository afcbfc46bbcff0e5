"""How true off-policy estimates are: simulated logs whose targets' values are known exactly.

python -m benchmarks.evaluation [--logs 300] [--decisions 2000] prints, for each world, target and estimator, the share
of 95 % intervals that hold the truth, the bias, the root mean squared error and in how many logs there was a warning,
and keeps them in docs/evaluation.json, from which benchmarks.evaluation_page writes the tables of docs/evaluation.md.
How wide intervals are was settled on logs 0 to 299; the figures are of others.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import coterie as ct
from coterie.policies import Policy, make_policy
from coterie.product.evaluation import Estimate, Logged, Sample, estimate, evaluate
from coterie.product.evaluation.estimators import ESTIMATORS
from coterie.product.evaluation.targets import choice_probabilities, fitted, predictions

OUT = Path(__file__).parent.parent / "docs" / "evaluation.json"
N_USERS, N_ARMS, N_SHOWN, N_SETS = 16, 12, 4, 30
LOGGERS = {"uniform": 1.0, "leaning": 0.25, "sharp": 0.03}  # how much of a choice is at random
REWARDS = ("graded", "clicks")
TARGETS = ("lk-gp-ucb", "lk-gp-ts")
SETTINGS: dict[str, dict[str, Any]] = {"graded": {"noise_var": 0.25}, "clicks": {"noise_var": 0.15, "width": 0.3}}
FIRST = 1000  # the number of the first log
HEAD = "| rewards | logger | target | estimator | coverage | bias | rmse | truth | effective n | warned |"
Array = NDArray[np.float64]


class World:
    """Users of a graph, sets of candidates that are shown to them with equal chances, and a logger."""

    def __init__(self, logger: str, reward: str, seed: int) -> None:
        rng = np.random.default_rng([seed, 1])
        self.graph = ct.make_graph("sbm", N_USERS, seed=seed, connected="retry")
        self.arms, self.reward = ct.ArmPool(rng.normal(size=(N_ARMS, 3))), reward
        taste = rng.normal(size=(4, 3))[np.arange(N_USERS) * 4 // N_USERS] + 0.3 * rng.normal(size=(N_USERS, 3))
        liked = taste @ self.arms.features.T / 1.7
        self.truth = liked if reward == "graded" else 0.25 / (1 + np.exp(-liked))
        self.sets = np.array([rng.choice(N_ARMS, N_SHOWN, replace=False) for _ in range(N_SETS)])
        lean, least = np.exp(liked + rng.normal(size=liked.shape)), LOGGERS[logger]
        chances = np.stack([lean[:, shown] for shown in self.sets], axis=1)
        chances /= chances.sum(axis=2, keepdims=True)
        self.chances = (1 - least) * chances + least / N_SHOWN  # users x sets x candidates

    def log(self, users: Any, sets: Any, rng: np.random.Generator) -> Logged:
        """Returns what the logger did for these users among these sets."""
        chances, n = self.chances[users, sets], len(users)
        places = np.minimum((chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), N_SHOWN - 1)
        arms = self.sets[sets, places]
        return Logged(
            users=users,
            starts=np.arange(n + 1) * N_SHOWN,
            candidates=self.sets[sets].ravel(),
            arms=arms,
            rewards=self.rewards(users, arms, rng),
            propensities=chances[np.arange(n), places],
            chances=chances.ravel(),
        )

    def rewards(self, users: Any, arms: Any, rng: np.random.Generator) -> Array:
        mean = self.truth[users, arms]
        if self.reward == "graded":
            return np.asarray(mean + 0.5 * rng.normal(size=np.shape(mean)))
        return np.asarray(rng.random(np.shape(mean)) < mean, dtype=np.float64)

    def drawn(self, n: int, rng: np.random.Generator) -> Logged:
        return self.log(rng.integers(N_USERS, size=n), rng.integers(N_SETS, size=n), rng)

    def value(self, policy: Policy) -> float:
        """Returns what a frozen policy truly earns per decision: exact, over all users and sets."""
        users, sets = (each.ravel() for each in np.meshgrid(np.arange(N_USERS), np.arange(N_SETS)))
        every = self.log(users, sets, np.random.default_rng(0))
        truth = self.truth[np.repeat(users, N_SHOWN), every.candidates]
        return float(choice_probabilities(policy, every) @ truth) / len(every)

    def earned(self) -> float:
        """Returns what the logger truly earns per decision: exact, over all users and sets."""
        return float((self.chances * self.truth[np.arange(N_USERS)[:, None, None], self.sets]).sum(axis=2).mean())

    def policy(self, name: str, seed: int) -> Policy:
        return make_policy(name, graph=self.graph, arms=self.arms, seed=seed, **SETTINGS[self.reward])

    def lived(self, name: str, n: int, seed: int) -> float:
        """Returns what a learning policy earns per decision in so many decisions of its own."""
        rng, policy, total = np.random.default_rng([seed, 4]), self.policy(name, seed), 0.0
        for _ in range(n):
            user, shown = int(rng.integers(N_USERS)), self.sets[rng.integers(N_SETS)].tolist()
            arm = policy.select(user, shown).arm
            reward = float(self.rewards(user, arm, rng))
            policy.update(user, arm, reward)
            total += reward
        return total / n


class Found(NamedTuple):
    """One estimate and the truth, of the value and of how much more it is than the logger's."""

    name: str
    target: str
    estimate: Estimate
    truth: float
    gain: float
    warned: bool


def judged(world: World, n: int, seed: int) -> Iterator[Found]:
    """Yields the estimates of one log for each frozen target."""
    log, rows = world.drawn(n, np.random.default_rng([seed, 2])), np.arange(n)
    earlier, later = log.take(rows[: n // 2]), log.take(rows[n // 2 :])
    believer = make_policy("auto-ucb", graph=world.graph, arms=world.arms, seed=seed)
    predicted = predictions(fitted(believer, earlier), later)
    for target in TARGETS:
        policy = fitted(world.policy(target, seed), earlier)
        sample = Sample(later, choice_probabilities(policy, later), predicted)
        truth, found = world.value(policy), estimate(sample, list(ESTIMATORS), seed=seed)
        about = truth, truth - world.earned(), bool(found.warnings)
        yield from (Found(name, target, each, *about) for name, each in found.estimates.items())


def lived(worlds: dict[int, World], n: int) -> list[Found]:
    """Returns replays of a learning policy; the truth is the mean of runs of its own, as long, in the same world."""
    out = []
    for seed, world in worlds.items():
        log = world.drawn(n, np.random.default_rng([seed, 3]))
        given: dict[str, Any] = {"graph": world.graph, "arms": world.arms, "seed": seed} | SETTINGS[world.reward]
        found = evaluate(log, policy="lk-gp-ucb", learning=True, **given)
        replayed = found.estimates["replay"]
        truth = np.mean([world.lived("lk-gp-ucb", round(replayed.ess), 1000 * seed + i) for i in range(10)])
        about = float(truth), float(truth) - world.earned(), bool(found.warnings)
        out.append(Found("replay", "lk-gp-ucb, learning", replayed, *about))
    return out


def rows(found: list[Found], logger: str, reward: str) -> Iterator[dict[str, Any]]:
    """Yields coverage, bias and error of each target and estimator."""
    for target, name in dict.fromkeys((each.target, each.name) for each in found):
        some = [each for each in found if (each.target, each.name) == (target, name)]
        gaps = np.array([each.estimate.value - each.truth for each in some])
        held = [each.estimate.low <= each.truth <= each.estimate.high for each in some]
        gained = [each.estimate.gain_low <= each.gain <= each.estimate.gain_high for each in some]
        yield {
            "rewards": reward,
            "logger": logger,
            "target": target,
            "estimator": name,
            "logs": len(some),
            "coverage": float(np.mean(held)),
            "gain_coverage": float(np.mean(gained)),
            "bias": float(gaps.mean()),
            "bias_error": float(gaps.std(ddof=1) / np.sqrt(len(gaps))),
            "rmse": float(np.sqrt(np.mean(gaps**2))),
            "truth": float(np.mean([each.truth for each in some])),
            "ess": float(np.mean([each.estimate.ess for each in some])),
            "warned": float(np.mean([each.warned for each in some])),
        }


def line(row: dict[str, Any]) -> str:
    return (
        f"| {row['rewards']} | {row['logger']} | {row['target']} | {row['estimator']} | {row['coverage']:.1%} | "
        f"{row['bias']:+.4f} ± {row['bias_error']:.4f} | {row['rmse']:.4f} | {row['truth']:.3f} | {row['ess']:.0f} | "
        f"{row['warned']:.0%} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=300)
    parser.add_argument("--decisions", type=int, default=2000)
    asked, kept = parser.parse_args(), json.loads(OUT.read_text(encoding="utf-8"))
    print(f"{HEAD}\n{'|---' * 10}|")
    for reward in REWARDS:
        for logger in LOGGERS:
            worlds = {seed: World(logger, reward, seed) for seed in range(FIRST, FIRST + asked.logs)}
            found = [each for seed, world in worlds.items() for each in judged(world, asked.decisions, seed)]
            if logger == "uniform":
                found += lived(worlds, asked.decisions // 4)
            kept = [row for row in kept if (row["rewards"], row["logger"]) != (reward, logger)]
            kept += rows(found, logger, reward)
            OUT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
            print(
                "\n".join(line(row) for row in kept if (row["rewards"], row["logger"]) == (reward, logger)), flush=True
            )


if __name__ == "__main__":
    main()
