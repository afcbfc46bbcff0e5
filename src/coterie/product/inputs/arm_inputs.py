"""Arms in the forms that people have them in."""

from collections.abc import Iterable, Mapping
from typing import Any

from coterie.contracts import FEATURE_RULE, ArmId
from coterie.errors import ArmError, CandidatesError, listed
from coterie.kernels import ArmPool
from coterie.product.inputs.frames import is_frame, pool_from_frame


def as_arm_pool(arms: Any) -> ArmPool:
    """Returns a pool from a pool, a mapping from ids to features, a dataframe, or an array with one row each.

    Features of an arm are a row of numbers, or a mapping from names to numbers that is the same for every arm. A
    dataframe has ids in a column "arm" or "id" (without one the rows are numbered) and features in all others. The pool
    keeps the names where there are any.

    Examples:
        >>> pool = as_arm_pool({"tea": {"hot": 1, "sweet": 0}, "cola": {"sweet": 1, "hot": 0}})
        >>> pool.features, pool.feature_names
        (array([[1., 0.], [0., 1.]]), ('hot', 'sweet'))
    """
    if isinstance(arms, ArmPool):
        return arms
    if not isinstance(arms, Mapping):
        return pool_from_frame(arms) if is_frame(arms) else ArmPool(arms)
    if not arms:
        raise ArmError("there are no arms: the mapping is empty", "a bandit chooses among arms", "Give at least one")
    rows, names = list(arms.values()), None
    if all(isinstance(row, Mapping) for row in rows):
        names = tuple(rows[0])
        for arm, row in arms.items():
            if set(row) != set(names):
                wrong = sorted(map(str, set(row) ^ set(names)))
                raise ArmError(
                    f"arm {arm!r} has other features than the first: {wrong}",
                    "every arm has the same features",
                    "Fill in what is missing",
                )
        rows = [[row[name] for name in names] for row in rows]
    for arm, row in zip(arms, rows, strict=True):
        _check_filled(arm, row, names)
    return ArmPool(rows, ids=list(arms), feature_names=names)


def _check_filled(arm: ArmId, row: Any, names: tuple[str, ...] | None) -> None:
    """Raises and says which feature of the arm is missing; whatever else is odd the pool tells."""
    for place, value in enumerate(row if isinstance(row, list | tuple) else ()):
        if value is None:
            what = f"feature {place if names is None else names[place]!r} of arm {arm!r} is None"
            raise ArmError(what, FEATURE_RULE, "Fill it in, or drop that arm")


def with_arms(arms: ArmPool, new: ArmPool) -> ArmPool:
    """Returns the pool with new arms, or with other features of those it has; features go by name where both have them.

    Examples:
        >>> pool = as_arm_pool({"tea": {"hot": 1, "sweet": 0}})
        >>> with_arms(pool, as_arm_pool({"cola": {"sweet": 1, "hot": 0}})).features
        array([[1., 0.], [0., 1.]])
    """
    features = dict(zip(arms.ids, arms.features, strict=True))
    features |= dict(zip(new.ids, new.features[:, _order(arms.feature_names, new)], strict=True))
    return ArmPool(list(features.values()), ids=list(features), feature_names=arms.feature_names)


def _order(names: tuple[str, ...] | None, new: ArmPool) -> list[int]:
    """Returns the column of the newcomers for each feature of the pool, or raises if they have other ones."""
    if names is None or new.feature_names is None:
        return list(range(new.dimension))
    odd = {"lacks": [name for name in names if name not in new.feature_names]}
    odd["brings the unknown"] = [name for name in new.feature_names if name not in names]
    if any(odd.values()):
        wrong = " and ".join(f"{words} {listed(which)}" for words, which in odd.items() if which)
        rule = f"the features are {listed(names, 20)}"
        raise ArmError(f"arm {new.ids[0]!r} {wrong}", rule, "Give every arm these features, in any order")
    return [new.feature_names.index(name) for name in names]


def without_arms(ids: Iterable[ArmId], retired: set[ArmId]) -> list[ArmId]:
    """Returns the arms that are not retired, or raises if there are none."""
    left = [arm for arm in ids if arm not in retired]
    if not left:
        raise CandidatesError("every arm is retired", "at least one is left to choose", "Add arms first")
    return left
