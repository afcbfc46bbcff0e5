"""How alike are two (user, arm) pairs: arm kernels, user kernels, their product."""

from coterie.kernels.arm import (
    ArmKernel,
    Constant,
    Distinct,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Polynomial,
    RationalQuadratic,
    SquaredExponential,
)
from coterie.kernels.joint import FreeKernel, JointKernel, PoolKernel, joint_penalty, pool_kernel
from coterie.kernels.pool import ArmPool
from coterie.kernels.user import (
    AllOnes,
    BandPass,
    Exchangeable,
    GivenMatrix,
    Green,
    Heat,
    HighPass,
    Independent,
    RandomWalk,
    SpectralRBF,
    UserKernel,
)

__all__ = [
    "AllOnes",
    "ArmKernel",
    "ArmPool",
    "BandPass",
    "Constant",
    "Distinct",
    "Exchangeable",
    "FreeKernel",
    "GivenMatrix",
    "Green",
    "Heat",
    "HighPass",
    "Independent",
    "JointKernel",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Polynomial",
    "PoolKernel",
    "RandomWalk",
    "RationalQuadratic",
    "SpectralRBF",
    "SquaredExponential",
    "UserKernel",
    "joint_penalty",
    "pool_kernel",
]
