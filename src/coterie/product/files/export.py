"""A bandit as plain files: one JSON and one archive of arrays, to be read with any tool and without Coterie."""

import json
import os
import shutil
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np

from coterie.contracts import VERSION
from coterie.errors import SavedFileError
from coterie.policies.auto.context_policy import ContextPolicy
from coterie.product.bandit import Bandit
from coterie.product.files.atomic import not_written, sync_folder
from coterie.product.files.checked.schema import ARRAYS, COMBINED_ARRAYS, EXAMINED_ARRAYS, INPUT_ARRAYS
from coterie.product.files.saving import parts_as_saved

STATE_FILE, ARRAYS_FILE = "state.json", "arrays.npz"
LARGEST_TABLE = 10_000  # pairs of user and arm: to predict more may take minutes


def export_bandit(bandit: Bandit, folder: Path, *, largest_table: int = LARGEST_TABLE) -> None:
    """Writes the bandit to a new folder, whole or not at all.

    The arrays are one archive and not a file each, so that they cannot be parted from each other, and numpy opens it
    by name without reading what is not asked for. Means and stds are left out where more pairs than `largest_table`
    have one, and where they depend on a context. The rows of `event_inputs` are arms in their contexts: of a context,
    numbers and flags come first, then codes of categories, from 1 in the order of the schema.
    """
    if folder.exists() or folder.is_symlink():
        raise _in_the_way(folder)
    state, arrays = _parts(bandit, largest_table)
    partial = folder.with_name(f"{folder.name}.{os.getpid()}-{get_ident()}.partial")  # no other thread's either
    try:
        partial.mkdir()
        text = json.dumps(state, ensure_ascii=False, allow_nan=False, indent=2, default=repr)
        (partial / STATE_FILE).write_text(text + "\n", encoding="utf-8")
        with (partial / ARRAYS_FILE).open("wb") as file:
            np.savez(file, **arrays)
        _rename(partial, folder)
    except OSError as error:
        raise not_written(folder, error.strerror or str(error)) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _rename(partial: Path, folder: Path) -> None:
    for each in partial.iterdir():
        with each.open("rb") as file:
            os.fsync(file.fileno())
    try:
        partial.rename(folder)
        sync_folder(folder.parent)
    except OSError:
        if folder.exists():
            raise _in_the_way(folder) from None
        raise


def _parts(bandit: Bandit, largest_table: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the JSON and the arrays, all of the same moment."""
    with bandit.frozen():
        belief = _belief(bandit, largest_table)  # first, for it brings the weights of older rewards up to date
        with bandit.frozen() as parts:
            saved, arrays = parts_as_saved(parts)
            inputs = _inputs(bandit, saved)
    counts = {
        "users": len(saved["users"]),
        "arms": len(saved["arms"]),
        "decisions": saved["n_decisions"],
        "rewards": bandit.n_rewards,
        "pending": len(arrays["pending"]),
    }
    plain = {name: saved[name] for name in ("settings", "users", "arms", "feature_names", "retired")}
    state = {"coterie": VERSION, "counts": counts, **plain, **inputs, "belief_is_exported": bool(belief)}
    names = [name for name in (*ARRAYS, *INPUT_ARRAYS, *EXAMINED_ARRAYS, *COMBINED_ARRAYS) if name in arrays]
    return state, {name: arrays[name] for name in names} | belief


def _inputs(bandit: Bandit, saved: dict[str, Any]) -> dict[str, Any]:
    """Returns what the columns of inputs are, and what is known of guests and users; nothing without contexts."""
    policy = bandit._learned.policy
    if not isinstance(policy, ContextPolicy):
        return {}
    schema = policy.inputs.schema.as_plain()
    return {"inputs": {"columns": policy.inputs.columns, "schema": schema, **saved["inputs"]}}


def _belief(bandit: Bandit, largest_table: int) -> dict[str, Any]:
    """Returns mean and std, a row for each user and a column for each arm.

    Nothing where the table would be large, or where it depends on the context.
    """
    users, arms, policy = bandit.graph.users, bandit.arms.ids, bandit._learned.policy
    if len(users) * len(arms) > largest_table or (isinstance(policy, ContextPolicy) and policy.inputs.needs_context):
        return {}
    table = np.array([list(bandit.predict(user, arms).values()) for user in users])
    return {"belief_mean": table[:, :, 0], "belief_std": table[:, :, 1]}


def _in_the_way(folder: Path) -> SavedFileError:
    what = f"{str(folder)!r} exists already"
    return SavedFileError(what, "an export is a new folder", "Give another name, or move that one away")
