"""What a `SparseModel` holds: its options, the graph's rooms, and the parts that its belief is made of."""

from abc import abstractmethod
from typing import Any

import numpy as np

from coterie.contracts import Array
from coterie.kernels.graph_kernel import GraphKernel
from coterie.kernels.joint import JointKernel
from coterie.models.conditioned import ConditionedModel
from coterie.models.engines.sparse.batch import collapsed
from coterie.models.engines.sparse.certify import Certifier
from coterie.models.engines.sparse.local_solve import LocalSolve
from coterie.models.engines.sparse.needs import checked_flag, checked_share, load_push, require_graph
from coterie.models.engines.sparse.posterior_weights import PosteriorWeights
from coterie.models.engines.sparse.reward_table import COLUMNS, RewardTable
from coterie.models.engines.sparse.user_blocks import DataBlocks, MarginalBlocks
from coterie.models.engines.sparse.variance_bounds import VarianceBounds
from coterie.models.history import History
from coterie.models.need import check_whole

HANDFUL, FINER_MEANS, FINER_STDS = 200, 20.0, 100.0


class Held(ConditionedModel):
    """Options and parts: made, taken apart for saving, and put together again. `SparseModel` says what they are for."""

    engine = "sparse"
    can_fit = certifies = follows_graph = has_cheap_means = True
    near = 1e-3  # a file of it has no kernel: only the belief tells whether graph and features are its own
    stages = False
    kernel: GraphKernel
    history: RewardTable
    _grown: GraphKernel | None = None
    _sums_are_old: bool

    def __init__(
        self,
        kernel: JointKernel,
        *,
        noise_var: float = 0.01,
        eps: float = 0.1,
        accuracy: float = 0.05,
        max_work: int = 150_000,
        certified: bool = False,
    ) -> None:
        graph = require_graph(kernel)
        self._push = load_push()
        super().__init__(graph, noise_var=noise_var)
        self.eps, self.accuracy = checked_share("eps", eps), checked_share("accuracy", accuracy)
        check_whole("max_work", max_work)
        self.max_work = int(max_work)
        self.history = RewardTable(graph.n_users, graph.n_arms)
        self.certified = checked_flag("certified", certified)
        self._configure(graph, self._noise_var)
        self._reset()
        self._warm_up()

    @property
    def nbytes(self) -> int:
        """Bytes held by the belief."""
        return self._posterior.nbytes + self._data.nbytes + self._marginals.nbytes + self.history.nbytes

    @property
    def n_waiting(self) -> int:
        """Users whose residual is above the threshold, and waits to be pushed on."""
        return self._posterior.n_waiting

    def new_history(self, users: Any, arms: Any, rewards: Any, weights: Array) -> RewardTable:
        """Returns rewards, each counting as much as its weight, without a Python object for each row."""
        kept = np.flatnonzero(weights > 0)
        columns = (np.array(users)[kept], np.array(arms)[kept], weights[kept], np.array(rewards)[kept])
        named = dict(zip(COLUMNS, (*columns, np.zeros(len(kept))), strict=True))
        n_users, n_arms = self.kernel.n_users, self.kernel.n_arms
        return RewardTable.from_columns({"n_observations": len(kept), **collapsed(named, n_arms)}, n_users, n_arms)

    def _configure(self, kernel: JointKernel, noise_var: float) -> None:
        graph = require_graph(kernel)
        super()._configure(graph, noise_var)
        self._work = LocalSolve(graph, (graph.features.shape[1],))
        if graph is not self._grown:
            self._grown = None
        self._variance_bounds = VarianceBounds(self._push, graph, accuracy=self._fineness, most=self.max_work)
        self._certifier = Certifier(self._push, graph, most=self.max_work)

    @property
    def _fineness(self) -> float:
        """The accuracy, or a finer one: a handful of users know much of each other.

        Their stds would be too large by a tenth, and choices the worse.
        """
        return self.accuracy / (FINER_STDS if self.kernel.n_users <= HANDFUL else 1.0)

    def _detach(self) -> None:
        self._configure(self.kernel, self._noise_var)  # a solve has room of its own; `_reset` makes the rest anew

    def _reset(self) -> None:
        eps = self.eps / (FINER_MEANS if self.kernel.n_users <= HANDFUL else 1.0)
        self._posterior = PosteriorWeights(self._push, self.kernel, eps)
        self._data = DataBlocks(self.kernel, self.history, self._noise_var)
        self._marginals = MarginalBlocks(self.kernel.n_users, self.kernel.features.shape[1])
        self._sums_are_old = False

    @abstractmethod
    def _warm_up(self) -> None:
        """Calls every compiled function with nothing to do, so that none is compiled while somebody waits."""

    def _belief(self) -> dict[str, Any]:
        options = {name: getattr(self, name) for name in ("eps", "accuracy", "max_work", "certified")}
        parts = {"residual": self._posterior.state(), "data": self._data.state(), "marginals": self._marginals.state()}
        grown = {"growth": self.kernel.growth(), "sums_are_old": self._sums_are_old} if self.kernel.has_grown else {}
        return options | parts | grown

    def _restored_history(self, state: dict[str, Any], kernel: JointKernel) -> History:
        return RewardTable.from_columns(state, kernel.n_users, require_graph(kernel).n_arms)

    def _restore(self, state: dict[str, Any], kernel: JointKernel) -> None:
        if "growth" in state and not require_graph(kernel).has_grown:
            kernel = self._grown = require_graph(kernel).growing(state["growth"])
        super()._restore(state, kernel)
        self._push = load_push()
        self.eps, self.accuracy, self.max_work = state["eps"], state["accuracy"], state["max_work"]
        self.certified = state.get("certified", False)  # files of before know nothing of it
        self._configure(kernel, self._noise_var)
        self._reset()
        self._warm_up()
        self._posterior.take(state["residual"])
        self._data.take(state["data"])
        self._marginals.take(state["marginals"])
        self._sums_are_old = state.get("sums_are_old", False)
