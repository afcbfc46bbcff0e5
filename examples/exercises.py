"""Exercises for students: answers that come days later, a break in the middle, and a log that can be evaluated.

python examples/exercises.py [FOLDER] [--seeds 3] writes example-exercises.png and exercises.coterie into the folder.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import coterie as ct

N_CLASSES, N_STUDENTS, N_TOPICS, N_DAYS, BREAK, LONGEST_DELAY = 3, 24, 3, 30, 15, 4
NAMES = ("with the graph", "without", "the best exercise", "at random")
STYLES = (("o-", "#0072B2"), ("s--", "#D55E00"), ("-", "#777777"), (":", "#777777"))
LEVELS = np.linspace(-1.75, 1.75, 6)
Array = NDArray[np.float64]


class School:
    """Students of some classes; an exercise teaches most if it is a little harder than what the student can do."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        classes = np.eye(N_CLASSES)[np.arange(N_STUDENTS) % N_CLASSES]
        talent = rng.normal(0, 0.5, (N_STUDENTS, 1))
        taught = classes @ rng.normal(0, 0.6, (N_CLASSES, N_TOPICS))
        self.ability = talent + taught + rng.normal(0, 0.3, (N_STUDENTS, N_TOPICS))
        self.about = np.hstack([classes, talent + rng.normal(0, 0.3, (N_STUDENTS, 1))])  # class and entrance test
        self.luck = rng.uniform(size=(N_DAYS, N_STUDENTS))
        self.delay = rng.integers(1, LONGEST_DELAY + 1, (N_DAYS, N_STUDENTS))
        self.students = [f"student-{i}" for i in range(N_STUDENTS)]
        self.exercises = {  # difficulty, and which topic it is
            f"topic {t}, level {i}": [level, *np.eye(N_TOPICS)[t]]
            for t in range(N_TOPICS)
            for i, level in enumerate(LEVELS)
        }

    def alike(self) -> ct.UserGraph:
        """Returns each student joined to the five who are most alike in class and entrance test."""
        return ct.UserGraph.from_features(self.about, users=self.students, k=5)

    def shown(self, day: int) -> list[str]:
        """Returns the exercises of a day's topic."""
        return [name for name in self.exercises if name.startswith(f"topic {day % N_TOPICS}")]

    def chances(self, day: int) -> Array:
        """Returns the chance of each student to learn from each exercise of a day's topic."""
        harder = LEVELS - self.ability[:, [day % N_TOPICS]]
        return np.asarray(0.05 + 0.85 * np.exp(-0.5 * ((harder - 0.3) / 0.6) ** 2))


class Entry(NamedTuple):
    """A line of the log: a decision, its chance to succeed, whether it did, and the day on which that is known."""

    decision: ct.Decision
    chance: float
    learned: float
    known: int


def teach(school: School, bandit: ct.Bandit, days: range, log: list[Entry]) -> list[Entry]:
    """Returns the log, longer by these days: answers that are due are learned, then everyone gets an exercise."""
    log = list(log)
    for day in days:
        for entry in log:
            if entry.known == day:  # late, and in another order than the decisions were made
                bandit.reward(entry.decision.id, entry.learned)
        shown = school.shown(day)
        for row, decision in enumerate(bandit.decide_many(school.students, shown)):
            chance = school.chances(day)[row, shown.index(str(decision.arm))]
            log.append(Entry(decision, chance, float(school.luck[day, row] < chance), day + school.delay[day, row]))
    return log


def value_at_random(log: list[Entry]) -> tuple[float, float]:
    """Returns what exercises at random would have taught, from the log alone, and the standard error."""
    weighted = [entry.learned / len(LEVELS) / (entry.decision.propensity or np.nan) for entry in log]
    return float(np.mean(weighted)), float(np.std(weighted) / len(log) ** 0.5)


def play(seed: int, folder: Path) -> tuple[ct.Bandit, Array]:
    """Returns the bandit after the last day and the chances to learn, lines x days; prints what there is to see."""
    school, file = School(seed), folder / "exercises.coterie"
    bandit, alone = (
        ct.Bandit(  # one that waits for its fits, so that every run prints the same
            graph=graph,
            arms=school.exercises,
            pending="hallucinate",
            min_propensity=0.02,
            seed=seed,
            wait_for_fits=True,
        )
        for graph in (school.alike(), ct.UserGraph.from_edges([], users=school.students))
    )
    half = teach(school, bandit, range(BREAK), [])
    bandit.save(file)
    log, again = (teach(school, each, range(BREAK, N_DAYS), half) for each in (bandit, ct.Bandit.load(file)))
    changed = sum(one.decision.arm != other.decision.arm for one, other in zip(log, again, strict=True))
    alone_log, possible = teach(school, alone, range(N_DAYS), []), [school.chances(day) for day in range(N_DAYS)]
    daily = [np.reshape([entry.chance for entry in each], (N_DAYS, -1)).mean(axis=1) for each in (log, alone_log)]
    lines = np.array([*daily, np.max(possible, axis=2).mean(axis=1), np.mean(possible, axis=(1, 2))])
    graph, none, best, chance = lines.mean(axis=1)
    value, error = value_at_random(log)
    print(f"seed {seed}: learned {graph:.2f} with the graph, {none:.2f} without; best {best:.2f}, random {chance:.2f}")
    print(f"        random, from the log alone: {value:.2f} ± {error:.2f}; save and load changed {changed} choices")
    return bandit, lines


def draw(lines: Array, path: Path) -> None:
    """Writes the picture: how much was learned, in weeks of five days."""
    figure = Figure(figsize=(7.5, 3.6), layout="constrained")
    axes = figure.subplots()
    weeks = lines.reshape(len(NAMES), -1, 5).mean(axis=2)
    for name, (style, colour), row in zip(NAMES, STYLES, weeks, strict=True):
        axes.plot(range(1, len(row) + 1), row, style, color=colour, label=name)
    axes.axvline(BREAK / 5 + 0.5, color="black", linewidth=0.8)
    axes.annotate("saved and loaded", (BREAK / 5 + 0.55, 0.05))
    axes.set(xlabel="week of five days", ylabel="share of exercises that taught", ylim=(0, 1))
    axes.legend(frameon=False, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))
    figure.savefig(path, dpi=150)


def main() -> None:
    """Plays the seeds, prints the figures and draws them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    trials = [play(seed, asked.folder) for seed in range(asked.seeds)]
    print(trials[0][0].graph_report())
    draw(np.mean([lines for _, lines in trials], axis=0), asked.folder / "example-exercises.png")


if __name__ == "__main__":
    main()
