"""What the fitted kernel says of the arms: its effective dimension, and which features are informative."""

from dataclasses import dataclass, replace
from math import log

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import cho_factor, cho_solve

from coterie.contracts import Array
from coterie.kernels import ArmPool, PoolKernel
from coterie.kernels.arithmetic import squared_distances
from coterie.logs.log import Floats, Ints
from coterie.models import History
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.hyper import Hyper
from coterie.policies.auto.parts import Parts
from coterie.policies.auto.sampling import PairSample
from coterie.runs.diagnosis.graph_evidence import CLEAR

MOST_FEATURES = 100
SHORTER = (1.0, 0.7, 0.5)  # fewer features lie closer together


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureReport:
    """What features are worth at the fitted kernel, which is not fitted again.

    Attributes:
        n_features: How many there are.
        names: The features looked at, the most informative first.
        losses: By how much the log evidence falls without each.
        kept: Numbers of the most informative features.
        kept_losses: By how much it falls with only so many.
    """

    n_features: int
    names: list[str]
    losses: Floats
    kept: list[int]
    kept_losses: Floats

    @property
    def enough(self) -> int:
        """How many of the most informative features explain the rewards as well as all, within what is clear."""
        return next(count for count, loss in zip(self.kept, self.kept_losses, strict=True) if loss < CLEAR)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sampled:
    """The pairs of a sample with the tables that its kernel is made of.

    Attributes:
        parts: The kernel's parts, for the users and arms of the sample.
        users: Each pair's user, among those of the parts.
        arms: Each pair's arm, among those of the parts.
        arm_rows: The arms of the parts, as rows of the pool.
        means: The rewards, less their centre.
        counts: How many events each pair has.
    """

    parts: Parts
    users: Ints
    arms: Ints
    arm_rows: Ints
    means: Floats
    counts: Floats

    @classmethod
    def of(cls, context: FitContext, history: History, sample: PairSample, centre: float) -> "Sampled":
        """Returns the pairs of a sample."""
        arm_rows, arms = np.unique(history.arm_array()[sample.rows], return_inverse=True)
        return cls(
            parts=context.sampled_evidence(history, sample).parts,
            users=sample.places,
            arms=arms,
            arm_rows=arm_rows,
            means=history.mean_array()[sample.rows] - centre,
            counts=history.count_array()[sample.rows],
        )

    def covariance(self, kernel: PoolKernel) -> Array:
        """Returns the covariance of the pairs."""
        here, there = np.ix_(self.users, self.users), np.ix_(self.arms, self.arms)
        return np.asarray(kernel.user_cov[here] * kernel.arm_cov[there])

    def eigenvalues(self, hyper: Hyper) -> Floats:
        """Returns the eigenvalues of the kernel on the pairs over the noise, in falling order; repeats weigh more."""
        weight = np.sqrt(self.counts / hyper.noise_var)
        found = np.linalg.eigvalsh(self.covariance(self.parts.kernel(hyper)) * np.outer(weight, weight))
        return np.maximum(found[::-1], 0.0)

    def log_evidence(self, hyper: Hyper, parts: Parts) -> float:
        """Returns the log evidence with other tables of the arms, but for what does not depend on the kernel."""
        matrix = self.covariance(parts.kernel(hyper))
        matrix[np.diag_indices_from(matrix)] += hyper.noise_var / self.counts
        try:
            factor = cho_factor(matrix, lower=True, overwrite_a=True)
        except LinAlgError:
            return -np.inf
        half = float(np.log(np.diagonal(factor[0])).sum())
        return -0.5 * float(self.means @ cho_solve(factor, self.means)) - half


def effective_dimension(eigenvalues: Floats) -> float:
    """Returns the sum of e / (e + 1) over eigenvalues e of the kernel in units of the noise.

    It is the number of independent quantities that these pairs speak of: one that stands out above the noise counts as
    1, one that drowns in it as 0.

    Examples:
        >>> effective_dimension(np.array([1e9, 1.0, 0.0]))
        1.499999999
    """
    return float((eigenvalues / (eigenvalues + 1)).sum())


def feature_report(sampled: Sampled, hyper: Hyper, arms: ArmPool) -> FeatureReport:
    """Returns what each feature is worth, and how many of them do."""
    scale = float(np.einsum("ij,ij->i", arms.features, arms.features).mean())
    looked = np.argsort(-arms.features.var(axis=0), kind="stable")[:MOST_FEATURES]
    columns = arms.features[sampled.arm_rows]
    everything = sampled.log_evidence(hyper, _only(sampled.parts, columns, scale))
    losses = np.array(
        [
            everything - sampled.log_evidence(hyper, _only(sampled.parts, np.delete(columns, j, axis=1), scale))
            for j in looked
        ]
    )
    order = np.argsort(-losses, kind="stable")
    names = arms.feature_names or [f"feature_{place}" for place in range(arms.dimension)]
    kept = _ladder(len(looked))
    rest = np.setdiff1d(np.arange(arms.dimension), looked)
    lost = [
        everything - _best_shorter(sampled, hyper, columns[:, [*looked[order[:count]], *rest]], scale) for count in kept
    ]
    return FeatureReport(
        n_features=arms.dimension,
        names=[names[looked[place]] for place in order],
        losses=losses[order],
        kept=kept,
        kept_losses=np.array(lost),
    )


def _ladder(most: int) -> list[int]:
    """Returns 1, 2, 4, ... and the most.

    Examples:
        >>> _ladder(25), _ladder(1)
        ([1, 2, 4, 8, 16, 25], [1])
    """
    return [*(2**step for step in range(most.bit_length()) if 2**step < most), most]


def _best_shorter(sampled: Sampled, hyper: Hyper, columns: Floats, scale: float) -> float:
    parts = _only(sampled.parts, columns, scale)
    tried = (hyper._replace(lengthscale=hyper.lengthscale + log(factor)) for factor in SHORTER)
    return max(sampled.log_evidence(each, parts) for each in tried)


def _only(parts: Parts, columns: Floats, scale: float) -> Parts:
    """Returns the parts with arms of these features only; the linear part keeps its scale."""
    products = columns @ columns.T
    products = products / scale if scale > 0 else products
    return replace(parts, squared_distance=squared_distances(columns), products=products)
