"""What every model must satisfy: made from its own state it is the same to the bit, and goes on the same."""

import json
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import coterie as ct
from coterie.errors import NumericalError
from coterie.kernels import FreeKernel
from coterie.kernels.inputs import OnInputs
from coterie.kernels.joint import OnPool
from coterie.models import ENGINES, ExactModel, FeaturesModel, History, Model, restore_model
from coterie.models.choose import INPUT_ENGINES
from coterie.models.conditioned import ConditionedModel
from coterie.product.files.checked.kinds import Held
from coterie.product.files.checked.schema import MODEL
from coterie.product.files.saving import taken_apart
from engine_cases import ENGINE_NAMES, KERNELS, model_of
from strategies import Case, InputCase, cases, input_cases

STEPS = st.lists(st.sampled_from(["one", "read", "many", "noise", "users", "retune", "relearn", "check"]), max_size=8)


def make(engine: str, case: Case) -> Model:
    if engine == "truncated":
        return FeaturesModel(case.kernel, noise_var=case.noise_var, user_rank=1, arm_rank=1)
    return model_of(engine, case)


def take(step: str, model: Model, case: Any) -> None:
    """Takes one of the steps that leave different things behind in a model."""
    if step == "one":
        for row in case.history[:5]:
            model.update(*row)
    elif step == "read":
        model.predict(0)
    elif step == "many":
        model.update_many(*([row[i] for row in case.history] for i in range(3)))
    elif step == "noise":
        model.set_noise_var(0.3)
    elif step == "users" and model.engine not in KERNELS:
        model.set_user_cov(np.eye(case.kernel.n_users) + 0.25)
    elif step == "retune":
        model.retune(model.kernel, 0.2, shift=-0.7)
    elif step == "relearn":
        history = History()
        for number, (user, arm, reward) in enumerate(case.history):
            history.add((user, arm), user, arm, reward, weight=0.9**number)
        model.relearn(history)
    elif step == "check":
        model.check(tolerance=0.0)


def carried(model: Model) -> Model:
    """Returns the model made from its state after a way through JSON and copies of its arrays."""
    arrays: dict[str, Any] = {}
    plain = json.loads(json.dumps(taken_apart(model.state(), "belief", arrays), allow_nan=False))
    copies = {name: array.copy(order="K") for name, array in arrays.items()}
    if isinstance(model.kernel, OnPool | OnInputs):  # a state is what a file may hold
        kernel = model.kernel
        arms = {"inputs": kernel.dimension} if isinstance(kernel, OnInputs) else {"arms": kernel.n_arms}
        assert MODEL(plain, "model", Held(copies, {"users": model.n_users, **arms})).keys() == plain.keys()
    return restore_model(put_together(plain, copies), model.kernel)


def put_together(tree: Any, arrays: dict[str, Any]) -> Any:
    """Returns what `taken_apart` was given."""
    if isinstance(tree, dict):
        return arrays[tree["array"]] if "array" in tree else {k: put_together(v, arrays) for k, v in tree.items()}
    return [put_together(each, arrays) for each in tree] if isinstance(tree, list) else tree


def bits(model: Model, arms: Any = None) -> list[Any]:
    """Returns everything that can be asked of a model, as bytes and text."""
    users = range(model.n_users)
    told = [array.tobytes() for user in users for array in (*model.predict(user, arms), model.covariance(user, arms))]
    return [
        *told,
        model.info_gain,
        model.log_marginal_likelihood,
        model.noise_var,
        model.n_observations,
        model.describe(),
    ]


@pytest.mark.parametrize("engine", [*ENGINE_NAMES, "truncated"])
@given(case=cases(max_history=15), steps=STEPS, later=STEPS)
def test_a_restored_model_is_the_same_and_stays_so(engine: str, case: Case, steps: list[str], later: list[str]) -> None:
    model = make(engine, case)
    if isinstance(model, ConditionedModel):
        model.jitter.note(1e-12)  # kept with the rest, and told by `describe`
    for step in steps:
        take(step, model, case)
    again = carried(model)
    assert type(again) is type(model)
    for step in ["one", *later]:  # before anything is asked: a question leaves something behind in `exact`
        take(step, model, case)
        take(step, again, case)
    assert bits(again) == bits(model)


