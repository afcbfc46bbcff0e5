"""Cutting a graph: everybody has a part, parts are about as large, and METIS cuts few edges."""

import numpy as np
import pytest

import coterie as ct
from coterie.errors import ParameterError
from coterie.graphs.parts import METHODS, cut_graph, cut_share


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_parts", [1, 2, 7])
def test_parts_are_about_as_large(method: str, n_parts: int) -> None:
    if method == "metis":
        pytest.importorskip("pymetis", reason="METIS comes with the extra 'ray'")
    graph = ct.make_graph("watts-strogatz", 500, k=6, seed=0)
    sizes = np.bincount(cut_graph(graph, n_parts, method), minlength=n_parts)
    assert len(sizes) == n_parts
    assert sizes.max() <= 1.1 * 500 / n_parts


def test_metis_keeps_neighbours_together() -> None:
    pytest.importorskip("pymetis", reason="METIS comes with the extra 'ray'")
    graph = ct.make_graph("watts-strogatz", 500, k=6, seed=0)
    assert cut_share(graph, cut_graph(graph, 4, "metis")) < 0.5 * cut_share(graph, cut_graph(graph, 4, "hash"))


def test_the_same_graph_is_cut_the_same_way() -> None:
    graph = ct.make_graph("sbm", 90, n_blocks=3, seed=1)
    np.testing.assert_array_equal(cut_graph(graph, 3, "hash"), cut_graph(graph, 3, "hash"))


@pytest.mark.parametrize(("n_parts", "method"), [(0, "hash"), (2.5, "hash"), (2, "spectral")])
def test_what_cannot_be_is_refused(n_parts: int, method: str) -> None:
    with pytest.raises(ParameterError):
        cut_graph(ct.make_graph("ring", 10), n_parts, method)
