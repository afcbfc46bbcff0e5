"""Worlds drawn at random from a wide family, by number: nothing in them is chosen to suit a method.

Sizes, the graph, who comes how often, what follows the graph, is a user's own or common to all, smooth or linear
rewards, their units and noise, or clicks: all of it is drawn. The same number is the same world for ever.
"""

from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from coterie.contracts import Array
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.problems.setting_rules import whole

Edges: TypeAlias = NDArray[np.bool_]
GraphFamily: TypeAlias = Literal["communities", "neighbours", "hubs", "ring", "random"]

MOST_USERS = 1500
N_WAVES = 200  # random features of a smooth truth
SHOWN = (2, 5, 20, 50)
CLICK_SPREAD = 1.5  # of the logits


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a random world is like, in numbers.

    Attributes:
        number: Which world.
        n_users: 20 to 1,500.
        n_arms: 10 to 1,000.
        dimension: Features of an arm, 2 to 40.
        n_candidates: Arms shown in a round.
        horizon: Rounds, 500 to 4,000.
        family: Of graphs.
        degree: About how many neighbours a user has.
        shares: Of the truth's variance: what follows the graph, is a user's own, is common to all.
        ridge: Of the Laplacian that the graph's part is drawn with, in mean degrees.
        smooth: Whether rewards are smooth in the features; else they are linear.
        clicks: Whether rewards are 0 and 1.
        rate: How often a click comes, at the middle of the logits.
        signal: Standard deviation of the truth over that of the noise, where rewards are not clicks.
        unit: Standard deviation of the truth, where rewards are not clicks.
        activity: Users come in proportion to rank^-activity; equally often where it is 0.
    """

    number: int
    n_users: int
    n_arms: int
    dimension: int
    n_candidates: int
    horizon: int
    family: GraphFamily
    degree: float
    shares: tuple[float, float, float]
    ridge: float
    smooth: bool
    clicks: bool
    rate: float
    signal: float
    unit: float
    activity: float

    def __str__(self) -> str:
        graph, own, common = self.shares
        rewards = f"clicks, {self.rate:.0%}" if self.clicks else f"signal / noise {self.signal:.2g}"
        return (
            f"{self.n_users} users ({self.family}), {self.n_arms} arms of {self.dimension} features, "
            f"{'smooth' if self.smooth else 'linear'}, graph {graph:.0%} own {own:.0%} common {common:.0%}, {rewards}, "
            f"{self.horizon} rounds of {self.n_candidates}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomWorld:
    """A random world: what learners see, and what only judges know.

    Attributes:
        traits: In numbers.
        graph: The users.
        arms: The pool.
        truth: Expected rewards; logits where rewards are clicks.
        noise_std: Of the rewards.
        chances: How likely each user is to come.
        user_cov: With `arm_cov`, what the truth about its level was drawn from.
        arm_cov: As said.
        level: What rewards lie about.
    """

    traits: Traits
    graph: UserGraph
    arms: ArmPool
    truth: Array
    noise_std: float
    chances: Array
    user_cov: Array
    arm_cov: Array
    level: float


def random_traits(number: int) -> Traits:
    """Returns what world `number` is like.

    Examples:
        >>> random_traits(3) == random_traits(3), random_traits(3) == random_traits(4)
        (True, False)
        >>> 20 <= random_traits(3).n_users <= 1500
        True
    """
    rng = np.random.default_rng([whole(0)("number", number), 0])
    n_users, n_arms = _between(rng, 20, MOST_USERS), _between(rng, 10, 1000)
    informs = rng.random() < 0.8  # in a fifth of the worlds the graph carries no information
    graph, own, common = rng.dirichlet([1.0, 0.5, 0.5] if informs else [0.02, 1.0, 1.0])
    return Traits(
        number=number,
        n_users=n_users,
        n_arms=n_arms,
        dimension=int(rng.integers(2, 41)),
        n_candidates=min(n_arms, SHOWN[rng.integers(len(SHOWN))]),
        horizon=_between(rng, 500, 4000),
        family=get_args(GraphFamily)[rng.integers(5)],
        degree=float(rng.uniform(3, min(20, n_users - 1))),
        shares=(float(graph), float(own), float(common)),
        ridge=float(10 ** rng.uniform(-2, 0.5)),
        smooth=bool(rng.random() < 0.6),
        clicks=bool(rng.random() < 0.35),
        rate=float(10 ** rng.uniform(-1.7, -0.3)),
        signal=float(10 ** rng.uniform(-0.5, 0.5)),
        unit=float(10 ** rng.uniform(-2, 3)),
        activity=0.0 if rng.random() < 0.5 else float(rng.uniform(0.5, 1.2)),
    )


def random_world(number: int) -> RandomWorld:
    """Returns world `number`. O(users^3).

    Examples:
        >>> world = random_world(3)
        >>> world.truth.shape == (world.graph.n_users, len(world.arms))
        True
    """
    traits, rng = random_traits(number), np.random.default_rng([number, 1])
    weights = _weights(traits, rng)
    features = _features(traits, rng)
    users = traits.shares[0] * _graph_cov(weights, traits.ridge) + traits.shares[2]
    users[np.diag_indices_from(users)] += traits.shares[1]
    basis = _waves(traits, features, rng) if traits.smooth else _slopes(features)
    truth = _root(users) @ rng.standard_normal((traits.n_users, basis.shape[1])) @ basis.T
    size = float(truth.std()) or 1.0
    truth = truth / size
    if traits.clicks:
        level, noise, scale = log(traits.rate / (1 - traits.rate)), 0.0, CLICK_SPREAD
    else:
        level, noise, scale = 3 * traits.unit * rng.standard_normal(), traits.unit / traits.signal, traits.unit
    chances = rng.permutation(np.arange(1, traits.n_users + 1) ** -traits.activity)
    return RandomWorld(
        traits=traits,
        graph=UserGraph.from_matrix(weights),
        arms=ArmPool(features),
        truth=level + scale * truth,
        noise_std=noise,
        chances=chances / chances.sum(),
        user_cov=users * (scale / size) ** 2,
        arm_cov=basis @ basis.T,
        level=level,
    )


def _between(rng: np.random.Generator, low: int, high: int) -> int:
    """Returns a whole number, uniform on a logarithmic scale."""
    return int(exp(rng.uniform(log(low), log(high))))


def _weights(traits: Traits, rng: np.random.Generator) -> Array:
    """Returns the weights of a graph of the family; three in ten have weights that differ."""
    n = traits.n_users
    each = max(1, int(traits.degree // 2))  # edges that a user brings along
    match traits.family:
        case "communities":
            near = _communities(traits, rng)
        case "neighbours":
            near = _nearest(rng.standard_normal((n, int(rng.integers(1, 5)))), each)
        case "hubs":
            near = _attached(n, each, rng)
        case "ring":
            steps = (np.arange(n) - np.arange(n)[:, None]) % n
            near = (steps >= 1) & (steps <= each) & (rng.random((n, n)) > 0.1)
        case "random":
            near = rng.random((n, n)) < traits.degree / n
    upper = np.triu(near | near.T, 1).astype(float)
    if rng.random() < 0.3:
        upper *= rng.gamma(2.0, 0.5, upper.shape)
    return np.asarray(upper + upper.T)


def _communities(traits: Traits, rng: np.random.Generator) -> Edges:
    n = traits.n_users
    labels = rng.integers(int(rng.integers(2, max(3, n // 12) + 1)), size=n)
    inside = rng.uniform(0.6, 0.98)  # the share of a user's edges
    same = labels[:, None] == labels
    within = inside * traits.degree / max(float(same.sum(axis=1).mean()) - 1, 1.0)
    return np.asarray(rng.random((n, n)) < np.where(same, min(within, 1.0), (1 - inside) * traits.degree / n))


def _nearest(places: Array, each: int) -> Edges:
    """Returns who is among the `each` nearest of whom."""
    square = (places**2).sum(axis=1)
    apart = square[:, None] + square - 2 * places @ places.T
    np.fill_diagonal(apart, np.inf)
    near = np.zeros(apart.shape, dtype=bool)
    np.put_along_axis(near, np.argpartition(apart, each, axis=1)[:, :each], True, axis=1)
    return near


def _attached(n: int, each: int, rng: np.random.Generator) -> Edges:
    """Returns edges of users who come one by one and choose others in proportion to their edges."""
    near, degrees = np.zeros((n, n), dtype=bool), np.ones(n)
    for user in range(each + 1, n):
        chosen = rng.choice(user, each, replace=False, p=degrees[:user] / degrees[:user].sum())
        near[user, chosen] = True
        degrees[chosen] += 1
        degrees[user] += each
    return near


def _features(traits: Traits, rng: np.random.Generator) -> Array:
    """Returns normal features, unit rows, sparse ones with heavy tails, or clusters of arms; in any unit."""
    shape = (traits.n_arms, traits.dimension)
    match rng.integers(4):
        case 0:
            out = rng.standard_normal(shape)
        case 1:
            out = rng.standard_normal(shape)
            out /= np.linalg.norm(out, axis=1, keepdims=True)
        case 2:
            out = rng.gamma(0.3, 1.0, shape) * (rng.random(shape) < 0.4)
        case _:
            centres = rng.standard_normal((max(2, traits.n_arms // 8), traits.dimension))
            out = centres[rng.integers(len(centres), size=traits.n_arms)] + 0.3 * rng.standard_normal(shape)
    return np.asarray(out * (10 ** rng.uniform(-1, 1) if rng.random() < 0.3 else 1.0))


def _graph_cov(weights: Array, ridge: float) -> Array:
    """Returns (L + ridge I)^-1 of unit mean diagonal, the ridge in mean degrees."""
    degrees = weights.sum(axis=1)
    laplacian = np.diag(degrees + ridge * max(float(degrees.mean()), 1e-9)) - weights
    cov = np.linalg.inv(laplacian)
    return np.asarray((cov + cov.T) / (2 * cov.diagonal().mean()))


def _waves(traits: Traits, features: Array, rng: np.random.Generator) -> Array:
    """Returns random Fourier features of a squared exponential about as long as arms are apart."""
    first, second = rng.integers(len(features), size=(2, 300))
    apart = float(np.median(np.linalg.norm(features[first] - features[second], axis=1))) + 1e-9
    frequencies = rng.standard_normal((traits.dimension, N_WAVES)) / (apart * 10 ** rng.uniform(-0.4, 0.4))
    return np.asarray(sqrt(2 / N_WAVES) * np.cos(features @ frequencies + rng.uniform(0, 2 * np.pi, N_WAVES)))


def _slopes(features: Array) -> Array:
    return np.asarray((features - features.mean(axis=0)) / ((features.std() + 1e-9) * sqrt(features.shape[1])))


def _root(matrix: Array) -> Array:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
