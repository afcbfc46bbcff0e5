"""Hyperparameters: of a kernel over (user, arm), and of one over (user, arm, context)."""

from math import exp
from typing import ClassVar, NamedTuple

from coterie.kernels.inputs import ContextPart

ABSENT = -700.0  # the log variance of a part that is not there


class _Fields(NamedTuple):
    graph: float
    own: float
    common: float
    ridge: float
    lengthscale: float
    linear: float
    offset: float
    noise: float


class Readings:
    """What hyperparameters mean on a scale of their own; a mixin of tuples that have the fields of `Hyper`."""

    __slots__ = ()
    parts_of_users: ClassVar[tuple[str, ...]] = ("graph", "own", "common")

    @property
    def noise_var(self) -> float:
        """The noise variance."""
        return exp(self.noise)  # type: ignore[attr-defined]

    @property
    def variance(self) -> float:
        """The users' variance: that of all parts."""
        return sum([exp(getattr(self, name)) for name in self.parts_of_users])

    @property
    def linear_share(self) -> float:
        """The share of the linear arm kernel, between 0 and 1."""
        return 1 / (1 + exp(-self.linear))  # type: ignore[attr-defined]

    def shares(self) -> dict[str, float]:
        """Returns which part of the users' variance follows the graph, is their own, and common to all."""
        parts = {name: exp(getattr(self, name)) for name in self.parts_of_users}
        return {name: value / sum(parts.values()) for name, value in parts.items()}

    def described(self) -> dict[str, float]:
        """Returns the shares of the users' variance, and the other hyperparameters on their own scale.

        Examples:
            >>> Hyper(*[0.0] * 8).described()["linear"]
            0.5
        """
        names = ("ridge", "lengthscale", "offset", "noise")
        return self.shares() | {name: exp(getattr(self, name)) for name in names} | {"linear": self.linear_share}


class Hyper(_Fields, Readings):
    """The hyperparameters on the scale they are learned on: logarithms, and a logit for the linear share.

    Attributes:
        graph: Log variance of the part that follows the graph.
        own: Log variance of the part that is each user's own.
        common: Log variance of the part that all users have in common.
        ridge: Log of the graph part's Laplacian ridge.
        lengthscale: Log length-scale.
        linear: Logit of the share of the linear arm kernel.
        offset: Log variance of the users' levels, in units of the arm kernel.
        noise: Log noise variance.
    """

    __slots__ = ()


class _InputFields(NamedTuple):
    graph: float
    own: float
    common: float
    ridge: float
    lengthscale: float
    linear: float
    offset: float
    noise: float
    context: float
    interaction: float
    number_scale: float
    category_scale: float
    context_linear: float
    traits: float
    trait_scale: float


class InputHyper(_InputFields, Readings):
    """The hyperparameters of `Hyper`, and of contexts and of features of users, on the scale they are learned on.

    Attributes:
        context: Log variance of what depends on the context alone, in units of the arm kernel.
        interaction: Log variance of what depends on arm and context together, likewise.
        number_scale: Log length-scale of a context's numbers.
        category_scale: Log length-scale of a context's categories.
        context_linear: Logit of the share of the linear kernel of contexts.
        traits: Log variance of the part that follows the features of users.
        trait_scale: Log length-scale of these.
    """

    __slots__ = ()
    parts_of_users: ClassVar[tuple[str, ...]] = ("graph", "own", "common", "traits")

    @property
    def context_part(self) -> ContextPart:
        """What the kernel of contexts is made of."""
        return ContextPart(exp(self.number_scale), exp(self.category_scale), 1 / (1 + exp(-self.context_linear)))

    def shares(self) -> dict[str, float]:
        """Returns the shares of the users' variance; that of features of users where there are any."""
        shares = super().shares()
        if self.traits == ABSENT:
            del shares["traits"]
        return shares

    def input_shares(self) -> dict[str, float]:
        """Returns which part of an input's variance is the arm's, the context's and of both together.

        Examples:
            >>> InputHyper(*[0.0] * 15).input_shares()["arm"]
            0.3333333333333333
        """
        parts = {"arm": 1.0, "context": exp(self.context), "interaction": exp(self.interaction)}
        return {name: value / sum(parts.values()) for name, value in parts.items()}

    def described(self) -> dict[str, float]:
        """Returns shares, and the other hyperparameters on their own scale."""
        of_inputs = {f"input_{name}": share for name, share in self.input_shares().items()}
        return super().described() | of_inputs | self.context_part._asdict()


LearnedHyper = Hyper | InputHyper


def hyper_of(values: "list[float] | tuple[float, ...]") -> LearnedHyper:
    """Returns the hyperparameters that are so many numbers.

    Examples:
        >>> type(hyper_of([0.0] * 8)).__name__, type(hyper_of([0.0] * 15)).__name__
        ('Hyper', 'InputHyper')
    """
    return Hyper(*values) if len(values) == len(Hyper._fields) else InputHyper(*values)
