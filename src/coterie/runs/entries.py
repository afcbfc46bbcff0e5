"""The entries of a study: which options each policy has, and what is said of it, checked when it is said."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from coterie.errors import SettingError, listed, or_similar
from coterie.kernels import Exchangeable
from coterie.policies import list_policies
from coterie.policies.factory.ingredients import CLUSTER_WIDTH
from coterie.policies.factory.recipes import RECIPES
from coterie.problems.setting_rules import check_keys, choice, flag, text

COMMON = ("policy", "label", "graph", "tune", "worlds", "fixed", "quick")
LONGEST_LABEL = 40
GRAPHS = ("shown", "permuted", "rewired", "none")
NO_WIDTH = frozenset({"oracle", *(name for name, recipe in RECIPES.items() if "width" not in recipe.takes)})
ARM_KERNELS = ("squared-exponential", "distinct")


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerSettings:
    """One policy of a study.

    Attributes:
        label: Its name in the study's tables and figures.
        policy: A name that `make_policy` knows, "oracle", or "module:function" for a method of your own.
        options: What it is made with, every default written out.
        graph: The graph it sees: as shown by the world, with users permuted, rewired, or without edges.
        tune: Grids of its own, by option, beside or instead of the study's; None where it is not tuned.
        fixed: The options that the study gives a value, which the study's grids leave alone.
        worlds: The worlds it plays; none given means all.
        in_quick: Whether a study that is made small keeps it.
    """

    label: str
    policy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    graph: str = "shown"
    tune: Mapping[str, tuple[Any, ...]] | None = field(default_factory=dict)
    worlds: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    in_quick: bool = True

    def grid(self, shared: Mapping[str, tuple[float, ...]]) -> list[dict[str, Any]]:
        """Returns the settings to try in a pilot: the study's grids of the options it has, and its own."""
        if self.tune is None:
            return []
        free = [key for key in self.options if key not in self.fixed]
        axes: dict[str, tuple[Any, ...]] = {key: grid for key, grid in shared.items() if key in free}
        axes.update(self.tune)
        return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())] if axes else []

    def quick(self) -> "LearnerSettings":
        """Returns the same with at most two values in each grid of its own."""
        return replace(self, tune=self.tune and {key: grid[:2] for key, grid in self.tune.items()})

    def as_dict(self) -> dict[str, Any]:
        """Returns plain values that `learner_settings` reads back."""
        tune: Any = False if self.tune is None else {key: list(grid) for key, grid in self.tune.items()}
        shown: dict[str, Any] = {"label": self.label, "policy": self.policy, "graph": self.graph}
        if self.worlds:
            shown["worlds"] = list(self.worlds)
        if not self.in_quick:
            shown["quick"] = False
        return {**shown, "tune": tune, "fixed": list(self.fixed), **self.options}


def learner_settings(given: Mapping[str, Any], shared: Mapping[str, Any]) -> LearnerSettings:
    """Returns the settings of one policy, every default written out.

    Args:
        given: The keys of the study's entry.
        shared: What the study gives to every policy that has such an option, as noise_var or lengthscale.

    Examples:
        >>> learner_settings({"policy": "gob-lin", "width": 2}, {}).options["laplacian_ridge"]
        1.0
    """
    policy = given.get("policy")
    if isinstance(policy, str) and ":" in policy:
        options = {key: value for key, value in given.items() if key not in COMMON}
    else:
        options = _options(policy, given, shared)
    label = given.get("label", policy)
    if not isinstance(label, str) or not 0 < len(label.strip()) <= LONGEST_LABEL:
        rule = f"it is a text of 1 to {LONGEST_LABEL} characters"
        raise SettingError(f"label is {label!r}", rule, 'Choose, say, "permuted"', key="label")
    assert isinstance(policy, str)
    tune = _tune(given.get("tune"), policy, options)
    return LearnerSettings(
        label=label,
        policy=policy,
        options=options,
        graph=choice(GRAPHS)("graph", given.get("graph", "shown")),
        tune=tune,
        worlds=_world_names(given.get("worlds")),
        fixed=tuple(given.get("fixed", [key for key in given if key in options])),
        in_quick=flag("quick", given.get("quick", True)),
    )


ON_ENGINES: dict[str, Any] = {"engine": "auto", "engine_options": None}


