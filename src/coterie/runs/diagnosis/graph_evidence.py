"""What the rewards say for graph, own and common: the log evidence of the fitted kernel with and without each part."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from coterie.policies.auto.evidence import Explaining, Holding, Together
from coterie.policies.auto.fit_context import FitContext
from coterie.policies.auto.hyper import Hyper
from coterie.policies.auto.prior import THOROUGH, Prior, fit
from coterie.policies.auto.statistics import centre_and_variance
from coterie.runs.diagnosis.outcomes import EvidenceSample

FIRST_BLOCKS = 1  # from which the climb starts
CLIMBS, WORTH_ANOTHER, FAR = 3, 0.5, 3.0
FIRM = {
    "lengthscale": 0.35,
    "noise": 1.0,
}  # spreads of the prior where pairs seen once cannot separate noise from short range
CLEAR = 3.0  # a difference of log evidence that is called clear: odds of twenty to one


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The kernel that explains the sample best, and how much worse it does without a part.

    Attributes:
        hyper: Its hyperparameters.
        centre: What rewards are measured from.
        evidence: Log evidence of the sample.
        gains: By how much it is above that of the kernel fitted again without graph, own or common.
    """

    hyper: Hyper
    centre: float
    evidence: float
    gains: Mapping[str, float]


class Without(Holding):
    """The evidence of a kernel that lacks a part: its variance is held so low that it is nothing."""

    def __init__(self, whole: Explaining, part: str, prior: Prior[Hyper]) -> None:
        super().__init__(whole, {part: prior.bounds()[Hyper._fields.index(part)][0]})


def fit_parts(context: FitContext, seen: EvidenceSample) -> Fitted:
    """Returns the kernel fitted to what was looked at, and what each part adds; without edges there is no graph."""
    centre, variance = centre_and_variance(seen.history)
    prior = firm_prior(Prior.of(context, variance))
    blocks: list[Explaining] = [context.sampled_evidence(seen.history, block, centre) for block in seen.blocks]
    if not context.graph.n_edges:
        blocks = [Without(block, "graph", prior) for block in blocks]
    whole = Together(blocks)
    start = fit(Together(blocks[:FIRST_BLOCKS]), prior, prior.centre, steps=THOROUGH)[0]
    best = _climbed(whole, prior, start)
    names = [name for name in ("graph", "own", "common") if name != "graph" or context.graph.n_edges]
    less = {name: Without(whole, name, prior) for name in names}
    fits = {name: _climbed(lacking, prior, best, handed(best, name, prior)) for name, lacking in less.items()}
    values = {name: _value(lacking, fits[name]) for name, lacking in less.items()}
    best = _at_least(whole, prior, best, fits, values)
    value = _value(whole, best)
    gains = {name: value - each for name, each in values.items()}
    if not context.graph.n_edges:
        best = best._replace(graph=prior.bounds()[0][0])
    return Fitted(hyper=best, centre=centre, evidence=value, gains=gains)


def firm_prior(prior: Prior[Hyper]) -> Prior[Hyper]:
    """Returns the prior with less room for length-scale and noise.

    Most pairs of a log are there once. Then a length-scale shorter than any distance between arms explains what noise
    would, and the two cannot be separated.
    """
    narrower = {name: min(getattr(prior.spread, name), spread) for name, spread in FIRM.items()}
    return replace(prior, spread=prior.spread._replace(**narrower))


def handed(hyper: Hyper, part: str, prior: Prior[Hyper]) -> Hyper:
    """Returns where to start without a part: its variance goes to whichever other can stand in for it.

    That is the own part for the graph, and the graph for the others: of so short a range that it joins nobody, or of so
    long a range that it joins everybody.
    """
    heir = "own" if part == "graph" else "graph"
    moved = {heir: float(np.logaddexp(getattr(hyper, heir), getattr(hyper, part)))}
    if part != "graph":
        moved["ridge"] = prior.centre.ridge + (FAR if part == "own" else -FAR) * prior.spread.ridge
    return hyper._replace(**moved)


def _climbed(explaining: Explaining, prior: Prior[Hyper], *starts: Hyper) -> Hyper:
    """Returns where the best climb ends; it goes on while that is worth it, for one climb stops after so many steps."""
    found = [fit(explaining, prior, start, corners=False, steps=THOROUGH) for start in starts]
    best, last = max(found, key=lambda each: each[1])
    for _ in range(CLIMBS - 1):
        best, height = fit(explaining, prior, best, corners=False, steps=THOROUGH)
        if height < last + WORTH_ANOTHER:
            break
        last = height
    return best


def _at_least(
    whole: Explaining, prior: Prior[Hyper], best: Hyper, fits: Mapping[str, Hyper], values: Mapping[str, float]
) -> Hyper:
    """Returns the best fit; where a kernel that lacks a part came higher, the climb goes on from there."""
    higher = max(values, key=values.__getitem__)
    if values[higher] <= _value(whole, best):
        return best
    low = prior.bounds()[Hyper._fields.index(higher)][0]
    again = _climbed(whole, prior, fits[higher]._replace(**{higher: low / 2 + getattr(prior.centre, higher) / 2}))
    return max(best, again, key=lambda hyper: _value(whole, hyper))


def _value(explaining: Explaining, hyper: Hyper) -> float:
    return explaining.value_and_gradient(np.array(hyper))[0]
