"""Candidates of a request in the forms that people have them in: ids of the pool, or a mapping from ids to features."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from coterie.contracts import ArmId, Array, Index
from coterie.errors import ArmError, CandidatesError, ContextError, DimensionError, listed
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


def read_candidates(space: InputSpace, given: Mapping[Any, Any]) -> Candidates:
    """Returns the candidates of a mapping from ids to features, or raises a typed error.

    An arm of the pool has the features that the request gives, or none; another one has those of an arm of the pool
    besides. Features are a mapping from names to numbers, or a row of numbers.

    Examples:
        >>> from coterie.kernels import ArmPool
        >>> space = InputSpace(ArmPool([[0.5]], ids=["tea"], feature_names=["hot"]), request_features=("price",))
        >>> found = read_candidates(space, {"tea": {"price": 2.0}, "cola": {"hot": 0.1, "price": 1.0}})
        >>> found.rows, found.features.tolist(), found.of_request.tolist()
        (array([ 0, -1]), [[0.5], [0.1]], [[2.0], [1.0]])
    """
    if not given:
        raise CandidatesError("there are no candidates", "at least one is needed", "Pass arm ids, or None for all")
    check_ids(given)
    read = [_read(space, arm, each) for arm, each in given.items()]
    rows = np.array([row for row, _, _ in read], dtype=np.intp)
    features = np.concatenate([own for _, own, _ in read])
    return Candidates(list(given), rows, features, np.array([request for _, _, request in read]))


def _read(space: InputSpace, arm: ArmId, given: Any) -> tuple[int, Array, list[float]]:
    """Returns row, own columns and request features of one candidate."""
    names, n_request = space.arms.feature_names, len(space.request_features)
    row = space.arms.index.get(arm, GUEST)
    own_given, request = _parted(space, arm, {} if given is None else given)
    if row != GUEST:
        own = space.of_arms(np.array([row]))
        if own_given and not (space.arms.has_features and np.array_equal(np.array([own_given]), own)):
            rule = f"it is an arm of the pool, with features of its own{_named(names)}"
            raise ArmError(f"candidate {arm!r} has other features", rule, "Leave them out, or use update_features")
    elif not own_given:
        rule = f"an arm that is not in the pool has all features{_named(names)}"
        raise ArmError(f"candidate {arm!r} is not in the pool and has no features", rule, "Give them, or add_arms")
    else:
        own = space.of_features([own_given])
    if len(request) != n_request:
        rule = f"this request gives {listed(space.request_features, 20) or 'none'}"
        raise ArmError(f"candidate {arm!r} has {len(request)} features of the request", rule, "Give every one")
    return row, own, request


def _parted(space: InputSpace, arm: ArmId, given: Any) -> tuple[list[float], list[float]]:
    """Returns the arm's own features and those of the request, as numbers."""
    request, dimension = space.request_features, space.arms.dimension if space.arms.has_features else 0
    if isinstance(given, Mapping):
        names = space.arms.feature_names or ()
        odd = [name for name in given if name not in request and name not in names]
        if odd:
            rule = f"names are {listed([*names, *request], 20) or 'none: features are rows of numbers'}"
            raise ArmError(f"candidate {arm!r} has the unknown feature {odd[0]!r}", rule, "Mend it")
        own = [_number(arm, name, given[name]) for name in names if name in given]
        if own and len(own) < len(names):
            missing = [name for name in names if name not in given]
            raise ArmError(f"candidate {arm!r} lacks {listed(missing)}", "an arm has all features", "Fill it in")
        return own, [_number(arm, name, given[name]) for name in request if name in given]
    if isinstance(given, str | bytes) or np.ndim(given) != 1:
        rule = "features are a mapping from names to numbers, or a row of numbers"
        raise DimensionError(f"candidate {arm!r} has features {given!r:.80}", rule, "Pass one of these")
    row = [_number(arm, place, value) for place, value in enumerate(given)]
    if len(row) not in (len(request), dimension + len(request)):
        rule = f"a row has {dimension + len(request)}, or {len(request)} for an arm of the pool"
        raise DimensionError(f"candidate {arm!r} has {len(row)} features", rule, "Give every arm the same features")
    split = len(row) - len(request)
    return row[:split], row[split:]


def _number(arm: ArmId, name: Any, value: Any) -> float:
    if is_number(value):
        return float(value)
    raise ArmError(f"feature {name!r} of candidate {arm!r} is {value!r}", "features are finite numbers", "Mend it")


def _named(names: tuple[str, ...] | None) -> str:
    return "" if names is None else f": {listed(names, 20)}"


def no_request_features(space: InputSpace) -> None:
    """Raises if candidates are ids alone where each request gives features of theirs."""
    if space.request_features:
        what = "candidates are ids, without features of the request"
        rule = f"each has {listed(space.request_features, 20)}"
        raise ContextError(what, rule, 'Pass a mapping, such as {"arm": {"price": 2.0}}')
