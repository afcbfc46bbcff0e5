"""How true the probabilities of binary rewards are, with either likelihood, and what it means for choices.

python -m benchmarks.calibration [FOLDER] [--seeds 20] prints the figures of docs/binary.md and draws
binary-calibration.png into the folder.
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

import coterie as ct
from coterie.runs.report.style import BLUE, DARK, GREY, VERMILLION, finish, new_figure

N_USERS, N_ARMS, N_SHOWN, N_LEARNED, N_ROUNDS, N_BINS = 24, 20, 5, 400, 600, 10
LEVELS = {"even odds": 0.0, "rare successes": -2.3}
LIKELIHOODS = ("gaussian", "bernoulli")
LOOKS = {"gaussian": (VERMILLION, "s"), "bernoulli": (BLUE, "o")}
NEAREST = 0.01  # of a probability to 0 and 1 in the log loss: a Gaussian mean may lie outside
Array = NDArray[np.float64]


class Shop:
    """Users of four communities whose chances to like an arm follow its features, each in a way of their own."""

    def __init__(self, level: float, seed: int) -> None:
        rng = np.random.default_rng([seed, 1])
        community = np.arange(N_USERS) * 4 // N_USERS
        self.graph = ct.make_graph("sbm", N_USERS, seed=seed, connected="retry")
        self.arms = ct.ArmPool(rng.normal(size=(N_ARMS, 4)))
        taste = rng.normal(size=(4, 4))[community] + 0.5 * rng.normal(size=(N_USERS, 4))
        logits = taste @ self.arms.features.T
        self.chances = np.asarray(expit(level + 1.5 * (logits - logits.mean()) / logits.std()))

    def bandit(self, likelihood: str, seed: int, policy: str = "auto-ucb") -> ct.Bandit:
        """Returns a new bandit for this shop."""
        kinds: dict[str, Any] = {"reward": "binary", "likelihood": likelihood}
        return ct.Bandit(graph=self.graph, arms=self.arms, policy=policy, seed=seed, **kinds)


class Predicted(NamedTuple):
    """What was predicted of pairs that were never rewarded, what then happened, and the true chances."""

    predicted: Array
    happened: Array
    chances: Array


def predict(shop: Shop, likelihood: str, seed: int) -> Predicted:
    """Returns what a bandit foretells of fresh pairs after rewards of pairs at random."""
    rng, bandit = np.random.default_rng([seed, 2]), shop.bandit(likelihood, seed)
    fresh = np.ones((N_USERS, N_ARMS), dtype=bool)
    for _ in range(N_LEARNED):
        user, arm = int(rng.integers(N_USERS)), int(rng.integers(N_ARMS))
        bandit.learn(user, arm, rng.random() < shop.chances[user, arm])
        fresh[user, arm] = False
    predicted = np.array([[mean for mean, _ in bandit.predict(user).values()] for user in range(N_USERS)])
    happened = rng.random((N_USERS, N_ARMS)) < shop.chances
    return Predicted(predicted[fresh], happened[fresh].astype(float), shop.chances[fresh])


def regret(shop: Shop, likelihood: str, seed: int, policy: str) -> float:
    """Returns how many successes a bandit lost to the best choices."""
    rng, bandit, lost = np.random.default_rng([seed, 3]), shop.bandit(likelihood, seed, policy), 0.0
    for _ in range(N_ROUNDS):
        user, shown = int(rng.integers(N_USERS)), rng.choice(N_ARMS, N_SHOWN, replace=False).tolist()
        luck, decision = rng.random(), bandit.decide(user, shown)
        chance = float(shop.chances[user, shop.arms.index_of(decision.arm)])
        bandit.reward(decision.id, luck < chance)
        lost += shop.chances[user, shown].max() - chance
    return lost


def bins(predicted: Array, happened: Array) -> list[tuple[float, float, int]]:
    """Returns for each tenth of the pairs, by what was predicted: its mean, the share that happened, how many."""
    tenths = np.array_split(np.argsort(predicted, kind="stable"), N_BINS)
    return [(float(predicted[at].mean()), float(happened[at].mean()), len(at)) for at in tenths]


def calibration_error(predicted: Array, happened: Array) -> float:
    """Returns the expected calibration error: how far predicted and happened are apart, over the bins."""
    return sum(size * abs(mean - share) for mean, share, size in bins(predicted, happened)) / len(predicted)


def log_loss(predicted: Array, happened: Array) -> float:
    """Returns the mean of -log of the probability that was given to what happened."""
    chance = np.clip(predicted, NEAREST, 1 - NEAREST)
    return float(-np.mean(xlogy(happened, chance) + xlogy(1 - happened, 1 - chance)))


def interval(share: float, size: int) -> tuple[float, float]:
    """Returns Wilson's interval of 95 % about a share."""
    z = 1.96
    centre, half = share + z * z / (2 * size), z * np.sqrt(share * (1 - share) / size + z * z / (4 * size * size))
    return (centre - half) / (1 + z * z / size), (centre + half) / (1 + z * z / size)


