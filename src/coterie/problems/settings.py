"""Everything that can be said of a synthetic world, checked when it is said; and worlds by name, the paper's levels."""

import inspect
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np

from coterie.errors import GraphError, InputError, SettingError
from coterie.graphs import FAMILIES, make_graph
from coterie.problems.random import random_traits
from coterie.problems.rounds import NoiseKind, RewardKind
from coterie.problems.setting_rules import (
    ABOVE_0,
    AT_LEAST_0,
    FROM_0_BELOW_1,
    FROM_0_TO_1,
    Rule,
    check_keys,
    choice,
    flag,
    whole,
)

Kind: TypeAlias = Literal["linear-gob", "gp-draw", "representer", "random"]
Connected: TypeAlias = Literal["retry", "keep", "error"]
ShownGraph: TypeAlias = Literal["true", "permuted", "rewired"]

MOST_DENSE = 2_000  # up to so many users truths come from matrices over users, to the bit as they always have

RULES: dict[str, Rule] = {
    "kind": choice(get_args(Kind)),
    "number": whole(0),
    "n_users": whole(1),
    "n_arms": whole(1),
    "n_candidates": whole(1),
    "dimension": whole(1),
    "horizon": whole(1),
    "graph": choice(list(FAMILIES)),
    "connected": choice(get_args(Connected)),
    "homophily": AT_LEAST_0,
    "power": ABOVE_0,
    "laplacian_ridge": ABOVE_0,
    "lengthscale": ABOVE_0,
    "unit_spread": flag,
    "heterophily": flag,
    "noise_std": AT_LEAST_0,
    "noise": choice(get_args(NoiseKind)),
    "rewards": choice(get_args(RewardKind)),
    "shown_graph": choice(get_args(ShownGraph)),
    "rewired_share": FROM_0_TO_1,
    "drift": AT_LEAST_0,
    "late_share": FROM_0_BELOW_1,
    "late_after": FROM_0_BELOW_1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldSettings:
    """A synthetic world and its rounds; the defaults are the paper's medium level, read literally.

    Attributes:
        kind: How the truth f is drawn: "linear-gob" for x . theta_u with Theta = (I + homophily L)^-1 Theta_0,
            "gp-draw" for a Gaussian process on all pairs, "representer" for that kernel times normal coefficients;
            "random" for a world by its `number`, which says all of it (`random_traits`).
        number: Which of the random worlds.
        n_users: Users in the graph.
        n_arms: Arms in the pool.
        n_candidates: Distinct arms shown in a round.
        dimension: Features of an arm.
        horizon: Rounds.
        graph: A family of `coterie.graphs`, by name.
        graph_options: The family's own options; what is not given is filled in with its defaults, which are the
            paper's.
        connected: What to do about a graph that is not connected: draw again, keep it, or refuse it.
        homophily: How strongly "linear-gob" smooths along the graph.
        power: Of the world's user kernel (L + laplacian_ridge I)^-power; 0.5 in the paper's figures.
        laplacian_ridge: The world's own rho.
        lengthscale: Of the world's squared exponential arm kernel.
        unit_spread: Whether the truth is scaled to standard deviation 1 over all pairs.
        heterophily: Whether neighbours differ: the truth is drawn with the graph's frequencies in reverse order. For
            up to 2,000 users.
        noise_std: Standard deviation of the noise of real rewards.
        noise: "gaussian", or "heavy-tailed" for Student's t with 3 degrees of freedom, scaled to this deviation.
        rewards: "real" for f plus noise, "binary" for 0 or 1 with probability logistic(f) of a 1.
        shown_graph: The graph that learners see: the "true" one, the true one with users "permuted", or "rewired".
        rewired_share: The share of the edges that "rewired" moves.
        drift: How far the truth turns towards another draw of the same law, which it reaches at 1.
        late_share: The share of users who are served late, chosen at random; at least one user is not.
        late_after: The part of the horizon before which late users are not served.

    Examples:
        >>> WorldSettings(graph="sbm").graph_options
        {'n_blocks': 4, 'inside': 0.6, 'across': 0.05}
        >>> WorldSettings(n_arms=3)
        Traceback (most recent call last):
        coterie.errors.SettingError: n_candidates is 5; it is at most n_arms, which is 3. Show fewer, or add arms.
    """

    kind: Kind = "gp-draw"
    number: int = 0
    n_users: int = 20
    n_arms: int = 20
    n_candidates: int = 5
    dimension: int = 10
    horizon: int = 3000
    graph: str = "erdos-renyi"
    graph_options: Mapping[str, float] = field(default_factory=dict, hash=False)
    connected: Connected = "retry"
    homophily: float = 1.0
    power: float = 0.5
    laplacian_ridge: float = 0.01
    lengthscale: float = 1.0
    unit_spread: bool = False
    heterophily: bool = False
    noise_std: float = 0.1
    noise: NoiseKind = "gaussian"
    rewards: RewardKind = "real"
    shown_graph: ShownGraph = "true"
    rewired_share: float = 1.0
    drift: float = 0.0
    late_share: float = 0.0
    late_after: float = 0.5

    def __post_init__(self) -> None:
        for key, rule in RULES.items():
            object.__setattr__(self, key, rule(key, getattr(self, key)))
        object.__setattr__(self, "graph_options", _graph_options(self.graph, self.graph_options))
        _check_graph(self)
        _check_together(self)


S = TypeVar("S", bound=WorldSettings)


def _graph_options(family: str, given: object) -> dict[str, float]:
    """Returns all options of the family: those given, and its defaults for the others."""
    defaults = family_options(family)
    if not isinstance(given, Mapping):
        rule = f"they map the options of {family} to numbers"
        problem, remedy = f"graph_options are {given!r}", "Pass a table such as {edge_prob = 0.2}"
        raise SettingError(problem, rule, remedy, key="graph_options")
    try:
        check_keys(given, defaults, "its options are", problem=f"{family} has no option {{!r}}", remedy="Remove it")
    except SettingError as error:
        raise _as_setting(error, key="graph_options") from None
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
    return {**defaults, **plain}


def family_options(family: str) -> dict[str, float]:
    """Returns the options of a family of graphs with their defaults.

    Examples:
        >>> family_options("erdos-renyi"), family_options("ring")
        ({'edge_prob': 0.2}, {})
    """
    parameters = inspect.signature(FAMILIES[family]).parameters.values()
    return {each.name: each.default for each in parameters if each.name not in ("n_users", "seed", "connected")}


def _check_graph(settings: WorldSettings) -> None:
    """Draws a graph to throw away, so that the family itself checks its options. O(edges)."""
    # What is always the same graph is connected or not; one that is drawn is judged when it is drawn.
    fixed = not settings.graph_options
    connected = settings.connected if fixed else "keep"
    try:
        make_graph(settings.graph, settings.n_users, seed=0, connected=connected, **settings.graph_options)
    except GraphError as error:
        raise _as_setting(error, key="connected") from None
    except InputError as error:
        key = "n_users" if error.problem.startswith("n_users") else "graph_options"
        raise _as_setting(error, key=key) from None


def _as_setting(error: InputError, *, key: str) -> SettingError:
    return SettingError(error.problem, error.rule, error.remedy, key=key)


def random_sizes(number: int) -> dict[str, Any]:
    """Returns the settings that the number of a random world stands for.

    Examples:
        >>> WorldSettings(kind="random", number=3, **random_sizes(3)).number
        3
    """
    traits = random_traits(number)
    noise = 0.0 if traits.clicks else traits.unit / traits.signal
    drawn = {name: getattr(traits, name) for name in ("n_users", "n_arms", "n_candidates", "dimension", "horizon")}
    rewards = {"noise_std": noise, "rewards": "binary" if traits.clicks else "real"}
    return {**drawn, **rewards, "graph": "empty", "connected": "keep"}


def _check_random(settings: WorldSettings) -> None:
    """Raises if something is said of a random world that its number does not say; it may be cut short."""
    sizes = random_sizes(settings.number) | {"drift": 0.0, "late_share": 0.0, "heterophily": False}
    for key, drawn in sizes.items():
        given = getattr(settings, key)
        if given != drawn and not (key == "horizon" and given < drawn):
            rule = f"the number of a random world says it: {drawn!r} in world {settings.number}"
            raise SettingError(f"{key} is {given!r}", rule, "Leave it out", key=key)


def check_mirrored(n_users: int, *, heterophily: bool) -> None:
    """Raises if a world of many users is to be drawn with the graph's frequencies in reverse order."""
    if heterophily and n_users > MOST_DENSE:
        raise SettingError(
            f"heterophily is true and n_users is {n_users}",
            f"the graph's frequencies are turned round for up to {MOST_DENSE} users: it takes all eigenvectors",
            "Set it to false, or take fewer users",
            key="heterophily",
        )


def _check_together(settings: WorldSettings) -> None:
    if settings.kind == "random":
        _check_random(settings)
    elif settings.number:
        rule = "worlds of kind 'random' have a number"
        raise SettingError(f"number is {settings.number}", rule, "Leave it out, or set kind", key="number")
    if settings.n_candidates > settings.n_arms:
        problem, rule = f"n_candidates is {settings.n_candidates}", f"it is at most n_arms, which is {settings.n_arms}"
        raise SettingError(problem, rule, "Show fewer, or add arms", key="n_candidates")
    check_mirrored(settings.n_users, heterophily=settings.heterophily)
    if settings.rewired_share != 1.0 and settings.shown_graph != "rewired":
        problem = f"rewired_share is {settings.rewired_share} and shown_graph is {settings.shown_graph!r}"
        rule = "a share is rewired only where shown_graph is 'rewired'"
        raise SettingError(problem, rule, "Set shown_graph, or remove rewired_share", key="rewired_share")
    if settings.noise != "gaussian" and settings.rewards == "binary":
        problem = f"noise is {settings.noise!r} and rewards are 'binary'"
        rule = "binary rewards have no noise but their own"
        raise SettingError(problem, rule, "Remove noise, or use real rewards", key="noise")


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """How hard a task is: the pool, what is shown of it, the features and the rounds."""

    n_arms: int
    n_candidates: int
    dimension: int
    horizon: int


# The hard level has 5,000 rounds in the paper's text and 3,000 in its appendix; we take the text's.
LEVELS: Mapping[str, Level] = {
    "easy": Level(n_arms=10, n_candidates=5, dimension=5, horizon=1000),
    "medium": Level(n_arms=20, n_candidates=5, dimension=10, horizon=3000),
    "hard": Level(n_arms=50, n_candidates=5, dimension=20, horizon=5000),
}

# The paper contradicts itself on its worlds, so each reading is a preset, and the level or any setting may replace what
# it says. "paper-table" is a fit: whoever shows its results shows its note beside them.
_LITERAL: Mapping[str, Any] = {
    "kind": "gp-draw",
    "n_users": 20,
    "n_arms": 20,
    "n_candidates": 5,
    "dimension": 10,
    "horizon": 3000,
    "graph": "erdos-renyi",
    "graph_options": {"edge_prob": 0.2},
    "connected": "retry",
    "homophily": 1.0,
    "power": 0.5,
    "laplacian_ridge": 0.01,
    "lengthscale": 1.0,
    "unit_spread": False,
    "noise_std": 0.1,
    "noise": "gaussian",
    "rewards": "real",
}
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper-literal": _LITERAL,
    "paper-text": {**_LITERAL, "power": 1.0, "laplacian_ridge": 0.1},
    "paper-table": {**_LITERAL, **asdict(LEVELS["hard"]), "laplacian_ridge": 0.1, "noise_std": 0.4},
}