def known_options(policy: str) -> dict[str, Any]:
    """Returns the options that a policy has in a study, with their defaults; None where it is left to `make_policy`."""
    if policy in ("oracle", "random"):  # what a random policy believes is never asked for
        return {}
    recipe = RECIPES[policy]
    by_option: dict[str, dict[str, Any]] = {
        "width": {"width": recipe.width},
        "noise_var": {"noise_var": recipe.noise_var},
        "laplacian_ridge": {"laplacian_ridge": recipe.laplacian_ridge},
        "cluster_width": {"cluster_width": CLUSTER_WIDTH},
        "arm_kernel": {"lengthscale": "median", "arm_kernel": "squared-exponential", "lambda_base": None},
        "similarity": {"similarity": next(iter(recipe.similarities or {}), None)},
        "sampling": {"sampling": next(iter(recipe.scores))},
    }
    out = {key: value for each, held in by_option.items() if each in recipe.takes for key, value in held.items()}
    if policy.startswith("exchangeable"):
        out["share"] = Exchangeable().share
    return out if policy == "popularity" else {**out, **ON_ENGINES}


def _options(policy: Any, given: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    known = list_policies()
    if policy not in known:
        met = "missing" if policy is None else f"{policy!r} is unknown"
        remedy = or_similar(policy, known, 'Use one of these, or "module:function" for your own')
        raise SettingError(f"policy {met}", f"policies are {listed(known, 40)}", remedy, key="policy")
    defaults = known_options(policy)
    check_keys(given, [*COMMON, *defaults], f"{policy!r} has")
    options = {**defaults, **{key: value for key, value in shared.items() if key in defaults}}
    options.update({key: value for key, value in given.items() if key in defaults})
    _check_one_noise(given)
    if "noise_var" in given and "lambda_base" in options:
        options["lambda_base"] = None  # a constant asked for by name is not scheduled
    for key, value in options.items():
        _check_option("epsilon" if (policy, key) == ("epsilon-greedy", "width") else key, value)
    if options.get("lambda_base") is not None:
        options.pop("noise_var")
    else:
        options.pop("lambda_base", None)
    return options


def check_shared(shared: Mapping[str, Any]) -> None:
    """Raises if the study gives its policies an option that cannot be shared."""
    known = ("lengthscale", "lambda_base", "noise_var", *ON_ENGINES)
    _check_one_noise(shared)
    check_keys(shared, known, "[learners] has", remedy="Use these")
    for key, value in shared.items():
        _check_option(key, value)


def _check_one_noise(given: Mapping[str, Any]) -> None:
    if "noise_var" in given and "lambda_base" in given:
        rule = "noise_var is a constant and lambda_base turns on the schedule"
        raise SettingError("both noise_var and lambda_base are given", rule, "Leave one out", key="lambda_base")


_NUMBERS = ("width", "noise_var", "lambda_base", "laplacian_ridge", "share", "cluster_width")


def _check_option(key: str, value: Any) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
    if key == "epsilon" and not (number and 0 <= value <= 1):
        raise SettingError(f"width is {value!r}", "here it is a probability, 0 to 1", "Choose, say, 0.1", key="width")
    if key in _NUMBERS and value is not None and not (number and value >= 0):
        raise SettingError(f"{key} is {value!r}", "it is a number >= 0", "Mend it", key=key)
    if key == "lengthscale" and not (value == "median" or (number and value > 0)):
        raise SettingError(f"{key} is {value!r}", "it is a number > 0 or 'median'", "Mend it", key=key)
    if key == "arm_kernel":
        choice(ARM_KERNELS)(key, value)
    if key == "engine_options" and value is not None and not isinstance(value, Mapping):
        raise SettingError(f"{key} is {value!r}", "it is a table", "Write, say, { eps = 0.5 }", key=key)
    if key in ("similarity", "sampling", "engine"):
        text(key, value)


def _tune(given: Any, policy: str, options: Mapping[str, Any]) -> Mapping[str, tuple[Any, ...]] | None:
    if given is False or (given is None and policy in NO_WIDTH | {"auto-ts", "auto-ucb", "epsilon-greedy"}):
        return None
    if given is None or given is True:
        return {}
    if not isinstance(given, Mapping):
        rule = "it is true, false or a table of grids"
        raise SettingError(f"tune is {given!r}", rule, "Write, say, tune = { share = [0.2, 0.8] }", key="tune")
    for key, grid in given.items():
        if ":" not in policy and key not in options:
            rule = f"{policy!r} has {listed(options, 30)}"
            raise SettingError(f"tune has {key!r}", rule, or_similar(key, options, "Use one of these"), key="tune")
        if not isinstance(grid, list) or not grid:
            raise SettingError(f"tune.{key} is {grid!r}", "it is a list of values", "Write them in [ ]", key="tune")
        for value in grid:
            _check_option(key, value)
    return {key: tuple(grid) for key, grid in given.items()}


def _world_names(given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, list) and given and all(isinstance(each, str) for each in given):
        return tuple(given)
    raise SettingError(f"worlds is {given!r}", "it is a list of names of worlds", "Leave it out for all", key="worlds")
