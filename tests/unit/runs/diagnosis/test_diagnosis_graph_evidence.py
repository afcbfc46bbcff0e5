"""Evidence for graph, own and common: planted ones are found, and what is looked at is what is said."""

from dataclasses import replace

import numpy as np
import pytest

from coterie.graphs import UserGraph, make_graph
from coterie.kernels import ArmPool
from coterie.logs import Events, Log, Pairs
from coterie.policies.auto.evidence import Together
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.prior import Prior
from coterie.runs.diagnosis.graph_evidence import CLEAR, Fitted, Without, firm_prior, fit_parts, handed
from coterie.runs.diagnosis.outcomes import (
    BALL_PAIRS,
    BALLS,
    BLOCKS,
    USER_PAIRS,
    communities,
    look,
    neighbourhoods,
    outcomes_of,
)
from planted import planted_log, with_users_permuted


def fitted(log: Log) -> Fitted:
    assert isinstance(log.arms, ArmPool)
    return fit_parts(FitContext(log.graph, log.arms), look(log, outcomes_of(log), seed=0))


def test_a_planted_graph_is_clear_and_a_permuted_one_is_not() -> None:
    log = planted_log(n_users=40, each=6)
    assert fitted(log).gains["graph"] > CLEAR
    assert fitted(with_users_permuted(log)).gains["graph"] < CLEAR


def test_without_edges_there_is_no_graph_to_leave_out() -> None:
    log = planted_log(n_users=40, each=5)
    log = replace(log, graph=UserGraph.from_matrix(make_graph("empty", 40).weights, users=log.graph.users))
    assert set(fitted(log).gains) == {"own", "common"}


def test_users_of_one_taste_need_the_common_part() -> None:
    log = planted_log(n_users=40, each=6)
    assert isinstance(log.arms, ArmPool)
    noise = 0.1 * np.random.default_rng(0).normal(size=len(log.events))
    same = replace(log.events, reward=log.arms.features[log.events.arm, 0] + noise)
    found = fitted(replace(log, events=same))
    assert found.gains["common"] > CLEAR
    assert found.hyper.shares()["common"] > 0.8


def test_together_is_the_sum_and_without_ignores_one_part() -> None:
    log = planted_log(n_users=60, each=12)
    assert isinstance(log.arms, ArmPool)
    context, seen = FitContext(log.graph, log.arms), look(log, outcomes_of(log), seed=0)
    each = [context.sampled_evidence(seen.history, block) for block in seen.blocks]
    assert len(each) > 1
    prior = Prior.of(context, 1.0)
    point = np.array(prior.centre)
    value, gradient = Together(each).value_and_gradient(point)
    assert value == pytest.approx(sum(part.value_and_gradient(point)[0] for part in each))
    assert gradient == pytest.approx(np.sum([part.value_and_gradient(point)[1] for part in each], axis=0))
    lacking = Without(Together(each), "own", prior)
    low = point.copy()
    low[1] = prior.bounds()[1][0]
    assert lacking.value_and_gradient(point)[0] == pytest.approx(Together(each).value_and_gradient(low)[0])
    assert lacking.value_and_gradient(point)[1][1] == 0.0


def test_zeros_are_arms_that_the_user_never_had() -> None:
    log = planted_log(one_class=True)
    had = Pairs(user=np.repeat(np.arange(80), 4), arm=np.tile(np.arange(4), 80))
    seen = look(replace(log, had=had), outcomes_of(log), seed=0)
    met = set(zip(log.events.user.tolist(), log.events.arm.tolist(), strict=True))
    zeros = [
        (user, arm)
        for user, arm, mean in zip(seen.history.users, seen.history.arms, seen.history.means, strict=True)
        if mean == 0
    ]
    assert len(zeros) == seen.n_zeros == len(seen.history) // 2
    assert not met & set(zeros)
    assert min(arm for _, arm in zeros) == 4


def test_what_users_liked_is_judged_where_a_study_would_ask_for_it() -> None:
    log = planted_log()  # rewards of any size, many above 0
    outcomes = outcomes_of(log)
    assert outcomes.kind == "real"
    seen = look(log, outcomes, seed=0, liked=True)
    pairs = zip(seen.history.users, seen.history.arms, seen.history.means, strict=True)
    met = {(u, a): r for u, a, r in zip(outcomes.user.tolist(), outcomes.arm.tolist(), outcomes.reward, strict=True)}
    for user, arm, mean in pairs:
        assert (mean == 1.0 and met[user, arm] > 0) or (mean == 0.0 and (user, arm) not in met)
    assert seen.n_zeros == len(seen.history) // 2


