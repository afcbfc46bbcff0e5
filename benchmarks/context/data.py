"""Supervised sets as bandits: a row is a context, a class is an arm without features, and the right one pays 1.

Three come with scikit-learn, as they are. Three are generated, and the same in every run; the seed of a pass only
shuffles the rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie.contracts import Array, Index

Value = float | str
REPLACED = 0.05  # of the labels of `mixed`, by a class drawn at random


@dataclass(frozen=True)
class Labelled:
    """Rows of numbers, and of categories if there are any, with the class of each."""

    name: str
    numbers: Array  # rows x columns
    labels: Index
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        return int(self.labels.max()) + 1

    @property
    def names(self) -> list[str]:
        """The names of the columns: numbers first."""
        return [*(f"x{column}" for column in range(self.numbers.shape[1])), *self.categories]

    def values(self) -> list[list[Value]]:
        """The rows as lists, in the order of the names."""
        columns: list[list[Any]] = [*self.numbers.T.tolist(), *map(list, self.categories.values())]
        return [list(row) for row in zip(*columns, strict=True)]

    def matrix(self) -> Array:
        """The rows as numbers alone: 1 or 0 for each category."""
        columns = [np.array(each)[:, None] == np.unique(each) for each in self.categories.values()]
        return np.column_stack([self.numbers, *columns]).astype(float)

    def contexts(self) -> list[Any]:
        """The rows as Coterie takes them: numbers, or a mapping if there are categories."""
        if not self.categories:
            return list(self.numbers)
        return [dict(zip(self.names, row, strict=True)) for row in self.values()]

    def head(self, n_rows: int) -> "Labelled":
        """The first rows, to see that something works."""
        some = {name: each[:n_rows] for name, each in self.categories.items()}
        return Labelled(self.name, self.numbers[:n_rows], self.labels[:n_rows], some)


def of_sklearn(name: str) -> Labelled:
    """One of scikit-learn's sets, its features as they come."""
    from sklearn import datasets

    read = getattr(datasets, f"load_{name.replace(' ', '_')}")()
    return Labelled(name, np.asarray(read.data, dtype=float), np.asarray(read.target, dtype=np.intp))


def clusters(n_rows: int = 10_000, n_classes: int = 10, each: int = 4, width: int = 6) -> Labelled:
    """Each class is several Gaussian clusters, far from each other: no line separates the classes."""
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(n_classes * each, width))
    places = rng.integers(len(centres), size=n_rows)
    rows = centres[places] + rng.normal(scale=0.35, size=(n_rows, width))
    return Labelled("clusters", rows, places % n_classes)


def linear(n_rows: int = 20_000, n_classes: int = 5, telling: int = 10, width: int = 30) -> Labelled:
    """The class with the highest linear score, in noise; most of the columns tell nothing."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(n_rows, width))
    weights = rng.normal(size=(telling, n_classes))
    scores = rows[:, :telling] @ weights + rng.normal(scale=0.5, size=(n_rows, n_classes))
    return Labelled("linear", rows, scores.argmax(axis=1))


def mixed(n_rows: int = 5_000) -> Labelled:
    """Numbers and categories; which band of the hour makes which class depends on the device.

    Age, price and region tell nothing. Some labels are drawn at random.
    """
    rng = np.random.default_rng(3)
    hour, age, price = rng.uniform(0, 24, n_rows), rng.uniform(18, 80, n_rows), rng.lognormal(3, 1, n_rows)
    devices, regions = np.array(["phone", "desktop", "tablet"]), np.array(["north", "east", "south", "west"])
    device, region = rng.integers(3, size=n_rows), rng.integers(4, size=n_rows)
    right = np.array([[0, 1, 2, 3], [2, 3, 0, 1], [3, 0, 1, 2]])[device, (hour // 6).astype(int)]
    labels = np.where(rng.random(n_rows) < REPLACED, rng.integers(4, size=n_rows), right)
    categories = {"device": tuple(devices[device].tolist()), "region": tuple(regions[region].tolist())}
    return Labelled("mixed", np.column_stack([hour, age, price]), labels, categories)


SETS: Mapping[str, Callable[[], Labelled]] = {
    "digits": lambda: of_sklearn("digits"),
    "wine": lambda: of_sklearn("wine"),
    "breast cancer": lambda: of_sklearn("breast cancer"),
    "clusters": clusters,
    "linear": linear,
    "mixed": mixed,
}
