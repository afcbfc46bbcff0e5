"""The evidence of rewards of inputs: arms in their contexts, and users with features of their own."""

from math import exp
from typing import Any, NamedTuple

import numpy as np

from coterie.contracts import Array
from coterie.models import History
from coterie.policies.auto.evidence import Evidence, both_halves
from coterie.policies.auto.hyper import InputHyper
from coterie.policies.auto.parts import Density, SpectrumParts, graph_part


class InputParts(NamedTuple):
    """What the covariance of some rows is made of, whatever the hyperparameters; the rows of a user come together.

    Attributes:
        spectrum: Of the Laplacian, a row for each user that is looked at.
        density: How the eigenvalues of the whole graph are spread.
        user_distance: Squared, between these users' features; None where they have none.
        arm_distance: Squared, between the arms of two rows; None where arms have no features.
        arm_products: Of the arms of two rows, over their mean square; 1 and 0 for the same and others where arms have
            no features.
        number_distance: Squared, between the numbers of two contexts; None without any.
        category_distance: Squared, between their categories; None without any.
        context_products: Of two contexts, over their mean square; None where there are no contexts.
    """

    spectrum: SpectrumParts
    density: Density
    user_distance: Array | None
    arm_distance: Array | None
    arm_products: Array
    number_distance: Array | None
    category_distance: Array | None
    context_products: Array | None

    @property
    def n_users(self) -> int:
        """How many users there are rows for."""
        return len(self.spectrum.eigenvectors)


class _InputCovariances(NamedTuple):
    """What users and inputs covary by, and what that was made of."""

    users: Array
    inputs: Array
    graph: Array
    change: Array
    traits: Array | None
    arms: Array
    arms_smooth: Array
    contexts: Array | None
    contexts_smooth: Array | None


