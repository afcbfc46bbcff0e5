"""`exact`: append one and score twenty new arms, arms not known beforehand."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import blas

import coterie as ct
from benchmarks.timing import Row, at_least, at_most, medians

DIMENSION, CANDIDATES, ROUNDS = 20, 20, 4
LENGTHSCALE, RIDGE, NOISE_VAR = 3.0, 0.1, 0.01
SPEEDUP = {1000: 15.0, 2000: 40.0}


class Ours:
    """A policy without a pool, grown to t observations, then fed rounds."""

    def __init__(self, t: int) -> None:
        self.rng = np.random.default_rng(0)
        self.policy = ct.make_policy(
            "lk-gp-ucb",
            graph=ct.UserGraph.from_edges([], users=["ana"]),
            arm_kernel=ct.SquaredExponential(LENGTHSCALE),
            laplacian_ridge=RIDGE,
            noise_var=NOISE_VAR,
            engine="exact",
        )
        self.features = self.rng.normal(size=(t, DIMENSION))
        self.rewards = self.rng.normal(size=t)
        self.policy.update_many(["ana"] * t, self.features, self.rewards)
        self.fresh = self.rng.normal(size=(10_000, CANDIDATES, DIMENSION))
        self.at = 0

    def run(self) -> None:
        for _ in range(ROUNDS):
            choice = self.policy.select("ana", self.fresh[self.at])
            self.policy.update("ana", choice.arm, 0.5)
            self.at += 1


def triangular_solve(t: int) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    factor = np.asfortranarray(np.tril(rng.normal(size=(t, t))) / t + 2 * np.eye(t))
    right = np.asfortranarray(rng.normal(size=(t, CANDIDATES)))
    return lambda: [blas.dtrsm(1.0, factor, right, lower=1) for _ in range(ROUNDS)]


def scikit_learn(ours: Ours) -> Callable[[], object]:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    kernel = ConstantKernel(1 / RIDGE, "fixed") * RBF(LENGTHSCALE, "fixed")

    def refit_and_score() -> None:
        model = GaussianProcessRegressor(kernel, alpha=NOISE_VAR, optimizer=None)
        model.fit(ours.features, ours.rewards)
        model.predict(ours.fresh[0], return_std=True)

    return refit_and_score


def gpytorch(ours: Ours) -> Callable[[], object] | None:
    try:
        import gpytorch as gp
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    x, y = torch.tensor(ours.features), torch.tensor(ours.rewards)
    fresh = torch.tensor(ours.fresh[0])

    class Process(gp.models.ExactGP):  # type: ignore[misc] # GPyTorch is optional here and has no types
        def __init__(self) -> None:
            likelihood = gp.likelihoods.GaussianLikelihood()
            super().__init__(x, y, likelihood)
            self.mean = gp.means.ZeroMean()
            self.kernel = gp.kernels.ScaleKernel(gp.kernels.RBFKernel())
            self.double()
            likelihood.noise = NOISE_VAR
            self.kernel.outputscale = 1 / RIDGE
            self.kernel.base_kernel.lengthscale = LENGTHSCALE

        def forward(self, inputs: object) -> object:
            return gp.distributions.MultivariateNormal(self.mean(inputs), self.kernel(inputs))

    def refit_and_score() -> None:
        with torch.no_grad(), gp.settings.fast_computations(False, False, False):
            belief = Process().eval()(fresh)
            belief.mean, belief.variance  # noqa: B018 - both are computed on demand

    return refit_and_score


def rows() -> list[Row]:
    out = []
    for t in (1000, 2000):
        ours = Ours(t)
        mine, solve = (s / ROUNDS for s in medians(ours.run, triangular_solve(t), repeats=9))
        out.append(
            at_most(f"append 1 + score 20, t = {t}", mine, solve, 2.0, per="one triangular solve, 20 right-hand sides")
        )
        peers = {"scikit-learn, refitted": scikit_learn(ours), "GPyTorch, refitted": gpytorch(ours)}
        for name, peer in peers.items():
            if peer is not None:
                mine, theirs = medians(ours.run, peer)
                out.append(at_least(f"append 1 + score 20, t = {t}", mine / ROUNDS, theirs, SPEEDUP[t], per=name))
    return out
