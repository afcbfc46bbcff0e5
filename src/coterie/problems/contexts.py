"""Worlds whose rounds have a context: numbers or categories on which rewards depend, or do not.

    f(u, x, c) = f_arm(u, x) + f_context(u, c) + f_both(u, x, c)
    f_context = v_u . phi(c),   f_both = w_ux . phi(c)

phi(c) are features of a context: random Fourier features of its numbers, the numbers, or a one-hot row of its
categories. f_arm and each column of w are drawn over users and arms as the truth of a world without contexts is
(`draw_truth`), so tastes vary along the graph in every context. Each part is scaled to its share of the variance.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np

from coterie.contracts import Array
from coterie.errors import ContextError, DimensionError, SettingError
from coterie.kernels import ArmPool
from coterie.problems.rounds import Context, Round, stream
from coterie.problems.setting_rules import ABOVE_0, Rule, choice, flag, whole
from coterie.problems.settings import MOST_DENSE, WorldSettings, settings_of
from coterie.problems.synthetic import draw_truth, drawn_graph, shown_graph, sphere_pool, spread_to_one
from coterie.problems.world import World

Contexts: TypeAlias = Literal["smooth", "linear", "categorical"]
Matter: TypeAlias = Literal["yes", "partly", "no"]

FOURIER = 64  # features of the numbers of a context, where rewards are smooth in them
LOOKED_AT = 400  # contexts over which the spread of a part is measured
CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "device": ("phone", "tablet", "desktop"),
    "hour": ("morning", "noon", "evening", "night"),
}

RULES: dict[str, Rule] = {
    "contexts": choice(get_args(Contexts)),
    "matter": choice(get_args(Matter)),
    "arm_features": flag,
    "n_numbers": whole(1),
    "context_lengthscale": ABOVE_0,
}


class Shares(NamedTuple):
    """Which part of the truth's variance the arm, the context alone and both together have."""

    arm: float
    context: float
    both: float


