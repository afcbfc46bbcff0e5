"""What a kernel over (user, arm, context) is made of, and the evidence of a sample of the rewards.

    reward = centre + f(u, x, c) + noise,   f ~ GP(0, Ku o Kin)
    Ku  = graph G + own I + common 11' + traits SE(features of users)
    Kin = Ka (1 + interaction Kc) + context Kc + offset

Ka and Kc are those of `InputKernel`, of unit mean diagonal. Numbers of contexts are measured in units of the spread
that they have in the rewards so far; a fit takes these again.
"""

from collections.abc import Callable, Mapping
from copy import copy
from math import exp, log, sqrt
from typing import Any, ClassVar, Self

import numpy as np

from coterie.contracts import Array, Index
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool, SquaredExponential
from coterie.kernels.additive import AdditiveInputs, TraitPart, UserParts
from coterie.kernels.arithmetic import median_distance, squared_distances
from coterie.kernels.arm_features import landmark_features
from coterie.kernels.inputs import InputKernel, InputLayout, InputScaling, InputsKernel, contrasts
from coterie.kernels.joint import vector_key
from coterie.models import History
from coterie.policies.auto.arm_kernel import standardised
from coterie.policies.auto.evidence import Evidence
from coterie.policies.auto.fit_context import MOST_USERS, FitContext, renumbered, rounded
from coterie.policies.auto.hyper import ABSENT, InputHyper
from coterie.policies.auto.input_evidence import InputEvidence, InputParts
from coterie.policies.auto.prior import Prior
from coterie.policies.auto.sampling import PairSample, draw_input_samples
from coterie.policies.auto.statistics import centre_and_variance

FIRST_REWARDS = 32  # which say what the average arm pays
TRAIT_FEATURES, TRAIT_ERROR = 32, 1e-3  # of users on large graphs, at most, and the variance they may miss
CONTEXT, INTERACTION = -2.0, 0.0  # log variances beforehand, in units of the arm kernel
COMPETING = -4.0  # that of the context beside what arms that have nothing to do with one another have, without features


