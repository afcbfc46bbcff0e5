"""The paper's expressions for the information gain, and the gain of an actual design."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from coterie.algebra import JitterLog, cholesky
from coterie.contracts import Array, Index
from coterie.graphs import UserGraph, stochastic_block_model
from coterie.kernels import FreeKernel, Green, SquaredExponential

DIMENSION = 5
ARM_KERNEL = SquaredExponential(1.0)
NODES = 32
SMALLEST = 1e-16


def user_eigenvalues(graph: UserGraph, laplacian_ridge: float) -> Array:
    """Returns the eigenvalues of L_rho^-1, the lambda_i^G of the paper."""
    return Green(laplacian_ridge=laplacian_ridge).transfer(graph.spectrum().values)


def largest_variance(graph: UserGraph, laplacian_ridge: float) -> float:
    """Returns K_max = max_u [L_rho^-1]_uu, for an arm kernel with K_x(x, x) = 1."""
    return float(Green(laplacian_ridge=laplacian_ridge).matrix(graph).diagonal().max())


def disjoint_cliques(n_users: int, n_clusters: int) -> UserGraph:
    """Returns equal complete graphs that share no edge; one cluster is the complete graph.

    Examples:
        >>> disjoint_cliques(6, 2).n_edges
        6
    """
    return stochastic_block_model(n_users, n_blocks=n_clusters, inside=1.0, across=0.0)


@cache
def cube_spectrum(dimension: int = DIMENSION) -> Array:
    """Returns the eigenvalues nu_j of exp(-|x - y|^2 / 2) under the uniform measure on the cube, largest first.

    The kernel is a product over coordinates, so they are the products of those of one coordinate, which Gauss-Legendre
    quadrature gives to rounding: no sampling error as in an eigenproblem of drawn points. Their sum is 1.

    Examples:
        >>> round(float(cube_spectrum(2).sum()), 12)
        1.0
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    root = np.sqrt(weights / 2)
    line = np.linalg.eigvalsh(root[:, None] * ARM_KERNEL.gram((nodes[:, None] + 1) / 2) * root)
    values = np.ones(1)
    for _ in range(dimension):
        values = np.multiply.outer(values, line).ravel()
        values = values[values > SMALLEST]
    return np.sort(values)[::-1]


def sum_of_logs(user_values: Array, arm_values: Array, scale: float) -> float:
    """Returns sum_ij log(1 + scale * user_i * arm_j), the log det of a tensor product."""
    return float(np.log1p(scale * np.multiply.outer(user_values, arm_values)).sum())


def operator_bound(
    user_values: Array, arm_values: Array, *, horizon: int, noise_var: float, uniform_users: bool
) -> float:
    """Returns the operator bound on the gain after `horizon` rounds.

    As the paper has it (its equation for the operator bound), every user is met in every round. Under uniform users the
    operator on pairs has the eigenvalues lambda_i nu_j / n; with that 1/n the expression bounds the mean gain of the
    i.i.d. design, since log det is concave and the mean of K_T's feature matrix is T times that operator.
    """
    share = len(user_values) if uniform_users else 1
    return sum_of_logs(user_values, arm_values, horizon / (noise_var * share))


def operator_bounds(user_values: Array, *, horizon: int, noise_var: float) -> dict[str, float]:
    """Returns the operator bound on the cube as printed, and with the 1/n of uniform users."""
    arms = cube_spectrum()
    return {
        name: operator_bound(user_values, arms, horizon=horizon, noise_var=noise_var, uniform_users=uniform)
        for name, uniform in (("operator", False), ("operator_uniform", True))
    }


def regular_gain(user_values: Array, features: Array, noise_var: float) -> float:
    """Returns the gain where every user meets each of these arms once, the paper's regular-design expression."""
    return sum_of_logs(user_values, np.asarray(np.linalg.eigvalsh(ARM_KERNEL.gram(features)), float), 1 / noise_var)


def iid_design(n_users: int, horizon: int, rng: np.random.Generator) -> tuple[Index, Array]:
    """Returns uniform users and arms uniform in the unit cube, one of each a round."""
    return rng.integers(n_users, size=horizon, dtype=np.intp), rng.random((horizon, DIMENSION))


def gains_of_design(
    user_cov: Array, users: Index, features: Array, *, noise_var: float, horizons: Sequence[int]
) -> Array:
    """Returns log det(I + K_t / noise_var) of the first t rounds for each t of `horizons`, by one factorisation."""
    gram = FreeKernel(user_cov, ARM_KERNEL).cross(users, features, users, features)
    gram /= noise_var
    np.fill_diagonal(gram, gram.diagonal() + 1)
    logs = 2 * np.cumsum(np.log(cholesky(gram, JitterLog()).diagonal()))
    return np.asarray(logs[np.array(horizons) - 1])


def iid_gains(
    graph: UserGraph,
    laplacian_ridge: float,
    seeds: Sequence[list[int]],
    *,
    noise_vars: Sequence[float],
    horizons: Sequence[int],
) -> Array:
    """Returns the gains of i.i.d. designs: seeds x noise variances x horizons."""
    user_cov = Green(laplacian_ridge=laplacian_ridge).matrix(graph)
    gains = []
    for seed in seeds:
        design = iid_design(graph.n_users, max(horizons), np.random.default_rng(seed))
        gains.append([gains_of_design(user_cov, *design, noise_var=each, horizons=horizons) for each in noise_vars])
    return np.array(gains)


def effective_dim(gain: Array, *, horizon: Array, max_variance: float, noise_var: float) -> Array:
    """Returns gain / log(1 + T K_max / noise_var), the paper's effective dimension."""
    return np.asarray(gain / np.log1p(horizon * max_variance / noise_var))


def clique_bound(rounds_per_user: float, *, laplacian_ridge: float, noise_var: float) -> float:
    """Returns C / lambda (1 / rho + 1), the proposition's bound for T <= C n on a complete graph."""
    return rounds_per_user / noise_var * (1 / laplacian_ridge + 1)


def hadamard_bound(horizon: int, *, max_variance: float, noise_var: float) -> float:
    """Returns T log(1 + K_max / lambda), which bounds the gain of every design, by Hadamard's inequality."""
    return float(horizon * np.log1p(max_variance / noise_var))
