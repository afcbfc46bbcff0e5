"""A saved bandit from the shell: decide, reward, inspect, export, each in words."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.errors import DecisionError, ParameterError, counted
from coterie.kernels import ArmPool
from coterie.kernels.schema import CATEGORY, ContextField, ContextSchema
from coterie.logs.tables import as_whole
from coterie.product.bandit import Bandit
from coterie.product.decisions import Decision
from coterie.product.files.replaying import replay
from coterie.product.files.saving import kept
from coterie.product.learned import RewardEvents
from coterie.product.project.context_text import read_context

SHOWN = 5


def decide(
    path: Path,
    user: str,
    arms: Sequence[str] = (),
    *,
    context: str | None = None,
    as_json: bool = False,
    tell: Callable[[str], None] | None = None,
) -> str:
    """Returns in one line the decision for a user, which the file then holds; no arms given means all.

    Args:
        path: A saved bandit.
        user: For whom.
        arms: What to choose among.
        context: In which, as `read_context` takes it.
        as_json: Whether the line is JSON.
        tell: Called with the line before the file is saved; if that fails, the file stays as it was.
    """
    with kept(path) as bandit:
        shown = [as_id(arm, bandit.arms.index) for arm in arms] or None
        decision = bandit.decide(as_id(user, bandit.graph.index), shown, _context(bandit, context))
        line = decision_as_json(decision) if as_json else decision_in_words(decision)
        if tell is not None:
            tell(line)
    return line


def reward(path: Path, decision: int, value: float, *, replace: bool = False) -> str:
    """Returns in one line that the reward of a decision was learned and saved."""
    with kept(path) as bandit:
        try:
            bandit.reward(decision, value, replace=replace)
        except DecisionError as error:
            raise DecisionError(error.problem, error.rule, _in_the_shell(error.remedy)) from None
    return f"decision {decision}: learned {value:g}; {_counted(bandit)}"


def inspect(path: Path, *, user: str | None = None, arm: str | None = None, context: str | None = None) -> str:
    """Returns in words what a file holds, or why the bandit believes what it believes of an arm for a user."""
    if (user is None) != (arm is None):
        given, missing = ("--user", "--arm") if arm is None else ("--arm", "--user")
        raise ParameterError(f"{given} is given without {missing}", "an estimate is for both", "Give both or neither")
    if context is not None and user is None:
        raise ParameterError("--context is given without --user", "an estimate is for a user", "Give --user and --arm")
    bandit = Bandit.load(path, journal=None)  # it is only read
    if user is not None and arm is not None:
        asked = as_id(user, bandit.graph.index), as_id(arm, bandit.arms.index)
        return str(bandit.explain(*asked, _context(bandit, context)))
    return "\n".join(f"{name:<10}{words}" for name, words in _described(path, bandit).items())


def export(path: Path, folder: Path) -> str:
    """Returns in one line what was exported to the folder."""
    bandit = Bandit.load(path, journal=None)  # it is only read
    bandit.export(folder)
    return f"wrote {folder}: {_counted(bandit)}"


def replayed(path: Path, journal: Path, decision: int, *, as_json: bool = False) -> str:
    """Returns in one line a decision made again from a saved bandit and its journal."""
    made = replay(path, journal, decision=decision)
    return decision_as_json(made) if as_json else decision_in_words(made)


def as_id(text: str, known: Mapping[Any, int]) -> str | int:
    """Returns the id that a text on the command line means: itself, or the number it spells if only that is known.

    Examples:
        >>> as_id("7", {7: 0}), as_id("7", {7: 0, "7": 1}), as_id("8", {7: 0})
        (7, '7', '8')
    """
    number = as_whole(text)
    return number if number is not None and text not in known and number in known else text


def _context(bandit: Bandit, text: str | None) -> Any:
    return None if text is None else read_context(text, bandit.context_schema)


def decision_in_words(decision: Decision) -> str:
    """Returns a decision in one line.

    Examples:
        >>> from coterie import UserGraph
        >>> bandit = Bandit(graph=UserGraph.from_edges([("ana", "bo")]), arms={"tea": [0.0]}, policy="lk-gp-ucb")
        >>> decision_in_words(bandit.decide("ana"))
        'decision 0: tea (propensity 1, mean 0 ± 2.3)'
    """
    chance = "unknown" if decision.propensity is None else f"{decision.propensity:.3g}"
    if decision.propensity_error:
        chance += f" ± {decision.propensity_error:.1g}"
    return (
        f"decision {decision.id}: {decision.arm} (propensity {chance}, mean {decision.mean:.3g} ± {decision.std:.2g})"
    )


def decision_as_json(decision: Decision) -> str:
    """Returns a decision as one line of JSON, its attributes by their names."""
    names = ("id", "user", "arm", "propensity", "mean", "std", "propensity_error")
    return json.dumps({name: getattr(decision, name) for name in names}, ensure_ascii=False)


def _in_the_shell(remedy: str) -> str:
    """Returns the remedy of a DecisionError as somebody at a shell can follow it."""
    if "replace=True" in remedy:
        return remedy.replace("Pass replace=True", "Add --replace")
    return "See with coterie inspect which decisions wait for a reward"


def _counted(bandit: Bandit) -> str:
    return f"rewards {bandit.n_rewards}, pending {bandit.n_pending}"


def _described(path: Path, bandit: Bandit) -> dict[str, str]:
    with bandit.frozen() as parts:
        graph, arms, settings = bandit.graph, bandit.arms, parts["settings"]
        parted = counted(graph.n_components, "connected part")
        retired = f", {len(parts['retired'])} of them retired" if parts["retired"] else ""
        return {
            "file": f"{path}, {path.stat().st_size / 1000:.1f} kB",
            "users": f"{graph.n_users}, with {counted(graph.n_edges, 'edge')}, in {parted}",
            "arms": f"{len(arms)} with {_features(arms)}{retired}",
            **_contexts(bandit.context_schema),
            "rewards": _rewards(parts["events"]),
            "decisions": f"{parts['n_decisions']} made, {_pending(bandit.pending)}",
            "memory": _memory(settings["forgetting"], settings["window"]),
            "policy": f"{settings['policy']}, seed {settings['seed']}",
            "model": bandit.describe(),
        }


def _rewards(events: RewardEvents) -> str:
    if not len(events):
        return "none yet"
    rewards, n_rewards = np.array(events.rewards), events.n_rewards
    if not events.counts:
        return f"{n_rewards}, on average {rewards.mean():.3g}, from {rewards.min():.3g} to {rewards.max():.3g}"
    mean = float(rewards @ np.array(events.counts)) / n_rewards
    pairs = f"of {len(events)} pairs, whose means are from {rewards.min():.3g} to {rewards.max():.3g}"
    return f"{n_rewards}, on average {mean:.3g}, {pairs}"


def _features(arms: ArmPool) -> str:
    return counted(arms.dimension, "feature") if arms.has_features else "no features"


def _contexts(schema: ContextSchema | None) -> dict[str, str]:
    """Returns in words what contexts hold; nothing where there are none."""
    if schema is None or not schema.fields:
        return {}
    if not schema.is_named:
        return {"contexts": f"rows of {counted(schema.n_numbers, 'number')}"}
    return {"contexts": ", ".join(map(_field, schema.fields))}


def _field(field: ContextField) -> str:
    """Returns in words what a name of a context holds.

    Examples:
        >>> _field(ContextField("device", CATEGORY, ("phone",), n_unknown=3))
        'device (category: 1 known, 3 times an unknown one)'
    """
    if field.kind != CATEGORY:
        return f"{field.name} ({field.kind})"
    unknown = f", {field.n_unknown} times an unknown one" if field.n_unknown else ""
    return f"{field.name} ({field.kind}: {len(field.categories)} known{unknown})"


def _pending(pending: Mapping[int, tuple[Any, Any]]) -> str:
    if not pending:
        return "none waits for a reward"
    last = [f"{number} ({arm} for {user})" for number, (user, arm) in list(pending.items())[-SHOWN:]]
    return f"{len(pending)} without a reward: {'... ' if len(pending) > SHOWN else ''}{', '.join(last)}"


def _memory(forgetting: float, window: int | None) -> str:
    kept_ones = "every reward counts" if window is None else f"the last {window} rewards count"
    return kept_ones + ("" if forgetting == 1 else f", each {forgetting:g} times as much as the one after it")