class InputFitContext(FitContext):
    """What the kernel of `auto` is made of where arms have contexts, or users features.

    Args:
        graph: The users.
        arms: The pool.
        layout: Which columns an input has.
        traits: The features of users, a row each (`user_rows`); None where they have none.
        most_users: Of how many a covariance matrix is made; beyond, only among those near one another.
        **rest: As for `FitContext`.
    """

    climb: ClassVar[Mapping[str, Any]] = {"steps": 16, "whitened": True}  # for twice as many hyperparameters

    def __init__(
        self,
        graph: UserGraph,
        arms: ArmPool,
        layout: InputLayout,
        *,
        traits: Array | None = None,
        most_users: int = MOST_USERS,
        **rest: Any,
    ) -> None:
        super().__init__(graph, arms, **rest)
        self.layout, self._most_users = layout, most_users
        self._take_traits(traits)
        self.scaling = self._arm_scaling().then(InputScaling.of(np.empty((0, layout.numbers))))

    def _arm_scaling(self) -> InputScaling:
        return InputScaling.of(self._arms.features[:, : self.layout.features])

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
        return len(self._arms)

    def with_arms(self, arms: ArmPool) -> Self:
        """Returns the same with a pool of more arms; the next fit measures features in units of their spread."""
        out = copy(self)
        out.__dict__.pop("median_distance", None)
        out._arms, out.features = arms, standardised(arms.features)
        return out

    def on(self, graph: UserGraph, *, normalised: bool | None = None) -> Self:
        """Returns the same for another graph; `with_traits` gives it the features of its users, if these are others."""
        out = super().on(graph, normalised=normalised)
        out._last_together = None
        return out

    def with_traits(self, traits: Array) -> Self:
        """Returns the same with other features of users, a row each."""
        out = copy(self)
        out._take_traits(traits)
        return out

    def _take_traits(self, traits: Array | None) -> None:
        self.traits = traits
        self._trait_distance = 1.0 if traits is None else median_distance(traits)
        self._last_traits: tuple[float, Array] | None = None
        self._last_together: tuple[tuple[UserParts, float, float], Array] | None = None

    @property
    def n_numbers(self) -> int:
        """How many numbers of contexts vary."""
        return int(np.count_nonzero(self.scaling.weight[self.layout.features :]))

    def key(self, user: int, arm: Any) -> tuple[int, bytes]:
        """Returns what two rewards share that have user and input in common."""
        return vector_key(user, arm)

    def prior(self, variance: float, noise_share: float | None = None) -> Prior[Any]:  # noqa: ARG002 - see below
        """Returns the prior of the hyperparameters, for rewards of this variance.

        How much of rewards of two values is noise is known beforehand without contexts only: contexts may tell all.
        """
        layout, base = self.layout, Prior.of(self, variance)
        has_context = layout.numbers + layout.categories > 0
        centre = InputHyper(
            **base.centre._asdict(),
            context=(COMPETING - log(layout.codes - 1) if layout.codes > 1 else CONTEXT) if has_context else ABSENT,
            interaction=INTERACTION if has_context else ABSENT,
            number_scale=log(sqrt(2 * max(self.n_numbers, 1))),
            category_scale=log(sqrt(max(layout.categories, 1))),
            context_linear=-1.0,
            traits=ABSENT if self.traits is None else base.centre.graph,
            trait_scale=log(self._trait_distance),
        )
        spread = InputHyper(
            **base.spread._asdict(),
            context=2.0,
            interaction=3.0,
            number_scale=0.7,
            category_scale=1.0,
            context_linear=2.0,
            traits=2.0,
            trait_scale=0.7,
        )
        return Prior(centre, spread)

    def level_prior(self, history: History) -> tuple[float, float]:
        """Returns mean and variance of the level before evidence: what the first rewards say, chosen as yet blindly.

        The level is what the average arm pays. Contexts may tell which arm pays most: then whoever has learned that
        sees hardly any other, and neither mean nor evidence of all rewards says what the others would have paid.
        """
        counts, means = history.count_array()[:FIRST_REWARDS], history.mean_array()[:FIRST_REWARDS]
        variance = centre_and_variance(history)[1]
        return float(counts @ means / counts.sum()), variance / len(counts)

    def rescaled(self, history: History) -> Self:
        """Returns the same with numbers of contexts in units of the spread that they have in a history."""
        if not len(history):
            return self
        out = copy(self)
        out.scaling = self._arm_scaling().then(InputScaling.of(history.arm_array()[:, self.layout.of_numbers]))
        return out

    def scales(self) -> dict[str, Any]:
        """Returns what features and numbers are measured from and in, for `with_scales`."""
        return {"scaling": {"centre": list(self.scaling.centre), "weight": list(self.scaling.weight)}}

    def with_scales(self, scales: Mapping[str, Any]) -> Self:
        """Returns the same with features and numbers measured as another one did."""
        out, held = copy(self), scales["scaling"]
        out.scaling = InputScaling(tuple(held["centre"]), tuple(held["weight"]))
        return out

    def evidences(self, history: History, t: int, shift: float = 0.0, *, level_var: float = 0.0) -> list[Evidence]:
        """Returns the evidence of rewards, less a number, of some samples of rows, which t and the seed fix."""
        samples = self.samples(history, np.random.default_rng([self._seed, t]))
        return [self.sampled_evidence(history, each, shift, level_var=level_var) for each in samples]

    def samples(self, history: History, rng: np.random.Generator) -> list[PairSample]:
        """Returns which rows a fit looks at, alike by the kernel of the prior's centre."""
        kernel = self._input_kernel(self.prior(1.0).centre, 1.0)
        ready = kernel.prepared(history.arm_array())

        def alike(row: int, others: Index) -> Array:
            return np.asarray(np.abs(kernel.prepared_cross(ready[row : row + 1], ready[others])[0]))

        return draw_input_samples(self.graph, history, alike, rng)

    def sampled_evidence(
        self, history: History, sample: PairSample, shift: float = 0.0, *, level_var: float = 0.0
    ) -> Evidence:
        """Returns the evidence of the rewards of a sample, less a number; the level varies by `level_var` about it."""
        order = np.argsort(sample.places, kind="stable")
        sorted_sample = sample._replace(rows=sample.rows[order], places=sample.places[order])
        rows = history.arm_array()[sorted_sample.rows]
        seen = renumbered(history, sorted_sample, np.arange(len(rows)), shift)
        return InputEvidence(self._input_parts(sample, rows, len(history)), seen, level_var=level_var)

    def _input_parts(self, sample: PairSample, rows: Array, n_rows: int) -> InputParts:
        kernel, layout = self._input_kernel(self.prior(1.0).centre, 1.0), self.layout
        numbers, categories = kernel.scaled(rows, layout.of_numbers), rows[:, layout.of_categories]
        products, of_arms, of_contexts = contrasts(rows, rows, layout.codes), None, None
        if layout.features:
            features = kernel.scaled(rows, layout.of_arm)
            products, of_arms = features @ features.T / kernel.n_features, squared_distances(features)
        apart = sum(2.0 * np.not_equal.outer(each, each) for each in categories.T)
        if layout.numbers + layout.categories:
            of_contexts = (numbers @ numbers.T + layout.categories - 0.5 * apart) / kernel.n_context_features
        return InputParts(
            spectrum=self._spectrum_of(sample, n_rows),
            density=self.density,
            user_distance=None if self.traits is None else squared_distances(self.traits[sample.users]),
            arm_distance=of_arms,
            arm_products=products,
            number_distance=squared_distances(numbers) if layout.numbers else None,
            category_distance=np.asarray(apart) if layout.categories else None,
            context_products=of_contexts,
        )

    def kernel(self, hyper: Any, scale: float | None = None) -> InputsKernel | AdditiveInputs:
        """Returns the joint kernel, with this scale of the graph part if given; a matrix over users if they are few."""
        parts, inputs = self._user_parts(hyper, scale), self._input_kernel(hyper, hyper.variance)
        share = rounded(exp(hyper.traits) / hyper.variance)
        if self.graph.n_users <= self._most_users or self._matrices:
            together = self._user_cov(parts) if self.traits is None else self._together(parts, share, hyper.trait_scale)
            return InputsKernel(together, inputs)
        if self.traits is None:
            return AdditiveInputs(self.graph, parts, inputs)
        traits = TraitPart(share, self._of_traits(hyper.trait_scale, self._trait_features))
        return AdditiveInputs(self.graph, parts, inputs, traits=traits)

    def _together(self, parts: UserParts, share: float, scale: float) -> Array:
        """Returns the covariance of all users, with what follows their features; nothing to do for the last one."""
        last, asked = self._last_together, (parts, share, scale)  # read once: a fit may go on in a thread
        if last is None or last[0] != asked:
            cov = share * self._of_traits(scale, self._trait_cov) + self._user_cov(parts)
            self._last_together = last = asked, cov
        return last[1]

    def _of_traits(self, scale: float, make: Callable[[Array, float], Array]) -> Array:
        """Returns what follows users' features at a log length-scale; nothing to do for the last one."""
        assert self.traits is not None
        last = self._last_traits  # read once: a fit may go on in a thread
        if last is None or last[0] != scale:
            self._last_traits = last = scale, make(self.traits, scale)
        return last[1]

    @staticmethod
    def _trait_cov(traits: Array, scale: float) -> Array:
        """Returns the correlations of all users. O(users^2)."""
        return np.asarray(np.exp(squared_distances(traits) * (-0.5 * exp(-2 * scale))))

    @staticmethod
    def _trait_features(traits: Array, scale: float) -> Array:
        """Returns a few features of users whose products are their correlations, nearly. O(users)."""
        return landmark_features(SquaredExponential(exp(scale)), traits, TRAIT_ERROR, TRAIT_FEATURES)[0]

    def _input_kernel(self, hyper: Any, variance: float) -> InputKernel:
        return InputKernel(
            self.layout,
            self.scaling,
            variance=variance,
            lengthscale=exp(hyper.lengthscale),
            linear_share=hyper.linear_share,
            level=exp(hyper.offset),
            context_share=exp(hyper.context),
            interaction=exp(hyper.interaction),
            context=hyper.context_part,
        )
