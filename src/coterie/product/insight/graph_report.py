"""Does the graph help? Learned shares, evidence with and without it, homophily, in words for people who decide."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from coterie.contracts import Array
from coterie.errors import counted
from coterie.errors.extras import require_extra
from coterie.graphs import UserGraph, make_graph
from coterie.kernels import ArmPool
from coterie.models import History
from coterie.policies.auto.bernoulli_likelihood import BernoulliEvidence, level_of, logit_prior
from coterie.policies.auto.evidence import Together
from coterie.policies.auto.fit_context import FitContext, is_uneven
from coterie.policies.auto.hyper import LearnedHyper
from coterie.policies.auto.input_context import InputFitContext
from coterie.policies.auto.prior import THOROUGH, fit
from coterie.policies.auto.sampling import PairSample, draw_samples
from coterie.policies.auto.statistics import centre_and_variance, noise_share_of

PERMUTATIONS = 199
CLEAR = 3.0  # a difference of log evidence that is called clear: odds of twenty to one
SMALL_P = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphReport:
    """What the rewards say about the graph.

    Attributes:
        n_rewards: How many rewards it is made from.
        shares: At each fit: the number of rewards, and the shares of the graph, of the users' own and of common taste.
        evidence: Log evidence, at the best hyperparameters of each: with the graph, without it, with users permuted.
        homophily: How much neighbours differ over how much users do whose places in the graph are shuffled: 1 is as
            much, 0 not at all; none where too few neighbours have met the same arms.
        p_value: How often shuffled users are at least as alike; none as above.
        effective_dim: Of how many independent quantities the rewards speak so far, by the paper's measure.
        n_users: How many users there are.
        n_arms: How many arms there are.
        n_edges: How many of them are joined.
        has_contexts: Whether arms have contexts, or users features.
    """

    n_rewards: int
    shares: list[tuple[int, Mapping[str, float]]]
    evidence: Mapping[str, float]
    homophily: float | None
    p_value: float | None
    effective_dim: float
    n_users: int
    n_arms: int
    n_edges: int
    has_contexts: bool = False

    @property
    def helps(self) -> bool | None:
        """Whether the graph clearly explains the rewards better than none and than a permuted one; none: not clear."""
        gain = self.evidence["graph"] - max(self.evidence["none"], self.evidence["permuted"])
        return True if gain > CLEAR else False if gain < -CLEAR else None

    def __str__(self) -> str:
        return " ".join(filter(None, [self._verdict(), self._sharing(), self._alike(), self._dimension()]))

    def _verdict(self) -> str:
        rewards = counted(self.n_rewards, "reward")
        if not self.n_edges:
            return f"There are no edges: users share what all have in common and nothing else ({rewards})."
        graph = self.evidence["graph"]
        gains = {name: round(graph - self.evidence[name], 1) + 0.0 for name in ("none", "permuted")}  # never -0.0
        answers = {
            True: "The graph helps",
            False: "The graph does not help",
            None: "It is not clear yet whether the graph helps",
        }
        return (
            f"{answers[self.helps]}: after {rewards} its log evidence is {gains['none']:+.1f} relative to no graph, "
            f"and {gains['permuted']:+.1f} relative to the same graph with users shuffled over its nodes "
            f"(beyond {CLEAR:g} is clear)."
        )

    def _sharing(self) -> str:
        if not self.n_edges:
            return ""
        if not self.shares:
            return "Nothing is learned yet about how much users share."
        shares = ", ".join(f"{share:.0%} {_WORDS[name]}" for name, share in self.shares[-1][1].items())
        return f"Of what users like, {shares}."

    def _alike(self) -> str:
        if not self.n_edges:
            return ""
        if self.homophily is None or self.p_value is None:
            return "Too few neighbours have met the same arms to say whether neighbours are alike."
        clear = "clearly " if self.p_value <= SMALL_P else "not clearly "
        return (
            f"Neighbours differ {self.homophily:.2f} times as much as shuffled users, {clear}less (p = "
            f"{self.p_value:.3f}).{self._why_apart()}"
        )

    def _why_apart(self) -> str:
        if self.p_value is None or (self.helps is True) == (self.p_value <= SMALL_P):
            return ""
        whatever, contexts = (", whatever the contexts", "and the contexts ") if self.has_contexts else ("", "")
        return (
            " That the two differ is possible: this compares mean rewards on the arms that both neighbours have met "
            f"and only these{whatever}; the evidence uses all rewards, and how alike the arms {contexts}are."
        )

    def _dimension(self) -> str:
        pairs, counts = self.n_users * self.n_arms, f"{counted(self.n_users, 'user')} x {counted(self.n_arms, 'arm')}"
        most = "" if self.has_contexts else f", where {counts} could have {pairs:,}"
        return (
            f"So far the rewards inform about {self.effective_dim:.1f} independent quantities (the paper's effective "
            f"dimension){most}."
        )

    def draw(self, path: str | Path) -> None:
        """Writes a picture: the shares over time, and the evidence."""
        with require_extra("lab", "a picture"):
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        figure = Figure(figsize=(9.0, 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2)
        self._draw_shares(left)
        self._draw_evidence(right)
        for axes in (left, right):
            axes.spines[["top", "right"]].set_visible(False)
        figure.supxlabel(
            "Users shuffled: the same edges, with each user at another's place at random. A graph that helps beats it.",
            fontsize=8,
            color="0.35",
        )
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)

    def _draw_shares(self, axes: Any) -> None:
        """Draws the shares at each fit; without a fit a log axis would have nothing to show, and words stand there."""
        axes.set_title("What users share", loc="left", fontweight="bold", fontsize=10)
        axes.set(xlabel="rewards", ylabel="share of the users' variance", ylim=(0, 1))
        if not self.shares:
            axes.set(xticks=[])
            axes.text(0.5, 0.5, "nothing learned yet", transform=axes.transAxes, ha="center", va="center")
            return
        times = [t for t, _ in self.shares]
        for name in self.shares[-1][1]:
            shares, (colour, dashes) = [each[name] for _, each in self.shares], _LINES[name]
            axes.plot(times, shares, color=colour, linestyle=dashes, marker="o", label=name)
        axes.set_xscale("log", base=2)
        axes.set_xticks(times[:: 1 + len(times) // 8], [f"{t:,}" for t in times[:: 1 + len(times) // 8]])
        axes.legend(frameon=False)

    def _draw_evidence(self, axes: Any) -> None:
        axes.set_title("What explains the rewards", loc="left", fontweight="bold", fontsize=10)
        axes.set(xlabel=f"log evidence above the least ({CLEAR:g} more is clear)")
        least = min(self.evidence.values())
        names = {"graph": "the graph", "none": "no graph", "permuted": "the graph with\nusers shuffled"}
        gains = [self.evidence[name] - least for name in names]
        axes.barh(list(names.values()), gains, color="#0072B2", height=0.5)
        axes.set_xlim(0, max(1.05 * max(gains), 1.0))
        axes.invert_yaxis()
        if not self.n_rewards:
            axes.text(0.5, 0.5, "nothing learned yet", transform=axes.transAxes, ha="center", va="center")


_WORDS = {
    "graph": "goes along the graph",
    "own": "is each user's own",
    "common": "is common to all",
    "traits": "goes by the users' features",
}
_LINES = {"graph": ("#0072B2", "-"), "own": ("#D55E00", "--"), "common": ("#009E73", ":"), "traits": ("#CC79A7", "-.")}


def make_report(
    graph: UserGraph,
    arms: ArmPool,
    history: History,
    *,
    fits: list[tuple[int, LearnedHyper]],
    effective_dim: float,
    seed: int,
    bernoulli: bool = False,
    inputs: InputFitContext | None = None,
    by_arm: History | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> GraphReport:
    """Returns the report on a graph from the rewards; a history of real rewards is left centred.

    Beyond 1,500 pairs or 2,000 users the evidence is that of some neighbourhoods, the same for all three.

    Args:
        graph: The users.
        arms: The pool.
        history: The rewards, as the model knows them.
        fits: After how many rewards hyperparameters were learned, and which.
        effective_dim: The model's.
        seed: Fixes the permutations, and the neighbourhoods.
        bernoulli: Whether rewards are 0 and 1, with that likelihood.
        inputs: What kernels are made of where arms have contexts, or users features.
        by_arm: The rewards by arms of the pool, in that case.
        progress: Called with "fits" and how many are done.
    """
    counts = history.count_array()
    if len(history) and not bernoulli:
        history.shift(-float(counts @ history.mean_array() / counts.sum()))
    shown = {
        "graph": graph,
        "none": UserGraph.from_matrix(make_graph("empty", graph.n_users).weights, users=graph.users),
        "permuted": graph.permuted(seed),
    }
    ratio, p_value = homophily(graph, history if by_arm is None else by_arm, len(arms), seed=seed)
    best = partial(_best_bernoulli, arms=arms, history=history)
    if not bernoulli:
        draw: Callable[..., list[PairSample]] = partial(draw_samples, graph)
        make: Callable[..., FitContext] = partial(FitContext, arms=arms)
        if inputs is not None:
            scaled = inputs.rescaled(history)
            draw, make = scaled.samples, partial(_with_inputs, inputs=scaled)
        samples = draw(history, np.random.default_rng(seed)) if len(history) else None
        best = partial(_best_gaussian, make=make, history=history, samples=samples)
    evidence = {}
    for done, (name, each) in enumerate(shown.items()):
        if progress is not None:
            progress("fits", done)
        evidence[name] = best(each)
    if progress is not None:
        progress("fits", len(shown))
    return GraphReport(
        n_rewards=history.n_observations,
        shares=[(t, hyper.shares()) for t, hyper in fits],
        evidence=evidence,
        homophily=ratio,
        p_value=p_value,
        effective_dim=effective_dim,
        n_users=graph.n_users,
        n_arms=len(arms),
        n_edges=graph.n_edges,
        has_contexts=inputs is not None,
    )


def _with_inputs(graph: UserGraph, *, inputs: InputFitContext) -> InputFitContext:
    """Returns what kernels are made of on another graph, with contexts and features of users as they are."""
    return inputs.on(graph, normalised=is_uneven(graph.degrees))


def _best_bernoulli(graph: UserGraph, *, arms: ArmPool, history: History) -> float:
    if not len(history):
        return 0.0
    context = FitContext(graph, arms)
    likely, prior = BernoulliEvidence(context.parts, history, level_of(history)), logit_prior(context)
    return fit(likely, prior, prior.centre, steps=THOROUGH)[1]


def _best_gaussian(
    graph: UserGraph,
    *,
    make: Callable[[UserGraph], FitContext],
    history: History,
    samples: list[PairSample] | None,
) -> float:
    if samples is None:
        return 0.0
    context = make(graph)
    variance = centre_and_variance(history)[1]
    prior = context.prior(variance, noise_share_of(history, variance))
    evidence = Together([context.sampled_evidence(history, each) for each in samples])
    return fit(evidence, prior, prior.centre, steps=THOROUGH)[1]


def homophily(graph: UserGraph, history: History, n_arms: int, *, seed: int) -> tuple[float | None, float | None]:
    """Returns how much neighbours differ over how much shuffled users do, and the p-value of the difference.

    Neighbours differ by the mean squared difference of their mean rewards (less the arm's mean) over the arms both have
    met, weighted by the edge.
    """
    shape, places = (graph.n_users, n_arms), (history.user_array(), history.arm_array())
    seen = sp.csr_array((np.ones(len(history)), places), shape=shape)
    counts = np.maximum(seen.sum(axis=0), 1)
    level = np.bincount(places[1], history.mean_array(), minlength=n_arms) / counts
    residuals = sp.csr_array((history.mean_array() - level[places[1]], places), shape=shape)
    rows, cols = graph.weights.tocoo().coords
    weights = graph.weights.tocoo().data
    rng = np.random.default_rng(seed)
    own = _difference(residuals, seen, rows, cols, weights)
    dealt = []
    for _ in range(PERMUTATIONS):
        order = rng.permutation(graph.n_users)
        dealt.append(_difference(residuals, seen, order[rows], order[cols], weights))
    others = np.array([each for each in dealt if not isnan(each)])
    if isnan(own) or not len(others) or others.mean() == 0:
        return None, None
    return float(own / others.mean()), float((1 + np.sum(others <= own)) / (1 + len(others)))


def _difference(residuals: Any, seen: Any, rows: Array, cols: Array, weights: Array) -> float:
    """Returns how much the ends of edges differ on the arms that both have met. O(pairs of their users)."""
    known = np.diff(seen.indptr) > 0
    kept = known[rows] & known[cols]
    here, there, weight = rows[kept], cols[kept], weights[kept]
    both = seen[here].multiply(seen[there])
    gaps = (residuals[here] - residuals[there]).multiply(both)
    total = float((both.sum(axis=1) * weight).sum())
    return float((gaps.power(2).sum(axis=1) * weight).sum() / total) if total > 0 else float("nan")
