"""The belief of users in groups that share nothing: a ridge regression for each group that has data.

Pooled users, users alone and clusters need no matrix over users: a `GroupKernel` has a label for each user, and there
is a belief for each label that has rewards. `split` parts a group: sums of its rewards go with its users.
"""

from math import inf, log
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from coterie.algebra import BlockWeights
from coterie.algebra.gaps import gap
from coterie.contracts import Array, Index
from coterie.kernels.group_kernel import GroupKernel
from coterie.kernels.joint import JointKernel
from coterie.models.agreement import Observed, gap_of_weights
from coterie.models.conditioned import ConditionedModel
from coterie.models.requirements import require_groups


class GroupsModel(ConditionedModel):
    """f(u, x) = w_g . features of x, with g the group of u and w_g ~ N(0, I): nothing over users x users is made.

    A reward costs O(D^2), a decision O(D^2) for each candidate, a group that has rewards D x D numbers; groups without
    are all the same. Equal to every other engine with the same features. A group can be parted (`split`).

    Args:
        kernel: A GroupKernel.
        noise_var: The noise variance of the rewards.

    Examples:
        >>> model = GroupsModel(GroupKernel([0, 0, 1], np.eye(2)), noise_var=1.0)
        >>> model.update(0, 1, 2.0)
        >>> model.predict(1)[0], model.predict(2)[0]
        (array([0., 1.]), array([0., 0.]))
        >>> model.split(np.array([1]), 7)
        >>> model.predict(0)[0], model.predict(1)[0]
        (array([0., 1.]), array([0., 0.]))
    """

    engine = "groups"
    mismatch_limit = 1e-3  # a file of it has no kernel: only the belief shows whether graph and features are its own
    kernel: GroupKernel

    def __init__(self, kernel: JointKernel, *, noise_var: float = 0.01) -> None:
        super().__init__(require_groups(kernel), noise_var=noise_var)
        self._reset()

    def _reset(self) -> None:
        self._prior = self._from_table(_prior_table(self.kernel.features.shape[1]))  # of all groups without rewards
        self._blocks: dict[int, BlockWeights] = {}
        self._sums: dict[int, Array] = {}  # of groups that were parted: precision beyond the prior's, then its products
        self._rows: dict[int, list[int]] = {}  # rows of the history by user, as far as they were looked at
        self._n_looked_at = 0

    @property
    def nbytes(self) -> int:
        """Bytes held by the belief."""
        tables = sum(block.nbytes for block in self._blocks.values())
        return tables + sum(sums.nbytes for sums in self._sums.values())

    # What is believed

    def _block(self, user: int) -> BlockWeights:
        return self._blocks.get(int(self.kernel.labels[user]), self._prior)

    def _apart(self, user: int, arms: Index) -> tuple[Array, Array]:
        """Returns mean and variance of arms that have nothing in common, or are one: a block for each kind."""
        rows, groups = self.kernel.features.take(arms, axis=0), self.kernel.groups(user, arms)
        blocks = [self._blocks.get(group, self._prior) for group in groups]
        both = [block.read(0, row[None]) for block, row in zip(blocks, rows, strict=True)]
        return np.array([mean[0] for mean, _ in both]), np.array([variance[0] for _, variance in both])

    def read(self, user: int, arms: Index) -> tuple[Array, Array]:
        """Returns mean and std."""
        if self.kernel.kinds is None:
            mean, variance = self._block(user).read(0, self.kernel.features.take(arms, axis=0))
        else:
            mean, variance = self._apart(user, arms)
        np.maximum(variance, 0.0, out=variance)
        return mean, np.sqrt(variance, out=variance)

    def read_covariance(self, user: int, arms: Index) -> Array:
        """Returns the joint covariance."""
        if self.kernel.kinds is not None:  # arms of one kind have the same variance, and are one
            return np.asarray(self._apart(user, arms)[1] * self.kernel.arm_cross(arms, arms))
        rows = self.kernel.features.take(arms, axis=0)
        return np.asarray(rows @ self._block(user).covariance(0) @ rows.T)

    # What is learned

    def _condition_one(self, user: int, arm: int, reward: float) -> tuple[float, float]:
        return self._observe_pair(user, arm, reward, self.noise_var)

    def _condition(self, users: Index, arms: Index, values: Array, noise: Array) -> tuple[float, float]:
        together = zip(users.tolist(), arms.tolist(), values.tolist(), noise.tolist(), strict=True)
        each = [self._observe_pair(*one) for one in together]
        return sum(log(variance) for variance, _ in each), sum(gap * gap / variance for variance, gap in each)

    def _group(self, user: int, arm: int) -> int:
        return (
            int(self.kernel.labels[user]) if self.kernel.kinds is None else self.kernel.groups(user, np.array([arm]))[0]
        )

    def _observe_pair(self, user: int, arm: int, value: float, noise: float) -> tuple[float, float]:
        label, row = self._group(user, arm), self.kernel.features[arm]
        block = self._blocks.get(label)
        if block is None:
            block = self._blocks[label] = self._from_table(_prior_table(len(row)))
        if (sums := self._sums.get(label)) is not None:
            sums[:-1] += row[:, None] * (row / noise)
            sums[-1] += row * (value / noise)
        return block.condition(0, row, value, noise)

    def _move(self, user: int, arm: int, change: float) -> tuple[float, float]:
        label, row = self._group(user, arm), self.kernel.features[arm]
        if (sums := self._sums.get(label)) is not None:
            sums[-1] += row * change
        return self._blocks[label].move(0, row, change)  # a pair that is revised has been observed

    def _configure(self, kernel: JointKernel, noise_var: float) -> None:
        super()._configure(require_groups(kernel), noise_var)

    # Groups that part

    def split(self, users: Index, label: int) -> None:
        """Parts these users, all of one group, from the others of it; `label` names their group, and no other.

        The belief of either is that of its own rewards. O(D^2) for each pair that these users have rewards of, and
        O(D^3); the first time a group is parted O(D^2) for each pair that the group has rewards of.
        """
        assert self.kernel.kinds is None  # clusters are of a linear model
        whole, moved = int(self.kernel.labels[users[0]]), self._rows_of(users)
        if moved:
            sums, part = self._sums_of(whole), self._summed(moved)
            left = sums - part
            before, rest, away = (_solved(each) for each in (sums, left, part))
            self._info_gain += rest[1] + away[1] - before[1]
            self._log_likelihood -= 0.5 * (rest[1] - rest[2] + away[1] - away[2] - before[1] + before[2])
            self._blocks[whole], self._blocks[label] = self._from_table(rest[0]), self._from_table(away[0])
            self._sums[whole], self._sums[label] = left, part
        self.kernel = self.kernel.parted(users, label)

    def _rows_of(self, users: Index) -> list[int]:
        """Returns the rows of the history of these users. O(users), and O(1) for each row that is new."""
        for row in range(self._n_looked_at, len(self.history)):
            self._rows.setdefault(self.history.users[row], []).append(row)
        self._n_looked_at = len(self.history)
        return [row for user in users.tolist() for row in self._rows.get(user, ())]

    def _sums_of(self, label: int) -> Array:
        if label in self._sums:
            return self._sums[label]
        return self._summed(np.flatnonzero(self.kernel.labels[self.history.user_array()] == label).tolist())

    def _summed(self, rows: list[int]) -> Array:
        """Returns what these rows of the history add to the precision, and below it to its products with the mean."""
        history = self.history
        features = self.kernel.features[[history.arms[row] for row in rows]]
        weighted = features * (np.array([history.counts[row] for row in rows]) / self.noise_var)[:, None]
        means = np.array([history.means[row] for row in rows])
        return np.vstack([features.T @ weighted, means @ weighted])

    # What is kept

    @staticmethod
    def _from_table(table: Array) -> BlockWeights:
        return BlockWeights.restored({"tables": table[None]})

    def _belief(self) -> dict[str, Any]:
        width = self.kernel.features.shape[1]
        tables = [block.state()["tables"] for block in self._blocks.values()]
        return {
            "groups": np.array(list(self._blocks), dtype=np.int64),
            "tables": np.concatenate(tables) if tables else np.zeros((0, width + 1, width)),
            "parted": np.array(list(self._sums), dtype=np.int64),
            "sums": np.array(list(self._sums.values())).reshape(-1, width + 1, width),
        }

    def _restore(self, state: dict[str, Any], kernel: JointKernel) -> None:
        super()._restore(state, require_groups(kernel))
        self._reset()
        tables = map(self._from_table, np.array(state["tables"]))
        self._blocks = dict(zip(state["groups"].tolist(), tables, strict=True))
        self._sums = dict(zip(state["parted"].tolist(), np.array(state["sums"]), strict=True))

    def _mismatch(self) -> float:
        """Returns how far the blocks are from those of the rows; a group without one has no rows."""
        history, features = self.history, self.kernel.features
        labels = [self._group(*pair) for pair in zip(history.users, history.arms, strict=True)]
        place = {label: i for i, label in enumerate(self._blocks)}
        if not set(labels) <= set(place):
            return inf
        whole, rows = BlockWeights.restored(self._belief()), features[history.arm_array()]
        of_row = np.array([place[label] for label in labels], dtype=np.intp)

        def back(values: Array) -> Array:
            out = np.zeros(whole.shape)
            np.add.at(out, of_row, values[:, None] * rows)
            return out

        of_blocks = gap_of_weights(
            times=whole.times,
            mean=whole.mean,
            prior=np.asarray,
            out=lambda weights: np.einsum("ij,ij->i", weights[of_row], rows),
            back=back,
            observed=Observed(history.count_array() / self.noise_var, history.mean_array()),
        )
        sums = {label: self._summed([i for i, each in enumerate(labels) if each == label]) for label in self._sums}
        return max([of_blocks, *(gap(self._sums[label], sums[label]) for label in sums)])

    @property
    def _of_what(self) -> str:
        return " of users" if self.kernel.kinds is None else " of users and arms"

    def describe(self) -> str:
        """Returns in words which engine this is and why, and what it holds."""
        return (
            f"{super().describe()} {len(self._blocks)} groups{self._of_what} have rewards. The arms' "
            f"{self.kernel.features.shape[1]} features miss {self.kernel.feature_error:.2g} of the largest prior "
            "variance at most."
        )


def _prior_table(width: int) -> Array:
    """Returns the table of weights of which nothing is known: covariance I, and below it mean 0."""
    return np.vstack([np.eye(width), np.zeros(width)])


def _solved(sums: Array) -> tuple[Array, float, float]:
    """Returns covariance and mean as one table, log det of the precision, and mean' precision mean. O(D^3)."""
    factor = cho_factor(np.eye(sums.shape[1]) + sums[:-1], lower=True)
    covariance = cho_solve(factor, np.eye(sums.shape[1]))
    mean = cho_solve(factor, sums[-1])
    log_det = 2 * float(np.sum(np.log(np.diagonal(factor[0]))))
    return np.vstack([(covariance + covariance.T) / 2, mean]), log_det, float(mean @ sums[-1])
