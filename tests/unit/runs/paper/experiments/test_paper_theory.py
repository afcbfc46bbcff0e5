"""The paper's theory: the lemma on cumulative uncertainty, the regret bounds, and records that can be redrawn."""

import json
from math import e, log, pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.graphs import make_graph
from coterie.kernels import PoolKernel
from coterie.models import make_model
from coterie.policies import TheoryWidth
from coterie.problems import sphere_pool
from coterie.runs.paper.experiments import bounds, growth, uncertainty
from coterie.runs.paper.experiments.bounds import largest_gap, ts_bound, ucb_bound
from coterie.runs.paper.experiments.uncertainty import printed_bound, simple_bound, tight_bound
from coterie.runs.paper.reproduce import COMPUTED
from strategies import Case, cases

THEORY = COMPUTED["theory"]


@pytest.fixture(scope="module")
def record() -> Any:
    return THEORY.run(True, lambda _: None)


def summed(kernel: PoolKernel, noise_var: float, pairs: list[tuple[int, int]]) -> tuple[float, float]:
    """Returns the sum of std before each pair is observed, and the gain after all."""
    model, total = make_model(kernel, noise_var=noise_var, engine="dense"), 0.0
    for user, arm in pairs:
        total += float(model.predict(user, [arm])[1][0])
        model.update(user, arm, 0.0)
    return total, model.info_gain


@settings(max_examples=60, deadline=None)
@given(cases(max_history=12), st.floats(-3, 5))
def test_the_mended_lemma_holds_for_every_noise_variance(case: Case, power: float) -> None:
    noise_var, horizon = 10.0**power, len(case.history)
    total, gain = summed(case.kernel, noise_var, [(user, arm) for user, arm, _ in case.history])
    most = max(case.kernel.max_variance([]), 1e-300)
    # At a gain of 1e-16 its own rounding is all there is; the lemma says nothing at that scale.
    slack = 1e-7 * sqrt(most) * max(horizon, 1)
    tight = tight_bound(gain, horizon=horizon, max_variance=most, noise_var=noise_var)
    simple = simple_bound(gain, horizon=horizon, max_variance=most, noise_var=noise_var)
    assert total <= tight * (1 + 1e-6) + slack
    assert tight <= simple * (1 + 1e-12)
    if noise_var <= max(1.0, most):
        assert total <= printed_bound(gain, horizon=horizon, max_variance=most) * (1 + 1e-6) + slack


@pytest.mark.parametrize("most", [1.0, 3.0])
def test_independent_pairs_break_the_printed_lemma_and_reach_the_mended_one(most: float) -> None:
    kernel = PoolKernel(most * np.eye(3), np.eye(4))
    pairs = [(user, arm) for user in range(3) for arm in range(4)]
    threshold = most / (sqrt(e) - 1)
    for noise_var, broken in ((0.99 * threshold, False), (1.01 * threshold, True), (1e4, True)):
        total, gain = summed(kernel, noise_var, pairs)
        assert (total > printed_bound(gain, horizon=12, max_variance=most)) is broken
        assert total == pytest.approx(tight_bound(gain, horizon=12, max_variance=most, noise_var=noise_var), rel=1e-9)


def test_bounds_by_hand() -> None:
    assert largest_gap(3.0, 4.0) == 12.0
    assert ucb_bound(1.5, 2.0, horizon=8, max_variance=4.0, norm_bound=3.0) == pytest.approx(3 * sqrt(128) + 12)
    assert ucb_bound(1.0, 2.0, horizon=8, max_variance=0.25, norm_bound=0.0) == pytest.approx(2 * sqrt(32))
    spread = 1.5 * (1 + sqrt(2 * log(8**2 * 5)))
    by_hand = 194 * spread * sqrt(128) + (4 + pi**2 / 6 + 0.05) * 12
    got = ts_bound(1.5, 2.0, horizon=8, max_variance=4.0, norm_bound=3.0, n_candidates=5, failure_prob=0.05)
    assert got == pytest.approx(by_hand)


def test_the_norm_of_a_gp_draw_is_that_of_its_normals() -> None:
    chosen = bounds.QUICK
    graph = make_graph("erdos-renyi", chosen.n_users, seed=1, connected="retry")
    world, norm = bounds._world(chosen, graph, sphere_pool(chosen.n_arms, chosen.dimension, seed=1), trial=1)
    normal = np.random.default_rng([chosen.seed, 1]).standard_normal((chosen.n_users, chosen.n_arms))
    assert norm == pytest.approx(float(np.linalg.norm(normal)), rel=1e-8)
    assert world.noise_std == chosen.noise_std


def test_thompson_sampling_is_given_the_failure_probability_of_its_proof() -> None:
    chosen = bounds.QUICK
    ucb, ts = (bounds._width(chosen, name, 2.0) for name in ("lk-gp-ucb", "lk-gp-ts"))
    assert isinstance(ucb, TheoryWidth)
    assert ucb.failure_prob == chosen.failure_prob
    assert ts.failure_prob == chosen.failure_prob / chosen.times[-1]


def test_the_bounds_of_the_theorems_hold_in_the_worlds_played(record: Any) -> None:
    for line in record["bounds"]["lines"]:
        if "bound" in line:
            assert all(line["held"])
            assert np.all(np.diff(line["regret"]) >= 0)


def test_the_learner_shares_and_the_control_does_not_learn(record: Any) -> None:
    last = {line["policy"]: line["raw"][-1] for line in record["growth"]["lines"] if line["n_clusters"] == 1}
    assert last["lk-gp-ucb"] < last["per-user-gp-ucb"] < last["random"]


def test_a_lemma_that_held_everywhere_would_be_said_to_hold(record: Any) -> None:
    part = record["uncertainty"]
    assert uncertainty.findings(part)[0]["verdict"] == "does not hold"
    mild = [line | {"printed": [0.5] * len(line["printed"])} for line in part["lines"]]
    assert uncertainty.findings(part | {"lines": mild})[0]["verdict"] == "holds"


def test_a_learner_of_linear_regret_would_be_found_out(record: Any) -> None:
    part = record["growth"]
    steep = [line | {"raw_slope": 1.0, "raw_slope_error": 0.01} for line in part["lines"]]
    assert growth.findings(part | {"lines": steep})[0]["verdict"] == "does not hold"


def test_the_record_is_small_json_and_the_same_each_time(record: Any) -> None:
    text = json.dumps(record, allow_nan=False)
    assert len(text) < 60_000
    assert json.dumps(THEORY.run(True, lambda _: None)) == text
    assert {each.get("verdict") for each in record["findings"]} <= {"holds", "holds partly", "does not hold", None}


@pytest.mark.parametrize("name", sorted(THEORY.parts))
def test_pictures_are_drawn_from_a_stored_record(record: Any, name: str, tmp_path: Path) -> None:
    stored = json.loads(json.dumps(record))
    for drawn in THEORY.parts[name].draw(stored[name], tmp_path / "pictures"):
        assert drawn.title
        assert drawn.caption
        assert drawn.png.read_bytes().startswith(b"\x89PNG")
        assert "</svg>" in drawn.svg.read_text()