def test_a_user_who_had_nearly_everything_has_fewer_zeros() -> None:
    graph = UserGraph.from_edges([("a", "b")])
    user, arm = np.r_[np.zeros(15, dtype=int), np.ones(15, dtype=int)], np.tile(np.arange(15), 2)
    log = Log(graph=graph, arms=tuple(range(16)), events=Events(user=user, arm=arm, reward=np.ones(30)))
    assert look(log, outcomes_of(log), seed=0).n_zeros == 2


def test_neighbourhoods_are_disjoint_dense_and_within_bounds() -> None:
    graph = make_graph("sbm", 400, seed=0, n_blocks=20, inside=0.6, across=0.005)
    drawn = neighbourhoods(graph, np.full(400, 16), np.random.default_rng(0))
    assert len(drawn) == BLOCKS
    everybody = np.concatenate(drawn)
    assert len(set(everybody.tolist())) == len(everybody)
    assert all(len(users) * 16 == BALLS * BALL_PAIRS for users in drawn)
    assert sum(graph.weights[users][:, users].nnz for users in drawn) > 0.5 * BLOCKS * BALLS * 10 * 9


def test_users_without_edges_are_looked_at_too() -> None:
    drawn = neighbourhoods(make_graph("empty", 50), np.full(50, 15), np.random.default_rng(0))
    assert all(len(users) for users in drawn)
    assert sorted(np.concatenate(drawn).tolist()) == list(range(50))


def test_a_user_has_so_many_pairs_at_most_and_repeats_keep_their_weight() -> None:
    rng = np.random.default_rng(0)
    graph = UserGraph.from_edges([("a", "b")])
    events = Events(user=np.repeat([0, 1], 60), arm=np.tile(np.arange(30), 4), reward=rng.normal(size=120))
    log = Log(graph=graph, arms=tuple(range(30)), events=events)
    outcomes = outcomes_of(log)
    history = look(log, outcomes, seed=0).history
    assert len(history) == 2 * USER_PAIRS
    assert set(history.counts) == {2.0}
    rows = history.user_array() * 30 + history.arm_array()  # all pairs are there, by user and then by arm
    assert history.scatters == pytest.approx(outcomes.scatter[rows])


def test_first_neighbourhoods_as_one_keep_their_pairs() -> None:
    log = planted_log()
    seen = look(log, outcomes_of(log), seed=0)
    one = seen.together(700)
    assert len(one.rows) <= 700 < len(seen.history)
    users = seen.history.user_array()[one.rows]
    assert (one.users[one.places] == users).all()
    assert (seen.together(1).rows == seen.blocks[0].rows).all()


def test_a_community_keeps_its_links_to_itself_and_several_are_apart() -> None:
    graph = make_graph("sbm", 120, seed=0, n_blocks=6, inside=0.6, across=0.01)
    users = communities(graph, 20, 1, np.random.default_rng(0))
    assert len(set(users.tolist())) == 20
    assert graph.weights[users][:, users].nnz > 0.7 * graph.weights[users].nnz
    apart = communities(graph, 20, 4, np.random.default_rng(0))
    assert len(set(apart.tolist())) == 20
    assert graph.weights[apart][:, apart].nnz < 0.5 * graph.weights[users][:, users].nnz
    assert len(communities(make_graph("empty", 5), 20, 4, np.random.default_rng(0))) == 5


def test_a_part_that_goes_hands_its_variance_on() -> None:
    log = planted_log(n_users=40, each=6)
    assert isinstance(log.arms, ArmPool)
    prior = Prior.of(FitContext(log.graph, log.arms), 1.0)
    hyper = prior.centre
    assert np.exp(handed(hyper, "graph", prior).own) == pytest.approx(np.exp(hyper.graph) + np.exp(hyper.own))
    short, long = handed(hyper, "own", prior), handed(hyper, "common", prior)
    assert np.exp(short.graph) == pytest.approx(np.exp(hyper.graph) + np.exp(hyper.own))
    assert short.ridge > hyper.ridge > long.ridge


def test_length_scale_and_noise_have_less_room_than_before() -> None:
    log = planted_log(n_users=40, each=6)
    assert isinstance(log.arms, ArmPool)
    prior = Prior.of(FitContext(log.graph, log.arms), 1.0)
    firm = firm_prior(prior)
    assert firm.centre == prior.centre
    assert firm.spread.noise <= 1.0
    assert firm.spread.lengthscale <= 0.35
    assert firm.spread.graph == prior.spread.graph
