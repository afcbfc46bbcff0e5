"""Prices for stores on a map: what stores learn from their neighbours.

python examples/prices.py [FOLDER] [--seeds 4] writes example-prices.png into the folder.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import coterie as ct

N_STORES, N_DAYS, COST, CUSTOMERS, NOISE = 36, 30, 4.0, 100, 60.0
PRICES, USUAL = list(range(5, 17)), 8
NAMES = ('map, "hallucinate"', 'map, "ignore"', 'no map, "hallucinate"')
STYLES = (("-", "#0072B2"), ("--", "#009E73"), (":", "#D55E00"))
Array = NDArray[np.float64]


class Town:
    """Stores on a map; what customers will pay varies smoothly over it, and a little from store to store."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.stores = [f"store-{i}" for i in range(N_STORES)]
        self.places = (np.argwhere(np.ones((6, 6))) + rng.uniform(0.15, 0.85, (N_STORES, 2))) / 6
        apart = np.linalg.norm(self.places[:, None] - self.places, axis=2)
        smooth = 4.0 * np.exp(-0.5 * (apart / 0.3) ** 2) + 0.1 * np.eye(N_STORES)
        payable = rng.multivariate_normal(np.full(N_STORES, 10.0), smooth)
        bought = CUSTOMERS / (1 + np.exp((np.array(PRICES) - payable[:, None]) / 0.8))
        self.profit = (np.array(PRICES) - COST) * bought  # of each store at each price, on average: some hundreds
        self.noise = rng.normal(0, NOISE, (1 + N_DAYS, N_STORES))

    @property
    def best_prices(self) -> list[int]:
        """Returns the best price of each store."""
        return [PRICES[column] for column in self.profit.argmax(axis=1)]


def run(town: Town, graph: ct.UserGraph, pending: str) -> tuple[ct.Bandit, Array]:
    """Returns the bandit after some weeks, and each day's profit over that of the best prices."""
    arms, shares = {price: [price] for price in PRICES}, []
    bandit = ct.Bandit(graph=graph, arms=arms, pending=pending, wait_for_fits=True)  # so that every run prints the same
    for store, profit in zip(town.stores, town.profit[:, PRICES.index(USUAL)] + town.noise[0], strict=True):
        bandit.learn(store, USUAL, profit)  # what is known before the first decision
    for noise in town.noise[1:]:
        decisions = bandit.decide_many(town.stores)  # in the morning; what they earned is known at night
        earned = town.profit[range(N_STORES), [bandit.arms.index[each.arm] for each in decisions]]
        for decision, reward in zip(decisions, earned + noise, strict=True):
            bandit.reward(decision.id, reward)
        shares.append(earned.sum() / town.profit.max(axis=1).sum())
    return bandit, np.array(shares)


def learned_prices(bandit: ct.Bandit) -> list[int]:
    """Returns the price that is believed best for each store."""
    beliefs = [bandit.predict(store) for store in bandit.graph.users]
    return [max(PRICES, key=lambda price: belief[price][0]) for belief in beliefs]


def play(seed: int) -> tuple[Town, list[int], Array]:
    """Returns the town, the prices learned with its map, and the daily shares: lines x days."""
    town = Town(seed)
    near = ct.UserGraph.from_features(town.places, users=town.stores, k=4)
    apart = ct.UserGraph.from_edges([], users=town.stores)  # nothing known about who is near whom
    settings = ((near, "hallucinate"), (near, "ignore"), (apart, "hallucinate"))
    runs = [run(town, graph, pending) for graph, pending in settings]
    return town, learned_prices(runs[0][0]), np.array([shares for _, shares in runs])


def draw(town: Town, learned: list[int], shares: Array, path: Path) -> None:
    """Writes the picture: the learned prices on the map, the true ones, and the profit lost over time."""
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(4, 4, 5))
    for axes, title, prices in ((left, "Best price, learned", learned), (middle, "Best price, true", town.best_prices)):
        axes.scatter(
            *town.places.T, c=prices, cmap="cividis", s=190, vmin=PRICES[0], vmax=max(*learned, *town.best_prices)
        )
        for place, price in zip(town.places, prices, strict=True):
            ink = "white" if price < 10 else "black"
            axes.annotate(str(price), place, ha="center", va="center", fontsize=8, color=ink)
        axes.set(xticks=[], yticks=[], aspect="equal", xlim=(-0.06, 1.06), ylim=(-0.06, 1.06))
        axes.set_title(title, loc="left", fontsize=10)
    for name, (style, colour), row in zip(NAMES, STYLES, shares, strict=True):
        right.plot(range(N_DAYS + 1), [0.0, *np.cumsum(1 - row)], style, color=colour, label=name)
    right.set(xlabel="day", ylim=(0, None))
    right.set_title("Profit lost so far, in days' profits", loc="left", fontsize=10)
    right.legend(frameon=False, loc="lower right", fontsize=9)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Plays the seeds, prints the figures and draws them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--seeds", type=int, default=4)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    trials = [play(seed) for seed in range(asked.seeds)]
    for seed, (town, learned, shares) in enumerate(trials):
        near = np.mean(np.abs(np.array(learned) - town.best_prices) <= 1)
        together, each, apart = 1 - shares.mean(axis=1)
        print(f"seed {seed}: lost {together:.1%} with the map ({each:.1%} if waiting is ignored), {apart:.1%} without;")
        print(f"        {near:.0%} of the stores know their best price to within 1")
    town, learned, _ = trials[0]
    draw(town, learned, np.mean([shares for *_, shares in trials], axis=0), asked.folder / "example-prices.png")


if __name__ == "__main__":
    main()