PRESET_NOTES: Mapping[str, str] = {
    "paper-literal": "The settings as the paper's appendix states them, at the level named (medium unless named).",
    "paper-text": "As paper-literal, with the user kernel of the paper's main text: power 1 and ridge 0.1.",
    "paper-table": "The reading that gives the figures of the paper's table over n. Its level (hard), horizon (5000) "
    "and noise (0.4) were found by fit: the paper names the medium level and a noise of 0.1 for that table.",
}


def world_settings(values: Mapping[str, Any]) -> WorldSettings:
    """Returns the settings that plain values stand for, such as a table of a study file.

    Args:
        values: Settings by name, and perhaps `preset` and `level`: the preset comes first, then the level, and
            every other key replaces what they say. A family of graphs other than the preset's comes with its own
            options.

    Examples:
        >>> settings = world_settings({"preset": "paper-table", "n_users": 50})
        >>> settings.horizon, settings.noise_std, settings.n_users
        (5000, 0.4, 50)
        >>> world_settings({"n_arm": 10})
        Traceback (most recent call last):
        coterie.errors.SettingError: 'n_arm' is no setting of a world; ... Did you mean 'n_arms'?
    """
    return settings_of(WorldSettings, values)


def settings_of(kind: type[S], values: Mapping[str, Any]) -> S:
    """Returns settings of this class from plain values; see `world_settings`."""
    own = {key: value for key, value in values.items() if key not in ("preset", "level")}
    known = ["preset", "level", *(field.name for field in fields(kind))]
    check_keys(own, known, "settings are", problem="{!r} is no setting of a world", remedy="Remove it")
    return kind(**(_named_values(values) | own))


def _named_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the preset and the level say, without the options of a graph that is replaced."""
    named: dict[str, Any] = {}
    if values.get("kind") == "random":
        named |= random_sizes(values.get("number", 0))
    if "preset" in values:
        named |= PRESETS[choice(list(PRESETS))("preset", values["preset"])]
    if "level" in values:
        named |= asdict(LEVELS[choice(list(LEVELS))("level", values["level"])])
    if values.get("graph", named.get("graph")) != named.get("graph"):
        named.pop("graph_options", None)
    return named


def settings_as_dict(settings: WorldSettings) -> dict[str, Any]:
    """Returns the settings as plain values, every default written out; `world_settings` reads them back.

    Examples:
        >>> world_settings(settings_as_dict(WorldSettings(n_users=7))) == WorldSettings(n_users=7)
        True
    """
    return asdict(settings)
