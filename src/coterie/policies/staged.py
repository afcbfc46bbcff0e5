"""Decisions in stages whose rewards are independent of their widths (SupKernelUCB: Valko and others, 2013)."""

from collections.abc import Callable, Iterable
from itertools import count
from math import ceil, log2, sqrt
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.errors import ParameterError
from coterie.models import Model
from coterie.policies.policy import Policy
from coterie.policies.rules.scores import FunctionScore, Scored, best_of_one, ucb
from coterie.policies.rules.widths import width_at

DEFAULT_ROUNDS = 1000
TOLERANCE = 1e-10


def refuse_bounds(name: str, engine: str) -> None:
    """Raises for an engine that has bounds of prior stds alone: stages compare widths with the stds themselves."""
    if engine == "sparse":
        rule = "its stages compare widths with prior stds, of which that engine has bounds alone"
        raise ParameterError(f"engine {engine!r} was asked for with {name!r}", rule, "Leave the engine out")


class StagedPolicy(Policy):
    """Goes through stages 1, 2, ... with the candidates that survive; each stage has rewards and a belief of its own.

    In stage s, with C the largest prior std and T the expected rounds: if every width * std is at most C / sqrt(T), the
    highest UCB is chosen, and no stage learns its reward; if every one is at most C 2^-s, the candidates whose UCB is
    within 2 C 2^-s of the highest go on to the next stage; if not, the widest is chosen, and stage s learns its reward.
    Whether a stage learns a reward so depends on no reward of that stage, which is what the bound sqrt(d T) needs.

    A reward is that of the last decision for this user and arm; one that nobody decided goes to stage 1. (So does the
    very first where there is no pool: from then on that stage knows how many features an arm has.) `predict`,
    `covariance` and `model` answer from all rewards, and cost nothing until they are asked. A stage that has learned
    nothing has no model yet; all models share the kernel.

    Args:
        make: Makes a model from the noise variance, always on the same kernel.
        noise_var: The noise variance to begin with.
        rounds: T, how many rounds are expected.
        **parts: As for `Policy`.
    """

    decides_together = False  # a decision in stages changes what the next is made from
    learns_by_decisions = True

    def __init__(self, *, make: Callable[..., Model], noise_var: float, rounds: int, **parts: Any) -> None:
        score = FunctionScore(ucb)  # whose propensities are not known: stages leave candidates out
        super().__init__(model=make(noise_var=noise_var), score=score, **parts)
        self.rounds = rounds
        self.n_stages = max(1, ceil(log2(rounds) / 2))
        self._make = make
        self._stages = {1: self._model}
        self._whole: Model | None = None
        self._unread: list[tuple[int, Any, float]] = []
        self._due: dict[object, int] = {}
        self._n_rewards = 0
        self._largest_std = sqrt(self._model.max_variance)

    @property
    def model(self) -> Model:
        """The belief from all rewards, whatever their stage; brought up to date when it is asked for."""
        if self._whole is None:
            self._whole = self._make(noise_var=self._model.noise_var)
        if self._unread:
            self._whole.update_many(*zip(*self._unread, strict=True))
            self._unread.clear()
        return self._whole

    @property
    def n_rewards(self) -> int:
        """Rewards learned so far."""
        return self._n_rewards

    @property
    def collapses(self) -> bool:
        """Never: a reward belongs to the stage that its decision was made in."""
        return False

    def describe(self) -> str:
        """Returns in words how many rewards each stage has, and what stage 1 runs on and why."""
        learned = {stage: model.n_observations for stage, model in sorted(self._stages.items())}
        by_stage = ", ".join(f"{rewards} in stage {stage}" for stage, rewards in learned.items())
        return (
            f"{self.name}: {self.n_stages} stages for {self.rounds} rounds; of {self.n_rewards} rewards {by_stage} and "
            f"{self.n_rewards - sum(learned.values())} in none. "
            f"Stage 1: {self._model.describe()}{self._refusals()}"
        )

    def prospects(self, row: int, arms: Any) -> None:
        """Returns nothing: which stage decides depends on the candidates."""

    def _decide(self, row: int, arms: Any, number: int) -> Scored:
        scale = self._scale(arms)
        narrow, rounding = scale / sqrt(self.rounds), TOLERANCE * scale
        left = np.arange(len(arms))
        for stage in count(1):  # ends: what is at most C 2^-s in the last stage is at most C / sqrt(T)
            mean, std, width = self._believed(stage, row, arms[left])
            spread = width * std
            score = mean + spread
            widest, bar = float(spread.max()), scale * 2.0**-stage
            if widest <= narrow + rounding:
                due = 0
                break
            if not widest <= bar + rounding:  # so put, what is not a number ends here as well
                due, score = stage, spread
                break
            left = left[score >= score.max() - 2 * bar - rounding]
        tolerance = self._tolerance(row, arms[left])
        best, n_ties = best_of_one(score, tolerance, self._draws, number)
        chosen = int(left[best])
        self._due[self._model.kernel.key(row, arms[chosen])] = due
        shown = np.full((3, len(arms)), np.nan)  # of those that earlier stages left out nothing is known here
        shown[:, left] = mean, std, score
        noise_var = self._model.noise_var
        return Scored(self._score, shown[0], shown[1], width, shown[2], tolerance, noise_var, chosen, n_ties)

    def _believed(self, stage: int, row: int, arms: Any) -> tuple[Array, Array, float]:
        """Returns mean and std of a stage, and how wide to explore there."""
        model = self._stages.get(stage)
        if model is None:
            kernel = self._model.kernel
            std = np.sqrt(kernel.user_cov[row, row] * kernel.arm_diag(arms))
            mean = np.zeros(len(arms))
        else:
            mean, std = model.read(row, arms)
        if not callable(self.width):
            return mean, std, self.width
        return mean, std, width_at(self.width, self.n_rewards + 1, self._stage(stage))

    def _scale(self, arms: Any) -> float:
        """Returns the largest prior std, of the pool or else of the candidates."""
        return self._largest_std if self.arms else sqrt(self._model.kernel.max_variance(list(arms)))

    def _stage(self, stage: int) -> Model:
        if stage not in self._stages:
            self._stages[stage] = self._make(noise_var=self._model.noise_var)
        return self._stages[stage]

    def _stage_of(self, row: int, column: Any) -> int:
        """Returns the stage that a reward is for, 0 for none."""
        stage = self._due.pop(self._model.kernel.key(row, column), 1)
        return stage if self.arms or self._n_rewards else 1

    def _learn(self, row: int, column: Any, value: float) -> None:
        stage = self._stage_of(row, column)
        if stage:
            self._stage(stage).learn(row, column, value)
        self._unread.append((row, column, value))
        self._n_rewards += 1

    def _learn_many(self, rows: list[int], columns: list[Any], values: list[Any]) -> None:
        self._model.checked_batch(rows, columns, values)
        for row, column, value in zip(rows, columns, values, strict=True):
            self._learn(row, self._model.checked_arm(column), float(value))

    def _followed(self) -> Iterable[Model]:
        return (*self._stages.values(), *([] if self._whole is None else [self._whole]))
