"""The worlds of a study, drawn from a seed or read from a log: one protocol for both."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np

from coterie.errors import SettingError, listed
from coterie.kernels import ArmPool
from coterie.logs import Log, read_log
from coterie.logs.originals import LOADERS, ORIGINS
from coterie.policies.online import LEVELS, MostHits, OnlineFeatures
from coterie.problems import (
    ContextSettings,
    Problem,
    Round,
    WorldSettings,
    draw_context_world,
    draw_rounds,
    draw_world,
    settings_as_dict,
)
from coterie.problems.recorded import Negatives, OnePositive, Replay
from coterie.problems.setting_rules import Rule, check_keys, choice, text, whole
from coterie.runs.entries import LearnerSettings
from coterie.runs.learners import Anything, Learner, Oracle, make_learner, seen_graph

Data: TypeAlias = Literal["plain", "lastfm", "deezer", "filmtrust", "open-bandit"]
Protocol: TypeAlias = Literal["one-positive", "replay"]


CONTEXT_SECONDS = 3e-3  # of a round, where arms have contexts


def _features(key: str, value: Any) -> tuple[str, ...]:
    known = isinstance(value, list | tuple) and len(set(value)) == len(value) and not set(value) - set(LEVELS)
    if known:
        return tuple(value)
    rule = f"it is a list of some of {listed(LEVELS)}, or an empty one"
    raise SettingError(f"{key} is {value!r}", rule, 'Write, say, ["popularity"]', key=key)


RULES: dict[str, Rule] = {
    "data": choice(get_args(Data)),
    "folder": text,
    "protocol": choice(get_args(Protocol)),
    "negatives": choice(get_args(Negatives)),
    "n_candidates": whole(2),
    "least_positives": whole(1),
    "horizon": whole(1),
    "online_features": _features,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """A world that is a log.

    Attributes:
        data: A data set that Coterie knows by its original files, or "plain" for a folder of edges, arms and events.
        folder: Where its files lie.
        protocol: "one-positive" for candidates of which one was liked, "replay" for those that were logged.
        negatives: How the other candidates are drawn: "uniform", or in proportion to "popularity".
        n_candidates: How many are shown, where they are drawn.
        least_positives: How many positives a user has at least who comes.
        horizon: Rounds; of a replay, rows at most.
        online_features: What learners see of their own past: "popularity", "friends".

    Examples:
        >>> LogSettings(data="lastfm").negatives
        'uniform'
        >>> LogSettings(data="last.fm")
        Traceback (most recent call last):
        coterie.errors.SettingError: data is 'last.fm'; it is one of ... Did you mean 'lastfm'?
    """

    data: str = "plain"
    folder: str = ""
    protocol: str = "one-positive"
    negatives: str = "uniform"
    n_candidates: int = 25
    least_positives: int = 10
    horizon: int = 20_000
    online_features: tuple[str, ...] = ("popularity",)

    def __post_init__(self) -> None:
        for key, rule in RULES.items():
            object.__setattr__(self, key, rule(key, getattr(self, key)))


def log_settings(values: Mapping[str, Any]) -> LogSettings:
    """Returns the settings that plain values stand for, such as a table of a study file.

    Examples:
        >>> log_settings({"data": "deezer", "horizon": 100}).horizon
        100
    """
    known = [field.name for field in fields(LogSettings)]
    check_keys(values, known, "settings of a log are", problem="{!r} is no setting of a log", remedy="Remove it")
    return LogSettings(**values)


_GIVEN: dict[tuple[str, str], Log] = {}


def give_logs(logs: Mapping[tuple[str, str], Log]) -> None:
    """Lets this process have logs that were read elsewhere, by data set and folder, in place of those from before."""
    _GIVEN.clear()
    _GIVEN.update(logs)
    log_of.cache_clear()
    recorded_problem.cache_clear()


@lru_cache(maxsize=2)
def log_of(data: str, folder: str) -> Log:
    """Returns the log, given to this process or read once in it."""
    if (data, folder) in _GIVEN:
        return _GIVEN[data, folder]
    if not folder:
        remedy = "Name the folder of its files: coterie run NAME --data DIR"
        raise SettingError(f"the folder of {data!r} is not given", _origin(data), remedy, key="folder")
    return read_log(folder) if data == "plain" else LOADERS[data](Path(folder))


def _origin(data: str) -> str:
    if data not in ORIGINS:
        return "it holds edges, arms and events"
    origin = ORIGINS[data]
    return f"it is {origin.title}, usually had from {origin.had}, under these terms: {origin.terms}; we do not ship it"


@lru_cache(maxsize=4)
def recorded_problem(settings: LogSettings) -> OnePositive | Replay:
    """Returns the log as a problem, made once in a process."""
    log = log_of(settings.data, settings.folder)
    if settings.protocol == "replay":
        return Replay(log)
    return OnePositive(
        log,
        n_candidates=settings.n_candidates,
        negatives="uniform" if settings.negatives == "uniform" else "popularity",
        least_positives=settings.least_positives,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyWorld(ABC):
    """One world of a study.

    Attributes:
        name: Its name in the study's tables and files.
        settings: What it is.
        tuned_on: The world whose pilot serves it.
    """

    is_log: ClassVar[bool]
    quick_rounds: ClassVar[int]

    settings: WorldSettings | LogSettings
    name: str = "world"
    tuned_on: str = "world"

    @property
    def horizon(self) -> int:
        """How many rounds are played, at most."""
        return self.settings.horizon

    @property
    def n_rounds(self) -> int:
        """How many rounds are played; a replay ends with its log."""
        return self.horizon

    @property
    def round_seconds(self) -> float | None:
        """What a round of any policy takes, roughly; none where policies are timed first."""
        return None

    @property
    def cost_key(self) -> tuple[Any, ...]:
        """What the time of a round depends on: worlds with the same key need be timed once."""
        return (self.name,)

    def check(self) -> None:  # noqa: B027 - a drawn world is checked with its settings
        """Raises if the world cannot be played, before anything is run."""

    def on(self, folder: Path) -> Self:  # noqa: ARG002 - a log is read from there
        """Returns the same world on the data in this folder, if it reads any."""
        return self

    def as_dict(self) -> dict[str, Any]:
        """Returns the world as plain values, every default written out."""
        return {"name": self.name, "tuned_on": self.tuned_on, **self._plain_settings()}

    def quick(self) -> Self:
        """Returns the same world with few rounds."""
        return replace(self, settings=replace(self.settings, horizon=min(self.horizon, self.quick_rounds)))

    @abstractmethod
    def _plain_settings(self) -> dict[str, Any]:
        """Returns the settings as plain values."""

    @abstractmethod
    def draw(self, seed: np.random.SeedSequence) -> tuple[Problem, Iterable[Round]]:
        """Returns the problem and its rounds, which depend on the seed alone."""

    def learner(
        self, settings: LearnerSettings, given: Problem, *, horizon: int, seed: int, graph_seed: int, tuned: Any
    ) -> Learner:
        """Returns a new learner; it is given a graph and arms, never the problem, which only the oracle keeps."""
        if settings.policy == "oracle":
            return Oracle(given)
        graph = seen_graph(settings.graph, given.graph, graph_seed)
        schema = getattr(given, "context_schema", None)
        options: dict[str, Any] = {"horizon": horizon, "seed": seed, "tuned": tuned}
        return make_learner(settings, graph=graph, arms=given.arms, context_schema=schema, **options)

    def facts(self, problem: Problem, n_rounds: int) -> dict[str, Any]:  # noqa: ARG002 - what every trial has alike
        """Returns what the report says of the world beyond its settings."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnWorld(StudyWorld):
    """A synthetic world, another draw in every trial."""

    is_log = False
    quick_rounds = 150

    settings: WorldSettings

    @property
    def round_seconds(self) -> float:
        """Reading a belief, and updating one of this size; with contexts, by the policies that are shown them."""
        if isinstance(self.settings, ContextSettings):
            return CONTEXT_SECONDS
        return 2e-5 + 2e-10 * (self.settings.n_users * self.settings.n_arms) ** 2 / 5

    def _plain_settings(self) -> dict[str, Any]:
        return settings_as_dict(self.settings)

    def draw(self, seed: np.random.SeedSequence) -> tuple[Problem, Iterable[Round]]:
        """Returns a world and its rounds."""
        held = self.settings
        world = draw_context_world(held, seed) if isinstance(held, ContextSettings) else draw_world(held, seed)
        return world, draw_rounds(self.settings, world, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWorld(StudyWorld):
    """A log, the same in every trial; what is drawn is who comes and what is shown."""

    is_log = True
    quick_rounds = 5000

    settings: LogSettings

    @property
    def cost_key(self) -> tuple[Any, ...]:
        """The log and what is shown of it."""
        held = self.settings
        return held.data, held.folder, held.protocol, held.n_candidates, held.online_features

    @property
    def n_rounds(self) -> int:
        """How many rounds are played; a replay ends with its log, which is read for it."""
        problem = recorded_problem(self.settings) if self.settings.protocol == "replay" else None
        return min(self.horizon, len(problem)) if isinstance(problem, Replay) else self.horizon

    def check(self) -> None:
        """Reads the log."""
        recorded_problem(self.settings)

    def on(self, folder: Path) -> Self:
        """Returns the same world on the log in this folder."""
        return replace(self, settings=replace(self.settings, folder=str(folder)))

    def _plain_settings(self) -> dict[str, Any]:
        return {**asdict(self.settings), "online_features": list(self.settings.online_features)}

    def draw(self, seed: np.random.SeedSequence) -> tuple[Problem, Iterable[Round]]:
        """Returns the log as a problem, read once in a process, and its rounds."""
        problem = recorded_problem(self.settings)
        return problem, problem.rounds(self.horizon, seed=seed)

    def learner(
        self, settings: LearnerSettings, given: Problem, *, horizon: int, seed: int, graph_seed: int, tuned: Any
    ) -> Learner:
        """Returns the policy of the settings, with features of its own past where the world has them."""
        if settings.policy == "popularity":
            return MostHits(seed=seed)
        if settings.policy == "random":
            return Anything(seed=seed)
        if settings.policy == "oracle":
            return Oracle(self._with_best(given))
        graph = seen_graph(settings.graph, given.graph, graph_seed)
        # Features of a learner's own past come without contexts.
        schema = None if self.settings.online_features else getattr(given, "context_schema", None)
        options: dict[str, Any] = {"horizon": horizon, "seed": seed, "tuned": tuned, "context_schema": schema}

        def make(arms: ArmPool) -> Learner:
            return make_learner(settings, graph=graph, arms=arms, **options)

        if not self.settings.online_features:
            return make(given.arms)
        counts: Any = self.settings.online_features
        return OnlineFeatures(make, graph=graph, arms=given.arms, counts=counts)

    def _with_best(self, given: Problem) -> Problem:
        if self.settings.protocol == "replay":
            rule = "a replay knows the reward of the logged arm alone"
            raise SettingError("the oracle cannot play a replay", rule, "Leave it out", key="policy")
        return given

    def facts(self, problem: Problem, n_rounds: int) -> dict[str, Any]:
        """Returns what the log holds."""
        return {
            "n_users": problem.graph.n_users,
            "n_edges": problem.graph.n_edges,
            "n_arms": len(problem.arms),
            "dimension": problem.arms.dimension,
            "rounds": n_rounds,
            "left_out": dict(log_of(self.settings.data, self.settings.folder).left_out),
            **recorded_problem(self.settings).facts,
        }
