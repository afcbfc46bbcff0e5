"""What is left when nothing is to be learned of the hyperparameters: UCB of width 1 with the world's own kernel."""

from typing import Any

import numpy as np

from coterie.graphs import UserGraph
from coterie.kernels import ArmPool, PoolKernel, SquaredExponential
from coterie.models import make_model
from coterie.policies import Policy
from coterie.policies.rules.scores import ucb


def true_kernel(*, graph: UserGraph, arms: ArmPool, seed: int, kind: str = "gp-draw") -> Any:
    """Returns UCB on the Gaussian process that the worlds of the preset "paper-literal" are drawn from."""
    values, vectors = np.linalg.eigh(graph.laplacian().toarray())
    smooth = SquaredExponential(1.0).gram(arms.features)
    match kind:
        case "linear-gob":
            spectrum, arm_cov = (1 + values) ** -2.0, arms.features @ arms.features.T
        case "representer":  # normal coefficients, so that the kernel acts twice
            spectrum, arm_cov = 1 / (values + 0.01), smooth @ smooth
        case _:
            spectrum, arm_cov = (values + 0.01) ** -0.5, smooth
    user_cov = (vectors * spectrum) @ vectors.T
    kernel = PoolKernel((user_cov + user_cov.T) / 2, (arm_cov + arm_cov.T) / 2)
    model = make_model(kernel, noise_var=0.01, engine="grid")
    return Policy(name="true-kernel", graph=graph, arms=arms, model=model, score=ucb, width=1.0, seed=seed)
