"""Every kernel of the library, found by itself, and one of each."""

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import coterie as ct
from coterie.kernels.additive import AdditiveInputs, AdditiveKernel, EvaluatedPool, TraitPart, UserParts
from coterie.kernels.arm import ArmKernel, RationalQuadratic, Stationary
from coterie.kernels.graph_kernel import GraphKernel
from coterie.kernels.group_kernel import GroupKernel
from coterie.kernels.inputs import ContextPart, InputKernel, InputLayout, InputScaling, InputsKernel
from coterie.kernels.joint import FreeKernel, JointKernel, PoolKernel

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cauchy(Stationary):
    """A kernel from outside the library: all it gives is its formula."""

    def _of_squared_distance(self, d2: FloatArray) -> FloatArray:
        return 1.0 / (1.0 + d2)


def concrete(cls: type[Any]) -> list[type[Any]]:
    """Returns the subclasses that can be made, by name."""
    found = {sub for sub in _subclasses(cls) if _is_ours(sub) and not inspect.isabstract(sub)}
    return sorted(found, key=lambda each: each.__name__)


def _subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


def _is_ours(cls: type[Any]) -> bool:
    # slots=True makes a second class; the first lingers among the subclasses until it is collected.
    lives_in_its_module = getattr(sys.modules[cls.__module__], cls.__name__, None) is cls
    return lives_in_its_module and cls.__module__.startswith(("coterie.", __name__))


def table(n: int, d: int, seed: int = 0) -> FloatArray:
    """Returns features of n arms."""
    return np.random.default_rng(seed).normal(size=(n, d))


INPUT_KERNEL = InputKernel(
    InputLayout(codes=0, features=1, numbers=1, categories=1),
    InputScaling((0.1, 0.2), (1.5, 0.7)),
    variance=1.7,
    lengthscale=1.3,
    linear_share=0.3,
    level=0.1,
    context_share=0.4,
    interaction=0.8,
    context=ContextPart(1.2, 0.9, 0.3),
)


def made(cls: type[ArmKernel]) -> ArmKernel:
    """Returns a resolved instance, with arguments only where the class has no default."""
    if cls is InputKernel:
        return INPUT_KERNEL
    stand_ins: dict[Any, object] = {ArmKernel: RationalQuadratic(1.3), float: 1.7}
    needed = {field.name: stand_ins[field.type] for field in fields(cls) if field.default is MISSING}  # type: ignore[arg-type]
    return cls(**needed).resolve(table(30, 3, seed=9))


ARM_KERNELS = concrete(ArmKernel)
STATIONARY = [cls for cls in ARM_KERNELS if issubclass(cls, Stationary)]
every_kernel = pytest.mark.parametrize("kernel", [made(cls) for cls in ARM_KERNELS], ids=lambda k: type(k).__name__)
every_stationary = pytest.mark.parametrize("cls", STATIONARY, ids=lambda cls: cls.__name__)

# How to make each user kernel for a graph, by the name of its class; a new class needs a line here.
USER_KERNELS: dict[str, Callable[[ct.UserGraph], ct.UserKernel]] = {
    "AllOnes": lambda _: ct.AllOnes(),
    "Exchangeable": lambda _: ct.Exchangeable(),
    "BandPass": lambda _: ct.BandPass(centre=1.0, bandwidth=0.5),
    "GivenMatrix": lambda graph: ct.GivenMatrix(np.eye(graph.n_users) + 0.5),
    "Green": lambda _: ct.Green(),
    "Heat": lambda _: ct.Heat(),
    "HighPass": lambda _: ct.HighPass(),
    "Independent": lambda _: ct.Independent(),
    "RandomWalk": lambda _: ct.RandomWalk(),
    "SpectralRBF": lambda _: ct.SpectralRBF(),
}

GRAPH = ct.UserGraph.from_edges([(0, 1, 2.0), (1, 2, 0.5), (0, 3)], users=range(5))
ARMS = table(6, 3, seed=4)
PARTS = UserParts(1.5, 0.4, 0.3, 0.7, normalised=False)
TRAITS = table(5, 2, seed=3) / 5
# How to make each joint kernel, for 5 users and 6 arms; a new class needs a line here.
JOINT_KERNELS: dict[str, Callable[[], JointKernel]] = {
    "AdditiveInputs": lambda: AdditiveInputs(GRAPH, PARTS, INPUT_KERNEL, traits=TraitPart(0.4, TRAITS)),
    "AdditiveKernel": lambda: AdditiveKernel(GRAPH, PARTS, ct.Matern32(1.0), ARMS),
    "EvaluatedPool": lambda: EvaluatedPool(ct.Green().matrix(GRAPH), ct.Matern32(1.0), ARMS),
    "FreeKernel": lambda: FreeKernel(ct.Green().matrix(GRAPH), ct.Matern32(1.0)),
    "GraphKernel": lambda: GraphKernel(GRAPH, ARMS, laplacian_ridge=0.4),
    "GroupKernel": lambda: GroupKernel([0, 1, 0, 2, 1], ARMS),
    "InputsKernel": lambda: InputsKernel(ct.Green().matrix(GRAPH), INPUT_KERNEL),
    "PoolKernel": lambda: PoolKernel(ct.Green().matrix(GRAPH), ct.Matern32(1.0).gram(ARMS)),
}
