"""What a policy's name stands for: a user kernel, an arm kernel, a score and defaults."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from coterie.kernels import (
    AllOnes,
    ArmKernel,
    Distinct,
    Exchangeable,
    Green,
    Independent,
    Linear,
    SquaredExponential,
    UserKernel,
)
from coterie.policies.adaptation.similarity import SIMILARITIES
from coterie.policies.rules.scores import (
    InNoiseUnits,
    Score,
    epsilon_greedy,
    greedy,
    joint_thompson,
    thompson,
    ucb,
    uniform,
    widening_ucb,
)

_SMOOTH = SquaredExponential("median")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a policy's name stands for.

    Attributes:
        summary: One line for people.
        users: Makes the user kernel from laplacian_ridge.
        scores: The score for each way of sampling that the policy offers; the first is the default.
        arm_kernel: The default arm kernel.
        own_arms: Whether the arm kernel is part of the method, so that the caller may not bring another.
        own_users: Whether the user kernel is part of the method, so that the caller may not bring another.
        ridged: Whether its user kernel depends on laplacian_ridge.
        explores: Whether its score depends on width.
        laplacian_ridge: The default ridge.
        noise_var: The default noise variance.
        width: The default width.
        similarities: The user kernels that the policy offers by name; the first is the default.
        clustered: Whether users are clustered as rewards come in.
        staged: Whether decisions go through stages; the score is then part of the method.
        auto: Whether hyperparameters are learned by evidence; kernels and noise are then part of the method.
    """

    summary: str
    users: Callable[[float], UserKernel]
    scores: Mapping[str, Score]
    arm_kernel: ArmKernel = _SMOOTH
    own_arms: bool = False
    own_users: bool = False
    ridged: bool = True
    explores: bool = True
    laplacian_ridge: float = 0.1
    noise_var: float = 0.01
    width: float = 1.0
    similarities: Mapping[str, Callable[[float], UserKernel]] | None = None
    clustered: bool = False
    staged: bool = False
    auto: bool = False

    def uses(self) -> dict[str, bool]:
        """Returns which options of `make_policy` change something here, beside those that all take: graph, engine..."""
        return {
            "arm_kernel": not self.own_arms,
            "user_kernel": not self.own_users,
            "laplacian_ridge": self.ridged,
            "noise_var": not self.auto,
            "width": self.explores,
            "sampling": len(self.scores) > 1,
            "similarity": self.similarities is not None,
            "score": not self.staged,
            "cluster_width": self.clustered,
        }

    @property
    def takes(self) -> tuple[str, ...]:
        """The options that it uses."""
        return tuple(option for option, is_used in self.uses().items() if is_used)


def _green(laplacian_ridge: float) -> UserKernel:
    return Green(laplacian_ridge=laplacian_ridge)


def _pooled(_: float) -> UserKernel:
    return AllOnes()


def _alone(_: float) -> UserKernel:
    return Independent()


def _exchangeable(_: float) -> UserKernel:
    return Exchangeable()


_UCB: Mapping[str, Score] = {"": ucb}
_TS: Mapping[str, Score] = {"independent": thompson, "joint": joint_thompson}
# The linear methods' width multiplies the norm of x in the inverse design matrix, which is std / sqrt(noise_var).
_LIN_UCB: Mapping[str, Score] = {"": InNoiseUnits(ucb)}
_LIN_TS: Mapping[str, Score] = {name: InNoiseUnits(score) for name, score in _TS.items()}


def _both(ucb_name: str, ts_name: str, recipe: Recipe) -> dict[str, Recipe]:
    """Returns a UCB recipe and its Thompson variant: the same model, another score."""
    sampled = replace(
        recipe,
        summary=recipe.summary.replace("UCB", "Thompson sampling", 1),
        scores=_LIN_TS if recipe.scores is _LIN_UCB else _TS,
    )
    return {ucb_name: recipe, ts_name: sampled}