@pytest.mark.parametrize("engine", [*ENGINE_NAMES, "truncated"])
@given(case=cases(max_history=15), steps=STEPS, what=st.sampled_from(["means", "counts", "noise_var"]))
def test_a_state_that_is_not_of_its_history_is_not_sound(engine: str, case: Case, steps: list[str], what: str) -> None:
    model = make(engine, case)
    for step in ["one", *steps]:
        take(step, model, case)
    assume(len(model.history) > 0)
    state = deepcopy(model.state())
    assert restore_model(deepcopy(state), model.kernel).is_sound()
    if what == "noise_var":
        assume(engine != "dense")  # which computes everything anew
        state[what] *= 1.5
    else:
        state["history"][what][0] += 0.5 * max(1.0, abs(state["history"][what][0]))
    try:
        sound = restore_model(state, model.kernel).is_sound()
    except NumericalError:
        sound = False
    assert not sound


@pytest.mark.parametrize("engine", ["dense", "exact"])
def test_a_restored_model_without_a_pool_is_the_same(engine: str) -> None:
    kernel = FreeKernel(np.eye(2) + 0.5, ct.SquaredExponential(1.0))
    rng, asked = np.random.default_rng(0), np.arange(6.0).reshape(3, 2)
    model = ENGINES[engine](kernel, noise_var=0.1)
    for each in range(3):
        assert bits(carried(model), asked) == bits(model, asked)
        model.update(each % 2, rng.normal(size=2), 1.0)
    again = carried(model)
    for either in (model, again):
        either.update(1, [0.5, 0.25], -1.0)
    assert bits(again, asked) == bits(model, asked)


SMALL_INPUTS: dict[str, dict[str, int]] = {
    "features": {"exact_rows": 3, "trend_features": 6},
    "local": {"near_rows": 3, "exact_rows": 3, "trend_features": 6},
}  # so small that a short history has a trend


def take_on_inputs(step: str, model: Model, case: InputCase) -> None:
    """Takes one of the steps above where arms have contexts."""
    rows = [(user, case.inputs[row], reward) for user, row, reward in case.history]
    if step == "one":
        for each in rows[:5]:
            model.update(*each)
    elif step == "read":
        model.predict(0, case.inputs)
    elif step == "many":
        model.update_many(*([row[i] for row in rows] for i in range(3)))
    elif step == "relearn":
        history = History()
        for number, (user, arm, reward) in enumerate(rows):
            history.add(model.kernel.key(user, arm), user, arm, reward, weight=0.9**number)
        model.relearn(history)
    elif step in ("noise", "users", "retune", "check"):
        take(step, model, case)


@pytest.mark.parametrize("engine", sorted(INPUT_ENGINES))
@given(case=input_cases(max_history=15), steps=STEPS, later=STEPS)
def test_a_restored_model_with_contexts_is_the_same_and_stays_so(
    engine: str, case: InputCase, steps: list[str], later: list[str]
) -> None:
    model = INPUT_ENGINES[engine](case.kernel, noise_var=case.noise_var, **SMALL_INPUTS.get(engine, {}))
    for step in steps:
        take_on_inputs(step, model, case)
    again = carried(model)
    assert type(again) is type(model)
    for step in ["one", *later]:
        take_on_inputs(step, model, case)
        take_on_inputs(step, again, case)
    assert bits(again, case.inputs) == bits(model, case.inputs)
    assert carried(model).is_sound()


def test_a_state_shares_its_arrays_with_the_model_and_a_restored_model_takes_them() -> None:
    """A belief of many pairs is neither copied to be saved nor when it was read."""
    kernel = FreeKernel(np.eye(1), ct.SquaredExponential(1.0))
    model = ExactModel(kernel)
    model.update(0, [1.0, 2.0], 1.0)
    state = model.state()
    assert state["factor"]["diagonal"][0] is model._factor._diagonal[0]
    assert ExactModel.restored(state, kernel)._factor._diagonal[0] is state["factor"]["diagonal"][0]
