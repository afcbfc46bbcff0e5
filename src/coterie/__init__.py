"""Coterie: bandits that learn together.

    graph = UserGraph.from_edges([("ana", "bo"), ("bo", "cy")])
    policy = make_policy("lk-gp-ucb", graph=graph, arms=ArmPool(features, ids=names))
    choice = policy.select("ana", candidates)         # choice.arm
    policy.update("ana", choice.arm, reward=1.0)

The flow, each step a folder, importing only from those before it:

    graphs     who is near whom                  UserGraph
    kernels    how alike are two (user, arm)     SquaredExponential, ..., Green, ..., ArmPool
    logs       what happened                     read_log(folder); coterie.logs: load_lastfm, ...
    models     what do we believe                dense, exact, grid, hybrid, features, linear
    policies   what do we choose                 make_policy("lk-gp-ucb", ...), list_policies()
    problems   worlds to try it on               coterie.problems
    product    the bandit people keep            Bandit(graph=..., arms=...), decide, reward, save; evaluate(...)
    runs       experiments and their pictures    run_study(...), diagnose(log); coterie demo
"""

import typing
from importlib import import_module as _import

from coterie import errors
from coterie.contracts import VERSION as _VERSION
from coterie.contracts import Choice, Drift
from coterie.graphs import GraphChange, UserGraph, make_graph
from coterie.kernels import (
    AllOnes,
    ArmKernel,
    ArmPool,
    BandPass,
    Constant,
    Distinct,
    Exchangeable,
    GivenMatrix,
    Green,
    Heat,
    HighPass,
    Independent,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Polynomial,
    RandomWalk,
    RationalQuadratic,
    SpectralRBF,
    SquaredExponential,
    UserKernel,
    joint_penalty,
)
from coterie.policies import Policy, SpectralSchedule, TheoryWidth, list_policies, make_policy, rank
from coterie.product import Bandit, Decision, Explanation, Slate, read_rewards, replay, score_all

if typing.TYPE_CHECKING:
    from coterie.logs import read_log as read_log
    from coterie.product.evaluation import evaluate as evaluate
    from coterie.product.regressor import LaplacianKernelRegressor as LaplacianKernelRegressor
    from coterie.runs.diagnosis import diagnose as diagnose
    from coterie.runs.studies import run_study as run_study
else:
    # Imported when they are asked for: they take time to import, and the regressor needs scikit-learn.
    _LATER = {
        "LaplacianKernelRegressor": "coterie.product.regressor",
        "diagnose": "coterie.runs.diagnosis",
        "evaluate": "coterie.product.evaluation",
        "read_log": "coterie.logs",
        "run_study": "coterie.runs.studies",
    }

    def __getattr__(name: str) -> typing.Any:
        """Returns one of the names that are imported when they are asked for."""
        if name in _LATER:
            return getattr(_import(_LATER[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted([*globals(), *_LATER])


__version__ = _VERSION

__all__ = [
    "AllOnes",
    "ArmKernel",
    "ArmPool",
    "BandPass",
    "Bandit",
    "Choice",
    "Constant",
    "Decision",
    "Distinct",
    "Drift",
    "Exchangeable",
    "Explanation",
    "GivenMatrix",
    "GraphChange",
    "Green",
    "Heat",
    "HighPass",
    "Independent",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Policy",
    "Polynomial",
    "RandomWalk",
    "RationalQuadratic",
    "Slate",
    "SpectralRBF",
    "SpectralSchedule",
    "SquaredExponential",
    "TheoryWidth",
    "UserGraph",
    "UserKernel",
    "__version__",
    "diagnose",
    "errors",
    "evaluate",
    "joint_penalty",
    "list_policies",
    "make_graph",
    "make_policy",
    "rank",
    "read_log",
    "read_rewards",
    "replay",
    "run_study",
    "score_all",
]
