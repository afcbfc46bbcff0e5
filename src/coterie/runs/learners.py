"""The learners of a study: how each is made for a world."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from inspect import signature
from typing import Any, TypeAlias

import numpy as np

from coterie.contracts import ArmId, UserId
from coterie.errors import CoterieError, InputError, SettingError
from coterie.graphs import UserGraph, make_graph
from coterie.kernels import ArmKernel, ArmPool, Distinct, Exchangeable, SquaredExponential
from coterie.policies import Policy, SpectralSchedule, make_policy
from coterie.policies.auto.context_policy import ContextPolicy
from coterie.policies.factory.recipes import RECIPES
from coterie.policies.online import Chooser, Chosen
from coterie.problems import Round
from coterie.problems.setting_rules import check_keys
from coterie.runs.entries import LearnerSettings

Learner: TypeAlias = Chooser  # an object whose choice has an `arm`, one of the candidates, and that learns

GIVEN = ("graph", "arms", "seed", "context_schema")
# Users who are alone, one, or in clusters: a study whose engine is "sparse" means "groups" for these.
ALONE = ("per-user-linucb", "per-user-lints", "per-user-gp-ucb", "per-user-gp-ts")
AS_ONE = ("pooled-linucb", "pooled-lints", "gp-ucb", "gp-ts")
IN_GROUPS = frozenset((*ALONE, *AS_ONE, "club"))


def complete_learner(settings: LearnerSettings) -> LearnerSettings:
    """Returns the settings with the defaults of a method of one's own written out; raises if it cannot be made.

    A policy of ours is made once on two users, with its options and with each value of its grids.
    """
    if ":" in settings.policy:
        return replace(settings, options=_own_options(settings))
    if settings.policy != "oracle":
        _try_learner(settings)
    return settings


def _own_options(settings: LearnerSettings) -> dict[str, Any]:
    """Returns the options of a method of one's own: what its signature gives a default, and what the study says."""
    parameters = signature(found_method(settings.policy)).parameters.values()
    known = {
        each.name: each.default for each in parameters if each.name not in GIVEN and each.kind is not each.VAR_KEYWORD
    }
    if not any(each.kind is each.VAR_KEYWORD for each in parameters):
        check_keys([*settings.options, *(settings.tune or {})], known, f"{settings.policy} has the options")
    plain = {key: value for key, value in known.items() if isinstance(value, bool | int | float | str)}
    return {**plain, **settings.options}


def _try_learner(settings: LearnerSettings) -> None:
    two, arms = make_graph("complete", 2), ArmPool(np.eye(2))
    tried = [{}, *({key: value} for key, grid in (settings.tune or {}).items() for value in grid)]
    for tuned in tried:
        try:
            make_learner(settings, graph=two, arms=arms, horizon=10, seed=0, tuned=tuned)
        except InputError as error:
            given = [*tuned, *settings.options]
            key = next((each for each in given if each in error.problem), "tune" if tuned else "policy")
            raise SettingError(error.problem, error.rule, error.remedy, key="tune" if tuned else key) from None


def make_learner(
    settings: LearnerSettings,
    *,
    graph: UserGraph,
    arms: ArmPool,
    horizon: int,
    seed: int,
    tuned: Mapping[str, Any],
    context_schema: Mapping[str, Any] | None = None,
) -> Learner:
    """Returns a new learner: a policy of ours, or a method of one's own.

    Args:
        settings: Which policy, and its options.
        graph: The users, as it sees them (`seen_graph`).
        arms: The pool.
        horizon: The rounds it will play.
        seed: Of its own randomness.
        tuned: Options chosen by the pilot, which replace those of the settings.
        context_schema: What a context holds, where the world has contexts; policies that cannot learn from them are
            not told.
    """
    options = {**settings.options, **tuned}
    if ":" in settings.policy:
        if "context_schema" in signature(found_method(settings.policy)).parameters:
            options["context_schema"] = context_schema
        return _own_method(settings.policy, graph=graph, arms=arms, seed=seed, **options)
    if context_schema is not None and settings.policy in RECIPES and RECIPES[settings.policy].auto:
        options["context_schema"] = context_schema
    base, share = options.pop("lambda_base", None), options.pop("share", None)
    if base is not None:
        options["noise_var"] = SpectralSchedule(base=base, horizon=horizon)
    if share is not None:
        options["user_kernel"] = Exchangeable(share=share)
    if "arm_kernel" in options:
        options["arm_kernel"] = _arm_kernel(options["arm_kernel"], options.pop("lengthscale"))
    return make_suited(settings.policy, graph=graph, arms=arms, expected_rounds=horizon, seed=seed, **options)


