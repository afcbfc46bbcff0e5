"""One trial on a log: every policy meets the same users and candidates."""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np

from coterie.contracts import ArmId, UserId
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.policies.auto.learner import AutoPolicy
from coterie.policies.online import MostHits, OnlineFeatures
from coterie.policies.online.learner import Chosen
from coterie.problems import Round
from coterie.problems.recorded import OnePositive, Replay
from coterie.runs.entries import FEATURELESS, LearnerSettings
from coterie.runs.learners import Learner, make_learner, seen_graph
from coterie.runs.play import FINAL, GRAPH, LEARNER, Played
from coterie.runs.recorded.settings import LogSettings
from coterie.runs.recorded.sources import problem_of


def play_log(
    learner: Learner, problem: OnePositive | Replay, rounds: list[Round]
) -> Iterator[tuple[ArmId, float, float]]:
    """Yields the chosen arm, its reward and its regret, round by round; both are NaN where nobody knows them.

    In a replay that is where another arm was logged: the learner is told nothing, and the row passes.
    """
    for shown in rounds:
        arm = learner.select(shown.user, shown.candidates).arm
        judged = problem.judge(shown, arm)
        reward, regret = judged if isinstance(judged, tuple) else (judged, np.nan)
        if reward is not None:
            learner.update(shown.user, arm, reward)
        yield arm, np.nan if reward is None else reward, regret


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a learner is given of a log."""

    graph: UserGraph
    arms: ArmPool


class RecordedTrial:
    """A log and its rounds, drawn from one seed; streams for rounds, graphs and each policy.

    Args:
        settings: The world's.
        seed: The study's.
        number: The trial's.
    """

    def __init__(self, settings: LogSettings, *, seed: int, number: int) -> None:
        self._seed, self._key, self._settings = seed, (FINAL, number), settings
        self.problem = problem_of(settings)
        self.rounds = list(self._rounds(self.problem))

    def _rounds(self, problem: OnePositive | Replay) -> Iterator[Round]:
        if isinstance(problem, Replay):
            return problem.rounds(self._settings.horizon)
        return problem.rounds(self._settings.horizon, seed=np.random.SeedSequence(self._seed, spawn_key=self._key))

    @property
    def users(self) -> list[UserId]:
        """Who was served, round by round."""
        return [shown.user for shown in self.rounds]

    def degrees(self) -> list[int]:
        """Returns how many neighbours each of them has in the log's graph."""
        graph = self.problem.graph
        counts = np.diff(graph.weights.indptr).tolist()
        return [counts[graph.index_of(user)] for user in self.users]

    def play(
        self, settings: LearnerSettings, tuned: Mapping[str, Any] | None = None, *, rounds: int | None = None
    ) -> Played:
        """Returns what a policy does in this trial, or in its first rounds."""
        start = perf_counter()
        learner = self.learner(settings, tuned or {})
        arms, rewards, regrets = zip(*play_log(learner, self.problem, self.rounds[:rounds]), strict=True)
        seconds = perf_counter() - start
        return Played(
            arms=list(arms),
            rewards=np.array(rewards),
            regrets=np.array(regrets),
            seconds=seconds,
            fits=fits_of(learner.inside if isinstance(learner, OnlineFeatures) else learner),
        )

    def learner(self, settings: LearnerSettings, tuned: Mapping[str, Any]) -> Learner:
        """Returns a new learner: it is given a graph and arms, never the log."""
        seed = self._stream(LEARNER, zlib.crc32(settings.label.encode()))
        if settings.policy == "popularity":
            return MostHits(seed=seed)
        if settings.policy == "random":
            return Anything(seed=seed)
        graph = seen_graph(settings.graph, self.problem.graph, self._stream(GRAPH))
        as_seen = replace(settings, graph="shown")  # the graph above is what it sees already

        def make(pool: ArmPool) -> Learner:
            given = Given(graph=graph, arms=pool)
            horizon = len(self.rounds)
            return make_learner(as_seen, given, horizon=horizon, seed=seed, graph_seed=0, tuned=tuned)

        if not self._settings.online_features or settings.policy in FEATURELESS:
            return make(self.problem.arms)
        counts: Any = self._settings.online_features
        return OnlineFeatures(make, graph=graph, arms=self.problem.arms, counts=counts)

    def _stream(self, *key: int) -> int:
        return int(np.random.SeedSequence(self._seed, spawn_key=(*self._key, *key)).generate_state(1)[0])


def fits_of(learner: Any) -> list[dict[str, float]]:
    """Returns what a learner learned of its hyperparameters, fit by fit, in words and plain numbers."""
    if not isinstance(learner, AutoPolicy):
        return []
    return [{"rewards": rewards, **hyper.described()} for rewards, hyper in learner.fits]


class Anything:
    """Chooses any candidate, each as likely as any other; unlike the policy `random` it keeps nothing of anybody."""

    __slots__ = ("_rng",)

    def __init__(self, *, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def select(self, user: UserId, candidates: Any) -> Chosen:  # noqa: ARG002 - whoever it is
        """Returns the choice."""
        return Chosen(candidates[int(self._rng.integers(len(candidates)))])

    def update(self, user: UserId, arm: ArmId, reward: float) -> None:
        """Learns nothing."""


@lru_cache(maxsize=2)
def recorded_trial(settings: LogSettings, seed: int, number: int) -> RecordedTrial:
    """Returns a trial, its rounds drawn once in a process for all policies."""
    return RecordedTrial(settings, seed=seed, number=number)
