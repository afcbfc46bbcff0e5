"""Many rewards at once: rows joined and collapsed without a Python object for each, and their evidence."""

from math import log

import numpy as np

from coterie.contracts import Array
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models.conditioned import LOG_2PI
from coterie.models.engines.sparse.posterior_weights import PosteriorWeights
from coterie.models.engines.sparse.reward_table import COLUMNS, RewardTable
from coterie.models.engines.sparse.user_blocks import DataBlocks
from coterie.models.history import History

Columns = dict[str, Array]


def joined(before: RewardTable, more: History, n_users: int, n_arms: int) -> RewardTable:
    """Returns both as one table, sorted by user and arm; O(rows log rows). A table joined to nothing is itself."""
    if not len(before) and isinstance(more, RewardTable):
        return RewardTable.of(more, n_users, n_arms)
    states = before.state(), more.state()
    columns = {
        name: np.concatenate([np.asarray(state[name], kind) for state in states]) for name, kind in COLUMNS.items()
    }
    n_observations = before.n_observations + more.n_observations
    return RewardTable.from_columns({"n_observations": n_observations, **collapsed(columns, n_arms)}, n_users, n_arms)


def collapsed(columns: Columns, n_arms: int) -> Columns:
    """Returns columns of rows with one for each pair, sorted: counts added, means and scatters of all their rewards.

    Examples:
        >>> columns = {"users": np.array([1, 0, 1]), "arms": np.array([2, 0, 2]), "counts": np.array([1.0, 1.0, 1.0])}
        >>> found = collapsed(columns | {"means": np.array([1.0, 5.0, 3.0]), "scatters": np.zeros(3)}, 3)
        >>> found["users"], found["counts"], found["means"], found["scatters"]
        (array([0, 1]), array([1., 2.]), array([5., 2.]), array([0., 2.]))
    """
    keys = columns["users"].astype(np.int64) * n_arms + columns["arms"]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, np.intp)
    if len(starts) == len(keys):
        return {name: column[order] for name, column in columns.items()}
    counts, means = columns["counts"][order], columns["means"][order]
    total = np.add.reduceat(counts, starts)
    middle = np.add.reduceat(counts * means, starts) / total
    means -= np.repeat(middle, np.diff(starts, append=len(keys)))
    scatters = np.add.reduceat(columns["scatters"][order] + counts * means * means, starts)
    users, arms = keys[starts] // n_arms, keys[starts] % n_arms
    kinds = (columns[name].dtype for name in COLUMNS)
    found = zip(COLUMNS, (users, arms, total, middle, scatters), kinds, strict=True)
    return {name: column.astype(kind) for name, column, kind in found}


def scattered(count: float, scatter: float, noise_var: float) -> float:
    """Returns twice the minus log likelihood of what the mean of so many rewards leaves out of them."""
    return (count - 1) * (LOG_2PI + log(noise_var)) + log(count) + scatter / noise_var


def least_gain(kernel: GraphKernel, table: RewardTable, noise_var: float) -> float:
    """Returns a lower bound of the information gain of a table.

    L_rho <= diag(diagonal + sums of weights), so every user's prior is at least that of a user alone with this
    precision, and the gain is at least the sum of theirs.
    """
    alone = 1 / (kernel.diagonal + np.asarray(kernel.weights.sum(axis=1)).ravel())
    first, following, arms, counts = table.chains
    return float(table.compiled.log_dets(alone, first, following, arms, counts, kernel.features, noise_var))


def likelihood(kernel: GraphKernel, data: DataBlocks, residual: PosteriorWeights, gain: float) -> float:
    """Returns about the log likelihood of a table, given solved weights: y' M^-1 y = y' y / noise - b' A^-1 b."""
    table, noise_var = data.table, data.noise_var
    users, means, counts = table.users, table.means, table.counts
    predicted = table.compiled.predictions(users, table.arms, residual.weights, kernel.features)
    fit = float(np.sum(counts * means * (means - predicted))) / noise_var
    rest = float(np.sum((counts - 1) * (LOG_2PI + log(noise_var)) + np.log(counts) + table.scatters / noise_var))
    single = float(np.sum(LOG_2PI + np.log(noise_var / counts)))
    return -0.5 * (fit + gain + single + rest)
