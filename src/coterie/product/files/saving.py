"""A bandit as state and arrays: everything that its next decision depends on, and nothing else."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import scipy.sparse as sp

from coterie.contracts import Index
from coterie.errors import FAILURES, CoterieError, JournalError, MemoryLimitError, MissingExtraError, SavedFileError
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.models.choose import LARGE_ENGINES
from coterie.policies.factory.recipes import RECIPES
from coterie.product.bandit import Bandit
from coterie.product.files.atomic import is_at, lock
from coterie.product.files.checked.cross_checks import check_agreement
from coterie.product.files.checked.schema import read_saved
from coterie.product.files.container import Content, as_bytes, broken, read_container, write_container
from coterie.product.files.kernel_settings import KERNEL_OPTIONS, kernel_of, option_as_saved

PLAIN = (str, int, float, bool, type(None))


def save_bandit(bandit: Bandit, path: Path) -> None:
    """Writes the bandit to one file, the belief's own arrays included; meanwhile it neither decides nor learns."""
    with bandit.frozen() as parts:
        _check_options(parts)
        write_container(path, *parts_as_saved(parts))


def copied_parts(bandit: Bandit) -> dict[str, Any]:
    """Returns what `Bandit.frozen` gives, for later: what changes in place is copied, and nothing else is done.

    Waits for a fit that goes on before it keeps the bandit from deciding.
    """
    fit = bandit._learned.policy.pending_fit
    if fit is not None:
        with suppress(*FAILURES):
            fit.found()
    with bandit.frozen() as parts:
        return parts | {"events": parts["events"].copied(), "belief": _copied(parts["belief"])}


def _copied(tree: Any) -> Any:
    """Returns nested tables and lists with copies of their arrays."""
    if isinstance(tree, np.ndarray):
        return tree.copy("K")
    if isinstance(tree, dict):
        return {key: _copied(each) for key, each in tree.items()}
    return [_copied(each) for each in tree] if isinstance(tree, list) else tree


def bytes_of_parts(parts: dict[str, Any]) -> bytes:
    """Returns the file of a bandit that `Bandit.save` writes."""
    _check_options(parts)
    return as_bytes(*parts_as_saved(parts))


def _check_options(parts: dict[str, Any]) -> None:
    options = parts["settings"]["options"]
    odd = [name for name, value in options.items() if not _is_plain(option_as_saved(value))]
    if odd:
        raise SavedFileError(
            f"the bandit cannot be saved: option {odd[0]!r} is {options[odd[0]]!r}",
            "options that can be saved are numbers, texts, true or false, tables of such, and our own kernels",
            "Use such options, or keep the rewards and learn them again",
        )


def _is_plain(value: Any) -> bool:
    """Whether an option is written as it is: a plain value, or a table or list of such (`engine_options`)."""
    if type(value) is dict:
        return all(isinstance(name, str) and _is_plain(each) for name, each in value.items())
    return all(map(_is_plain, value)) if type(value) is list else isinstance(value, PLAIN)


