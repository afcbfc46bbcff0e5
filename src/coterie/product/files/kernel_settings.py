"""Kernels as settings of a file: the name of a class and its numbers, for the kernels that come with Coterie."""

from dataclasses import fields
from typing import Any

from coterie.errors import KernelError
from coterie.kernels import arm, user

KERNEL_OPTIONS = ("arm_kernel", "user_kernel")
NAME = "kernel"  # of the class
SAVED: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(arm.SquaredExponential, arm.Matern12, arm.Matern32, arm.Matern52, arm.RationalQuadratic),
        *(arm.Linear, arm.Polynomial, arm.Constant, arm.Distinct, arm.Scaled, arm.Sum, arm.Product),
        *(user.Green, user.Heat, user.RandomWalk, user.BandPass, user.HighPass),
        *(user.Independent, user.AllOnes, user.Exchangeable, user.SpectralRBF),
    )
}


def option_as_saved(value: Any) -> Any:
    """Returns a kernel as a table of plain values; anything else, and a kernel of somebody else's, as it is.

    Examples:
        >>> option_as_saved(2.0 * arm.SquaredExponential([0.5, 1.0]))["kernel"]
        'Scaled'
        >>> kernel_of(option_as_saved(2.0 * arm.SquaredExponential([0.5, 1.0])))
        Scaled(kernel=SquaredExponential(lengthscale=(0.5, 1.0)), variance=2.0)
    """
    if SAVED.get(type(value).__name__) is not type(value):
        return list(value) if isinstance(value, tuple) else value
    held = {each.name: option_as_saved(getattr(value, each.name)) for each in fields(value)}
    return {NAME: type(value).__name__, "of": held}


def kernel_of(saved: Any) -> Any:
    """Returns the kernel of such a table, or raises KernelError if it is none; None is none."""
    if saved is None:
        return None
    if not isinstance(saved, dict) or set(saved) != {NAME, "of"} or not isinstance(saved["of"], dict):
        raise KernelError(f"a kernel is {saved!r:.80}", "it has a name and its numbers", "Save the bandit again")
    kind = SAVED.get(saved[NAME]) if isinstance(saved[NAME], str) else None
    if kind is None or set(saved["of"]) != {each.name for each in fields(kind)}:
        raise KernelError(f"a kernel is {saved!r:.80}", "it is one of Coterie's own", "Use the version that saved it")
    held = {name: kernel_of(each) if isinstance(each, dict) else each for name, each in saved["of"].items()}
    return kind(**held)
