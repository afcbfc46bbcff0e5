"""Compiled functions: loaded when first needed, and compiled once on a machine, or in advance by `coterie warmup`."""

import logging
from functools import cache
from time import perf_counter
from types import ModuleType

import numpy as np

from coterie.errors.extras import missing_extra
from coterie.graphs import make_graph

ABOUT = 10  # seconds; six on an idle core of 2024


def load_solvers() -> ModuleType:
    """Returns the compiled functions on the graph, or says which extra brings them; importing numba takes a second."""
    from coterie.algebra import iterative

    if not iterative.COMPILED:
        raise missing_extra("scale", "engine 'sparse' needs 'numba', which is not installed")
    say_if_compiling(iterative)
    return iterative


def load_rows() -> ModuleType:
    """Returns the compiled functions on rows of rewards; see `load_solvers`."""
    from coterie.algebra import reward_rows

    return reward_rows


@cache
def say_if_compiling(solvers: ModuleType) -> None:
    """Says once, by the logger "coterie" and so on stderr, that what is not on disk yet is compiled now."""
    if not solvers.is_on_disk():
        logging.getLogger("coterie").warning(
            "compiling engine 'sparse': about %d s, once on this machine; 'coterie warmup' does it ahead", ABOUT
        )


def warm_up() -> float:
    """Returns how many seconds it took to compile everything, or to find it on disk; decides and learns a little."""
    from coterie.kernels.graph_kernel import GraphKernel
    from coterie.models.engines.sparse.model import SparseModel

    start = perf_counter()
    for normalised in (False, True):
        model = SparseModel(GraphKernel(make_graph("ring", 20), np.eye(3), normalised=normalised))
        for number in range(20):
            model.predict(number)
            model.update(number, number % 3, 1.0)
        model.fit(model.history)
    return perf_counter() - start
