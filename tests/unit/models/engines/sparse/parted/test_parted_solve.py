"""A solve over parts gives the weights of a solve in one piece, however the graph is cut and whoever is lost."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.contracts import Array, Index
from coterie.graphs.parts import cut_graph
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models.engines.sparse.limits import LIMITS
from coterie.models.engines.sparse.parted.cutting import PartGraph, cut_kernel, cut_rows
from coterie.models.engines.sparse.parted.part import Part
from coterie.models.engines.sparse.parted.solve import LocalCrew, NoCoarseSpace, PartLost, coarse_space, solve_parted
from coterie.models.engines.sparse.posterior_weights import PosteriorWeights
from coterie.models.engines.sparse.reward_table import RewardTable
from coterie.models.engines.sparse.solves import PosteriorPrecision
from coterie.models.engines.sparse.user_blocks import DataBlocks

pytest.importorskip("numba", reason="engine 'sparse' needs the extra 'scale'")
NOISE = 0.25


class Case:
    """A graph with rewards of some of its users, and the dense system A w = b."""

    def __init__(self, n_users: int, seed: int, *, normalised: bool = False) -> None:
        rng = np.random.default_rng(seed)
        self.graph = ct.make_graph("sbm", n_users, n_blocks=3, seed=seed)
        self.features = rng.normal(size=(7, 3))
        self.kernel = GraphKernel(self.graph, self.features, laplacian_ridge=0.3, normalised=normalised)
        users, arms = rng.integers(n_users, size=2 * n_users), rng.integers(7, size=2 * n_users)
        ones, rewards = np.ones(2 * n_users), rng.normal(size=2 * n_users)
        self.table = RewardTable.of_rewards(users, arms, rewards, ones, n_users, 7)
        precision = np.kron(np.diag(self.kernel.diagonal) - self.kernel.weights.toarray(), np.eye(3))
        target = np.zeros((n_users, 3))
        for user, arm, reward in zip(users, arms, rewards, strict=True):
            mine = slice(3 * user, 3 * user + 3)
            precision[mine, mine] += np.outer(self.features[arm], self.features[arm]) / NOISE
            target[user] += self.features[arm] * reward / NOISE
        self.weights = np.linalg.solve(precision, target.ravel()).reshape(n_users, 3)
        self.precision = precision

    def cut(self, parts: Index, n_parts: int, inner_steps: int = 0) -> tuple[list[PartGraph], list[Part]]:
        graphs = cut_kernel(self.kernel, parts, n_parts)
        rows = cut_rows(self.table.state(), parts, n_parts)
        made = [
            Part(graph, each, self.features, NOISE, inner_steps=inner_steps)
            for graph, each in zip(graphs, rows, strict=True)
        ]
        return graphs, made

    def joined(self, graphs: list[PartGraph], parts: list[Part]) -> Array:
        out = np.empty_like(self.weights)
        for graph, part in zip(graphs, parts, strict=True):
            out[graph.users] = part.weights
        return out


@settings(max_examples=20, deadline=None)
@given(
    n_users=st.integers(6, 40),
    n_parts=st.integers(1, 5),
    seed=st.integers(0, 50),
    inner_steps=st.sampled_from([0, 3]),
    normalised=st.booleans(),
)
def test_it_is_the_solution_however_the_graph_is_cut(
    n_users: int, n_parts: int, seed: int, inner_steps: int, normalised: bool
) -> None:
    case = Case(n_users, seed, normalised=normalised)
    labels = np.random.default_rng(seed).integers(n_parts, size=n_users)
    labels[:n_parts] = np.arange(n_parts)
    graphs, parts = case.cut(labels, n_parts, inner_steps)
    solved = solve_parted(LocalCrew(graphs, parts), 1e-9)
    assert solved.level <= 1e-9
    np.testing.assert_allclose(case.joined(graphs, parts), case.weights, atol=1e-7)


@pytest.mark.parametrize("method", ["metis", "hash"])
def test_it_is_what_one_solve_for_all_gives(method: str) -> None:
    if method == "metis":
        pytest.importorskip("pymetis", reason="METIS comes with the extra 'ray'")
    case = Case(300, 1)
    whole = PosteriorPrecision(case.kernel, DataBlocks(case.kernel, case.table, NOISE, LIMITS))
    expected = whole.solve(whole.residual_of(np.zeros((300, 3))), 1e-8)
    graphs, parts = case.cut(cut_graph(case.graph, 4, method), 4)
    solve_parted(LocalCrew(graphs, parts), 1e-8)
    np.testing.assert_allclose(case.joined(graphs, parts), expected, atol=1e-6)


def test_the_coarse_space_is_that_of_the_whole_matrix() -> None:
    case = Case(30, 2, normalised=True)
    labels = cut_graph(case.graph, 3, "hash")
    graphs, parts = case.cut(labels, 3)
    space = coarse_space(LocalCrew(graphs, parts))
    vectors = np.zeros((30, 3))
    vectors[np.arange(30), labels] = case.kernel.null
    wide = np.kron(vectors, np.eye(3))
    along = np.random.default_rng(0).normal(size=(3, 3))
    expected = np.linalg.solve(wide.T @ case.precision @ wide, along.ravel()).reshape(3, 3)
    np.testing.assert_allclose(space.solve(list(along)), expected, atol=1e-10)


def test_the_coarse_space_saves_steps_where_all_have_something_in_common() -> None:
    case = Case(900, 0)
    threshold, labels = PosteriorWeights(case.kernel, 0.1, LIMITS).threshold, cut_graph(case.graph, 4, "hash")
    crews = [LocalCrew(*case.cut(labels, 4)) for _ in range(2)]
    alone = solve_parted(crews[0], threshold, coarse=NoCoarseSpace())
    assert solve_parted(crews[1], threshold).steps < 0.7 * alone.steps


class Losing(LocalCrew):
    """Loses a part, and all but the weights it had a step ago, now and then."""

    def __init__(self, graphs: list[PartGraph], parts: list[Part]) -> None:
        super().__init__(graphs, parts)
        self.calls, self.kept = 0, [part.weights.copy() for part in parts]

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        out = super().each(method, arguments)
        self.calls += 1
        if self.calls in (2, 9, 22):  # the first while the coarse space is made
            lost = self._parts[1]
            lost.weights[:] = self.kept[1]
            for vector in (lost._residual, lost._image, lost._ready, lost._extended):
                vector[:] = np.nan
            raise PartLost
        if method == "step":
            self.kept = [part.weights.copy() for part in self._parts]
        return out


def test_a_part_that_is_lost_costs_its_last_step() -> None:
    case = Case(60, 3)
    graphs, parts = case.cut(cut_graph(case.graph, 3, "hash"), 3)
    solved = solve_parted(Losing(graphs, parts), 1e-9)
    assert solved.restarts == 3
    np.testing.assert_allclose(case.joined(graphs, parts), case.weights, atol=1e-7)


def test_what_is_sent_is_the_halo_of_each_vector() -> None:
    case = Case(60, 4)
    graphs, parts = case.cut(cut_graph(case.graph, 3, "hash"), 3)
    crew = LocalCrew(graphs, parts)
    solved = solve_parted(crew, 1e-6, coarse=NoCoarseSpace())
    a_vector = 8 * 3 * sum(graph.halo_size for graph in graphs)
    assert solved.bytes_sent == (1 + solved.steps) * a_vector
