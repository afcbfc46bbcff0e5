"""Candidates of a request in the forms that people have them in: ids of the pool, or a mapping from ids to features."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from coterie.contracts import FEATURE_RULE, LARGEST_FEATURE, ArmId, Array, Index
from coterie.errors import ArmError, CandidatesError, DimensionError, counted, listed
from coterie.errors.checks import is_number
from coterie.kernels.input_space import InputSpace
from coterie.product.decisions import GUEST
from coterie.product.inputs.ids import check_ids


class Candidates(NamedTuple):
    """The candidates of a request, checked.

    Attributes:
        ids: Their ids.
        rows: Their rows in the pool; `GUEST` for arms of this request only.
        features: The columns of each that do not depend on the context.
        of_request: The features that this request gives, a row each.
    """

    ids: list[ArmId]
    rows: Index
    features: Array
    of_request: Array


def read_candidates(space: InputSpace, given: Mapping[Any, Any], *, keep: bool = False) -> Candidates:
    """Returns the candidates of a mapping from ids to features, or raises a typed error.

    An arm of the pool has the features that the request gives, or none; another one has those of an arm of the pool
    besides. Features are a mapping from names to numbers, or a row of numbers.

    Args:
        space: What an arm in a context is.
        given: Features, or None, by id.
        keep: Whether arms that are new are to join the pool, which they can without features if its arms have none.

    Examples:
        >>> from coterie.kernels import ArmPool
        >>> space = InputSpace(ArmPool([[0.5]], ids=["tea"], feature_names=["hot"]), request_features=("price",))
        >>> found = read_candidates(space, {"tea": {"price": 2.0}, "cola": {"hot": 0.1, "price": 1.0}})
        >>> found.rows, found.features.tolist(), found.of_request.tolist()
        (array([ 0, -1]), [[0.5], [0.1]], [[2.0], [1.0]])
    """
    if not given:
        raise CandidatesError("there are no candidates", "at least one is needed", "Name arms, or none to mean all")
    check_ids(given)
    read = [_read(space, arm, each, keep=keep) for arm, each in given.items()]
    rows = np.array([row for row, _, _ in read], dtype=np.intp)
    features = np.concatenate([own for _, own, _ in read])
    ids = [_plain_id(arm) if row == GUEST else space.arms.ids[row] for arm, row in zip(given, rows, strict=True)]
    return Candidates(ids, rows, features, np.array([request for _, _, request in read]))


def _plain_id(arm: Any) -> ArmId:
    return arm.item() if isinstance(arm, np.generic) else arm  # type: ignore[no-any-return]


def _read(space: InputSpace, arm: ArmId, given: Any, *, keep: bool) -> tuple[int, Array, list[float]]:
    """Returns row, own columns and request features of one candidate."""
    row = space.arms.index.get(arm, GUEST)
    own, request = _parted(space, arm, {} if given is None else given)
    if row != GUEST:
        return row, _of_pool(space, arm, row, own), request
    if own:
        return row, space.of_features([own]), request
    if space.arms.has_features:
        rule = f"an arm that is not in the pool has all features{_named(space.arms.feature_names)}"
        raise ArmError(f"candidate {arm!r} is not in the pool and has no features", rule, "Give them, or add it first")
    if not keep:
        rule = f"arms without features are those of the pool: {listed(space.arms.ids)}"
        raise ArmError(f"candidate {arm!r} is not in the pool", rule, "Add it first, or pass keep=True in Python")
    return row, np.full((1, 1), float(GUEST)), request


def _of_pool(space: InputSpace, arm: ArmId, row: int, given: list[float]) -> Array:
    """Returns the columns of an arm of the pool, or raises if other features are given for it."""
    own = space.of_arms(np.array([row]))
    if given and not np.array_equal(np.array([given]), own):
        place = int(np.flatnonzero(np.array(given) != own[0])[0])
        names = space.arms.feature_names
        which = f"feature {place if names is None else names[place]!r} of candidate {arm!r} is {given[place]}"
        rule = f"it is {own[0, place]} for this arm of the pool"
        raise ArmError(which, rule, "Leave the features of arms of the pool out, or change the arm")
    return own


def _parted(space: InputSpace, arm: ArmId, given: Any) -> tuple[list[float], list[float]]:
    """Returns the arm's own features and those of the request, as numbers; of its own there are all, or none."""
    request, dimension = space.request_features, space.arms.dimension if space.arms.has_features else 0
    if isinstance(given, Mapping):
        return _of_names(space, arm, given)
    if isinstance(given, str | bytes) or not _is_row(given):
        rule = "features are a mapping from names to numbers, or a row of numbers"
        raise DimensionError(f"candidate {arm!r} has features {given!r:.80}", rule, "Pass one of these")
    row = [_number(arm, place, value) for place, value in enumerate(given)]
    if len(row) not in (len(request), dimension + len(request)):
        rule = f"a row has {dimension + len(request)}, or {len(request)} for an arm of the pool"
        rule = rule if dimension else f"arms have no features here but {len(request)} of the request"
        what = f"candidate {arm!r} has {counted(len(row), 'feature')}"
        raise DimensionError(what, rule, "Give every arm the same features")
    split = len(row) - len(request)
    return row[:split], row[split:]


def _of_names(space: InputSpace, arm: ArmId, given: Mapping[Any, Any]) -> tuple[list[float], list[float]]:
    """Returns what `_parted` does, of a mapping from names to numbers."""
    request, names = space.request_features, space.arms.feature_names or ()
    odd = [name for name in given if name not in request and name not in names]
    if odd:
        known = listed([*names, *request], 20)
        rule = f"names are {known}" if known else "features have no names here: they are rows of numbers, or none"
        raise ArmError(f"candidate {arm!r} has the unknown feature {odd[0]!r}", rule, "Mend it")
    own = [name for name in names if name in given]
    missing = [name for name in [*(names if own else ()), *request] if name not in given]
    if missing:
        rule = f"an arm has all features: {listed([*(names if own else ()), *request], 20)}"
        raise ArmError(f"candidate {arm!r} lacks {listed(missing)}", rule, "Fill it in")
    return [_number(arm, name, given[name]) for name in own], [_number(arm, name, given[name]) for name in request]


def _is_row(given: Any) -> bool:
    """Returns whether this is one-dimensional; rows of rows of different lengths are not."""
    try:
        return np.ndim(given) == 1
    except ValueError:
        return False


def _number(arm: ArmId, name: Any, value: Any) -> float:
    if is_number(value) and abs(value) <= LARGEST_FEATURE:
        return float(value)
    raise ArmError(f"feature {name!r} of candidate {arm!r} is {value!r:.80}", FEATURE_RULE, "Mend it")


def _named(names: tuple[str, ...] | None) -> str:
    return "" if names is None else f": {listed(names, 20)}"
