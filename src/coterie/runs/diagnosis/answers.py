"""A diagnosis in words."""

from collections.abc import Iterator, Sequence
from math import exp
from typing import TYPE_CHECKING

from coterie.runs.diagnosis.graph_evidence import CLEAR
from coterie.runs.diagnosis.homophily import Alike
from coterie.runs.diagnosis.outcomes import BALLS, USER_PAIRS
from coterie.runs.diagnosis.payoff import Payoff

if TYPE_CHECKING:
    from coterie.runs.diagnosis.diagnosis import Diagnosis, Kernel

SMALL_P, FAINT = 0.05, 1.1
LINEAR, CURVED, SHORT = 0.9, 0.1, 0.3
MOST_NAMES = 6
PARTS = {
    "graph": "the part that follows the graph",
    "own": "the part that is each user's own",
    "common": "the part that all users have in common",
}


def verdict(found: "Diagnosis") -> str:
    """Returns the answer in a sentence or two."""
    if not found.sizes["edges"]:
        return "There is no graph to judge: the log has no edges."
    gain, alike = _gain(found, "graph"), [each for each in found.alike if each.p_value <= SMALL_P]
    friends = _friends(alike) if found.alike else "whether linked users are alike is not known"
    if gain is None:
        return f"{friends[0].upper()}{friends[1:]}; for more, arms need features."
    if gain > CLEAR:
        rewards = f"the rewards are e^{gain:.1f} times likelier with the graph than without"
        worth = "looks worth an experiment" if alike else "may help"
        return f"The graph {worth}: {friends}, and {rewards}{_when(found.payoff)}."
    rewards = "the rewards of the sample are explained as well without the graph"
    if any(each.name == "opinions" or (each.ratio or 0.0) >= FAINT for each in alike):
        return f"The graph may help, not clearly: {friends}, but {rewards}."
    return f"There is {'little' if alike else 'no'} evidence for the graph: {friends}, and {rewards}."


def _friends(alike: Sequence[Alike]) -> str:
    """Returns how linked users are alike, by the measures that are clear."""
    likenesses = {
        each.name: _CLEARLY[each.name].format(each=each, ratio=each.ratio or 0.0)
        for each in alike
        if each.name in _CLEARLY
    }
    return (
        f"linked users {' and '.join(likenesses.values())}"
        if likenesses
        else "linked users are no more alike than by chance"
    )


_CLEARLY = {
    "lift": "share {ratio:.2f} times what rewired ones do, activity set aside",
    "opinions": "judge alike what both have met (correlation {each.observed:.2f}, rewired {each.expected:.2f})",
}


def _when(payoff: Payoff | None) -> str:
    if payoff is None:
        return ""
    if payoff.pays_from is None:
        return f"; simulated, it does not clearly pay off within {payoff.rounds / payoff.n_users:.0f} rounds a user"
    return f"; simulated, it pays off after about {payoff.pays_from / payoff.n_users:.1f} rounds a user"


def _gain(found: "Diagnosis", part: str) -> float | None:
    return None if found.kernel is None else found.kernel.fitted.gains.get(part)


def homophily_words(found: "Diagnosis") -> list[str]:
    """Returns a sentence for each measure, and how to read them."""
    sentences = [_ALIKE[each.name].format(each=each, ratio=_times(each)) for each in found.alike]
    if not sentences:
        return sentences
    n = len(found.alike[0].rewired)
    return [*sentences, f"{_POSITIVE[found.kind].format(found.level)} {_REWIRED.format(n, 1 / (1 + n))}"]


def _times(each: Alike) -> str:
    return "" if each.ratio is None else f", {each.ratio:.2f} times as many"


_ALIKE = {
    "shared": "Linked users share {each.observed:.2f} positives, those of rewired graphs {each.expected:.2f}{ratio} "
    "(p = {each.p_value:.2g}).",
    "lift": "Set against what users as active would share if only popularity counted, linked users share "
    "{each.observed:.2f} times as much, those of rewired graphs {each.expected:.2f} times (p = {each.p_value:.2g}).",
    "opinions": "On arms that both have met, the rewards of linked users (less the arm's and the user's mean) "
    "correlate by {each.observed:.3f}, those of rewired graphs by {each.expected:.3f} (p = {each.p_value:.2g}).",
}
_POSITIVE = {
    "one-class": "A positive is any event, for all have the same reward.",
    "binary": "A positive is a reward of 1.",
    "real": "A positive is a mean reward above {:.3g}, the mean of all.",
}
_REWIRED = (
    "A rewiring lets every user keep the number of neighbours and changes who they are; p is (1 + rewirings at least "
    "as alike) / (1 + rewirings), of {} rewirings, so that it cannot be below {:.2g}."
)


QUESTIONS = {
    "liked": "Judged is what users liked (a reward above 0) against what they never had, as `coterie run` asks.",
    "rewards": "Judged are the rewards as they are: no user has enough positives to ask what they like among others.",
}


def evidence_words(kernel: "Kernel", question: str) -> list[str]:
    """Returns what is judged, what each part adds, and on which sample."""
    sentences = [
        QUESTIONS[question],
        *(f"{_likelier(gain, PARTS[part])}." for part, gain in kernel.fitted.gains.items()),
    ]
    zeros = f" {kernel.n_zeros:,} of these pairs are drawn: arms that the user never had, uniformly, with reward 0."
    return [
        *sentences,
        f"A difference of {CLEAR:g} in log evidence, e^{CLEAR:g} = {exp(CLEAR):.0f} times, is called clear; without a "
        "part the kernel is fitted again, and a graph part of short range can stand in for the own part, one of long "
        f"range for the common part. The sample: {kernel.n_pairs:,} pairs of {kernel.n_users:,} users, "
        f"{USER_PAIRS} of a user at most, in {kernel.n_blocks} blocks of {BALLS} neighbourhoods; each block is judged "
        f"by itself.{zeros if kernel.n_zeros else ''}",
    ]


