"""Whether the parts of a saved bandit agree on users, arms, rewards and decisions."""

from typing import Any

import numpy as np

from coterie.contracts import LARGEST_REWARD
from coterie.kernels.joint import vector_key
from coterie.models.agreement import gap_of_rows
from coterie.models.choose import LARGE_ENGINES, default_options
from coterie.policies.auto.fits import FitSchedule
from coterie.product.decisions import GUEST
from coterie.product.files.checked.input_checks import check_inputs
from coterie.product.learned import Memory

SAME = 1e-7  # of the largest reward
ACCURACIES = ("eps", "accuracy", "max_work")  # of "sparse", whoever chose it


def check_agreement(saved: dict[str, Any]) -> None:
    """Raises ValueError if the parts of a saved bandit contradict each other; `read_saved` has read it."""
    arrays, settings = saved["arrays"], saved["settings"]
    check_graph(len(saved["users"]), arrays["graph_starts"], arrays["graph_columns"])
    _check(len(set(saved["users"])) == len(saved["users"]) > 0, "two of its users have one id")
    _check(len(set(saved["arms"])) == len(saved["arms"]) > 0, "two of its arms have one id")
    retired = set(saved["retired"])
    _check(saved["retired"] == [arm for arm in saved["arms"] if arm in retired], "its retired arms are not its arms")
    rewards = arrays["event_rewards"]
    _check(np.all(np.abs(rewards) <= LARGEST_REWARD), "its rewards are too large")
    if settings.get("reward") == "binary":
        _check(np.all((rewards == 0) | (rewards == 1)), "its rewards are not all 0 or 1")
    _check(max(saved["learned_at_once"], saved.get("stale", 0)) <= len(rewards), "it learned more rewards than it has")
    fades = settings["forgetting"] < 1 or settings["window"] is not None
    _check(fades or not saved.get("stale"), "rewards have faded that do not fade")
    _check_decisions(saved)
    _check_examined(saved)
    if saved["belief"] is not None:
        _check_belief(saved)
    if "event_inputs" in arrays:
        check_inputs(saved)


def check_graph(n_users: int, starts: Any, columns: Any) -> None:
    """Raises ValueError unless these are the rows of a sparse matrix, each row's columns in order and once."""
    _check(len(starts) == n_users + 1, "its graph is one of other users")
    _check(starts[0] == 0 and starts[-1] == len(columns) and np.all(np.diff(starts) >= 0), "its graph is cut off")
    later = np.ones(len(columns), dtype=bool)
    later[starts[:-1][np.diff(starts) > 0]] = False  # the first of a row may be anything
    _check(np.all(np.diff(columns, prepend=-1)[later] > 0), "its graph has an edge twice, or not in order")


def _check_decisions(saved: dict[str, Any]) -> None:
    arrays, made, most = saved["arrays"], saved["n_decisions"], saved["settings"]["max_pending"]
    (numbers, users, arms), (settled, events) = arrays["pending"].T, arrays["settled"].T
    _check(np.all(np.diff(numbers) > 0), "its pending decisions are not in order")
    _check(np.all(users < len(saved["users"])) and np.all(arms < len(saved["arms"])), "a pending decision is of nobody")
    _check(np.all(users >= 0) and np.all(numbers >= 0), "a pending decision is of nobody")
    _check_guests(saved)
    known = np.concatenate([numbers, settled])
    _check(np.all(known < made) and len(np.unique(known)) == len(known), "its decisions are not numbered once each")
    _check(len(np.unique(events)) == len(events), "two of its decisions have one reward")
    _check(np.all(events < len(arrays["event_rewards"])), "a decision has a reward that is not there")
    _check(max(len(numbers), len(settled)) <= most, "it remembers more decisions than it may")
    never = saved["settings"]["expire_after"] is None
    _check(not never or not np.any(arrays["pending_made_at"]), "decisions that never expire have a time")


def _check_examined(saved: dict[str, Any]) -> None:
    """Raises unless rewards and pending decisions are at places whose effect is given, where that is given."""
    arrays, places = saved["arrays"], saved["settings"].get("places")
    given = places if isinstance(places, list) else []
    _check(("event_examined" in arrays) == bool(given), "its places have an effect that is not there")
    for name in ("event_examined", "pending_examined") if given else ():
        _check(np.all(np.isin(arrays[name], given)), "a reward is of no place")


def _check_guests(saved: dict[str, Any]) -> None:
    """Raises unless just the arms that are not of the pool have an id of their own."""
    arrays, inputs = saved["arrays"], saved.get("inputs") or {}
    events, pending = arrays["event_arms"], arrays["pending"]
    without = set(np.flatnonzero(events == GUEST).tolist()), set(pending[pending[:, 2] == GUEST, 0].tolist())
    named = [[each for each, _ in inputs.get(f"{name}_guests", ())] for name in ("event", "pending")]
    _check(without == tuple(map(set, named)), "an arm that is not of its pool has no id")
    _check(all(len(set(each)) == len(each) for each in named), "an arm that is not of its pool has two ids")


