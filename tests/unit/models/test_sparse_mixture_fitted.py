"""A fit with own and common parts is the dense mixture's belief within the bounds, and goes on from there."""

import numpy as np
import pytest
from test_sparse_batch import collapsed, drawn
from test_sparse_mixture import PARTS, assert_bounds_hold, make_pair

import coterie as ct

pytest.importorskip("numba")


@pytest.mark.parametrize("as_if_many", [False, True])
@pytest.mark.parametrize("n_rows", [60, 600])  # fewer rows of a user than features, and more
@pytest.mark.parametrize(("own", "common"), PARTS)
def test_a_fit_is_the_dense_mixture_and_goes_on(own: float, common: float, n_rows: int, as_if_many: bool) -> None:
    model, reference = make_pair(ct.make_graph("sbm", 25, seed=1), own, common, as_if_many=as_if_many)
    rows = drawn(25, n_rows)
    model.fit(collapsed(rows))
    reference.update_many(*zip(*rows, strict=True))
    assert model.info_gain <= reference.info_gain * (1 + 1e-9)
    for number, (user, arm, reward) in enumerate(drawn(25, 15, seed=1)):
        assert_bounds_hold(model, reference, number)
        model.update(user, arm, reward)
        reference.update(user, arm, reward)
        assert_bounds_hold(model, reference, user)


@pytest.mark.parametrize(("own", "common"), PARTS)
def test_scores_of_many_are_those_of_each(own: float, common: float) -> None:
    model, reference = make_pair(ct.make_graph("sbm", 25, seed=1), own, common)
    model.fit(collapsed(drawn(25, 100)))
    reference.update_many(*zip(*drawn(25, 100), strict=True))
    means = model.read_means(np.arange(25), np.arange(8))
    for user in range(25):
        assert np.all(model.std_bound(user, np.arange(8)) >= reference.predict(user)[1] * (1 - 1e-9))
        np.testing.assert_allclose(means[user], model.predict(user)[0])  # from here on a variance is kept
