"""Bad input: a typed error that names the value, the rule and a way out; the state is unchanged."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import coterie as ct
from coterie import errors
from coterie.kernels import pool_kernel
from coterie.models import make_model
from coterie.policies.rules.scores import ucb

GRAPH = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy", 0.5)], users=["ana", "bo", "cy", "dee"])
ARMS = ct.ArmPool(np.random.default_rng(0).normal(size=(6, 3)), ids=list("abcdef"))
NUMBER = ct.SquaredExponential(1.0)


def make(**changes: Any) -> ct.Policy:
    settings: dict[str, Any] = {"name": "lk-gp-ucb", "graph": GRAPH, "arms": ARMS} | changes
    return ct.make_policy(settings.pop("name"), **settings)


def assembled(**changes: Any) -> ct.Policy:
    """A policy put together by hand."""
    model = make_model(pool_kernel(ct.Green().matrix(GRAPH), NUMBER, ARMS))
    parts: dict[str, Any] = {"graph": GRAPH, "arms": ARMS, "model": model, "score": ucb, "width": 1.0}
    return ct.Policy(name="mine", **(parts | changes))


def free(**changes: Any) -> ct.Policy:
    return make(arms=None, arm_kernel=NUMBER, **changes)


# what is wrong, the error, and what its message must name
CONSTRUCTION: list[tuple[Callable[[], Any], type[errors.CoterieError], str]] = [
    (lambda: make(name="lk-gp-ucbb"), errors.UnknownNameError, "'lk-gp-ucbb'"),
    (lambda: make(name=["lk-gp-ucb"]), errors.UnknownNameError, "['lk-gp-ucb']"),
    (lambda: make(engine=["grid"]), errors.UnknownNameError, "['grid']"),
    (lambda: make(name="lk-gp-ts", sampling=[1]), errors.UnknownNameError, "[1]"),
    (lambda: make(engine_options=5), errors.ParameterError, "5"),
    (lambda: make(engine="grid", engine_options={"block_size": 2.5}), errors.ParameterError, "2.5"),
    (lambda: make(engine="grid", engine_options={"memory_limit": "a"}), errors.ParameterError, "'a'"),
    (lambda: make(engine="features", engine_options={"user_rank": True}), errors.ParameterError, "True"),
    (lambda: make(noise_var=10**400), errors.ParameterError, "1000"),
    (lambda: make(noise_var=True), errors.ParameterError, "True"),
    (lambda: make(noise_var=1e-13), errors.ParameterError, "1e-13"),
    (lambda: ct.SpectralSchedule(base="a", horizon=10), errors.ParameterError, "'a'"),  # type: ignore[arg-type]
    (lambda: ct.SpectralSchedule(base=0.1, horizon=10, first_epoch=2.0), errors.ParameterError, "2.0"),  # type: ignore[arg-type]
    (lambda: ct.SpectralSchedule(base=0.1, horizon=10, least_change=-1.0), errors.ParameterError, "-1.0"),
    (lambda: ct.SpectralSchedule(base=0.1, horizon=10, floor=0.5), errors.ParameterError, "0.5"),
    (lambda: make(engine="gird"), errors.UnknownNameError, "'gird'"),
    (lambda: make(wdith=2.0), errors.UnknownNameError, "'wdith'"),
    (lambda: make(sampling="joint"), errors.ParameterError, "sampling was given to 'lk-gp-ucb'"),
    (lambda: make(engine="grid", engine_options={"rank": 3}), errors.UnknownNameError, "'rank'"),
    (lambda: make(engine_options={"user_rank": 3}), errors.UnknownNameError, "'user_rank'"),
    (lambda: make(noise_var=0.0), errors.ParameterError, "noise_var is 0.0"),
    (lambda: make(noise_var=float("nan")), errors.ParameterError, "nan"),
    (lambda: make(noise_var="low"), errors.ParameterError, "'low'"),
    (lambda: make(laplacian_ridge=0.0), errors.KernelError, "laplacian_ridge is 0.0"),
    (lambda: make(laplacian_ridge=-1.0), errors.KernelError, "-1.0"),
    (lambda: make(width=-1.0), errors.ParameterError, "-1.0"),
    (lambda: make(width="wide"), errors.ParameterError, "'wide'"),
    (lambda: make(seed=-1), errors.ParameterError, "-1"),
    (lambda: make(seed=None), errors.ParameterError, "None"),
    (lambda: make(graph=None), errors.ParameterError, "graph is None"),
    (lambda: make(graph=ct.UserGraph.from_edges([])), errors.ParameterError, "the graph has no users"),
    (lambda: make(graph=[("ana", "bo")]), errors.ParameterError, "list"),
    (lambda: make(arms=np.eye(3)), errors.ParameterError, "ndarray"),
    (lambda: make(arm_kernel="rbf"), errors.ParameterError, "str"),
    (lambda: make(arm_kernel=ct.Linear), errors.ParameterError, "the class Linear"),
    (lambda: make(user_kernel=np.eye(4)), errors.ParameterError, "GivenMatrix(matrix)"),
    (lambda: make(name="LK-GP-UCB"), errors.UnknownNameError, "Did you mean 'lk-gp-ucb'"),
    (lambda: make(noise=0.1), errors.UnknownNameError, "Did you mean 'noise_var'"),
    (lambda: make(width=ct.TheoryWidth), errors.ParameterError, "TheoryWidth"),
    (lambda: ct.TheoryWidth(norm_bound=cast(Any, "1"), noise_std=0.1), errors.ParameterError, "'1'"),
    (lambda: ct.Green().matrix(cast(Any, np.eye(3))), errors.KernelError, "ndarray"),
    (lambda: pool_kernel(np.eye(4), NUMBER, cast(Any, np.eye(3))), errors.KernelError, "ndarray"),
    (lambda: pool_kernel(cast(Any, GRAPH), NUMBER, ARMS), errors.KernelError, "user covariance"),
    (lambda: make_model(cast(Any, np.eye(3))), errors.ParameterError, "ndarray"),
    (lambda: assembled(score="ucb"), errors.ParameterError, "'ucb'"),
    (lambda: assembled(graph=ct.make_graph("ring", 3)), errors.DimensionError, "4 users on a graph of 3"),
    (lambda: assembled(arms=ct.ArmPool([[1.0]])), errors.DimensionError, "6 arms"),
    (lambda: assembled(arms=None), errors.DimensionError, "6 arms"),
    (lambda: make(arm_kernel=ct.SquaredExponential(0.0)), errors.KernelError, "0"),
    (lambda: make(arm_kernel=ct.SquaredExponential([1.0, 2.0])), errors.DimensionError, "2"),
    (lambda: make(user_kernel=ct.GivenMatrix(np.eye(3))), errors.DimensionError, "(3, 3)"),
    (lambda: make(user_kernel=ct.GivenMatrix([[1.0, 2.0], [2.0, 1.0]])), errors.KernelError, "negative eigenvalue -1"),
    (lambda: make(user_kernel=ct.GivenMatrix([[1.0, 0.5], [0.2, 1.0]])), errors.KernelError, "asymmetric by 0.3"),
    (lambda: make(user_kernel=ct.GivenMatrix([[np.nan]])), errors.KernelError, "NaN"),
    (lambda: make(name="gp-ucb", user_kernel=ct.Green()), errors.ParameterError, "'gp-ucb'"),
    (lambda: make(arms=None), errors.ParameterError, '"median"'),
    (lambda: free(engine="grid"), errors.ParameterError, "'grid'"),
    (lambda: free(engine="hybrid"), errors.ParameterError, "'hybrid'"),
    (lambda: free(engine="features"), errors.ParameterError, "'features'"),
    (lambda: make(engine="grid", engine_options={"memory_limit": 100}), errors.MemoryLimitError, "24 pairs"),
    (lambda: make(engine="hybrid", engine_options={"memory_limit": 100}), errors.MemoryLimitError, "24 pairs"),
    (lambda: make(engine="features", engine_options={"memory_limit": 100}), errors.MemoryLimitError, "features"),
    (lambda: make(engine="features", engine_options={"user_rank": 5}), errors.ParameterError, "user_rank is 5"),
    (lambda: make(engine="features", engine_options={"arm_rank": 0}), errors.ParameterError, "arm_rank is 0"),
    (lambda: make(engine="features", engine_options={"correction": "all"}), errors.ParameterError, "'all'"),
    (lambda: make(engine="hybrid", engine_options={"switch_after": -1}), errors.ParameterError, "-1"),
    (lambda: make(expected_rounds=0), errors.ParameterError, "0"),
    (lambda: ct.SpectralSchedule(base=0.0, horizon=10), errors.ParameterError, "0.0"),
    (lambda: ct.SpectralSchedule(base=0.1, horizon=0), errors.ParameterError, "horizon is 0"),
    (lambda: ct.TheoryWidth(norm_bound=-1.0, noise_std=1.0), errors.ParameterError, "-1.0"),
    (lambda: ct.TheoryWidth(norm_bound=1.0, noise_std=1.0, failure_prob=1.0), errors.ParameterError, "1.0"),
    (lambda: ct.ArmPool([[1.0], [np.nan]]), errors.ArmError, "feature 0 of arm 1 is nan"),
    (lambda: ct.ArmPool([[1.0], [np.inf]]), errors.ArmError, "inf"),
    (lambda: ct.ArmPool([["red"], ["blue"]]), errors.ArmError, "type <U4"),
    (lambda: ct.ArmPool([1.0, 2.0]), errors.DimensionError, "(2,)"),
    (lambda: ct.ArmPool(np.empty((0, 3))), errors.DimensionError, "(0, 3)"),
    (lambda: ct.ArmPool([[1.0], [2.0]], ids=["a"]), errors.DimensionError, "1 ids for 2 rows"),
    (lambda: ct.ArmPool([[1.0], [2.0]], ids=["a", "a"]), errors.DuplicateIdError, "'a'"),
    (lambda: ct.ArmPool([[1.0], [2.0]], ids=cast(Any, [["a"], "b"])), errors.ArmError, "['a']"),
    (lambda: ct.Heat(time=0.0), errors.KernelError, "0.0"),
    (lambda: ct.RandomWalk(steps=0), errors.KernelError, "0"),
    (lambda: ct.RandomWalk(reach=1.0, normalised=False).matrix(GRAPH), errors.KernelError, "reach is 1.0"),
    (lambda: ct.SpectralRBF(k=0), errors.KernelError, "0"),
    (lambda: ct.SpectralRBF(bandwidth="mean"), errors.KernelError, "'mean'"),
    (lambda: ct.BandPass(centre=-1.0, bandwidth=1.0), errors.KernelError, "-1.0"),
]


@pytest.mark.parametrize(
    ("call", "error", "named"), CONSTRUCTION, ids=[f"{e.__name__}-{n}" for _, e, n in CONSTRUCTION]
)
def test_construction(call: Callable[[], Any], error: type[errors.CoterieError], named: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert named in str(caught.value)
    assert caught.value.rule
    assert caught.value.remedy


USE: list[tuple[Callable[[Any], Any], type[errors.CoterieError], str]] = [
    (lambda p: p.select("zoe", ["a"]), errors.UnknownUserError, "'zoe'"),
    (lambda p: p.select(["ana"], ["a"]), errors.UnknownUserError, "['ana']"),
    (lambda p: p.predict("zoe"), errors.UnknownUserError, "'zoe'"),
    (lambda p: p.update("zoe", "a", 1.0), errors.UnknownUserError, "'zoe'"),
    (lambda p: p.select("ana", ["a", "z"]), errors.UnknownArmError, "'z'"),
    (lambda p: p.predict("ana", ["z"]), errors.UnknownArmError, "'z'"),
    (lambda p: p.update("ana", "z", 1.0), errors.UnknownArmError, "'z'"),
    (lambda p: p.update("ana", ["a"], 1.0), errors.UnknownArmError, "['a']"),
    (lambda p: p.select("ana", []), errors.CandidatesError, "no candidates"),
    (lambda p: p.predict("ana", []), errors.CandidatesError, "no candidates"),
    (lambda p: p.select("ana", "ab"), errors.CandidatesError, "'ab'"),
    (lambda p: p.select("ana", 5), errors.CandidatesError, "5"),
    (lambda p: p.select("ana", {"a": [0.0, 0.0]}), errors.CandidatesError, "candidates are a mapping, with keys 'a'"),
    (lambda p: p.predict("ana", {}), errors.CandidatesError, "a mapping, with keys nothing"),
    (lambda p: p.update_many({"ana": "a"}, ["a"], [1.0]), errors.CandidatesError, "users are a mapping"),
    (lambda p: p.select("ana", np.array("a")), errors.CandidatesError, "a"),
    (lambda p: p.update("ana", "a", 10**400), errors.RewardError, "1000"),
    (lambda p: p.update("ana", "a", 1e308), errors.RewardError, "1e+308"),
    (lambda p: p.update("ana", "a", -1.1e50), errors.RewardError, "at most 1e+50 in size"),
    (lambda p: p.update("ana", "a", b"1"), errors.RewardError, "b'1'"),
    (lambda p: p.select("ana", ["a", "b", "a"]), errors.CandidatesError, "'a'"),
    (lambda p: p.update("ana", "a", float("nan")), errors.RewardError, "nan"),
    (lambda p: p.update("ana", "a", float("inf")), errors.RewardError, "inf"),
    (lambda p: p.update("ana", "a", "good"), errors.RewardError, "'good'"),
    (lambda p: p.update_many(["ana", "bo"], ["a", "b"], [1.0, np.nan]), errors.RewardError, "nan"),
    (lambda p: p.update_many(["ana", "zoe"], ["a", "b"], [1.0, 1.0]), errors.UnknownUserError, "'zoe'"),
    (lambda p: p.update_many(["ana"], ["a", "b"], [1.0, 1.0]), errors.DimensionError, "1 users, 2 arms"),
    (lambda p: p.update_many("ana", "a", [1.0]), errors.CandidatesError, "users are 'ana'"),
    (lambda p: p.update_many(None, None, None), errors.CandidatesError, "users are None"),
    (lambda p: p.update("ana", ct.Choice("ana", "a", 0, 0.0, 1.0, 1.0, 0), 1.0), errors.UnknownArmError, "choice.arm"),
    (lambda p: p.select("Ana"), errors.UnknownUserError, "Did you mean 'ana'"),
    (lambda p: p.select("ana", ["A"]), errors.UnknownArmError, "Did you mean 'a'"),
    (lambda p: p.model.set_noise_var(-1.0), errors.ParameterError, "-1.0"),
    (lambda p: p.model.set_user_cov(-np.eye(4)), errors.KernelError, "negative eigenvalue -1"),
    (lambda p: p.model.set_user_cov(np.eye(3)), errors.DimensionError, "(3, 3)"),
    (lambda p: p.model.update(4, 0, 1.0), errors.DimensionError, "user index 4"),
    (lambda p: p.model.update(-1, 0, 1.0), errors.DimensionError, "user index -1"),
    (lambda p: p.model.update(0, 6, 1.0), errors.DimensionError, "arm index 6"),
    (lambda p: p.model.predict(0, [6]), errors.DimensionError, "[6]"),
]


@pytest.mark.parametrize("engine", ["dense", "exact", "grid", "hybrid", "features"])
@pytest.mark.parametrize(("call", "error", "named"), USE, ids=[f"{e.__name__}-{n}" for _, e, n in USE])
def test_use_leaves_no_trace(
    engine: str, call: Callable[[Any], Any], error: type[errors.CoterieError], named: str
) -> None:
    policy, untouched = (make(engine=engine) for _ in range(2))
    for each in (policy, untouched):
        each.update("ana", "a", 0.5)
        each.select("bo", ["a", "b"])
    with pytest.raises(error) as caught:
        call(policy)
    assert named in str(caught.value)
    assert policy.n_decisions == untouched.n_decisions
    assert policy.model.n_observations == 1
    assert policy.model.info_gain == untouched.model.info_gain
    for user in GRAPH.users:
        np.testing.assert_array_equal(policy.predict(user), untouched.predict(user))


FREE: list[tuple[Callable[[Any], Any], type[errors.CoterieError], str]] = [
    (lambda p: p.select("ana", np.empty((0, 2))), errors.CandidatesError, "no candidates"),
    (lambda p: p.select("ana", None), errors.ArmError, "no arms"),
    (lambda p: p.select("ana", [[1.0, 2.0, 3.0]]), errors.DimensionError, "3 features"),
    (lambda p: p.select("ana", [1.0, 2.0]), errors.DimensionError, "(2,)"),
    (lambda p: p.select("ana", [[1.0, np.nan]]), errors.ArmError, "nan"),
    (lambda p: p.select("ana", [[1.0, 2.0], [1.0, 2.0]]), errors.CandidatesError, "twice"),
    (lambda p: p.update("ana", [1.0, 2.0, 3.0], 1.0), errors.DimensionError, "3 features"),
    (lambda p: p.update("ana", [[1.0, 2.0]], 1.0), errors.DimensionError, "(1, 2)"),
    (lambda p: p.update("ana", [1.0, np.inf], 1.0), errors.ArmError, "inf"),
    (lambda p: p.update("ana", [1.0, 1e200], 1.0), errors.ArmError, "feature 1 of candidate 0 is 1e+200"),
    (lambda p: p.select("ana", [[1.0, 2.0], [-1e200, 1.0]]), errors.ArmError, "feature 0 of candidate 1 is -1e+200"),
    (lambda p: p.update_many(["ana"] * 2, [[1.0, 2.0], [1.0]], [1.0, 1.0]), errors.DimensionError, "1 features"),
]


@pytest.mark.parametrize("engine", ["dense", "exact"])
@pytest.mark.parametrize(("call", "error", "named"), FREE, ids=[f"{e.__name__}-{n}" for _, e, n in FREE])
def test_use_without_a_pool_leaves_no_trace(
    engine: str, call: Callable[[Any], Any], error: type[errors.CoterieError], named: str
) -> None:
    policy = free(engine=engine)
    policy.update("ana", [0.0, 1.0], 0.5)
    before = policy.predict("bo", [[0.0, 1.0], [1.0, 1.0]])
    with pytest.raises(error) as caught:
        call(policy)
    assert named in str(caught.value)
    assert policy.model.n_observations == 1
    np.testing.assert_array_equal(policy.predict("bo", [[0.0, 1.0], [1.0, 1.0]]), before)


def test_every_error_is_a_coterie_error_and_survives_pickling() -> None:
    import pickle

    for name in errors.__all__:
        kind = getattr(errors, name)
        if isinstance(kind, type) and not issubclass(kind, Warning):
            assert issubclass(kind, errors.CoterieError)
            again = pickle.loads(pickle.dumps(kind("a problem", "a rule", "A remedy")))
            assert str(again) == "a problem; a rule. A remedy."