def make_suited(policy: str, *, graph: UserGraph, arms: ArmPool, **options: Any) -> Policy:
    """Returns the policy; where "sparse" is asked for and users are in groups, the engine is "groups".

    Policies that learn their hyperparameters then have their own engine. Options of the engine that was asked for are
    left out.

    Examples:
        >>> pool = ArmPool([[0.0], [1.0]])
        >>> make_suited("pooled-linucb", graph=make_graph("ring", 4), arms=pool, engine="sparse").select(3, [1]).arm
        1
    """
    if options.get("engine") == "sparse" and policy in IN_GROUPS:
        options["engine"], options["engine_options"] = "groups", None
    elif options.get("engine") == "sparse" and policy in RECIPES and RECIPES[policy].auto:
        options["engine"], options["engine_options"] = "auto", None
    return make_policy(policy, graph=graph, arms=arms, **options)


class Oracle:
    """Chooses the best candidate, always: it knows the truth, so only the runner can make it."""

    def __init__(self, world: Any) -> None:
        self._world = world
        self._t = 0

    def select(self, user: UserId, candidates: Any, *, context: Any = None) -> Any:
        """Returns the choice of the best candidate."""
        shown = Round(t=self._t, user=user, candidates=tuple(candidates), noise=0.0, context=context)
        return Chosen(self._world.best(shown))

    def update(self, user: UserId, arm: ArmId, reward: float, *, context: Any = None) -> None:  # noqa: ARG002 - no need
        """Counts the round, since the truth may drift."""
        self._t += 1


def takes_contexts(learner: Any) -> bool:
    """Returns whether a learner is shown contexts: a policy of ours if made with them, another if `select` takes them.

    Examples:
        >>> takes_contexts(Oracle(None)), takes_contexts(Anything(seed=0))
        (True, False)
    """
    if isinstance(learner, Policy):
        return isinstance(learner, ContextPolicy) and bool(learner.inputs.schema.fields)
    return "context" in signature(learner.select).parameters


class Anything:
    """Chooses any candidate, each as likely as any other; unlike the policy `random` it keeps nothing of anybody."""

    __slots__ = ("_rng",)

    def __init__(self, *, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def select(self, user: UserId, candidates: Any) -> Chosen:  # noqa: ARG002 - whoever it is
        """Returns the choice."""
        return Chosen(candidates[int(self._rng.integers(len(candidates)))])

    def update(self, user: UserId, arm: ArmId, reward: float) -> None:
        """Learns nothing."""


def _arm_kernel(name: str, lengthscale: Any) -> ArmKernel:
    return SquaredExponential(lengthscale) if name == "squared-exponential" else Distinct()


def seen_graph(which: str, graph: UserGraph, seed: int) -> UserGraph:
    """Returns the graph that a policy sees: as shown, users permuted, rewired, or without edges."""
    if which == "permuted":
        return graph.permuted(seed)
    if which == "rewired":
        return graph.rewired(1.0, seed, least=0.5)
    if which == "none":
        return UserGraph.from_matrix(make_graph("empty", graph.n_users).weights, users=graph.users)
    return graph


def _own_method(place: str, **options: Any) -> Learner:
    """Returns what "module:function" makes when called with graph, arms, seed and the options."""
    try:
        learner: Learner = found_method(place)(**options)
    except CoterieError:
        raise
    except TypeError as error:
        rule = "it is called with graph, arms, seed and the options of the study's entry"
        raise SettingError(f"{place} refused: {error}", rule, "Give it these parameters", key="policy") from None
    for method in ("select", "update"):
        if not callable(getattr(learner, method, None)):
            rule = "a learner has select(user, candidates) and update(user, arm, reward)"
            raise SettingError(f"{place} made {learner!r}, without {method}", rule, "Give it one", key="policy")
    return learner


def found_method(place: str) -> Callable[..., Any]:
    """Returns the function that "module:function" names."""
    module, _, name = place.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # a script's own folder is on the path, the folder it is run in is not
    try:
        make: Callable[..., Any] = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        rule = "a method of your own is 'module:function', importable from where you run"
        remedy = f"Check the spelling, and that {module}.py lies in this folder"
        raise SettingError(f"policy {place!r} cannot be found: {error}", rule, remedy, key="policy") from None
    return make