class InputEvidence(Evidence):
    """Log p(rewards) of inputs as a function of `InputHyper`. O(k^3) for k rows.

    The derivatives of Ku are those of `Evidence`; those of Kin are sums of W o Ku o its derivative over all pairs of
    rows.

    Args:
        parts: What the covariance of the rows is made of, in their order.
        history: The rewards; the rows of a user come together.
        level_var: The prior variance of the level about 0; 0 for a level of 0.
    """

    parts: InputParts

    def __init__(self, parts: InputParts, history: History, *, level_var: float = 0.0) -> None:
        self._take_rows(parts, history, np.arange(len(history)), level_var)

    def _hyper(self, point: Array) -> InputHyper:
        return InputHyper(*point)

    def _covariances(self, h: InputHyper) -> _InputCovariances:
        parts = self.parts
        graph, change = graph_part(parts.spectrum, parts.density, h.ridge)
        users = exp(h.graph) * graph + exp(h.common)
        users[np.diag_indices_from(users)] += exp(h.own)
        traits = None
        if parts.user_distance is not None:
            traits = _smooth(parts.user_distance, h.trait_scale)
            users += exp(h.traits) * traits
        arms = arms_smooth = parts.arm_products
        if parts.arm_distance is not None:
            arms_smooth, w = _smooth(parts.arm_distance, h.lengthscale), h.linear_share
            arms = (1 - w) * arms_smooth + w * parts.arm_products
        contexts, contexts_smooth = self._contexts(h)
        inputs = arms + exp(h.offset)
        if contexts is not None:
            inputs += (exp(h.interaction) * arms + exp(h.context)) * contexts
        return _InputCovariances(users, inputs, graph, change, traits, arms, arms_smooth, contexts, contexts_smooth)

    def _contexts(self, h: InputHyper) -> tuple[Array | None, Array | None]:
        """Returns Kc of the rows, and its smooth part."""
        parts = self.parts
        if parts.context_products is None:
            return None, None
        exponent = np.zeros_like(parts.context_products)
        for distance, scale in (
            (parts.number_distance, h.number_scale),
            (parts.category_distance, h.category_scale),
        ):
            if distance is not None:
                exponent -= distance * (0.5 * exp(-2 * scale))
        smooth, v = np.exp(exponent, out=exponent), h.context_part.linear_share
        return (1 - v) * smooth + v * parts.context_products, smooth

    def _on_pairs(self, shared: _InputCovariances) -> Array:
        on_users, on_inputs, both = self._room
        shared.users.take(self._user_places, out=on_users.reshape(-1), mode="clip")
        on_inputs[...] = shared.inputs
        return np.asarray(np.multiply(on_users, on_inputs, out=both))

    def _gradient(self, h: InputHyper, shared: _InputCovariances, half: Array, noise: Array) -> Array:
        parts, (on_users, on_inputs, _) = self.parts, self._room
        users = both_halves(self._by_user.sums(np.multiply(half, on_inputs, out=on_inputs), parts.n_users))
        on_users *= half
        vectors = parts.spectrum.eigenvectors
        turned = np.einsum("ij,ij->j", vectors, users @ vectors)
        of_traits = [0.0, 0.0]
        if parts.user_distance is not None and shared.traits is not None:
            moved = shared.traits * parts.user_distance
            of_traits = [float(np.vdot(users, shared.traits)), exp(-2 * h.trait_scale) * float(np.vdot(users, moved))]
        return np.array(
            [
                exp(h.graph) * float(np.vdot(users, shared.graph)),
                exp(h.own) * float(users.trace()),
                exp(h.common) * float(users.sum()),
                exp(h.graph) * float(turned @ shared.change),
                *self._arm_gradient(h, shared, on_users, on_inputs),
                2 * exp(h.offset) * float(on_users.sum()),
                2 * float(half.diagonal() @ noise) + self._repeats - float(self._scatters.sum()) / h.noise_var,
                *self._context_gradient(h, shared, on_users, on_inputs),
                *(exp(h.traits) * each for each in of_traits),
            ]
        )

    def _arm_gradient(self, h: InputHyper, shared: _InputCovariances, weights: Array, room: Array) -> list[float]:
        """Returns the derivatives in the arms' length-scale and linear share."""
        distance, w, smooth = self.parts.arm_distance, h.linear_share, shared.arms_smooth
        if distance is None:
            return [0.0, 0.0]
        weighted = weights
        if shared.contexts is not None:
            weighted = np.multiply(weights, 1 + exp(h.interaction) * shared.contexts, out=room)
        return [
            2 * (1 - w) * exp(-2 * h.lengthscale) * _sum_of(weighted, smooth, distance),
            2 * w * (1 - w) * float(np.vdot(weighted, self.parts.arm_products - smooth)),
        ]

    def _context_gradient(self, h: InputHyper, shared: _InputCovariances, weights: Array, room: Array) -> list[float]:
        """Returns the derivatives in both variances, both length-scales and the linear share of contexts."""
        parts, contexts, smooth = self.parts, shared.contexts, shared.contexts_smooth
        if contexts is None or smooth is None or parts.context_products is None:
            return [0.0] * 5
        v = h.context_part.linear_share
        of_both = 2 * exp(h.interaction) * _sum_of(weights, shared.arms, contexts)
        of_context = 2 * exp(h.context) * float(np.vdot(weights, contexts))
        weighted = np.multiply(weights, exp(h.interaction) * shared.arms + exp(h.context), out=room)
        out = [of_context, of_both]
        for distance, scale in (
            (parts.number_distance, h.number_scale),
            (parts.category_distance, h.category_scale),
        ):
            out.append(0.0 if distance is None else 2 * (1 - v) * exp(-2 * scale) * _sum_of(weighted, smooth, distance))
        return [*out, 2 * v * (1 - v) * float(np.vdot(weighted, parts.context_products - smooth))]


def _smooth(squared_distance: Array, scale: float) -> Array:
    """Returns the squared-exponential kernel of this log length-scale."""
    return np.asarray(np.exp(squared_distance * (-0.5 * exp(-2 * scale))))


def _sum_of(weights: Array, one: Array, other: Any) -> float:
    """Returns the sum over all pairs of the product of three matrices."""
    return float(np.einsum("ij,ij,ij->", weights, one, other))