def _check_belief(saved: dict[str, Any]) -> None:
    belief, settings = saved["belief"], saved["settings"]
    _check(belief["n_decisions"] == saved["n_decisions"], "its decisions are counted twice, and not alike")
    if "model" not in belief:
        return
    model, options = belief["model"], settings["options"]
    engine = options.get("engine", "auto")
    _check(engine in ("auto", model["engine"]), f"it asks for engine {engine!r}, and has {model['engine']!r}")
    given = options.get("engine_options") or {}
    if model["engine"] == "sparse":
        given = {name: default_options("sparse")[name] for name in ACCURACIES} | given
    if engine != "auto" or model["engine"] == "sparse":
        _check(all(model.get(name, value) == value for name, value in given.items()), "its engine has other options")
    _check("kernel" in belief or "hyper" in belief or model["engine"] in LARGE_ENGINES, "its kernel is missing")
    pending = belief.get("begun")
    if pending is not None:
        due = FitSchedule().due_after(pending["started"])
        _check(pending["due"] == due, "its fit is due at another reward than its schedule says")
        seen = [*pending["history"]["means"], *pending["later"]["values"], pending["shift"]]
        _check(
            np.all(np.abs(seen) <= 2 * LARGEST_REWARD), "its fit has seen rewards that are too large"
        )  # less a level
    _check_history(saved)


def _check_history(saved: dict[str, Any]) -> None:
    """Raises unless the rewards that the belief is of are those that came, as much as each counts by now."""
    arrays, belief = saved["arrays"], saved["belief"]
    wanted, centre = dict(belief["model"]["history"]), belief.get("centre", 0.0)
    if "trials" in belief:
        _check(_pairs(wanted) == _pairs(belief["trials"]), "its model knows other pairs than its trials")
        wanted, centre = dict(belief["trials"]), 0.0
        del wanted["scatters"]  # which nothing depends on there
    combined = "event_counts" in arrays
    weights = _counts(saved, wanted["n_observations"]) if combined else _weights(saved, wanted["n_observations"])
    first = len(arrays["event_rewards"]) - len(weights)
    users, arms, rewards = (arrays[f"event_{name}"][first:] for name in ("users", "arms", "rewards"))
    if "event_inputs" in arrays:
        place = _input_places(wanted, users, arrays["event_inputs"][first:])
    else:
        place = _places(wanted, users, arms, len(saved["arms"]))
    largest = float(np.abs(wanted["means"]).max(initial=0.0))
    _check(wanted.get("largest", largest) >= largest, "its largest reward is not the largest")
    wanted["means"] = wanted["means"] + centre  # compared as they came, to whose digits they are known
    if "event_examined" in arrays:
        examined = arrays["event_examined"][first:]
        spare, kept = float(weights @ (1 - examined**2)), belief["model"]["engine"] != "sparse"
        _check(not kept or abs(wanted.get("spare", 0.0) - spare) <= SAME * len(weights), "it has other noisy rewards")
        rewards, weights = rewards / examined, weights * examined**2
    scatters = arrays["event_scatters"] if combined else None
    off = gap_of_rows(place, weights, rewards, wanted, scatters, level=centre)
    _check(off <= SAME, "its belief is of other rewards")


def _weights(saved: dict[str, Any], counted: int) -> Any:
    """Returns how much each of the last rewards counts if so many do; version 0.1 forgot them later than this one."""
    forgetting, window = saved["settings"]["forgetting"], saved["settings"]["window"]
    fresh = saved.get("stale", 0)
    faded = len(saved["arrays"]["event_rewards"]) - fresh
    least = np.count_nonzero(Memory(forgetting=forgetting, window=window).weights(faded))
    most = min(faded, window or faded) if forgetting < 1 else least
    _check(least <= counted - fresh <= most, "its belief is of another number of rewards")
    return np.concatenate([forgetting ** np.arange(counted - fresh - 1.0, -1.0, -1.0), np.ones(fresh)])


def _counts(saved: dict[str, Any], counted: int) -> Any:
    """Returns how many rewards each row stands for; they do not fade."""
    settings, counts = saved["settings"], saved["arrays"]["event_counts"]
    fades = settings["forgetting"] < 1 or settings["window"] is not None or isinstance(settings.get("places"), list)
    _check(not fades and "event_inputs" not in saved["arrays"], "its combined rewards fade, or have places or contexts")
    _check(counts.sum() == counted, "its belief is of another number of rewards")
    return counts


def _places(history: dict[str, Any], users: Any, arms: Any, n_arms: int) -> Any:
    """Returns the row of each of these pairs in a history that has them all, each once, and no others."""
    held, asked = history["users"].astype(np.int64) * n_arms + history["arms"], users * n_arms + arms
    order = np.argsort(held)
    place = np.searchsorted(held[order], asked)
    same = np.array_equal(np.unique(asked), held[order])
    _check(same, "its belief is of other pairs, or has one twice")
    return order[place]


def _input_places(history: dict[str, Any], users: Any, inputs: Any) -> Any:
    """Returns what `_places` does, of pairs of user and input."""
    held = [vector_key(*each) for each in zip(history["users"].tolist(), history["arms"], strict=True)]
    asked = [vector_key(*each) for each in zip(users.tolist(), inputs, strict=True)]
    rows = {key: row for row, key in enumerate(held)}
    _check(len(rows) == len(held) and set(asked) == set(held), "its belief is of other pairs, or has one twice")
    return np.array([rows[key] for key in asked], dtype=np.intp)


def _pairs(history: dict[str, Any]) -> list[tuple[int, int]]:
    return list(zip(history["users"].tolist(), history["arms"].tolist(), strict=True))


def _check(holds: Any, why: str) -> None:
    if not holds:
        raise ValueError(why)
