"""What a log says about one target, before and after it is given intervals."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.product.evaluation.asked import N_DRAWS
from coterie.product.evaluation.cautions import cautions, doubts, few
from coterie.product.evaluation.estimators import ESTIMATORS, Sample, Terms, Tuning, default_threshold
from coterie.product.evaluation.intervals import Uncertain, draws_of
from coterie.product.evaluation.logged import Logged
from coterie.product.evaluation.report import Estimate, Evaluation

LOGGER = "the log"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Measured:
    """What each estimator makes of a log, decision by decision.

    Attributes:
        log: The decisions that judge.
        terms: By the name of the estimator.
        worries: What speaks against believing them.
        policy: What the target is called.
        learning: Whether it learned as it was replayed.
        n_fitted: How many of the earlier decisions it was fitted on.
        model: What the reward model was, if there was one.
    """

    log: Logged
    terms: Mapping[str, Terms]
    worries: Sequence[str]
    policy: str = "the target"
    learning: bool = False
    n_fitted: int = 0
    model: str = ""

    @property
    def earned(self) -> Terms:
        """What the logger earned in the same decisions."""
        n = len(self.log)
        return Terms(self.log.rewards, np.ones(n), float(n))

    def uncertain(self, *, n_draws: int = N_DRAWS, seed: int = 0) -> dict[str, Uncertain]:
        """Returns the estimates with their draws, and what the logger earned, on the same draws."""
        everything = {LOGGER: self.earned, **self.terms}
        draws = draws_of(everything, n_draws=n_draws, seed=seed)
        return {name: Uncertain.of(each, draws[name]) for name, each in everything.items()}

    def judged(self, *, confidence: float = 0.95, n_draws: int = N_DRAWS, seed: int = 0) -> Evaluation:
        """Returns the estimates with their intervals, beside what the logger earned."""
        found = self.uncertain(n_draws=n_draws, seed=seed)
        ends = confidence, float(self.log.rewards.min()), float(self.log.rewards.max())
        made = {
            name: Estimate(each.value, *each.interval(*ends), each.effective, *each.ahead_of(found[LOGGER], *ends))
            for name, each in found.items()
        }
        return Evaluation(
            policy=self.policy,
            learning=self.learning,
            n_fitted=self.n_fitted,
            n_decisions=len(self.log),
            confidence=confidence,
            logger=made.pop(LOGGER),
            estimates=made,
            warnings=tuple(self.worries),
            model=self.model,
        )


def sampled(
    sample: Sample, estimators: Sequence[str], *, tuning: Tuning, worries: Iterable[str] = (), **about: Any
) -> Measured:
    """Returns what estimators make of a target of known choice probabilities."""
    terms = {name: ESTIMATORS[name](sample, tuning) for name in estimators}
    told = [*cautions(sample), *doubts(terms, sample.log.rewards), *worries]
    if "replay" in terms:
        told += few("Replay has accepted", terms["replay"].effective)
    return Measured(log=sample.log, terms=terms, worries=told, **about)


def tuned(n_decisions: int, threshold: float | None, seed: int) -> Tuning:
    """Returns what estimators leave open, the threshold of SWITCH being the root of the decisions if none is given."""
    return Tuning(default_threshold(n_decisions) if threshold is None else float(threshold), seed)


def estimate(
    sample: Sample,
    estimators: Sequence[str],
    *,
    threshold: float | None = None,
    confidence: float = 0.95,
    n_draws: int = N_DRAWS,
    seed: int = 0,
    **about: Any,
) -> Evaluation:
    """Returns what a target of known choice probabilities would have earned; see `evaluate`.

    Args:
        sample: The log and the target.
        estimators: Some of `ESTIMATORS`.
        threshold: As in `Asked`.
        confidence: As in `Asked`.
        n_draws: As in `Asked`.
        seed: As in `Asked`.
        **about: `policy`, `n_fitted`, `model`, `worries`, as in `Measured`.
    """
    found = sampled(sample, estimators, tuning=tuned(len(sample.log), threshold, seed), **about)
    return found.judged(confidence=confidence, n_draws=n_draws, seed=seed)
