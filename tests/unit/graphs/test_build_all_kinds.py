"""Inputs that people bring: labelled tables, lazy tables, ragged rows, seeds."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import coterie as ct
from coterie.errors import DimensionError, GraphError


def test_the_labels_of_a_square_dataframe_are_the_users() -> None:
    frame = pd.DataFrame([[0.0, 2.0], [2.0, 0.0]], index=["ana", "bo"], columns=["ana", "bo"])
    assert ct.UserGraph.from_matrix(frame).weight("ana", "bo") == 2.0
    with pytest.raises(GraphError, match="'bo', 'ana'"):
        ct.UserGraph.from_matrix(frame[["bo", "ana"]])


def test_a_lazy_table_is_to_be_collected_first() -> None:
    table = pl.DataFrame({"from": ["ana"], "to": ["bo"]})
    assert ct.UserGraph.from_table(table).n_edges == 1
    with pytest.raises(GraphError, match="collect"):
        ct.UserGraph.from_table(table.lazy())


def test_a_ragged_matrix_is_named() -> None:
    with pytest.raises(DimensionError, match="different lengths"):
        ct.UserGraph.from_matrix([[0, 1], [1]])


def test_permuted_takes_a_seed_or_a_generator() -> None:
    graph = ct.make_graph("erdos-renyi", 12, seed=0)
    assert graph.permuted(3) == graph.permuted(np.random.default_rng(3))
    assert graph.permuted(3) != graph