SHARES: Mapping[Matter, Shares] = {
    "yes": Shares(0.25, 0.0, 0.75),
    "partly": Shares(0.4, 0.3, 0.3),
    "no": Shares(1.0, 0.0, 0.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSettings(WorldSettings):
    """A world with contexts; everything else is as in a world without them.

    Attributes:
        contexts: What a context holds: numbers that rewards are "smooth" or "linear" in, or "categorical" ones.
            Rewards are bilinear in arm and context where these are "linear" and the kind is "linear-gob".
        matter: Whether rewards depend on them: "yes" together with the arm, "partly" so and on the context alone, "no"
            for contexts that tell nothing.
        arm_features: Whether learners are shown the arms' features; if not, arms are known by their ids alone.
        n_numbers: Numbers of a context, where it has any.
        context_lengthscale: Of "smooth" contexts, in units of the root of how many numbers they have; these are
            normal, of standard deviation 1.

    Examples:
        >>> ContextSettings(contexts="smooth", n_users=6).matter
        'yes'
        >>> ContextSettings(contexts="smoth")
        Traceback (most recent call last):
        coterie.errors.SettingError: contexts is 'smoth'; it is one of ... Did you mean 'smooth'?
    """

    contexts: Contexts
    matter: Matter = "yes"
    arm_features: bool = True
    n_numbers: int = 3
    context_lengthscale: float = 1.0

    def __post_init__(self) -> None:
        WorldSettings.__post_init__(self)  # super() does not work in a class with slots
        for key, check in RULES.items():
            object.__setattr__(self, key, check(key, getattr(self, key)))
        refused = {"kind": self.kind == "random", "rewards": self.rewards == "binary", "drift": self.drift > 0}
        for key in [key for key, met in refused.items() if met]:
            rule = "a world with contexts is of another kind, with real rewards and without drift"
            raise SettingError(f"{key} is {getattr(self, key)!r}", rule, "Leave it out, or leave contexts out", key=key)
        if self.n_users > MOST_DENSE:
            rule = f"a world with contexts has up to {MOST_DENSE} users"
            raise SettingError(f"n_users is {self.n_users}", rule, "Take fewer", key="n_users")


def context_settings(values: Mapping[str, Any]) -> ContextSettings:
    """Returns the settings that plain values stand for, as `world_settings` does for worlds without contexts.

    Examples:
        >>> context_settings({"contexts": "categorical", "level": "easy"}).horizon
        1000
    """
    return settings_of(ContextSettings, values)


class ContextLaw(Protocol):
    """How contexts are drawn, and what rewards depend on of them."""

    @property
    def schema(self) -> dict[str, Any]:
        """What a context holds, as a learner is told."""
        ...

    def draw(self, n_contexts: int, rng: np.random.Generator) -> list[Context]:
        """Returns so many contexts; the first are the same however many there are."""
        ...

    def features(self, context: Any) -> Array:
        """Returns phi of a context."""
        ...


class LinearNumbers:
    """Normal numbers, and rewards that are linear in them.

    Examples:
        >>> law = LinearNumbers(4)
        >>> law.features(law.draw(1, np.random.default_rng(0))[0]).round(3)
        array([ 0.063, -0.066,  0.32 ,  0.052])
    """

    __slots__ = ("_names",)

    def __init__(self, n_numbers: int) -> None:
        self._names = tuple(f"number-{i + 1}" for i in range(n_numbers))

    @property
    def schema(self) -> dict[str, Any]:
        """What a context holds."""
        return dict.fromkeys(self._names, "number")

    def draw(self, n_contexts: int, rng: np.random.Generator) -> list[Context]:
        """Returns so many contexts."""
        rows = rng.standard_normal((n_contexts, len(self._names))).tolist()
        return [dict(zip(self._names, row, strict=True)) for row in rows]

    def features(self, context: Mapping[str, Any]) -> Array:
        """Returns the numbers, scaled to a mean square length of 1."""
        return np.asarray([context[name] / np.sqrt(len(self._names)) for name in self._names])


class SmoothNumbers(LinearNumbers):
    """Normal numbers, and rewards that are smooth in them: random Fourier features of a squared exponential kernel.

    Args:
        n_numbers: How many.
        lengthscale: In units of sqrt(n_numbers), so that contexts are as alike however many numbers they have.
        rng: Draws the features.
    """

    __slots__ = ("_frequencies", "_phases")

    def __init__(self, n_numbers: int, lengthscale: float, rng: np.random.Generator) -> None:
        super().__init__(n_numbers)
        self._frequencies = rng.standard_normal((FOURIER, n_numbers)) / (lengthscale * np.sqrt(n_numbers))
        self._phases = rng.uniform(0.0, 2 * np.pi, FOURIER)

    def features(self, context: Mapping[str, Any]) -> Array:
        """Returns sqrt(2 / features) cos(frequencies . numbers + phases)."""
        numbers = np.array([context[name] for name in self._names])
        return np.asarray(np.sqrt(2 / FOURIER) * np.cos(self._frequencies @ numbers + self._phases))


class Categories:
    """Categories, each as likely as any other, whose effects add up.

    Examples:
        >>> law = Categories({"device": ("phone", "desktop")})
        >>> law.features({"device": "desktop"})
        array([0., 1.])
    """

    __slots__ = ("_categories",)

    def __init__(self, categories: Mapping[str, Sequence[str]] = CATEGORIES) -> None:
        self._categories = {name: tuple(each) for name, each in categories.items()}

    @property
    def schema(self) -> dict[str, Any]:
        """What a context holds."""
        return {name: list(each) for name, each in self._categories.items()}

    def draw(self, n_contexts: int, rng: np.random.Generator) -> list[Context]:
        """Returns so many contexts."""
        sizes = [len(each) for each in self._categories.values()]
        codes = (rng.random((n_contexts, len(sizes))) * sizes).astype(np.int64).tolist()
        names = self._categories.items()
        return [{name: each[code] for (name, each), code in zip(names, row, strict=True)} for row in codes]

    def features(self, context: Mapping[str, Any]) -> Array:
        """Returns the one-hot rows of all categories, scaled to a length of 1."""
        one_hot = [each == context[name] for name, known in self._categories.items() for each in known]
        return np.where(one_hot, 1 / np.sqrt(len(self._categories)), 0.0)


class ContextWorld(World):
    """Users, arms, contexts, and hidden weights of a context's features for each user and arm.

    Args:
        law: How contexts are drawn, and what their features are.
        weights: Of these features, for each user and arm.
        **rest: As for `World`; the truth is what does not depend on the context.

    Examples:
        >>> from coterie.graphs import UserGraph
        >>> world = ContextWorld(law=Categories({"device": ("phone", "desktop")}), weights=np.array([[[3.0, 0.0]]]),
        ...                      graph=UserGraph.from_edges([], users=["ana"]), arms=ArmPool([[0.0]]),
        ...                      truth=np.ones((1, 1)), noise_std=0.0)
        >>> world.judge(Round(0, "ana", (0,), noise=0.25, context={"device": "phone"}), 0)
        (4.25, 0.0)
    """

    __slots__ = ("_law", "_weights")

    def __init__(self, *, law: ContextLaw, weights: Array, **rest: Any) -> None:
        super().__init__(**rest)
        wanted = (self.graph.n_users, len(self.arms))
        if weights.ndim != 3 or weights.shape[:2] != wanted:
            rule = f"they have the shape {wanted} and one more axis"
            raise DimensionError(
                f"weights of shape {weights.shape}", rule, "One row a user and arm, a column a feature"
            )
        self._law, self._weights = law, weights

    @property
    def context_schema(self) -> dict[str, Any]:
        """What a context holds, as a learner is told."""
        return self._law.schema

    def _contexts(self, horizon: int, rng: np.random.Generator) -> list[Context]:
        return self._law.draw(horizon, rng)

    def _expected(self, shown: Round) -> list[float]:
        if shown.context is None:
            raise ContextError("a round has no context", "every round of this world has one", "Take the world's rounds")
        rows = [self.arms.index_of(arm) for arm in shown.candidates]
        moved = self._weights[self.graph.index_of(shown.user), rows] @ self._law.features(shown.context)
        return [still + gain for still, gain in zip(super()._expected(shown), moved.tolist(), strict=True)]


def draw_context_world(settings: ContextSettings, seed: np.random.SeedSequence) -> ContextWorld:
    """Returns the world of a trial; graph, pool, truth and shown graph are drawn as those without contexts are.

    Examples:
        >>> settings = ContextSettings(contexts="categorical", n_users=6, n_arms=8, arm_features=False)
        >>> world = draw_context_world(settings, np.random.SeedSequence(0))
        >>> world.context_schema["device"], world.arms.has_features
        (['phone', 'tablet', 'desktop'], False)
    """
    graph = drawn_graph(settings, stream(seed, "graph"))
    arms = sphere_pool(settings.n_arms, settings.dimension, seed=stream(seed, "pool"))
    rng = stream(seed, "truth")
    shares = SHARES[settings.matter]
    still = np.sqrt(shares.arm) * spread_to_one(draw_truth(settings, graph, arms, rng))
    law = law_of(settings, rng)
    looked_at = law.draw(LOOKED_AT, rng)
    features = np.array([law.features(each) for each in looked_at])
    tables = [draw_truth(settings, graph, arms, rng) for _ in range(features.shape[1])]
    both = np.sqrt(shares.both) * _scaled(np.stack(tables, axis=-1), features)
    # What all arms have in common is drawn as what one arm has.
    of_context = np.stack([draw_truth(settings, graph, arms, rng)[:, :1] for _ in tables], axis=-1)
    alone = np.sqrt(shares.context) * _scaled(of_context, features)
    return ContextWorld(
        graph=shown_graph(settings, graph, stream(seed, "shown-graph")),
        arms=arms if settings.arm_features else ArmPool.without_features(arms.ids),
        truth=still,
        noise_std=settings.noise_std,
        noise=settings.noise,
        law=law,
        weights=both + alone,
    )


def law_of(settings: ContextSettings, rng: np.random.Generator) -> ContextLaw:
    """Returns how contexts are drawn, and what rewards depend on of them."""
    match settings.contexts:
        case "smooth":
            return SmoothNumbers(settings.n_numbers, settings.context_lengthscale, rng)
        case "linear":
            return LinearNumbers(settings.n_numbers)
        case "categorical":
            return Categories()


def _scaled(weights: Array, features: Array) -> Array:
    """Returns weights by which rewards in these contexts have standard deviation 1, over users, arms and contexts."""
    spread = float((weights @ features.T).std())
    return weights / spread if spread > 0 else weights
