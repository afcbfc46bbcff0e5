"""Contexts of a table of rewards, row by row: arms of the pool become inputs."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from coterie.contracts import Array, Index
from coterie.errors import ContextError, DimensionError, listed
from coterie.errors.checks import as_list
from coterie.kernels.input_space import InputSpace
from coterie.kernels.schema import ContextSchema


def inputs_of_rows(space: InputSpace, arms: Index, contexts: Any, first: int) -> tuple[list[Array], InputSpace]:
    """Returns each arm in its context as a row of numbers, and the space after these contexts have come.

    Args:
        space: Makes rows of arms and contexts.
        arms: Rows of the pool.
        contexts: One for each arm, or columns by name; None without any.
        first: The number of the first row in the table, which an error names.

    Raises:
        ContextError: If a context is not as the schema says, or each request gives features that a table has not.

    Examples:
        >>> from coterie.kernels import ArmPool
        >>> pool = ArmPool.without_features(["tea", "coffee"])
        >>> space = InputSpace(pool, ContextSchema.of({"hour": "number"}))
        >>> inputs_of_rows(space, np.array([1, 0]), {"hour": [9, 21]}, 0)[0]
        [array([1., 9.]), array([ 0., 21.])]
    """
    if space.request_features:
        rule = f"each arm has {listed(space.request_features, 20)} of its request"
        raise ContextError("a table of rewards was given", rule, "Call learn with the features of each arm")
    of_arms, out = space.of_arms(np.asarray(arms)), []
    for row, context in enumerate(_contexts(contexts, len(arms), space.schema)):
        try:
            encoded, space = space.encoded(context)
        except ContextError as error:
            remedy = "Mend or drop that row; nothing was learned"
            raise ContextError(f"row {first + row}: {error.problem}", error.rule, remedy) from None
        out.append(np.concatenate([of_arms[row], encoded]))
    return out, space


def _contexts(given: Any, n_rows: int, schema: ContextSchema) -> Iterator[Any]:
    """Yields the context of each row; what a row does not say is left out, so that it may have a default."""
    if given is None:
        yield from [None] * n_rows
        return
    if isinstance(given, Mapping):
        columns = {name: as_list(f"context.{name}", column) for name, column in given.items()}
        for name, column in columns.items():
            _check_length(f"context.{name}", len(column), n_rows)
        rows: Any = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
    else:
        rows = as_list("contexts", given)
        _check_length("contexts", len(rows), n_rows)
    for row in rows:
        said = {name: value for name, value in row.items() if value is not None} if isinstance(row, Mapping) else row
        yield said if schema.is_named or not isinstance(said, Mapping) else _as_row(said, schema)


def _as_row(context: Mapping[Any, Any], schema: ContextSchema) -> Any:
    """Returns a context of columns 0, 1, 2, ... as a row of numbers, in that order; as it is if it has others."""
    names = [field.name for field in schema.fields]
    return [context[name] for name in names] if set(context) == set(names) else context


def _check_length(what: str, length: int, n_rows: int) -> None:
    if length != n_rows:
        problem = f"a batch has {n_rows} rewards and {length} of {what}"
        raise DimensionError(problem, "there is one of each for a reward", "Pass columns of the same length")