def _linear(summary: str, users: Callable[[float], UserKernel], *, own_users: bool, ridge: float = 0.1) -> Recipe:
    return Recipe(
        summary=summary,
        users=users,
        scores=_LIN_UCB,
        arm_kernel=Linear(),
        own_arms=True,
        own_users=own_users,
        ridged=not own_users,
        laplacian_ridge=ridge,
        noise_var=1.0,
    )


_LK = Recipe(summary="UCB on the Laplacian-kernel GP, the paper's", users=_green, scores=_UCB)
_AUTO = replace(
    _LK,
    summary="UCB on a GP that learns its hyperparameters",
    own_arms=True,
    own_users=True,
    ridged=False,
    auto=True,
)

RECIPES: Mapping[str, Recipe] = {
    **_both("lk-gp-ucb", "lk-gp-ts", _LK),
    "auto-ucb": _AUTO,
    "auto-ts": replace(
        _AUTO, summary="Thompson sampling on a GP that learns its hyperparameters", scores=_TS, width=0.5
    ),
    **_both(
        "gp-ucb",
        "gp-ts",
        Recipe(summary="UCB on one GP for everybody", users=_pooled, scores=_UCB, own_users=True, ridged=False),
    ),
    **_both(
        "per-user-gp-ucb",
        "per-user-gp-ts",
        Recipe(summary="UCB on a GP for each user alone", users=_alone, scores=_UCB, own_users=True, ridged=False),
    ),
    **_both(
        "exchangeable-gp-ucb",
        "exchangeable-gp-ts",
        Recipe(summary="UCB on a GP that shares with everybody alike", users=_exchangeable, scores=_UCB, ridged=False),
    ),
    **_both("pooled-linucb", "pooled-lints", _linear("UCB on one linear model for everybody", _pooled, own_users=True)),
    **_both(
        "per-user-linucb",
        "per-user-lints",
        _linear("UCB on a linear model for each user alone", _alone, own_users=True),
    ),
    **_both(
        "gob-lin",
        "gob-lin-ts",
        _linear("UCB on linear models tied by I + L (Gang of Bandits)", _green, own_users=False, ridge=1.0),
    ),
    **_both(
        "graph-ucb", "graph-ts", _linear("UCB on linear models tied by L + rho I (GraphUCB)", _green, own_users=False)
    ),
    **_both(
        "coop-kernel-ucb",
        "coop-kernel-ts",
        Recipe(
            summary="UCB on a GP with a user similarity by name (Coop-KernelUCB)",
            users=_alone,
            scores=_UCB,
            own_users=True,
            similarities=SIMILARITIES,
        ),
    ),
    "sup-kernel-ucb": replace(_LK, summary="UCB in stages on the Laplacian-kernel GP (SupKernelUCB)", staged=True),
    "club": replace(
        _linear("UCB on a linear model for each cluster of users, found on the way (CLUB)", _pooled, own_users=True),
        scores={"": InNoiseUnits(widening_ucb)},
        clustered=True,
    ),
    "epsilon-greedy": replace(
        _LK, summary="the best mean, or with probability `width` anything", scores={"": epsilon_greedy}, width=0.1
    ),
    "greedy": replace(_LK, summary="the best mean, always", scores={"": greedy}, explores=False),
    "popularity": Recipe(
        summary="the arm with the best mean over everybody, whatever its features",
        users=_pooled,
        scores={"": greedy},
        arm_kernel=Distinct(),
        own_arms=True,
        own_users=True,
        ridged=False,
        explores=False,
        noise_var=1.0,
    ),
    # Random choices need no belief, so it has the cheapest: users alone cost little however many they are.
    "random": replace(
        _LK, summary="anything, always", users=_alone, scores={"": uniform}, ridged=False, explores=False
    ),
}

# What must know the truth; the laboratory's runner builds it, and nobody else can.
OUT_OF_REACH: Mapping[str, str] = {"oracle": "the best arm in truth, in the laboratory only"}
