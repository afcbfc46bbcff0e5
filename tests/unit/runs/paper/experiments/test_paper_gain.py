"""Figure 1: the paper's expressions against actual designs, and a record that can be redrawn."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.graphs import UserGraph, make_graph
from coterie.kernels import FreeKernel, Green
from coterie.models import make_model
from coterie.runs.paper.experiments import gain, spectral
from coterie.runs.paper.experiments.gain_findings import findings
from coterie.runs.paper.reproduce import COMPUTED
from strategies import graphs

RIDGE = 0.1


@pytest.fixture(scope="module")
def record() -> Any:
    return COMPUTED["figure-1"].run(True, lambda _: None)


def user_cov(graph: UserGraph) -> Any:
    return Green(laplacian_ridge=RIDGE).matrix(graph)


@settings(max_examples=25, deadline=None)
@given(graphs(), st.integers(1, 6), st.sampled_from([1e-3, 0.1, 1.0, 50.0]), st.integers(0, 99))
def test_the_regular_expression_is_the_log_det_of_a_regular_design(
    graph: UserGraph, n_arms: int, noise_var: float, seed: int
) -> None:
    pool = np.random.default_rng(seed).random((n_arms, spectral.DIMENSION))
    users = np.repeat(np.arange(graph.n_users), n_arms)
    features = np.tile(pool, (graph.n_users, 1))
    actual = spectral.gains_of_design(
        user_cov(graph), users, features, noise_var=noise_var, horizons=[graph.n_users * n_arms]
    )
    expression = spectral.regular_gain(spectral.user_eigenvalues(graph, RIDGE), pool, noise_var)
    assert expression == pytest.approx(float(actual[0]), rel=1e-9)


def test_gain_and_effective_dimension_are_those_of_a_model() -> None:
    graph, noise_var = make_graph("ring", 6), 0.05
    users, features = spectral.iid_design(6, 30, np.random.default_rng(0))
    gains = spectral.gains_of_design(user_cov(graph), users, features, noise_var=noise_var, horizons=[7, 30])
    dims = spectral.effective_dim(
        gains,
        horizon=np.array([7, 30]),
        max_variance=spectral.largest_variance(graph, RIDGE),
        noise_var=noise_var,
    )
    model = make_model(FreeKernel(user_cov(graph), spectral.ARM_KERNEL), noise_var=noise_var)
    for until, expected, dim in zip((7, 30), gains, dims, strict=True):
        start = model.n_observations
        model.update_many(users[start:until], features[start:until], np.zeros(until - start))
        assert model.info_gain == pytest.approx(expected, rel=1e-9)
        assert model.effective_dim == pytest.approx(dim, rel=1e-9)


def test_the_spectrum_of_the_cube_is_that_of_a_large_sample() -> None:
    values = spectral.cube_spectrum()
    points = np.random.default_rng(0).random((1200, spectral.DIMENSION))
    sampled = np.linalg.eigvalsh(spectral.ARM_KERNEL.gram(points))[::-1] / len(points)
    assert values.sum() == pytest.approx(1.0, abs=1e-9)
    assert np.all(np.diff(values) <= 0)
    np.testing.assert_allclose(values[:6], sampled[:6], rtol=0.1)


@pytest.mark.parametrize("family", ["complete", "ring", "empty"])
@pytest.mark.parametrize("noise_var", [0.01, 1.0])
def test_the_operator_bound_with_1_over_n_is_above_the_mean_gain(family: str, noise_var: float) -> None:
    graph, horizon = make_graph(family, 12), 150
    designs = (spectral.iid_design(12, horizon, np.random.default_rng(seed)) for seed in range(10))
    gains = [
        spectral.gains_of_design(user_cov(graph), *design, noise_var=noise_var, horizons=[horizon])[0]
        for design in designs
    ]
    values, arms = spectral.user_eigenvalues(graph, RIDGE), spectral.cube_spectrum()
    uniform, printed = (
        spectral.operator_bound(values, arms, horizon=horizon, noise_var=noise_var, uniform_users=each)
        for each in (True, False)
    )
    assert np.mean(gains) < uniform < printed


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 9), st.integers(1, 4), st.sampled_from([0.01, 0.3, 4.0]), st.integers(0, 99))
def test_the_proposition_holds_for_every_design(n_users: int, each: int, noise_var: float, seed: int) -> None:
    graph, horizon = make_graph("complete", n_users), each * n_users
    users, features = spectral.iid_design(n_users, horizon, np.random.default_rng(seed))
    found = spectral.gains_of_design(user_cov(graph), users, features, noise_var=noise_var, horizons=[horizon])[0]
    most = spectral.largest_variance(graph, RIDGE)
    hadamard = spectral.hadamard_bound(horizon, max_variance=most, noise_var=noise_var)
    bound = spectral.clique_bound(each, laplacian_ridge=RIDGE, noise_var=noise_var)
    assert found <= hadamard * (1 + 1e-9)
    assert hadamard <= horizon * most / noise_var <= bound


def test_clusters_share_no_edge() -> None:
    graph = spectral.disjoint_cliques(12, 3)
    assert graph.n_edges == 3 * 6
    assert sorted(np.bincount(graph.component_labels)) == [4, 4, 4]


def test_the_record_is_small_json_and_the_same_each_time(record: Any) -> None:
    text = json.dumps(record, allow_nan=False)
    assert len(text) < 60_000
    assert json.dumps(COMPUTED["figure-1"].run(True, lambda _: None)) == text
    assert {each.get("verdict") for each in record["findings"]} <= {"holds", "holds partly", "does not hold", None}


def test_progress_is_reported() -> None:
    said: list[str] = []
    COMPUTED["figure-1"].run(True, said.append)
    assert any("complete" in line for line in said)


def test_verdicts_come_from_the_data(record: Any) -> None:
    def verdict(cells: list[Any]) -> Any:
        found = findings(record | {"gain": cells})
        return next(each for each in found if "sharper upper bound" in each["claim"])["verdict"]

    assert verdict([cell | {"regular": 2 * cell["iid"]} for cell in record["gain"]]) == "holds"
    assert verdict([cell | {"regular": cell["iid"] / 2} for cell in record["gain"]]) == "does not hold"


@pytest.mark.parametrize("picture", [gain.draw_gain, gain.draw_dimension, gain.draw_proposition])
def test_pictures_are_drawn_from_a_stored_record(record: Any, picture: Any, tmp_path: Path) -> None:
    drawn = picture(json.loads(json.dumps(record)), tmp_path / "pictures")
    assert drawn.title
    assert drawn.caption
    assert drawn.png.read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in drawn.svg.read_text()


def test_all_pictures_are_drawn(record: Any, tmp_path: Path) -> None:
    assert [each.png.stem for each in COMPUTED["figure-1"].draw(record, tmp_path)] == [
        "figure-1a-gain",
        "figure-1bc-dimension",
        "figure-1d-proposition",
    ]
