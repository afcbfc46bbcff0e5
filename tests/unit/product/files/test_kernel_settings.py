"""Kernels in files: those of Coterie come back as they were, and nothing else is taken for one."""

import json
from typing import Any

import pytest

import coterie as ct
from coterie.errors import KernelError
from coterie.product.files.kernel_settings import SAVED, kernel_of, option_as_saved


@pytest.mark.parametrize("name", sorted(SAVED))
def test_every_kernel_comes_back(name: str) -> None:
    parts: dict[str, Any] = {"Scaled": (ct.Linear(), 2.0), "Sum": (ct.Linear(), ct.Constant())}
    parts |= {"Product": (ct.Linear(1.5), 0.5 * ct.Matern12([1.0, 2.0]))}
    named = {"BandPass": {"centre": 1.0, "bandwidth": 0.5}, "HighPass": {"cutoff": 2.0}}
    kernel = SAVED[name](*parts.get(name, ()), **named.get(name, {}))
    assert kernel_of(json.loads(json.dumps(option_as_saved(kernel)))) == kernel


@pytest.mark.parametrize(
    "odd",
    [
        7,
        {"kernel": "Linear"},
        {"kernel": "Linear", "of": {}},
        {"kernel": "Linear", "of": {"offset": -1.0}},
        {"kernel": "ArmPool", "of": {}},
        {"kernel": ["Linear"], "of": {}},
        {"kernel": "Scaled", "of": {"kernel": 3.0, "variance": 1.0}},
    ],
)
def test_what_is_no_kernel_is_refused(odd: Any) -> None:
    with pytest.raises(KernelError):
        kernel_of(odd)


def test_a_kernel_of_your_own_is_left_as_it_is() -> None:
    class Own(ct.Linear):
        pass

    assert isinstance(option_as_saved(Own()), Own)
    assert option_as_saved("sparse") == "sparse"
