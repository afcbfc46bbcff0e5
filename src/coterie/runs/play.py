"""One trial: every policy meets the same rounds of the same world. The loop is the whole method."""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from traceback import extract_tb
from typing import Any

import numpy as np

from coterie.contracts import ArmId, Array, UserId
from coterie.errors import LearnerError
from coterie.problems import Round, World, WorldSettings, draw_rounds, draw_world
from coterie.runs.entries import LearnerSettings
from coterie.runs.learners import Learner, make_learner

FINAL, PILOT = 0, 1
LEARNER, GRAPH = 100, 101


def play(learner: Learner, world: World, rounds: Iterable[Round]) -> Iterator[tuple[ArmId, float, float]]:
    """Yields the chosen arm, its reward and its regret, round by round. This loop is the whole method."""
    for shown in rounds:
        arm = learner.select(shown.user, shown.candidates).arm
        reward, regret = world.judge(shown, arm)
        learner.update(shown.user, arm, reward)
        yield arm, reward, regret


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What one policy did in one trial.

    Attributes:
        arms: The arms chosen.
        rewards: What they paid.
        regrets: How much more the best candidate would have paid, noise apart.
        seconds: How long it took, the making of the policy included.
        fits: Of a policy that learns hyperparameters: what it had learned, and after how many rewards.
    """

    arms: list[ArmId]
    rewards: Array
    regrets: Array
    seconds: float
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
            "Mend the method; what is finished is stored, and a new --out begins anew",
        ) from error


class Trial:
    """A world and its rounds, drawn from one seed; streams for graph, pool, truth, rounds, noise and each policy.

    Args:
        settings: The world's.
        seed: The study's.
        number: The trial's.
        kind: FINAL or PILOT, whose trials share nothing.
        rounds: How many of the world's rounds to play, from the first; none given means all.
    """

    def __init__(
        self, settings: WorldSettings, *, seed: int, number: int, kind: int = FINAL, rounds: int | None = None
    ) -> None:
        self._key = (kind, number)
        self._seed = seed
        self.horizon = min(rounds or settings.horizon, settings.horizon)
        stream = np.random.SeedSequence(seed, spawn_key=self._key)
        self.world = draw_world(settings, stream)
        self.rounds = draw_rounds(settings, self.world, stream)[: self.horizon]

    @property
    def users(self) -> list[UserId]:
        """Who was served, round by round."""
        return [shown.user for shown in self.rounds]

    def play(self, settings: LearnerSettings, tuned: Mapping[str, Any] | None = None) -> Played:
        """Returns what a policy does in this trial; it depends on the seed, the trial and the label alone."""
        start = perf_counter()
        learner = make_learner(
            settings,
            self.world,
            horizon=self.horizon,
            seed=self._stream(LEARNER, zlib.crc32(settings.label.encode())),
            graph_seed=self._stream(GRAPH),
            tuned=tuned or {},
        )
        with _named(settings):
            arms, rewards, regrets = zip(*play(learner, self.world, self.rounds), strict=True)
        seconds = perf_counter() - start
        return Played(arms=list(arms), rewards=np.array(rewards), regrets=np.array(regrets), seconds=seconds)

    def _stream(self, *key: int) -> int:
        return int(np.random.SeedSequence(self._seed, spawn_key=(*self._key, *key)).generate_state(1)[0])
