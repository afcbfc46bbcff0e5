"""Generated graphs, kernels and histories."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

import coterie as ct
from coterie.kernels import PoolKernel, pool_kernel
from coterie.kernels.inputs import ContextPart, InputKernel, InputLayout, InputScaling, InputsKernel
from coterie.kernels.user import UserKernel

Array = NDArray[np.float64]


@st.composite
def graphs(draw: st.DrawFn, max_users: int = 7) -> ct.UserGraph:
    """Small weighted graphs, isolated users and edgeless ones included."""
    n_users = draw(st.integers(1, max_users))
    pairs = [(i, j) for i in range(n_users) for j in range(i)]
    weights = st.one_of(st.just(0.0), st.floats(0.01, 5.0))
    edges = [(i, j, draw(weights)) for i, j in pairs]
    return ct.UserGraph.from_edges(edges, users=range(n_users))


def arm_kernels() -> st.SearchStrategy[ct.ArmKernel]:
    """Every family of arm kernels, some combined."""
    lengthscale: st.SearchStrategy[Any] = st.one_of(st.floats(0.3, 3.0), st.just("median"))
    return st.one_of(
        lengthscale.map(ct.SquaredExponential),
        lengthscale.map(ct.Matern12),
        lengthscale.map(ct.Matern32),
        lengthscale.map(ct.Matern52),
        lengthscale.map(ct.RationalQuadratic),
        st.just(ct.Linear(offset=0.5)),
        st.just(ct.Polynomial(degree=2, offset=1.0)),
        lengthscale.map(lambda scale: 0.7 * ct.SquaredExponential(scale) + ct.Linear()),
        lengthscale.map(lambda scale: ct.Matern32(scale) * ct.Linear(offset=1.0)),
    )


def user_kernels() -> st.SearchStrategy[UserKernel]:
    """Every family of user kernels, the paper's most often."""
    ridge = st.floats(0.05, 3.0)
    return st.one_of(
        ridge.map(lambda rho: ct.Green(laplacian_ridge=rho)),
        ridge.map(lambda rho: ct.Green(laplacian_ridge=rho, normalised=True)),
        ridge.map(lambda rho: ct.Green(laplacian_ridge=rho, power=0.5)),
        ridge.map(lambda tau: ct.Heat(time=tau)),
        st.just(ct.RandomWalk(steps=3)),
        st.just(ct.HighPass()),
        st.just(ct.BandPass(centre=1.0, bandwidth=0.5)),
        st.just(ct.SpectralRBF(k=2)),
        st.just(ct.Independent()),
        st.just(ct.AllOnes()),
    )


@dataclass(frozen=True)
class Case:
    """A kernel on a pool, the users' graph behind it, and a history."""

    graph: ct.UserGraph
    pool: ct.ArmPool
    arm_kernel: ct.ArmKernel
    kernel: PoolKernel
    noise_var: float
    history: list[tuple[int, int, float]]

    def __repr__(self) -> str:
        return (
            f"Case({self.graph.n_users} users, {len(self.pool)} arms, {self.arm_kernel}, noise_var={self.noise_var}, "
            f"user_cov={self.kernel.user_cov.tolist()}, features={self.pool.features.tolist()}, {self.history})"
        )


@st.composite
def pools(draw: st.DrawFn, max_arms: int = 5) -> ct.ArmPool:
    """Small pools of distinct arms."""
    n_arms = draw(st.integers(1, max_arms))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    return ct.ArmPool(rng.normal(size=(n_arms, draw(st.integers(1, 3)))))


@st.composite
def cases(draw: st.DrawFn, max_history: int = 25, smallest_noise: float = 1e-3) -> Case:
    """A whole situation: repeats of a pair are common because pairs are few."""
    graph, pool, arm_kernel = draw(graphs()), draw(pools()), draw(arm_kernels())
    kernel = pool_kernel(draw(user_kernels()).matrix(graph), arm_kernel, pool)
    noise_var = draw(st.sampled_from([smallest_noise, 1e-2, 0.1, 1.0]))
    pair = st.tuples(
        st.integers(0, graph.n_users - 1), st.integers(0, len(pool) - 1), st.floats(-3, 3, allow_subnormal=False)
    )
    return Case(graph, pool, arm_kernel, kernel, noise_var, draw(st.lists(pair, max_size=max_history)))


@dataclass(frozen=True)
class InputCase:
    """A kernel of inputs, inputs to ask for, and a history of rows of them."""

    kernel: InputsKernel
    inputs: Array
    noise_var: float
    history: list[tuple[int, int, float]]

    def __repr__(self) -> str:
        return (
            f"InputCase({self.kernel.arm_kernel}, user_cov={self.kernel.user_cov.tolist()}, "
            f"noise_var={self.noise_var}, inputs={self.inputs.tolist()}, {self.history})"
        )


@st.composite
def input_kernels(draw: st.DrawFn) -> InputKernel:
    """Arms with features and without; contexts of numbers, categories, both, neither."""
    codes, features = draw(st.sampled_from([(0, 1), (0, 3), (1, 0), (4, 0)]))
    layout = InputLayout(codes, features, draw(st.integers(0, 2)), draw(st.integers(0, 2)))
    size = features + layout.numbers
    weights = tuple(draw(st.sampled_from([0.0, 0.5, 2.0])) for _ in range(size))  # a constant feature has weight 0
    scaling = InputScaling(tuple(draw(st.floats(-1, 1)) for _ in range(size)), weights)
    share, scale = st.floats(0.0, 1.0), st.floats(0.05, 3.0)
    part = ContextPart(draw(scale), draw(scale), draw(share))
    return InputKernel(
        layout, scaling, draw(scale), draw(scale), draw(share), draw(scale), draw(scale), draw(scale), part
    )


def input_rows(layout: InputLayout, size: int, seed: int) -> Array:
    """Inputs of arms that come again and again, in contexts that do."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(layout.codes, size=(size, 1)) if layout.codes else np.empty((size, 0))
    plain = rng.integers(-2, 3, size=(size, layout.features + layout.numbers))
    return np.column_stack([codes, plain, rng.integers(0, 3, size=(size, layout.categories))]).astype(np.float64)


@st.composite
def input_cases(draw: st.DrawFn, max_history: int = 25) -> InputCase:
    """A whole situation with contexts."""
    users, inputs = draw(user_kernels()).matrix(draw(graphs())), draw(input_kernels())
    rows = input_rows(inputs.layout, 8, draw(st.integers(0, 10_000)))
    taken = st.tuples(st.integers(0, len(users) - 1), st.integers(0, 7), st.floats(-3, 3, allow_subnormal=False))
    noise_var = draw(st.sampled_from([1e-2, 0.1, 1.0]))
    kernel = InputsKernel(np.asarray(users), inputs)
    return InputCase(kernel, rows, noise_var, draw(st.lists(taken, max_size=max_history)))


def scaled_gap(got: Any, want: Any, scale: Any) -> float:
    """Largest difference in units of `scale` (zero where both are)."""
    got, want, scale = np.asarray(got), np.asarray(want), np.asarray(scale)
    gap = np.abs(got - want) / np.where(scale > 0, scale, 1.0)
    return float(gap.max(initial=0.0))