def parts_as_saved(parts: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the JSON and the arrays of a bandit, of what `Bandit.frozen` gives."""
    graph, arms, events, ledger = parts["graph"], parts["arms"], parts["events"], parts["ledger"]
    weights = graph.weights.tocsr()
    state = {
        "settings": {**parts["settings"], "options": _options_as_saved(parts["settings"]["options"])},
        "users": list(graph.users),
        "arms": list(arms.ids),
        "feature_names": None if arms.feature_names is None else list(arms.feature_names),
        "retired": parts["retired"],
        "n_decisions": parts["n_decisions"],
        "learned_at_once": parts["learned_at_once"],
        "stale": parts["stale"],
        "journal": parts["journal"],
    }
    arrays = {
        "graph_starts": weights.indptr.astype(np.int64),
        "graph_columns": weights.indices.astype(np.int64),
        "graph_weights": weights.data,
        "features": arms.features,
        "event_users": np.array(events.users, dtype=np.int64),
        "event_arms": np.array(events.arms, dtype=np.int64),
        "event_rewards": np.array(events.rewards, dtype=np.float64),
        "pending": _as_table(ledger.numbers, ledger.column("user"), ledger.column("arm")),
        "pending_made_at": np.array(ledger.column("made_at"), dtype=np.float64),
        "settled": _as_table(ledger.settled, ledger.events),
    }
    if isinstance(parts["settings"]["places"], list):
        arrays["event_examined"] = np.array(events.examined, dtype=np.float64)
        arrays["pending_examined"] = np.array(ledger.column("examined"), dtype=np.float64)
    if events.counts:
        arrays["event_counts"] = np.array(events.counts, dtype=np.float64)
        arrays["event_scatters"] = np.array(events.scatters, dtype=np.float64)
    state["belief"] = taken_apart(parts["belief"], "belief", arrays)
    if parts["inputs"] is not None:
        guests = zip(ledger.numbers, ledger.column("guest"), strict=True)
        state["inputs"] = {
            "has_features": arms.has_features,
            "user_features": _user_features(parts),
            "event_guests": [[event, arm] for event, arm in events.guests.items()],
            "pending_guests": [[number, guest] for number, guest in guests if guest is not None],
        }
        shape = -1, parts["inputs"].layout.width
        arrays["event_inputs"] = np.array(events.inputs, dtype=np.float64).reshape(shape)
        arrays["pending_inputs"] = np.array(ledger.column("input"), dtype=np.float64).reshape(shape)
    elif not arms.has_features:
        state["inputs"] = {"has_features": False}
    return state, arrays


def _as_table(*columns: list[int]) -> Index:
    """Returns columns of whole numbers side by side."""
    return np.ascontiguousarray(np.array(columns, dtype=np.int64).T)


def _options_as_saved(options: dict[str, Any]) -> dict[str, Any]:
    return {name: option_as_saved(value) for name, value in options.items()}


def _user_features(parts: dict[str, Any]) -> list[Any] | None:
    """Returns the features of each user, if they have any."""
    table = parts["user_features"]
    return None if table is None else [table[user] for user in parts["graph"].users]


def taken_apart(tree: Any, name: str, arrays: dict[str, Any]) -> Any:
    """Returns nested tables and lists as JSON takes them, with {"array": name} for every array; these go to `arrays`.

    Examples:
        >>> arrays = {}
        >>> taken_apart({"size": 2, "rows": [np.zeros(2), np.ones(2)]}, "belief", arrays)
        {'size': 2, 'rows': [{'array': 'belief/rows/0'}, {'array': 'belief/rows/1'}]}
    """
    if isinstance(tree, np.ndarray):
        arrays[name] = tree
        return {"array": name}
    if isinstance(tree, dict):
        return {key: taken_apart(each, f"{name}/{key}", arrays) for key, each in tree.items()}
    if isinstance(tree, list):
        return [taken_apart(each, f"{name}/{i}", arrays) for i, each in enumerate(tree)]
    return tree.item() if isinstance(tree, np.generic) else tree


def load_bandit(path: Path, *, alone: bool = False, **changes: Any) -> Bandit:
    """Returns the bandit of a file; it decides as the saved one would have.

    Args:
        path: The file.
        alone: Whether to raise if the bandit kept a journal.
        **changes: Settings that are others now.
    """
    return bandit_of(read_container(path), path, alone=alone, **changes)


def bandit_of(content: Content, path: Path, *, alone: bool = False, **changes: Any) -> Bandit:
    """Returns the bandit of what a file holds; `path` is what it is called in errors."""
    try:
        saved = read_saved(content.state, content.arrays)
        check_agreement(saved)
    except ValueError as error:
        raise broken(path, str(error)) from None
    if alone and saved.get("journal"):
        raise JournalError(
            f"the bandit in {str(path)!r} keeps a journal, and none was given",
            "changes since it was saved are in the journal, and further ones belong there",
            "Load it with Bandit.load(path, journal=...), or without for good with journal=None",
        )
    saved["journal"] = saved.get("journal") or [content.digest, 0]
    try:
        return _made(saved, **changes)
    except (MissingExtraError, MemoryLimitError):  # which are no fault of the file
        raise
    except Exception as error:  # whatever a setting or a number that may be there leads to
        raise broken(path, error.problem if isinstance(error, CoterieError) else repr(error)) from error


def _made(saved: dict[str, Any], **changes: Any) -> Bandit:
    arrays, size = saved["arrays"], len(saved["users"])
    table = (arrays["graph_weights"], arrays["graph_columns"], arrays["graph_starts"])
    graph = UserGraph.from_matrix(sp.csr_array(table, shape=(size, size)), users=saved["users"])
    used = RECIPES[saved["settings"]["policy"]].uses()
    kept = {
        name: kernel_of(value) if name in KERNEL_OPTIONS else value
        for name, value in saved["settings"]["options"].items()
        if used.get(name, True)
    }
    saved["settings"]["options"] = kept  # version 0.1 took options that change nothing, too
    settings = {**saved["settings"], **changes}
    options = dict(settings.pop("options"))  # those that are saved again stay what they are
    if saved["belief"] and "model" in saved["belief"]:
        options = _for_a_moment(options, saved["belief"]["model"]["engine"])
    arms = ArmPool(arrays["features"], ids=saved["arms"], feature_names=saved.get("feature_names"))
    inputs = saved.get("inputs") or {}
    if not inputs.get("has_features", True):
        arms = ArmPool.without_features(saved["arms"])
    if inputs.get("user_features") is not None:
        options["users"] = dict(zip(saved["users"], inputs["user_features"], strict=True))
    bandit = Bandit(graph=graph, arms=arms, **settings, **options)
    bandit.restore(saved, arrays)
    return bandit


def _for_a_moment(options: dict[str, Any], engine: str) -> dict[str, Any]:
    """Returns options of a policy that takes little room until the belief is there; some have a kernel of their own."""
    if engine == "local":
        return options
    if engine not in LARGE_ENGINES:
        return {name: value for name, value in options.items() if name != "engine_options"} | {"engine": "exact"}
    given = options.get("engine_options") or {}
    kept = {name: value for name, value in given.items() if name != "memory_limit"}  # which is one of "auto"
    return options | {"engine": engine, "engine_options": kept}


WAIT = 10.0


@contextmanager
def kept(path: str | Path, *, wait: float = WAIT) -> Iterator[Bandit]:
    """Gives the bandit of a file and saves it at the end; after an error the file is as it was.

    Meanwhile others who ask for it with `kept` wait. The lock ends with the process that holds it, however that ends.

    Args:
        path: A file that `Bandit.save` wrote.
        wait: Seconds to wait for the others.
    """
    file = Path(path).resolve()  # saving renames a file to this name, which must not take the place of a link
    with _locked(file, monotonic() + wait):
        bandit = Bandit.load(file)
        yield bandit
        bandit.save(file)


@contextmanager
def _locked(path: Path, until: float) -> Iterator[None]:
    """Holds the lock of the file that has this name now: whoever held it before may have saved another there."""
    while True:
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError as error:
            what, rule = f"{str(path)!r} cannot be opened: {error.strerror}", "a saved bandit is a file"
            raise SavedFileError(what, rule, "Make one with: coterie init") from None
        try:
            _lock(handle, path, until)
            if is_at(handle, path):
                yield
                return
        finally:
            os.close(handle)


def _lock(handle: int, path: Path, until: float) -> None:
    try:
        lock(handle, until=until)
    except BlockingIOError:
        rule = "one program at a time changes a saved bandit"
        raise SavedFileError(f"{str(path)!r} is in use", rule, "Try again when it is done") from None
