"""The graph part alone: its evidence is that of the model that the options make."""

from math import log
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.models import History
from coterie.policies.auto.evidence import Holding, Together
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.graph_alone import fit_graph_alone, graph_alone_options
from coterie.policies.auto.hyper import ABSENT, Hyper

rng = np.random.default_rng(2)
ARMS = ct.ArmPool(rng.normal(size=(8, 2)) * [1.0, 100.0] + [0.0, 7.0])
GRAPHS = {
    "even": ct.make_graph("watts-strogatz", 60, k=4, seed=0),
    "uneven": ct.UserGraph.from_edges([(0, user) for user in range(1, 60)]),
}


def history_of(n_rewards: int = 200) -> History:
    out = History()
    for user, arm in zip(rng.integers(60, size=n_rewards), rng.integers(8, size=n_rewards), strict=True):
        out.add(
            (user, arm), int(user), int(arm), float(2.0 + np.cos(user / 9) * ARMS.features[arm, 0] + rng.normal() / 4)
        )
    return out


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("given", [{}, {"linear": True}, {"lengthscale": 50.0}], ids=str)
def test_its_evidence_is_that_of_the_model(graph: str, given: dict[str, Any]) -> None:
    users, history = GRAPHS[graph], history_of()
    options = graph_alone_options(users, ARMS, history, **given)
    assert options["user_kernel"].normalised == (graph == "uneven")
    policy = ct.make_policy("lk-gp-ucb", graph=users, arms=ARMS, engine="exact", **options)
    policy.relearn(history)
    plain = ARMS.features if given else None
    context = FitContext(users, ARMS, features=plain)
    held = {"linear": 700.0 if given.get("linear") else -700.0}
    if "lengthscale" in given:
        held["lengthscale"] = log(given["lengthscale"])
    hyper = fit_graph_alone(context, history, held)
    evidence = Together(context.evidences(history, history.n_observations))
    assert evidence.value_and_gradient(np.array(hyper))[0] == pytest.approx(
        policy.model.log_marginal_likelihood, abs=1e-5
    )


def test_no_other_part_is_there_and_the_gradient_is_that_of_the_rest() -> None:
    context, history = FitContext(GRAPHS["even"], ARMS), history_of()
    hyper = fit_graph_alone(context, history, {"linear": -700.0})
    assert hyper.own == hyper.common == ABSENT
    held = Holding(Together(context.evidences(history, 1)), {"own": ABSENT, "common": ABSENT, "linear": -700.0})
    point = np.array(hyper._replace(own=0.0, noise=hyper.noise + 0.3))
    value, gradient = held.value_and_gradient(point)
    for place, name in enumerate(Hyper._fields):
        more, less = point.copy(), point.copy()
        more[place] += 1e-5
        less[place] -= 1e-5
        slope = (held.value_and_gradient(more)[0] - held.value_and_gradient(less)[0]) / 2e-5
        assert gradient[place] == pytest.approx(slope, rel=1e-3, abs=1e-3), name
    assert value < held.value_and_gradient(np.array(hyper))[0] + 1


def test_few_or_equal_rewards_leave_the_prior() -> None:
    few, same = history_of(3), History()
    for user in range(20):
        same.add((user, 0), user, 0, 1.0)
    for history in (few, same, History()):
        options = graph_alone_options(GRAPHS["even"], ARMS, history)
        assert options["noise_var"] > 0
        assert options["user_kernel"].laplacian_ridge == pytest.approx(0.4)
