"""`LaplacianKernelRegressor`: the paper's regression on a table of (user, arm features, reward), for scikit-learn."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Literal, Self

import numpy as np

from coterie.contracts import Array, Index
from coterie.errors import ParameterError, UnknownNameError, UnknownUserError, listed, or_similar
from coterie.errors.checks import is_whole
from coterie.errors.extras import require_extra
from coterie.graphs import UserGraph
from coterie.kernels import ArmKernel, FreeKernel, Green, SquaredExponential
from coterie.kernels.arm import Lengthscale
from coterie.models import Model, make_model

with require_extra("sklearn", "LaplacianKernelRegressor"):
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils.validation import check_array, check_is_fitted, validate_data

READ_ROWS = 1024  # rows predicted at once: bounds what a prediction for a long table holds in memory


class LaplacianKernelRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Kernel Laplacian regularised regression: what each user thinks of each arm, learned together with their friends.

    The prediction f minimises sum_s (f(x_s, u_s) - y_s)^2 + noise_var |f|^2, the norm that of the joint kernel
    [L_rho^-1] o K_x; it is also the mean of the Gaussian process with that covariance. The rewards are centred: their
    mean is taken off before the fit and added to every prediction, so where nothing is known the answer is that mean.
    Rows of the same user and arm count as one with a smaller noise; k distinct ones cost O(k^3), a prediction O(k^2).

    Args:
        graph: The users. None means that they share nothing, as on a graph without edges: each learns from their own
            rows, and one who has none is given the prior.
        user_column: The column of X that holds the user: its position, or its name in a dataframe. The others are the
            arm's features. None means that all rows are one user's: Gaussian process regression, the prior variance
            being 1 / laplacian_ridge times the arm kernel's.
        users: What that column holds: "ids" of the graph, or "rows", the numbers 0 to n_users - 1.
        laplacian_ridge: The paper's rho, > 0; the smaller, the farther users share.
        arm_kernel: How alike two arms are; default SquaredExponential(lengthscale).
        lengthscale: Of the default arm kernel: a number, one for each feature, or "median", the median distance
            between the distinct arms of the table.
        noise_var: The noise variance of a reward, the paper's lambda, > 0.

    Attributes:
        model_: The belief about the centred rewards; its users are numbers.
        offset_: The mean of the rewards.
        arm_kernel_: The arm kernel with its lengthscale.
        n_features_in_: The number of columns, the user's included.

    Examples:
        >>> graph = UserGraph.from_edges([("ana", "bo")], users=["ana", "bo", "cy"])
        >>> rated = np.array([["ana", 0.0], ["ana", 1.0], ["cy", 0.0]], dtype=object)
        >>> regressor = LaplacianKernelRegressor(graph=graph, lengthscale=1.0).fit(rated, [3.0, 5.0, 4.0])
        >>> mean, std = regressor.predict(np.array([["bo", 1.0], ["cy", 9.0]], dtype=object), return_std=True)
        >>> mean.round(2), std.round(2)      # bo has rated nothing and is like ana; cy's arm 9 is like no other
        (array([4.87, 4.  ]), array([0.99, 3.16]))
    """

    def __init__(
        self,
        *,
        graph: UserGraph | None = None,
        user_column: int | str | None = 0,
        users: Literal["ids", "rows"] = "ids",
        laplacian_ridge: float = 0.1,
        arm_kernel: ArmKernel | None = None,
        lengthscale: Lengthscale = "median",
        noise_var: float = 0.1,
    ) -> None:
        self.graph = graph
        self.user_column = user_column
        self.users = users
        self.laplacian_ridge = laplacian_ridge
        self.arm_kernel = arm_kernel
        self.lengthscale = lengthscale
        self.noise_var = noise_var

    def fit(self, X: Any, y: Any) -> Self:
        """Returns itself, having learned these rows and no others."""
        return self._learn(*self._read_rewarded(X, y, reset=True))

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Returns itself, having learned these rows besides the earlier ones: the same as `fit` on all of them.

        It costs as much as `fit` does, because the mean and the median may move with every row.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y)
        users, features, rewards = self._read_rewarded(X, y, reset=False)
        known_users, known_features, known_rewards = self._rows
        together = np.concatenate([known_features, features]), np.concatenate([known_rewards, rewards])
        return self._learn(known_users + users, *together)

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Returns the expected reward of each row and, if asked, the std of that expectation, without noise."""
        check_is_fitted(self)
        users, features = self._read(X)
        mean, std = np.empty(len(users)), np.empty(len(users))
        for user, part in _by_user(self._rows_of(users)):
            mean[part], std[part] = self.model_.predict(user, features[part])
        mean += self.offset_
        return (mean, std) if return_std else mean

    def _learn(self, users: list[Hashable], features: Array, rewards: Array) -> Self:
        """Returns itself with the belief that these rows give; on an error nothing has changed."""
        index, user_cov = self._known_users(users)
        rows = [_row_of(user, index) for user in users]
        arm_kernel = self._chosen_arm_kernel().resolve(np.unique(features, axis=0))
        model: Model = make_model(FreeKernel(user_cov, arm_kernel), noise_var=self.noise_var)
        offset = float(rewards.mean())
        model.update_many(rows, features, rewards - offset)
        self.model_, self.offset_, self.arm_kernel_ = model, offset, arm_kernel
        self._index, self._rows = index, (users, features, rewards)
        return self

    def _chosen_arm_kernel(self) -> ArmKernel:
        if self.arm_kernel is None:
            return SquaredExponential(self.lengthscale)
        if not isinstance(self.arm_kernel, ArmKernel):
            rule = "it is an arm kernel or None"
            raise ParameterError(f"arm_kernel is {self.arm_kernel!r}", rule, "Pass, say, Matern52(1.0)")
        if not (isinstance(self.lengthscale, str) and self.lengthscale == "median"):
            problem = f"lengthscale is {self.lengthscale!r} and arm_kernel {self.arm_kernel!r}"
            raise ParameterError(problem, "lengthscale is the default kernel's", "Give it to the arm kernel instead")
        return self.arm_kernel

    def _known_users(self, met: list[Hashable]) -> tuple[Mapping[Hashable, int], Array]:
        """Returns the row of each user, and their covariance; without a graph it has one more, for all not met."""
        kernel = Green(laplacian_ridge=self.laplacian_ridge)
        if self.users not in ("ids", "rows"):
            raise ParameterError(f"users is {self.users!r}", "it is 'ids' or 'rows'", "Use one of these")
        if self.graph is None:
            alone = {user: row for row, user in enumerate(dict.fromkeys(met))}
            return alone, np.eye(len(alone) + 1) / kernel.laplacian_ridge
        user_cov = kernel.matrix(self.graph)
        ids = self.graph.users if self.users == "ids" else range(len(user_cov))
        return {user: row for row, user in enumerate(ids)}, user_cov

    def _rows_of(self, users: list[Hashable]) -> Index:
        """Returns the model's row of each user, or raises UnknownUserError."""
        stranger = len(self._index) if self.model_.n_users > len(self._index) else None
        return np.array([_row_of(user, self._index, stranger) for user in users], dtype=np.intp)

    def _read_rewarded(self, X: Any, y: Any, *, reset: bool) -> tuple[list[Hashable], Array, Array]:
        table, rewards = validate_data(self, X, y, reset=reset, y_numeric=True, **self._checks(reset=reset))
        users, features = self._split(X, table)
        return users, features.copy(), np.array(rewards, dtype=np.float64)  # they are kept, and the caller's may change

    def _read(self, X: Any) -> tuple[list[Hashable], Array]:
        return self._split(X, validate_data(self, X, reset=False, **self._checks(reset=False)))

    def _checks(self, *, reset: bool) -> dict[str, Any]:
        """Returns what scikit-learn is to check of a table: users may be of any type, and are a column more."""
        if self.user_column is None:
            if self.graph is not None:
                rule = "every row has a user"
                raise ParameterError("user_column is None with a graph", rule, "Say which column it is")
            return {"dtype": np.float64}
        return {"dtype": None, "ensure_min_features": 2 if reset else 1}  # later tables are as wide as the first

    def _split(self, X: Any, table: Any) -> tuple[list[Hashable], Array]:
        """Returns the user and the features of each row of a checked table."""
        if self.user_column is None:
            return [None] * len(table), table
        column = _position(self.user_column, list(getattr(self, "feature_names_in_", [])), table.shape[1])
        features = check_array(np.delete(table, column, axis=1), dtype=np.float64, input_name="X")
        return _column(X, table, column), features


