"""Without numba `sparse` says which extra to install."""

import numpy as np
import pytest

import coterie as ct
from coterie.algebra import iterative
from coterie.errors import MissingExtraError
from coterie.kernels.graph_kernel import GraphKernel
from coterie.models import make_model


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iterative, "COMPILED", False)
    with pytest.raises(MissingExtraError, match="extra 'scale'"):
        make_model(GraphKernel(ct.make_graph("ring", 5), np.eye(2)), engine="sparse")
