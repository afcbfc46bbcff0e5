"""A news page: three places, and what readers click depends on the hour, on the device and on their friends.

python examples/news.py [FOLDER] [--seeds 2] writes example-news.png into the folder.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import coterie as ct

N_READERS, N_GROUPS, N_PAGES, PLACES = 30, 3, 500, 3
SEEN = np.array([1.0, 0.7, 0.5])  # how likely a reader is to look at a place; no bandit is told
SECTIONS = {
    "headlines": {"length": 0.1, "serious": 0.7},
    "opinion": {"length": 0.5, "serious": 0.9},
    "long read": {"length": 1.0, "serious": 0.8},
    "science": {"length": 0.7, "serious": 0.6},
    "sport": {"length": 0.3, "serious": 0.3},
    "recipes": {"length": 0.4, "serious": 0.2},
    "cartoon": {"length": 0.0, "serious": 0.0},
    "quiz": {"length": 0.2, "serious": 0.1},
}
NAMES = ("hour, device and friends", "friends, no context", "hour and device, no friends")
STYLES = (("-", "#0072B2"), ("--", "#009E73"), (":", "#D55E00"))
Array = NDArray[np.float64]


class Readers:
    """Readers in groups of friends. Mornings and phones are for short pieces; how serious they may be is a taste."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.ids = [f"reader-{i}" for i in range(N_READERS)]
        self.group = np.arange(N_READERS) % N_GROUPS
        self.serious = np.clip((self.group + 0.5) / N_GROUPS + rng.normal(0, 0.05, N_READERS), 0, 1)
        pairs = [(i, j) for i in range(N_READERS) for j in range(i)]
        chance = [0.5 if self.group[i] == self.group[j] else 0.02 for i, j in pairs]
        joined = rng.random(len(pairs)) < chance
        self.friends = [
            (self.ids[i], self.ids[j]) for (i, j), is_friend in zip(pairs, joined, strict=True) if is_friend
        ]
        self.visits = [(int(rng.integers(N_READERS)), self._context(rng), rng.random(PLACES)) for _ in range(N_PAGES)]

    @staticmethod
    def _context(rng: np.random.Generator) -> dict[str, object]:
        return {"hour": int(rng.integers(6, 24)), "device": str(rng.choice(["phone", "desktop"]))}

    def clicks(self, reader: int, context: dict[str, object]) -> Array:
        """Returns how likely each section is to be clicked if the reader looks at it."""
        hour, phone = float(str(context["hour"])), context["device"] == "phone"
        time = (hour - 6) / 17 * (0.5 if phone else 1.0)  # how much of it there is: little early, and on a phone
        length, serious = np.array([[each["length"], each["serious"]] for each in SECTIONS.values()]).T
        return np.asarray(0.9 * np.exp(-6 * (length - time) ** 2 - 6 * (serious - self.serious[reader]) ** 2))


def run(readers: Readers, edges: list[tuple[str, str]], *, shows_context: bool) -> Array:
    """Returns how likely a click was on each page over how likely it was on the best one."""
    graph, shares = ct.UserGraph.from_edges(edges, users=readers.ids), []
    bandit = ct.Bandit(graph=graph, arms=SECTIONS, places="learned", wait_for_fits=True)  # every run prints the same
    for reader, context, luck in readers.visits:
        slate = bandit.rank(readers.ids[reader], k=PLACES, context=context if shows_context else None)
        chances = readers.clicks(reader, context)
        found = SEEN * chances[[bandit.arms.index[place.arm] for place in slate]]
        bandit.reward_many([place.id for place in slate], (luck < found).astype(float).tolist())
        shares.append(found.sum() / (SEEN * np.sort(chances)[::-1][:PLACES]).sum())
    return np.array(shares)


def play(seed: int) -> Array:
    """Returns the shares of the best page: lines x pages."""
    readers = Readers(seed)
    alone: list[tuple[str, str]] = []
    settings = ((readers.friends, True), (readers.friends, False), (alone, True))
    return np.array([run(readers, edges, shows_context=shows) for edges, shows in settings])


def draw(shares: Array, path: Path) -> None:
    """Writes the picture: clicks over those of the best page, the mean of a hundred pages at a time."""
    figure = Figure(figsize=(6.0, 3.4), layout="constrained")
    axes, width = figure.subplots(), 100
    for name, (style, colour), row in zip(NAMES, STYLES, shares, strict=True):
        smooth = np.convolve(row, np.ones(width) / width, mode="valid")
        axes.plot(np.arange(len(smooth)) + width, smooth, style, color=colour, label=name)
    axes.set(xlabel="pages shown", ylim=(0, 1))
    axes.set_title("Clicks over those of the best page, last 100 pages", loc="left", fontsize=10)
    axes.legend(frameon=False, loc="lower right", fontsize=9)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Plays the seeds, prints the figures and draws them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    trials = []
    for seed in range(asked.seeds):
        trials.append(play(seed))
        words = ", ".join(f"{share:.2f} {name}" for name, share in zip(NAMES, trials[-1].mean(axis=1), strict=True))
        print(f"seed {seed}: of the best page's clicks {words}", flush=True)
    draw(np.mean(trials, axis=0), asked.folder / "example-news.png")


if __name__ == "__main__":
    main()
