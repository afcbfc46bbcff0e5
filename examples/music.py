"""A music service's cold start: what friends are worth to a user who has heard nothing yet.

python examples/music.py [FOLDER] [--seeds 4] writes example-music.png into the folder.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import coterie as ct

N_COMMUNITIES, N_USERS, N_SONGS, N_SHOWN, NOISE = 5, 30, 30, 8, 0.2
N_VISITS, N_FIRST = 300, 10  # visits of all users before anyone joins; first visits of each newcomer
NAMES = ("friends told", "no friends told", "the best shown", "at random")
STYLES = (("o-", "#0072B2"), ("s--", "#D55E00"), ("-", "#777777"), (":", "#777777"))


class Listeners:
    """Users in communities of friends; a song is heard out if it is near the taste that a community nearly shares."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.songs = {f"song-{i}": row for i, row in enumerate(self.rng.uniform(-1, 1, (N_SONGS, 3)))}
        centres = self.rng.uniform(-1, 1, (N_COMMUNITIES, 3))
        self.community = {f"user-{i}": i % N_COMMUNITIES for i in range(N_USERS + N_COMMUNITIES)}
        self.taste = {user: self.rng.normal(centres[c], 0.25) for user, c in self.community.items()}
        self.users, self.newcomers = list(self.community)[:N_USERS], list(self.community)[N_USERS:]

    def friends(self, user: str, among: list[str]) -> dict[str, float]:
        """Returns the user's friends: about half of the own community, and a few from elsewhere."""
        chances = [0.5 if self.community[other] == self.community[user] else 0.03 for other in among]
        return {other: 1.0 for other, chance in zip(among, chances, strict=True) if self.rng.random() < chance}

    def graph(self) -> ct.UserGraph:
        """Returns who is a friend of whom before anyone joins."""
        pairs = [(user, friend) for i, user in enumerate(self.users) for friend in self.friends(user, self.users[:i])]
        return ct.UserGraph.from_edges(pairs, users=self.users)

    def liking(self, user: str, song: object) -> float:
        """Returns the share of a song that a user hears on average."""
        return float(np.exp(-np.sum((self.songs[str(song)] - self.taste[user]) ** 2)))

    def visit(self) -> tuple[list[str], float]:
        """Returns the songs shown at one visit, and how much more or less than usual is heard."""
        songs = self.rng.choice(list(self.songs), N_SHOWN, replace=False)
        return songs.tolist(), self.rng.normal(0, NOISE)


def serve(world: Listeners, bandit: ct.Bandit, user: str, shown: list[str], noise: float) -> float:
    """Returns how much a user likes what the bandit chose; the bandit learns how much was heard."""
    decision = bandit.decide(user, shown)
    liking = world.liking(user, decision.arm)
    bandit.reward(decision.id, liking + noise)
    return liking


def play(seed: int) -> tuple[NDArray[np.float64], ct.Explanation]:
    """Returns the likings, lines x newcomers x visits, and why the first newcomer is thought to like a song."""
    world = Listeners(seed)
    graph, likings = world.graph(), np.zeros((len(NAMES), N_COMMUNITIES, N_FIRST))
    # They wait for their fits, so that every run prints the same.
    told, untold = both = [ct.Bandit(graph=graph, arms=world.songs, seed=seed, wait_for_fits=True) for _ in range(2)]
    for _ in range(N_VISITS):
        user, visit = str(world.rng.choice(world.users)), world.visit()
        for bandit in both:  # of one seed, so they decide alike until someone joins
            serve(world, bandit, user, *visit)
    for place, user in enumerate(world.newcomers):
        told.add_user(user, friends=world.friends(user, world.users))
        untold.add_user(user)
        if place == 0:
            beliefs = told.predict(user)
            why = told.explain(user, max(beliefs, key=lambda song: beliefs[song][0]))
        for number in range(N_FIRST):
            shown, noise = world.visit()
            possible = [world.liking(user, song) for song in shown]
            chosen = [serve(world, bandit, user, shown, noise) for bandit in both]
            likings[:, place, number] = [*chosen, max(possible), float(np.mean(possible))]
    return likings, why


def draw(likings: NDArray[np.float64], why: ct.Explanation, path: Path) -> None:
    """Writes the picture: liking by visit number, and whose rewards one estimate came from."""
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    for name, (style, colour), row in zip(NAMES, STYLES, likings.mean(axis=1), strict=True):
        left.plot(range(1, N_FIRST + 1), row, style, color=colour, label=name)
    left.set(xlabel="visit of a new user", ylabel="share of the song heard", ylim=(0, 1), xticks=range(1, N_FIRST + 1))
    left.set_title(f"The first visits of {likings.shape[1]} new users", loc="left")
    left.legend(frameon=False, ncols=2, loc="upper left")
    users = dict(list(why.by_user.items())[:7])
    right.barh([str(user) for user in users], list(users.values()), color="#009E73")
    right.locator_params(axis="x", nbins=5)
    right.set(xlabel="moves the estimate by", ylim=(6.6, -0.6))
    right.set_title(f"Why {why.arm} for {why.user}", loc="left")
    figure.savefig(path, dpi=150)


def main() -> None:
    """Plays the seeds, prints the figures and draws them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--seeds", type=int, default=4)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    trials = [play(seed) for seed in range(asked.seeds)]
    for seed, (likings, _) in enumerate(trials):
        told, untold, best, chance = likings.mean(axis=(1, 2))
        print(f"seed {seed}: heard {told:.2f} with friends, {untold:.2f} without; best {best:.2f}, random {chance:.2f}")
    print(trials[0][1])
    draw(np.concatenate([likings for likings, _ in trials], axis=1), trials[0][1], asked.folder / "example-music.png")


if __name__ == "__main__":
    main()