def _position(user_column: Any, names: list[str], n_columns: int) -> int:
    """Returns the position of the user's column, or raises a typed error."""
    if isinstance(user_column, str):
        if user_column in names:
            return names.index(user_column)
        rule = f"the columns are {listed(names)}" if names else "only a dataframe has names of columns"
        remedy = or_similar(user_column, names, "Use one of these" if names else "Pass a position, such as 0")
        raise UnknownNameError(f"user_column {user_column!r} is unknown", rule, remedy)
    if is_whole(user_column, 0, n_columns - 1):
        return int(user_column)
    rule = f"it is a position from 0 to {n_columns - 1}, a name or None"
    raise ParameterError(f"user_column is {user_column!r}", rule, "Use one of these")


def _column(X: Any, table: Any, position: int) -> list[Hashable]:
    """Returns one column's values, those of a dataframe as it holds them: an array makes long integers floats."""
    framed = hasattr(X, "columns") and hasattr(X, "dtypes")
    values = list(X[X.columns[position]]) if framed else table[:, position].tolist()
    for value in values:
        if not isinstance(value, Hashable):
            raise UnknownUserError(f"user {value!r} is not hashable", "ids are hashable values", "Use str or int ids")
    return values


def _row_of(user: Hashable, index: Mapping[Hashable, int], stranger: int | None = None) -> int:
    """Returns the user's row, that of strangers if there is one, or raises UnknownUserError."""
    row = index.get(user, stranger)
    if row is None:
        remedy = or_similar(user, index, "Add the user to the graph, or drop the row")
        raise UnknownUserError(f"user {user!r} is unknown", f"the graph's users are {listed(index)}", remedy)
    return row


def _by_user(rows: Index) -> Iterator[tuple[int, Index]]:
    """Yields each user that occurs with the places where, a bounded number of them at a time."""
    order = np.argsort(rows, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(rows[order])) + 1):
        for start in range(0, len(places), READ_ROWS):
            yield int(rows[places[0]]), places[start : start + READ_ROWS]
