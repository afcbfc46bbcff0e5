"""What is particular to an engine: pending work unseen, memory, jitter, the switch, the choice of engine."""

from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.algebra import JitterLog, cholesky
from coterie.errors import FactorisationError, KernelError, MemoryLimitError, ParameterError
from coterie.graphs import make_graph
from coterie.kernels import FreeKernel, PoolKernel, pool_kernel
from coterie.models import (
    ENGINES,
    ExactModel,
    FeaturesModel,
    GridModel,
    History,
    HybridModel,
    LinearModel,
    Model,
    choose_engine,
    make_model,
    paper_switch,
)
from coterie.models.choose import ALL_ENGINES, OPTIONS

RNG = np.random.default_rng(0)
KERNEL = PoolKernel(
    ct.Green().matrix(make_graph("erdos-renyi", 12, seed=3)), ct.SquaredExponential(1.0).gram(RNG.normal(size=(6, 2)))
)


def fill(model: Model, rounds: int = 200, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        model.update(int(rng.integers(12)), int(rng.integers(6)), float(rng.normal()))


@pytest.mark.parametrize("block_size", [1, 2, 7, 64])
def test_pending_work_is_never_visible(block_size: int) -> None:
    model, plain = GridModel(KERNEL, block_size=block_size), ExactModel(KERNEL)
    rng = np.random.default_rng(1)
    for _ in range(90):
        row = int(rng.integers(12)), int(rng.integers(6)), float(rng.normal())
        for each in (model, plain):
            each.update(*row)
        user = int(rng.integers(12))
        np.testing.assert_allclose(model.predict(user), plain.predict(user), atol=1e-9)
        np.testing.assert_allclose(model.covariance(user, [4, 1, 3]), plain.covariance(user, [4, 1, 3]), atol=1e-9)


def test_exact_collapses_repeats_so_that_its_factor_stays_bounded() -> None:
    model = ExactModel(KERNEL)
    fill(model, 2000)
    assert model.n_observations == 2000
    assert len(model.history) <= 72
    assert model._factor.size <= 72 + 64


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_what_was_relearned_and_what_is_learned_after_it_is_one_history(engine: str) -> None:
    """A further reward of a pair joins its row, whatever the rows of the history were called."""
    options: dict[str, Any] = {"user_rank": 3} if engine == "features" else {}
    model, plain = (make_model(KERNEL, engine=engine, engine_options=options) for _ in range(2))
    history = History()
    history.add("some pair", 2, 5, 1.0)
    model.relearn(history)
    plain.update(2, 5, 1.0)
    for each in (model, plain):
        each.update(2, 5, 3.0)
        each.set_noise_var(0.1)
    assert (model.history.counts, model.history.means) == ([2], [2.0])
    np.testing.assert_allclose(model.predict(2), plain.predict(2), atol=1e-9)
    assert model.log_marginal_likelihood == pytest.approx(plain.log_marginal_likelihood)


def test_hybrid_keeps_its_factor_after_another_history() -> None:
    model = HybridModel(KERNEL, switch_after=1000)
    history = History()
    for pair in range(70):
        history.add(pair, *divmod(pair, 6), 1.0)
    model.relearn(history)
    inner = model._inner
    model.update(0, 0, 1.0)
    assert model._inner is inner  # a renewal would make another


def test_hybrid_is_checked_where_another_history_is_beyond_the_switch() -> None:
    model, history = HybridModel(PoolKernel(np.eye(2), np.eye(2)), noise_var=0.1, switch_after=3), History()
    for reward in range(5):
        history.add((0, 1), 0, 1, float(reward))
    model.relearn(history)
    assert model.check().mean < 1e-12
    assert model.stage == "grid"


def test_exact_grows_without_copying_the_factor() -> None:
    """Panels that were full stay the very same arrays as the factor grows."""
    model = ExactModel(FreeKernel(np.eye(1), ct.SquaredExponential(1.0)))
    rows = RNG.normal(size=(300, 3))
    for row in rows[:200]:
        model.update(0, row, 0.1)
    first = model._factor._left[0], model._factor._diagonal[0]
    for row in rows[200:]:
        model.update(0, row, 0.1)
    assert model._factor._diagonal[0] is first[1]
    assert model._factor.nbytes < 1.25 * 8 * 300**2


def test_the_paper_switch() -> None:
    """t_star = min(1500, floor(n^(1/3)) m), the root taken on integers."""
    assert paper_switch(PoolKernel(np.eye(20), np.eye(10))) == 20
    assert paper_switch(PoolKernel(np.eye(27), np.eye(10))) == 30
    assert paper_switch(PoolKernel(np.eye(64), np.eye(400))) == 1500


def test_hybrid_switches_once_and_agrees_on_both_sides() -> None:
    model, grid = HybridModel(KERNEL, switch_after=30), GridModel(KERNEL)
    rng = np.random.default_rng(2)
    stages = []
    for _ in range(60):
        row = int(rng.integers(12)), int(rng.integers(6)), float(rng.normal())
        model.update(*row)
        grid.update(*row)
        stages.append(model.stage)
        np.testing.assert_allclose(model.predict(3), grid.predict(3), atol=1e-9)
        assert model.info_gain == pytest.approx(grid.info_gain)
    assert stages == ["exact"] * 30 + ["grid"] * 30
    assert "Now 'grid', as there are more than 30 observations." in model.describe()


def test_hybrid_says_at_which_stage_it_is() -> None:
    model, history = HybridModel(KERNEL, switch_after=3), History()
    assert "Now 'exact'; 'grid' takes over after 3 observations." in model.describe()
    for arm in range(5):
        history.add(KERNEL.key(0, arm), 0, arm, 1.0)
    model.relearn(history)
    assert model.stage == "exact"
    assert "beyond 3 observations 'grid' takes over, with the next one" in model.describe()
    model.update(1, 1, 1.0)
    assert model.stage == "grid"


def test_jitter_is_used_only_when_needed_and_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A singular kernel needs it with a noise variance below rounding, which is refused otherwise."""
    fine = GridModel(KERNEL)
    fill(fine)
    fine.rebuild()
    assert fine.jitter.count == 0
    with pytest.raises(ParameterError, match="1e-17"):
        GridModel(PoolKernel(np.eye(1), np.ones((40, 40))), noise_var=1e-17)
    monkeypatch.setattr("coterie.errors.checks.LARGEST_RATIO", 1e30)
    monkeypatch.setattr(GridModel, "staged_ratio", 1e30)
    singular = GridModel(PoolKernel(np.eye(1), np.ones((40, 40))), noise_var=1e-17)
    singular.update_many([0] * 40, range(40), [1.0] * 40)
    assert singular.jitter.count > 0
    assert 0 < singular.jitter.largest <= 1e-8
    assert "Jitter used" in singular.describe()
    np.testing.assert_allclose(singular.predict(0)[0], 1.0, atol=1e-4)


@pytest.mark.parametrize("engine", sorted(set(ENGINES) - {"dense", "local"}))  # test_local_model.py has the latter
def test_a_factorisation_that_fails_leaves_the_model_as_it_was(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second block of a rebuild fails, when half of the old belief is gone: the old belief is back."""
    model = make_model(KERNEL, engine=engine)
    fill(model, 400)
    before = [model.predict(user) for user in range(12)]
    info_gain, evidence = model.info_gain, model.log_marginal_likelihood
    monkeypatch.setattr(type(model), "chunk", 40)
    calls = iter(range(100))

    def failing(matrix: Any, log: Any, **options: Any) -> Any:
        if next(calls) == 1:
            raise FactorisationError("a matrix", "a rule", "A remedy")
        return cholesky(matrix, log, **options)

    for module in ("exact", "grid", "features", "linear"):
        monkeypatch.setattr(f"coterie.models.engines.{module}.cholesky", failing)
    with pytest.raises(FactorisationError):
        model.set_user_cov(np.eye(12) + 0.5)
    assert next(calls) > 2
    assert model.kernel is KERNEL
    assert model.n_observations == 400
    for user, (mean, std) in enumerate(before):
        np.testing.assert_allclose(model.predict(user), (mean, std), atol=1e-9)
    assert model.info_gain == pytest.approx(info_gain)
    assert model.log_marginal_likelihood == pytest.approx(evidence)


@pytest.mark.parametrize("engine", sorted(set(ENGINES) - {"dense", "local"}))  # test_local_model.py has the latter
def test_a_batch_that_fails_leaves_the_model_as_it_was(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model(KERNEL, engine=engine)
    fill(model, 50)
    before = [model.predict(user) for user in range(12)]

    def failing(matrix: Any, log: Any, **options: Any) -> Any:
        if len(matrix) == 3:
            raise FactorisationError("a matrix", "a rule", "A remedy")
        return cholesky(matrix, log, **options)

    for module in ("exact", "grid", "features", "linear"):
        monkeypatch.setattr(f"coterie.models.engines.{module}.cholesky", failing)
    with pytest.raises(FactorisationError):
        model.update_many([0, 1, 2], [0, 1, 2], [5.0, 5.0, 5.0])
    assert model.n_observations == 50
    for user, (mean, std) in enumerate(before):
        np.testing.assert_allclose(model.predict(user), (mean, std), atol=1e-9)


def test_cholesky_raises_a_typed_error() -> None:
    with pytest.raises(FactorisationError, match="2 x 2"):
        cholesky(np.array([[1.0, 0.0], [3.0, 1.0]]), JitterLog())


def test_the_choice_of_engine_follows_the_cost_model() -> None:
    large = PoolKernel(np.eye(300) + 1, np.eye(40))
    assert choose_engine(KERNEL).engine == "grid"
    assert choose_engine(large).engine == "exact"  # nobody said that rounds are worth 1.1 GiB
    assert "GiB" in choose_engine(large).reason
    assert choose_engine(PoolKernel(np.eye(100) + 1, np.eye(40))).engine == "hybrid"
    assert choose_engine(large, expected_rounds=50).engine == "exact"
    assert choose_engine(large, expected_rounds=100_000).engine == "grid"
    tight = choose_engine(large, memory_limit=10**6)
    assert tight.engine == "exact"
    assert "12000 pairs" in tight.reason
    assert choose_engine(FreeKernel(np.eye(2), ct.Linear())).engine == "exact"
    few = PoolKernel(np.eye(300) + 1, np.ones((40, 40)))
    assert choose_engine(few).engine == "linear"
    assert choose_engine(few, memory_limit=10**6).engine == "linear"
    assert choose_engine(few, expected_rounds=10_000).engine == "linear"
    assert choose_engine(few, expected_rounds=2).engine == "exact"
    assert choose_engine(PoolKernel(np.eye(300), np.eye(40))).engine == "linear"
    assert "multiply-adds" in make_model(large, expected_rounds=50).describe()
    assert make_model(KERNEL, engine_options={"memory_limit": 10**9}).engine == "grid"


def test_every_engine_has_its_options_listed() -> None:
    assert set(OPTIONS) == set(ALL_ENGINES)


def test_an_empty_batch_changes_nothing() -> None:
    for engine in ENGINES:
        model = make_model(KERNEL, engine=engine)
        model.update_many([], [], [])
        assert model.n_observations == 0
        assert model.info_gain == 0.0
        assert model.effective_dim == 0.0
        assert model.log_marginal_likelihood == 0.0


def test_what_a_caller_does_to_arrays_he_was_given_changes_no_belief() -> None:
    """`exact` keeps what it has just scored; none of it may be the caller's."""
    model, untouched = ExactModel(KERNEL), ExactModel(KERNEL)
    arms = np.array([1, 2])
    for each in (model, untouched):
        each.update(0, 0, 1.0)
    mean, std = model.predict(0, arms)
    mean *= 100
    std *= 0
    arms[0] = 3
    for each in (model, untouched):
        each.update(0, 3, 0.5)
        each.update(0, 1, 0.5)
    np.testing.assert_allclose(model.predict(1), untouched.predict(1), atol=1e-12)


def test_a_change_of_users_that_would_not_fit_leaves_the_features_as_they_were() -> None:
    model = FeaturesModel(PoolKernel(np.ones((4, 4)), np.eye(3)), noise_var=0.1, memory_limit=8 * 3 * 67)
    model.update(0, 0, 1.0)
    before = model.predict(1)
    with pytest.raises(MemoryLimitError):
        model.set_user_cov(np.eye(4))
    np.testing.assert_array_equal(model.kernel.user_cov, np.ones((4, 4)))
    np.testing.assert_allclose(model.predict(1), before, atol=1e-12)


def test_truncation_of_a_tiny_variance_is_reported() -> None:
    model = FeaturesModel(PoolKernel(np.diag([1.0, 1e-13]), np.eye(2)), user_rank=1)
    assert model.prior_error == pytest.approx(1e-13)
    np.testing.assert_allclose(model.predict(1)[1], model.prior_std(1))


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_noise_below_rounding_is_refused(engine: str) -> None:
    model = make_model(KERNEL, engine=engine)
    fill(model, 20)
    before = model.predict(0)
    with pytest.raises(ParameterError, match="ratio"):
        model.set_noise_var(1e-13)
    with pytest.raises(ParameterError, match="ratio"):
        model.set_user_cov(1e14 * np.eye(12))
    np.testing.assert_array_equal(model.predict(0), before)
    free = ExactModel(FreeKernel(np.eye(1), ct.Linear()), noise_var=0.01)
    with pytest.raises(ParameterError, match="ratio"):
        free.update(0, [1e8, 0.0], 1.0)
    assert free.n_observations == 0


@pytest.mark.parametrize("degree", [4, 9])
def test_a_kernel_that_overflows_is_refused_and_not_warned_of(degree: int) -> None:
    kernel = ct.Polynomial(degree=degree)
    with pytest.raises(KernelError, match="arm kernel on the pool holds NaN or infinite values"):
        pool_kernel(np.eye(2), kernel, ct.ArmPool([[1e50], [1.0]]))
    free = ExactModel(FreeKernel(np.eye(1), kernel))
    with pytest.raises(ParameterError, match="the largest prior variance inf"):
        free.predict(0, [[1.0], [1e50]])
    with pytest.raises(ParameterError, match="the largest prior variance inf"):
        free.update(0, [1e50], 1.0)


def test_users_who_share_nothing_have_blocks_of_their_own() -> None:
    alone = LinearModel(PoolKernel(np.eye(200), np.eye(5)))
    assert alone.nbytes < 8 * (200 * 25 + 1000) + 1
    fresh = LinearModel(PoolKernel(np.eye(12), KERNEL.arm_cov))
    fill(fresh, 100)
    dense = make_model(PoolKernel(np.eye(12), KERNEL.arm_cov), engine="dense")
    fill(dense, 100)
    for shared in (np.eye(12) + 0.5, np.eye(12)):  # from blocks to one matrix, and back
        for model in (fresh, dense):
            model.set_user_cov(shared)
        np.testing.assert_allclose(fresh.predict(3), dense.predict(3), atol=1e-9)