def _likelier(gain: float, part: str) -> str:
    if gain > CLEAR:
        return f"The rewards are e^{gain:.1f} times likelier with {part} than without"
    if gain < -CLEAR:
        return f"The rewards are e^{-gain:.1f} times less likely with {part} than without"
    return f"The rewards are about as likely with {part} as without (e^{gain:.1f} times)"


def suggestions(kernel: "Kernel") -> list[tuple[str, str, str]]:
    """Returns name, value and meaning of each hyperparameter of the fitted kernel."""
    h = kernel.fitted.hyper
    shares = {name: f"{share:.0%}" for name, share in h.shares().items()}
    unclear = "" if kernel.fitted.gains.get("graph", 0.0) > CLEAR else "; not clear, none fits about as well"
    along = [
        ("share of the graph", shares["graph"], f"of what users like, how much follows the graph{unclear}"),
        ("laplacian_ridge (rho)", f"{exp(h.ridge):.3g}", "the smaller, the farther users share along the graph"),
    ]
    return [
        *(along if "graph" in kernel.fitted.gains else ()),
        ("share of own", shares["own"], "of what users like, how much is each user's own"),
        ("share of common", shares["common"], "how much all have in common"),
        ("lengthscale", f"{exp(h.lengthscale):.3g}", _range(kernel)),
        ("linear share", f"{h.linear_share:.0%}", _linear(h.linear_share)),
        ("noise_var", f"{h.noise_var:.3g}", f"of a reward variance of {kernel.reward_var:.3g}"),
        ("features", f"{kernel.features.enough} of {kernel.features.n_features}", _features(kernel)),
        ("effective dimension", f"{kernel.effective_dim:.0f}", f"of {len(kernel.eigenvalues):,} pairs"),
    ]


def _range(kernel: "Kernel") -> str:
    ratio = exp(kernel.fitted.hyper.lengthscale) / kernel.median_distance
    carried = "; beyond the linear part little carries over from arm to arm" if ratio < SHORT else ""
    return f"{ratio:.2g} times the median distance between arms{carried}"


def _linear(share: float) -> str:
    if share > LINEAR:
        return "a linear model of the features will do"
    return "a linear model will not do" if share < CURVED else "partly linear: keep both kernels, as auto-* does"


def _features(kernel: "Kernel") -> str:
    report = kernel.features
    if report.enough == report.n_features:
        return "all are needed"
    if report.losses.max() < CLEAR and report.enough == 1:
        return "features say little: none of them is clearly missed"
    more = ", ..." if report.enough > MOST_NAMES else ""
    return f"so many explain as much as all: {', '.join(report.names[: report.enough][:MOST_NAMES])}{more}"


DIMENSION = (
    "The effective dimension is the sum of e / (e + noise) over the eigenvalues e of the fitted kernel on the pairs: "
    "of so many independent quantities do they speak. What a feature is worth is measured at the fitted kernel, which "
    "is not fitted again."
)


UNCLEAR = (
    "There is no clear evidence for the graph. What follows is simulated as if the fitted share of the graph were "
    "true, and is no reason to use it."
)


def payoff_section(found: "Diagnosis", payoff: Payoff) -> list[str]:
    """Returns when the graph pays off; before it, whether there is no clear evidence that it does anything."""
    words = payoff_words(payoff, found.sizes["users"])
    return words if (_gain(found, "graph") or 0.0) > CLEAR else [UNCLEAR, *words]


def payoff_words(payoff: Payoff, n_users: int) -> list[str]:
    """Returns when the graph pays off, and what was simulated."""
    setting = (
        f"Simulated: {payoff.n_truths} truths drawn from the fitted kernel for {payoff.n_users} users of a few "
        f"communities, and {payoff.n_arms} arms, {payoff.n_candidates} of them shown in a round; "
        f"{payoff.rounds:,} rounds; UCB of width 1 that knows the kernel, and one that knows only how alike two users "
        "are on average. It says what the fitted kernel would have, not what your users will do."
    )
    if payoff.pays_from is None:
        return [f"Not within {payoff.rounds:,} rounds ({payoff.rounds / payoff.n_users:.0f} a user). {setting}"]
    each = payoff.pays_from / payoff.n_users
    return [
        f"From round {payoff.pays_from:,} on ({each:.1f} a user) the graph is ahead by more than two standard errors. "
        f"For all {n_users:,} users, served alike, that would be about {each * n_users:,.0f} rounds. {setting}"
    ]


def console_lines(found: "Diagnosis") -> Iterator[str]:
    """Yields the whole diagnosis as lines of text."""
    yield verdict(found)
    yield from found.missing
    if found.alike:
        yield from ("", "Are linked users alike?", *homophily_words(found))
    if found.kernel is not None:
        yield from ("", "What explains the rewards?", *evidence_words(found.kernel, found.question))
        yield from ("", "What the fitted kernel suggests")
        yield from (f"  {name:<22} {value:<10} {meaning}" for name, value, meaning in suggestions(found.kernel))
    if found.payoff is not None:
        yield from ("", "When does the graph pay off?", *payoff_section(found, found.payoff))