def draw(found: dict[tuple[str, str], Predicted], path: Path) -> None:
    """Writes the reliability diagram: what was predicted against what happened."""
    figure, panels = new_figure(9.0, 4.6, columns=2)
    for axes, world in zip(panels, LEVELS, strict=True):
        for likelihood, (colour, marker) in LOOKS.items():
            predicted, happened, _ = found[world, likelihood]
            means, shares, sizes = map(np.array, zip(*bins(predicted, happened), strict=True))
            ends = np.array([interval(*each) for each in zip(shares, sizes, strict=True)]).T
            look = {"fmt": marker, "color": colour, "markersize": 5, "elinewidth": 1.2, "markerfacecolor": "white"}
            error = f"calibration error {calibration_error(predicted, happened):.3f}"
            axes.errorbar(means, shares, np.abs(ends - shares), label=f"{likelihood}: {error}", **look)
        low, top = -0.08, (1.0 if world == "even odds" else 0.55)
        axes.plot([0, top], [0, top], color=GREY, linewidth=1, zorder=1)
        axes.axvspan(low, 0, color=GREY, alpha=0.15, linewidth=0)
        axes.annotate("no probability", (low / 2, 0.55 * top), rotation=90, ha="center", va="center", color=DARK)
        axes.set(xlim=(low, top), ylim=(low, top), aspect="equal")
        finish(axes, title=world, xlabel="probability predicted", ylabel="share that succeeded")
        axes.legend(frameon=False, loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Plays the seeds, prints the figures and draws the picture."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--seeds", type=int, default=20)
    asked = parser.parse_args()
    found: dict[tuple[str, str], Predicted] = {}
    for world, level in LEVELS.items():
        shops = [Shop(level, seed) for seed in range(asked.seeds)]
        for likelihood in LIKELIHOODS:
            each = [predict(shop, likelihood, seed) for seed, shop in enumerate(shops)]
            one = Predicted(*(np.concatenate(rows) for rows in zip(*each, strict=True)))
            found[world, likelihood] = one
            print(f"{world} | {likelihood} | {judged(one.predicted, one.happened)}", flush=True)
        print(f"{world} | the truth | {judged(one.chances, one.happened)}; {len(one.predicted)} pairs")
        for policy in ("auto-ucb", "auto-ts"):
            lost = [[regret(shop, each, seed, policy) for each in LIKELIHOODS] for seed, shop in enumerate(shops)]
            print(f"{world} | {policy} | {compared(np.array(lost))}", flush=True)
    draw(found, asked.folder / "binary-calibration.png")


def judged(predicted: Array, happened: Array) -> str:
    """Returns in words how true probabilities were."""
    return (
        f"calibration error {calibration_error(predicted, happened):.4f} | log loss {log_loss(predicted, happened):.4f}"
    )


def compared(lost: Array) -> str:
    """Returns in words how much either likelihood lost, and the difference with its standard error."""
    gaps = lost[:, 1] - lost[:, 0]
    error = float(np.std(gaps, ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else float("nan")
    gaussian, bernoulli = lost.mean(axis=0)
    return f"regret {gaussian:.1f} gaussian, {bernoulli:.1f} bernoulli; difference {gaps.mean():+.1f} ± {error:.1f}"


if __name__ == "__main__":
    main()
