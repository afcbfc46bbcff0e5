"""Arms in the forms that people have them in."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from coterie.contracts import ArmId
from coterie.errors import ArmError, CandidatesError
from coterie.kernels import ArmPool
from coterie.product.inputs.frames import is_frame, pool_from_frame


def as_arm_pool(arms: Any) -> ArmPool:
    """Returns a pool from a pool, a mapping from ids to features, a dataframe, or an array with one row each.

    Features of an arm are a row of numbers, or a mapping from names to numbers that is the same for every arm. A
    dataframe has ids in a column "arm" or "id" (without one the rows are numbered) and features in all others.

    Examples:
        >>> as_arm_pool({"tea": {"hot": 1, "sweet": 0}, "cola": {"hot": 0, "sweet": 1}}).features
        array([[1., 0.], [0., 1.]])
    """
    if isinstance(arms, ArmPool):
        return arms
    if not isinstance(arms, Mapping):
        return pool_from_frame(arms) if is_frame(arms) else ArmPool(arms)
    rows = list(arms.values())
    if rows and all(isinstance(row, Mapping) for row in rows):
        names = list(rows[0])
        for arm, row in arms.items():
            if set(row) != set(names):
                wrong = sorted(map(str, set(row) ^ set(names)))
                raise ArmError(
                    f"arm {arm!r} has other features than the first: {wrong}",
                    "every arm has the same features",
                    "Fill in what is missing",
                )
        rows = [[row[name] for name in names] for row in rows]
    return ArmPool(rows if rows else np.zeros((0, 1)), ids=list(arms))


def without_arms(ids: Iterable[ArmId], retired: set[ArmId]) -> list[ArmId]:
    """Returns the arms that are not retired, or raises if there are none."""
    left = [arm for arm in ids if arm not in retired]
    if not left:
        raise CandidatesError("every arm is retired", "at least one is left to choose", "Add arms first")
    return left
