"""How policies are to be judged: what all of them share, and which they are."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from coterie.errors import ParameterError, UnknownNameError, listed, or_similar
from coterie.errors.checks import check_whole
from coterie.product.bandit_checks import check_all_binary
from coterie.product.evaluation.estimators import ESTIMATORS
from coterie.product.evaluation.logged import Logged

N_DRAWS = 1000
Progress: TypeAlias = Callable[[str, int, int], None]  # what is done, how much of it, of how much


def silent(what: str, done: int, total: int) -> None:
    """Tells nobody."""


class Target(NamedTuple):
    """A policy to be judged.

    Attributes:
        name: Its name, as `make_policy` takes it.
        options: What `make_policy` takes besides.
        label: What it is called in the report.
    """

    name: str
    options: Mapping[str, Any]
    label: str

    @classmethod
    def of(cls, name: str, **options: Any) -> "Target":
        """Returns a policy that is called by its name and its options.

        Examples:
            >>> Target.of("lk-gp-ucb", width=0.5).label
            'lk-gp-ucb (width=0.5)'
        """
        told = ", ".join(f"{key}={value}" for key, value in options.items())
        return cls(name, options, f"{name} ({told})" if told else name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How policies are to be judged.

    Attributes:
        estimators: Some of `ESTIMATORS`; none means all that the log serves.
        learning: Whether a fresh policy is to learn as it is replayed on the whole log, from the decisions it agrees
            with. Only replay can tell.
        fit_share: The share of the log, in order of time, that the policies and the reward model are fitted on.
        offset: What is taken off the rewards that policies learn; "mean" is the mean of the earlier part. All but
            `auto-*`, which centre rewards themselves, believe in 0 before they know better.
        threshold: The weight above which SWITCH believes the model; default the root of the number of decisions.
        reward_model: A policy whose believed mean is the reward model. The default is the Laplacian kernel regression
            whose scales are learned from the rewards; "lk-gp-ucb" has the fixed ones of `reward_options`, as
            `LaplacianKernelRegressor`, and both go to engine "sparse" where size demands. Rewards are centred.
        reward_options: What `make_policy` takes, for the reward model.
        confidence: Of the intervals.
        n_draws: Of the bootstrap.
        seed: Fixes the policies' randomness, the coins of replay and the bootstrap.
    """

    estimators: Sequence[str] | None = None
    learning: bool = False
    fit_share: float = 0.5
    offset: float | Literal["mean"] = 0.0
    threshold: float | None = None
    reward_model: str = "auto-ucb"
    reward_options: Mapping[str, Any] = field(default_factory=dict)
    confidence: float = 0.95
    n_draws: int = N_DRAWS
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole("n_draws", self.n_draws)
        for name, value in (("fit_share", self.fit_share), ("confidence", self.confidence)):
            if not 0 < value < 1:
                raise ParameterError(f"{name} is {value!r}", "it lies between 0 and 1", "Choose, say, 0.5 or 0.95")
        if self.threshold is not None and not self.threshold >= 0:
            raise ParameterError(f"threshold is {self.threshold!r}", "it is a weight >= 0", "Choose, say, 10")
        if self.offset == "mean" and self.learning:
            rule = "a policy that learns as it is replayed does not know the mean of what is to come"
            raise ParameterError("offset is 'mean'", rule, "Give a number that was known before")

    def served(self, log: Logged) -> list[str]:
        """Returns the estimators asked for, or all that this log serves."""
        served = [name for name in ESTIMATORS if name != "switch-ips" or log.chances is not None]
        served = ["replay"] if self.learning else served
        if self.estimators is None:
            return served
        given = [self.estimators] if isinstance(self.estimators, str) else list(dict.fromkeys(self.estimators))
        for name in given:
            if name not in ESTIMATORS:
                remedy = or_similar(name, ESTIMATORS, "Use some of these")
                raise UnknownNameError(f"estimator {name!r} is unknown", f"they are {listed(ESTIMATORS, 9)}", remedy)
            if name not in served:
                rule = "a policy that learns is judged by replay only"
                rule = rule if self.learning else "it needs the log's `chances`"
                raise ParameterError(f"estimator {name!r} was asked for", rule, f"Ask for {listed(served, 9)}")
        return given


def check_binary(log: Logged, options: Mapping[str, Any]) -> None:
    """Raises if rewards are to be 0 or 1 and one is not."""
    if options.get("likelihood") == "bernoulli":
        check_all_binary(log.rewards, 0)
