"""Whether the inputs of a saved bandit, arms in their contexts, are those of its arms and of its schema."""

from math import inf
from typing import Any

import numpy as np

from coterie.contracts import LARGEST_FEATURE, Array
from coterie.kernels.inputs import InputLayout
from coterie.kernels.schema import CATEGORY
from coterie.policies.factory.ingredients import LEARNED
from coterie.product.decisions import GUEST


def check_inputs(saved: dict[str, Any]) -> None:
    """Raises ValueError unless every input has the columns of its arm, and numbers and categories there are."""
    belief, has_features = saved["belief"], (saved.get("inputs") or {}).get("has_features", True)
    if belief is None or "schema" not in belief or "scaling" not in belief:
        raise ValueError("it has inputs, and does not say what they are")
    fields = belief["schema"]["fields"]
    of_contexts = [field for field in fields if field["kind"] == CATEGORY]
    n_numbers = len(saved["settings"]["options"].get("request_features") or ()) + len(fields) - len(of_contexts)
    n_arms, n_features = saved["arrays"]["features"].shape
    sizes = [float(len(field["categories"])) for field in of_contexts]
    if saved["settings"].get("places") == LEARNED:
        sizes.append(inf)  # the place of a slate
    layout = InputLayout(0 if has_features else n_arms, n_features * has_features, n_numbers, len(sizes))
    for scaled in (belief, belief.get("begun") or {}):
        if "scaling" in scaled and len(scaled["scaling"]["weight"]) != layout.features + n_numbers:
            raise ValueError("its inputs are measured as others are")
    for known in _histories(belief):
        if not np.all(np.abs(known) <= LARGEST_FEATURE):
            raise ValueError("a number of its inputs is too large")
        if layout.codes and np.size(known) and not np.isin(np.asarray(known)[:, 0], np.arange(n_arms)).all():
            raise ValueError("its inputs are of arms that nobody knows")
    for rows, arms in _inputs_of(saved):
        if rows.shape[1] != layout.width:
            raise ValueError(f"its inputs have {rows.shape[1]} columns, and not {layout.width}")
        _check_rows(rows, arms, layout, sizes, saved["arrays"]["features"])


def _histories(belief: dict[str, Any]) -> list[Any]:
    """Returns the inputs that models and the fit that goes on have learned."""
    learned = [belief[name]["history"]["arms"] for name in ("model", "doubt", "begun") if belief.get(name)]
    return [*learned, np.array(belief["begun"]["later"]["arms"])] if belief.get("begun") else learned


def _inputs_of(saved: dict[str, Any]) -> list[tuple[Array, Any]]:
    """Returns inputs of rewards and of pending decisions, with the rows of their arms."""
    arrays = saved["arrays"]
    return [(arrays["event_inputs"], arrays["event_arms"]), (arrays["pending_inputs"], arrays["pending"][:, 2])]


def _check_rows(rows: Array, arms: Any, layout: InputLayout, sizes: list[float], features: Array) -> None:
    of_pool = arms != GUEST
    own = arms[:, None].astype(np.float64) if layout.codes else features[np.where(of_pool, arms, 0)]
    if layout.codes and not of_pool.all():
        raise ValueError("an arm without features is not of its pool")
    if not np.array_equal(rows[of_pool, : own.shape[1]], own[of_pool]):
        raise ValueError("its inputs are of other arms")
    if not np.all(np.abs(rows) <= LARGEST_FEATURE):
        raise ValueError("a number of its inputs is too large")
    codes = rows[:, layout.of_categories]
    if not np.all((codes == np.floor(codes)) & (codes >= 0) & (codes <= np.array(sizes))):
        raise ValueError("its inputs have a category that nobody knows")
