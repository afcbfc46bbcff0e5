"""The other libraries, each behind `decide` and `learn`, with default settings.

A row is given in the form that a library takes: a text of named features (made here, and timed), an array, a mapping.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.context.data import Labelled, Value
from benchmarks.context.protocol import Learner, Method
from coterie.contracts import Array

FIRST_EACH = 10  # rounds of `--first`, for each class
Policies = Callable[[Any], tuple[Any, Any]]  # from MABWiser's module: a learning and a neighbourhood policy
GROWTH = 1.1  # what cannot learn row by row is fitted anew when its rows have grown by a tenth


class Standardised:
    """Gives a learner its rows less their mean so far, over their deviation so far."""

    def __init__(self, learner: Learner, width: int) -> None:
        self._learner = learner
        self._count = 0
        self._mean = np.zeros(width)
        self._squares = np.zeros(width)

    def decide(self, row: Array) -> tuple[int, float]:
        self._count += 1
        gap = row - self._mean
        self._mean += gap / self._count
        self._squares += gap * (row - self._mean)
        std = np.sqrt(self._squares / self._count)
        self._row = (row - self._mean) / np.where(std > 0.0, std, 1.0)
        return self._learner.decide(self._row)

    def learn(self, row: Array, arm: int, propensity: float, reward: float) -> None:  # noqa: ARG002 - as it was shown
        self._learner.learn(self._row, arm, propensity, reward)


class Vowpal:
    """`--cb_explore K`: classes are actions 1 to K, the cost of one is a constant, 1 or 0, less the reward."""

    def __init__(self, options: str, *, constant: float, names: Sequence[str], n_classes: int, seed: int) -> None:
        from vowpalwabbit import Workspace

        self._constant = constant
        self._names = names
        self._arms = range(n_classes)
        self._draws = random.Random(seed)
        self._vw = Workspace(f"{self._reduction()} {options} --quiet --random_seed {seed + 1}")

    def _reduction(self) -> str:
        return f"--cb_explore {len(self._arms)}"

    def _example(self) -> Any:
        return self._text

    def _labelled(self, arm: int, label: str) -> Any:
        return f"{arm + 1}:{label} {self._text}"

    def decide(self, row: Any) -> tuple[int, float]:
        self._text = _as_text(self._names, row.tolist() if isinstance(row, np.ndarray) else row)
        probs = self._vw.predict(self._example())
        arm = self._draws.choices(self._arms, probs)[0]
        return arm, probs[arm] / sum(probs)

    def learn(self, row: Any, arm: int, propensity: float, reward: float) -> None:  # noqa: ARG002 - its text is kept
        self._vw.learn(self._labelled(arm, f"{self._constant - reward}:{propensity}"))


class VowpalActions(Vowpal):
    """`--cb_explore_adf`, which squarecb and regcb need: a shared row, and an action for each class."""

    def _reduction(self) -> str:
        self._actions = [f"|a a{arm}" for arm in self._arms]
        return "--cb_explore_adf"

    def _example(self) -> Any:
        return [f"shared {self._text}", *self._actions]

    def _labelled(self, arm: int, label: str) -> Any:
        actions = self._actions.copy()
        actions[arm] = f"0:{label} {actions[arm]}"
        return [f"shared {self._text}", *actions]


def _as_text(names: Sequence[str], row: Sequence[Value]) -> str:
    pairs = zip(names, row, strict=True)
    named = [f"{name}={value}" if isinstance(value, str) else f"{name}:{value}" for name, value in pairs if value]
    return f"|s {' '.join(named)}"


class Mabwiser:
    """A `MAB` with its contextual policies. Rows start with a 1, as it has no constant. The first choices are random.

    Args:
        policies: Its learning policy and its neighbourhood policy, or none.
        n_classes: How many arms there are.
        seed: Of its draws.
        first: How many rows it needs before it can choose.
        anew: Whether it is fitted anew on all rows, when they have grown by a tenth, since it cannot learn row by row
            (TreeBandit), or does so by fitting anew each time (Clusters).
    """

    def __init__(self, policies: Policies, n_classes: int, seed: int, *, first: int, anew: bool) -> None:
        from mabwiser import mab

        learning, neighbourhood = policies(mab)
        self._mab = mab.MAB(list(range(n_classes)), learning, neighbourhood, seed=seed)
        self._random = np.random.default_rng(seed)
        self._n_classes = n_classes
        self._anew = anew
        self._next_fit = first
        self._fitted = False
        self._arms: list[int] = []
        self._rewards: list[float] = []
        self._rows: list[Array] = []

    def decide(self, row: Array) -> tuple[int, float]:
        self._row = np.concatenate(([1.0], row))
        if not self._fitted:
            return int(self._random.integers(self._n_classes)), 1.0 / self._n_classes
        return self._mab.predict(self._row[None]), 1.0

    def learn(self, row: Array, arm: int, propensity: float, reward: float) -> None:  # noqa: ARG002 - it learns values
        if self._fitted and not self._anew:
            self._mab.partial_fit([arm], [reward], self._row[None])
            return
        self._arms.append(arm)
        self._rewards.append(reward)
        self._rows.append(self._row)
        if len(self._rows) >= self._next_fit:
            self._mab.fit(self._arms, self._rewards, np.array(self._rows))
            self._fitted = True
            self._next_fit = int(np.ceil(GROWTH * self._next_fit))


class River:
    """`LinUCBDisjoint`, its only contextual policy. Rows have a constant, as it has none."""

    def __init__(self, n_classes: int, seed: int, *, standardised: bool) -> None:
        from river.bandit import LinUCBDisjoint
        from river.preprocessing import StandardScaler

        self._policy: Any = LinUCBDisjoint(seed=seed)
        self._scaler: Any = StandardScaler() if standardised else None
        self._arms = list(range(n_classes))

    def decide(self, row: dict[str, float]) -> tuple[int, float]:
        if self._scaler is not None:
            self._scaler.learn_one(row)
            row = self._scaler.transform_one(row)
        self._row = {**row, "constant": 1.0}
        return self._policy.pull(self._arms, context=self._row), 1.0

    def learn(self, row: dict[str, float], arm: int, propensity: float, reward: float) -> None:  # noqa: ARG002
        self._policy.update(arm, self._row, reward)


def _vowpal(
    data: Labelled, seed: int, *, kind: type[Vowpal], options: str, constant: float, standardised: bool
) -> Learner:
    n_columns = data.matrix().shape[1]
    names = [f"x{column}" for column in range(n_columns)] if standardised else data.names
    options = options.format(first=FIRST_EACH * data.n_classes)
    learner = kind(options, constant=constant, names=names, n_classes=data.n_classes, seed=seed)
    return Standardised(learner, n_columns) if standardised else learner


def _mabwiser(data: Labelled, seed: int, *, standardised: bool, **options: Any) -> Learner:
    learner = Mabwiser(n_classes=data.n_classes, seed=seed, **options)
    return Standardised(learner, data.matrix().shape[1]) if standardised else learner


def _river(data: Labelled, seed: int, *, standardised: bool) -> Learner:
    return River(data.n_classes, seed, standardised=standardised)


def _arrays(data: Labelled) -> list[Array]:
    return list(data.matrix())


def _mappings(data: Labelled) -> list[dict[str, float]]:
    return [{f"x{column}": value for column, value in enumerate(row)} for row in data.matrix().tolist()]


# The costs of a reward r are 1 - r, or -r. `-q sa` is what `--cb_explore` does by itself: each action has its own
# weights. With `--interactions ssa` each has weights for pairs too, as `--cb_explore` with `-q ::`.
VOWPAL = {
    "epsilon": "--epsilon 0.05",
    "bag": "--bag 5",
    "cover": "--cover 5",
    "first": "--first {first}",
}
PAIRS = {"": "", ", -q ::": "-q ::"}
VOWPAL_ACTIONS = {"squarecb": "--squarecb", "regcb": "--regcb", "regcbopt": "--regcbopt"}
ACTION_PAIRS = {", -q sa": "-q sa", ", -q ::": "-q ::", ", -q sa --interactions ssa": "-q sa --interactions ssa"}
MABWISER: dict[str, Policies] = {
    "LinUCB": lambda mab: (mab.LearningPolicy.LinUCB(), None),
    "LinTS": lambda mab: (mab.LearningPolicy.LinTS(), None),
    "LinGreedy": lambda mab: (mab.LearningPolicy.LinGreedy(), None),
    "KNearest, Thompson": lambda mab: (mab.LearningPolicy.ThompsonSampling(), mab.NeighborhoodPolicy.KNearest()),
    "KNearest of 10, Thompson": lambda mab: (
        mab.LearningPolicy.ThompsonSampling(),
        mab.NeighborhoodPolicy.KNearest(k=10),
    ),
    "Radius, Thompson": lambda mab: (mab.LearningPolicy.ThompsonSampling(), mab.NeighborhoodPolicy.Radius()),
    "LSHNearest, Thompson": lambda mab: (mab.LearningPolicy.ThompsonSampling(), mab.NeighborhoodPolicy.LSHNearest()),
    "Clusters, LinUCB": lambda mab: (mab.LearningPolicy.LinUCB(), mab.NeighborhoodPolicy.Clusters()),
    "TreeBandit, epsilon": lambda mab: (mab.LearningPolicy.EpsilonGreedy(), mab.NeighborhoodPolicy.TreeBandit()),
}
ROWS_BEFORE = {"KNearest of 10, Thompson": 10, "Clusters, LinUCB": 2}
FITTED_ANEW = ("Clusters, LinUCB", "TreeBandit, epsilon")
LIBRARIES = {"vowpalwabbit": "Vowpal Wabbit", "mabwiser": "MABWiser", "river": "river"}


def peers() -> Iterator[Method]:
    """Yields every configuration of every peer, with the features as they come and standardised."""
    for standardised, words in ((False, ""), (True, ", standardised")):
        for name, options, constant, kind in _vowpal_options():
            make = partial(_vowpal, kind=kind, options=options, constant=constant, standardised=standardised)
            rows = _arrays if standardised else Labelled.values
            yield Method("vowpalwabbit", name + words, make, rows)
        for name, policies in MABWISER.items():
            settings: dict[str, Any] = {"first": ROWS_BEFORE.get(name, 1), "anew": name in FITTED_ANEW}
            make = partial(_mabwiser, policies=policies, standardised=standardised, **settings)
            yield Method("mabwiser", name + words, make, _arrays)
        yield Method("river", f"LinUCBDisjoint{words}", partial(_river, standardised=standardised), _mappings)


def _vowpal_options() -> Iterator[tuple[str, str, float, type[Vowpal]]]:
    for kind, algorithms, pairs in ((Vowpal, VOWPAL, PAIRS), (VowpalActions, VOWPAL_ACTIONS, ACTION_PAIRS)):
        for name, algorithm in algorithms.items():
            for words, option in pairs.items():
                yield name + words, f"{algorithm} {option}", 1.0, kind
                if not name.startswith("regcb"):  # whose costs are between 0 and 1
                    yield f"{name}{words}, cost -r", f"{algorithm} {option}", 0.0, kind
