"""The paper's table over the number of users, and ours beside it."""

from coterie.runs.paper.summary import StudySummary

SIZES = (20, 50, 100, 200)

# Table 1 of the paper: final cumulative regret, mean and standard error, at n = 20, 50, 100, 200.
PAPER: dict[str, tuple[tuple[float, float], ...]] = {
    "lk-gp-ucb": ((627.22, 32.98), (892.43, 21.73), (1062.69, 18.29), (1157.74, 23.02)),
    "lk-gp-ts": ((634.46, 22.78), (943.41, 19.56), (1176.23, 15.77), (1260.35, 16.23)),
    "coop-kernel-ucb": ((730.06, 31.02), (1015.35, 22.18), (1273.28, 17.36), (1358.48, 14.22)),
    "gob-lin": ((1092.86, 71.70), (1203.32, 18.57), (1370.51, 16.78), (1432.48, 18.72)),
    "graph-ucb": ((1105.20, 68.54), (1192.30, 22.12), (1360.02, 15.32), (1453.21, 17.81)),
    "gp-ucb": ((2222.20, 90.26), (1964.65, 61.40), (1641.43, 37.43), (1444.83, 36.33)),
    "pooled-linucb": ((2360.95, 70.55), (1909.81, 49.49), (1723.27, 40.23), (1438.74, 26.44)),
    "per-user-linucb": ((1117.87, 72.04), (1221.99, 22.03), (1432.89, 18.81), (1527.04, 17.61)),
}

Cell = tuple[str, int, float, float]


def cells(summary: StudySummary) -> list[Cell]:
    """Returns policy, n, our mean regret, and ours over the paper's, for every cell that was run."""
    found = []
    for policy, row in PAPER.items():
        for size, (paper, _) in zip(SIZES, row, strict=True):
            world = f"n={size}"
            if world in summary.worlds and policy in summary.policies(world):
                mean = summary.mean(world, policy)
                found.append((policy, size, mean, mean / paper))
    return found


def within_ten_percent(summary: StudySummary) -> tuple[int, int]:
    """Returns in how many cells ours is within 10 % of the paper's figure, and of how many."""
    ratios = [ratio for _, _, _, ratio in cells(summary)]
    return sum(abs(ratio - 1) <= 0.1 for ratio in ratios), len(ratios)


def table_rows(summary: StudySummary) -> list[list[str]]:
    """Returns the table: in each cell ours with its standard error, the paper's with its, and the ratio."""
    rows = []
    for policy, row in PAPER.items():
        cell_texts = []
        for size, (paper, error) in zip(SIZES, row, strict=True):
            ours = summary.estimate(f"n={size}", policy)
            spread = "-" if ours.std_err is None else f"{ours.std_err:.0f}"
            cell_texts += [f"{ours.mean:.0f} ± {spread}", f"{paper:.0f} ± {error:.0f}", f"{ours.mean / paper:.2f}"]
        rows.append([policy, *cell_texts])
    return rows
