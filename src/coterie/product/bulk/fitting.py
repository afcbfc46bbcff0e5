"""What a fit is made from, and the bandit that comes of it, solved here or elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from coterie.contracts import Array
from coterie.errors import ParameterError, listed
from coterie.errors.checks import checked_positive
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool, Linear, SquaredExponential
from coterie.kernels.arm_features import MAX_FEATURES
from coterie.models import Model
from coterie.models.base import SolveProgress
from coterie.models.engines.sparse.model import SparseModel
from coterie.policies.auto.graph_alone import graph_alone_options
from coterie.policies.factory.recipes import RECIPES
from coterie.product.bandit import Bandit
from coterie.product.bulk.collapse import Columns, table_of

SOLVED = ("lk-gp-ucb", "lk-gp-ts", "greedy", "epsilon-greedy")  # by one solve for all users, on engine "sparse"
LEARNED = tuple(name for name, recipe in RECIPES.items() if recipe.auto)
POLICIES = (*SOLVED, *LEARNED)


@dataclass(frozen=True, slots=True, kw_only=True)
class FitSettings:
    """What is asked of a fit; what is not given is fitted to a sample of the rewards.

    Attributes:
        policy: One of `POLICIES`.
        laplacian_ridge: The paper's rho.
        lengthscale: Of the squared exponential, in the units of the features.
        linear: Whether the arm kernel is linear instead.
        noise_var: The noise variance.
        seed: Of the bandit, and of the sample.
    """

    policy: str = SOLVED[0]
    laplacian_ridge: float | None = None
    lengthscale: float | None = None
    linear: bool = False
    noise_var: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            rule = f"policies that are fitted so are {listed(POLICIES, 10)}"
            raise ParameterError(f"policy is {self.policy!r}", rule, "Choose one of these")
        given = {"laplacian_ridge": self.laplacian_ridge, "lengthscale": self.lengthscale, "noise_var": self.noise_var}
        named = [name for name, value in given.items() if value is not None] + ["linear"] * self.linear
        if self.policy in LEARNED and named:
            rule = f"{self.policy!r} learns its own hyperparameters"
            raise ParameterError(f"{named[0]} is given", rule, "Leave it out, or use 'lk-gp-ucb'")
        if self.linear and self.lengthscale is not None:
            rule = "a linear kernel has no lengthscale"
            raise ParameterError("both linear and a lengthscale are given", rule, "Leave one out")
        for name, value in given.items():
            if value is not None:
                checked_positive(name, value)

    @property
    def is_solved(self) -> bool:
        """Whether the belief is one solve for all users."""
        return self.policy in SOLVED

    @property
    def is_given(self) -> bool:
        """Whether nothing is left to be fitted to a sample."""
        kernel = self.linear or self.lengthscale is not None
        return kernel and self.laplacian_ridge is not None and self.noise_var is not None

    def n_features(self, arms: ArmPool) -> int:
        """Returns how many features an arm has in the solve, at most."""
        return min(arms.dimension + 1 if self.linear else MAX_FEATURES, len(arms))


def choose_options(settings: FitSettings, graph: UserGraph, arms: ArmPool, columns: Columns) -> dict[str, Any]:
    """Returns the options of the bandit: kernels and noise variance, as given or fitted to a sample of the rewards.

    Args:
        settings: What is asked for.
        graph: The users.
        arms: The pool.
        columns: All rewards, combined by pairs.
    """
    options: dict[str, Any] = {"policy": settings.policy, "seed": settings.seed}
    if not settings.is_solved:
        return options
    options["engine"] = "sparse"
    if settings.is_given:
        kernel = Linear() if settings.linear else SquaredExponential(settings.lengthscale or "median")
        given = {"laplacian_ridge": settings.laplacian_ridge, "noise_var": settings.noise_var}
        return options | given | {"arm_kernel": kernel}
    own = {name: np.array(column) if isinstance(column, np.ndarray) else column for name, column in columns.items()}
    return options | graph_alone_options(
        graph,
        arms,
        table_of(own, graph.n_users, len(arms)),
        laplacian_ridge=settings.laplacian_ridge,
        lengthscale=settings.lengthscale,
        linear=settings.linear,
        noise_var=settings.noise_var,
        seed=settings.seed,
    )


class Fit(NamedTuple):
    """What came of a fit.

    Attributes:
        bandit: It has learned all rewards.
        steps: How many the solve has taken.
        error_bound: How far any mean can be from the exact one, at most; None where it is no solve.
    """

    bandit: Bandit
    steps: int
    error_bound: float | None


def bandit_of(
    options: Mapping[str, Any],
    graph: UserGraph,
    arms: ArmPool,
    columns: Columns,
    *,
    weights: Array | None = None,
    progress: SolveProgress | None = None,
) -> Fit:
    """Returns the bandit that has learned all rewards, by a solve here, or from weights that were solved elsewhere.

    Args:
        options: As `choose_options` gives them.
        graph: The users.
        arms: The pool.
        columns: All rewards, combined by pairs of rows; the arrays are taken over.
        weights: Where the solve starts, a row for each user: from the solution it ends at once.
        progress: Called with the number of each step, and how far above its limit the residual is.
    """
    bandit = Bandit(graph=graph, arms=arms, **options)
    steps = bandit._fit_combined(columns, start=weights, progress=progress)
    return Fit(bandit, steps, error_bound(bandit._learned.policy.model))


def error_bound(model: Model) -> float | None:
    """Returns how far any mean can be from the exact one, at most, where the engine states it."""
    if not isinstance(model, SparseModel):
        return None
    farthest = int(np.argmax(model.kernel.reach))
    return float(model.error_bound(farthest).max(initial=0.0))


def in_words(options: Mapping[str, Any]) -> str:
    """Returns the hyperparameters of a bandit in one line.

    Examples:
        >>> from coterie.kernels import Green
        >>> in_words({"user_kernel": Green(laplacian_ridge=0.5), "arm_kernel": Linear(), "noise_var": 0.25})
        'ridge 0.5, noise variance 0.25, arm kernel Linear(offset=0)'
    """
    users = options.get("user_kernel")
    ridge = options["laplacian_ridge"] if users is None else users.laplacian_ridge
    kind = " (normalised Laplacian)" if users is not None and users.normalised else ""
    noise, arms = options["noise_var"], _kernel(options["arm_kernel"])
    return f"ridge {ridge:.3g}{kind}, noise variance {noise:.3g}, arm kernel {arms}"


def _kernel(kernel: Any) -> str:
    """Returns a kernel in few digits."""
    name = type(kernel).__name__
    if name == "Scaled":
        inner = _kernel(kernel.kernel)
        return f"{kernel.variance:.3g} * {f'({inner})' if type(kernel.kernel).__name__ == 'Sum' else inner}"
    if name == "Sum":
        return f"{_kernel(kernel.left)} + {_kernel(kernel.right)}"
    if name == "SquaredExponential":
        lengths = kernel.lengthscale if isinstance(kernel.lengthscale, tuple) else (kernel.lengthscale,)
        return f"{name}({', '.join(each if isinstance(each, str) else f'{each:.3g}' for each in lengths)})"
    return f"{name}(offset={kernel.offset:.3g})" if name == "Linear" else f"{name}()"
