"""One trial: every policy meets the same rounds of the same world. The loop is the whole method."""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from math import isnan
from pathlib import Path
from time import perf_counter, process_time
from traceback import extract_tb
from typing import Any

import numpy as np

from coterie.contracts import ArmId, Array, UserId
from coterie.errors import LearnerError
from coterie.policies.auto.auto_policy import AutoPolicy
from coterie.policies.online import OnlineFeatures
from coterie.problems import Problem, Round
from coterie.runs.entries import LearnerSettings
from coterie.runs.learners import Learner, takes_contexts
from coterie.runs.workers import peak_memory
from coterie.runs.worlds import StudyWorld

FINAL, PILOT = 0, 1
LEARNER, GRAPH = 100, 101


def play(learner: Learner, world: Problem, rounds: Iterable[Round]) -> Iterator[tuple[ArmId, float, float]]:
    """Yields the chosen arm, its reward and its regret, round by round. This loop is the whole method.

    A reward that is not known is NaN, and nothing is learned from it: in a replay, where another arm was logged. The
    context of a round is shown to those who take contexts.
    """
    shows = takes_contexts(learner)
    for shown in rounds:
        told: dict[str, Any] = {"context": shown.context} if shows and shown.context is not None else {}
        arm = learner.select(shown.user, shown.candidates, **told).arm
        reward, regret = world.judge(shown, arm)
        if not isnan(reward):
            learner.update(shown.user, arm, reward, **told)
        yield arm, reward, regret


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What one policy did in one trial.

    Attributes:
        arms: The arms chosen.
        rewards: What they paid; NaN where nobody knows.
        regrets: How much more the best candidate would have paid, noise apart; NaN where nobody knows.
        seconds: How long it took, the making of the policy included.
        core_seconds: How long the process was at work on it.
        memory: The most bytes that the process held meanwhile.
        fits: Of a policy that learns hyperparameters: what it had learned, and after how many rewards.
    """

    arms: list[ArmId]
    rewards: Array
    regrets: Array
    seconds: float
    core_seconds: float
    memory: int
    fits: list[dict[str, float]] = field(default_factory=list)


@contextmanager
def _named(settings: LearnerSettings) -> Iterator[None]:
    """Says which method of one's own failed, and where; an error of ours is a defect and passes as it is."""
    try:
        yield
    except Exception as error:
        if ":" not in settings.policy:
            raise
        *_, last = extract_tb(error.__traceback__)
        place = f"{Path(last.filename).name}, line {last.lineno}"
        raise LearnerError(
            f"{settings.label!r} failed with {type(error).__name__}: {error} ({place})",
            "select(user, candidates) returns something with an `arm`, one of the candidates; update learns a reward",
            "Mend the method, and start again with another --out; what is finished is stored",
        ) from error


class Trial:
    """A world and its rounds, drawn from one seed; streams for graph, pool, truth, rounds, noise and each policy.

    Args:
        world: The study's.
        seed: The study's.
        number: The trial's.
        kind: FINAL or PILOT, whose trials share nothing.
        rounds: How many of the world's rounds to play, from the first; none given means all.
    """

    def __init__(
        self, world: StudyWorld, *, seed: int, number: int, kind: int = FINAL, rounds: int | None = None
    ) -> None:
        self._seed, self._key, self._source = seed, (kind, number), world
        self.world, drawn = world.draw(np.random.SeedSequence(seed, spawn_key=self._key))
        self.rounds = list(islice(drawn, rounds))

    @property
    def horizon(self) -> int:
        """How many rounds there are."""
        return len(self.rounds)

    @cached_property
    def users(self) -> list[UserId]:
        """Who was served, round by round."""
        return [shown.user for shown in self.rounds]

    @cached_property
    def degrees(self) -> list[int]:
        """How many neighbours each of them has in the world's graph."""
        graph = self.world.graph
        counts = np.diff(graph.weights.indptr).tolist()
        return [counts[graph.index_of(user)] for user in self.users]

    def facts(self) -> dict[str, Any]:
        """Returns what the report says of the world beyond its settings."""
        return self._source.facts(self.world, self.horizon)

    def learner(self, settings: LearnerSettings, tuned: Mapping[str, Any] | None = None) -> Learner:
        """Returns a new learner; it depends on the seed, the trial and the label alone."""
        return self._source.learner(
            settings,
            self.world,
            horizon=self.horizon,
            seed=self._stream(LEARNER, zlib.crc32(settings.label.encode())),
            graph_seed=self._stream(GRAPH),
            tuned=tuned or {},
        )

    def play(self, settings: LearnerSettings, tuned: Mapping[str, Any] | None = None) -> Played:
        """Returns what a policy does in this trial."""
        with peak_memory() as peak:
            start, start_on_core = perf_counter(), process_time()
            learner = self.learner(settings, tuned)
            arms, rewards, regrets = zip(*self.steps(settings, learner), strict=True)
            seconds, core_seconds, memory = perf_counter() - start, process_time() - start_on_core, peak()
        return Played(
            arms=list(arms),
            rewards=np.array(rewards),
            regrets=np.array(regrets),
            seconds=seconds,
            core_seconds=core_seconds,
            memory=memory,
            fits=_fits(learner.inside if isinstance(learner, OnlineFeatures) else learner),
        )

    def steps(self, settings: LearnerSettings, learner: Learner) -> Iterator[tuple[ArmId, float, float]]:
        """Yields arm, reward and regret, round by round; an error of a method of one's own says where it was."""
        with _named(settings):
            yield from play(learner, self.world, self.rounds)

    def _stream(self, *key: int) -> int:
        return int(np.random.SeedSequence(self._seed, spawn_key=(*self._key, *key)).generate_state(1)[0])


def _fits(learner: Any) -> list[dict[str, float]]:
    """Returns what a learner learned of its hyperparameters, fit by fit, in words and plain numbers."""
    if not isinstance(learner, AutoPolicy):
        return []
    return [{"rewards": rewards, **hyper.described()} for rewards, hyper in learner.fits]
