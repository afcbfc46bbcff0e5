"""The demonstration: four learners, one graph, thirty seconds."""

from pathlib import Path

import numpy as np

from coterie.contracts import ArmId
from coterie.graphs import make_graph
from coterie.kernels import ArmPool, Green, SquaredExponential
from coterie.policies import Policy, make_policy
from coterie.problems import World, gp_world
from coterie.runs.duel import Duel, MakePolicy, run_duel
from coterie.runs.extras import require_extra
from coterie.runs.figure import draw_regret

N_USERS, N_ARMS, DIMENSION, N_CANDIDATES, NOISE_STD = 40, 20, 5, 5, 0.3

LEARNERS = {
    "lk-gp-ucb": "shares on the graph, optimism",
    "lk-gp-ts": "shares on the graph, sampling",
    "per-user-gp-ucb": "every user learns alone",
    "gp-ucb": "one learner for everybody",
}


def demo_world(seed: int) -> World:
    """Returns a small world: 40 users in four communities, 20 arms, rewards that are not linear in the features."""
    rng = np.random.default_rng(seed)
    graph = make_graph("sbm", N_USERS, seed=rng, connected="retry")
    features = rng.normal(size=(N_ARMS, DIMENSION))
    arms = ArmPool(features / np.linalg.norm(features, axis=1, keepdims=True), ids=_names(N_ARMS))
    return gp_world(
        graph=graph,
        arms=arms,
        user_kernel=Green(laplacian_ridge=0.1),
        arm_kernel=SquaredExponential(1.0),
        noise_std=NOISE_STD,
        seed=int(rng.integers(2**31)),
        unit_spread=True,
    )


def _names(count: int) -> list[ArmId]:
    return [f"song-{i}" for i in range(count)]


def learner(name: str) -> MakePolicy:
    """Returns how to make one of the demonstration's policies: all with the same settings, none tuned."""

    def make(world: World, seed: int) -> Policy:
        return make_policy(name, graph=world.graph, arms=world.arms, noise_var=NOISE_STD**2, width=1.0, seed=seed)

    return make


def run_demo(*, trials: int, horizon: int, out: Path, name: str, seed: int = 0) -> Path:
    """Runs the duel with a progress bar, prints the table, writes the picture and returns its path."""
    with require_extra("lab", "the demonstration"):
        import matplotlib  # noqa: F401 - asked for now, not after half a minute of work
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn
        from threadpoolctl import threadpool_limits
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    setting = f"{N_USERS} users in 4 communities, {N_ARMS} arms, {N_CANDIDATES} shown a round; {trials} worlds"
    console.print(f"{setting}, {horizon} rounds each. The same settings for all, none tuned.", highlight=False)
    bars = "{task.description:<16}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    # The matrices are small: a second BLAS thread would wait more than it works.
    with threadpool_limits(limits=1, user_api="blas"), Progress(*bars, console=console) as progress:
        task = progress.add_task("starting", total=trials * len(LEARNERS))
        duel = run_duel(
            make_world=demo_world,
            policies={each: learner(each) for each in LEARNERS},
            trials=trials,
            horizon=horizon,
            n_candidates=N_CANDIDATES,
            seed=seed,
            on_step=lambda policy, _trial: progress.update(task, advance=1, description=policy),
        )
    console.print(regret_table(duel))
    path = out / f"{name}.png"
    draw_regret(duel, path, title="Four learners, one graph of users", subtitle=setting)
    console.print(f"\nThe picture: {path}", highlight=False, soft_wrap=True)
    return path


def regret_table(duel: Duel) -> object:
    """Returns the final regret of each policy as a table, the best first."""
    from rich.table import Table

    best = min(duel.final(name)[0] for name in duel.names)
    table = Table(title="Cumulative regret at the end (less is better)", title_justify="left")
    table.add_column("policy")
    table.add_column("")
    table.add_column("regret", justify="right")
    table.add_column("std err", justify="right")
    table.add_column("x best", justify="right")
    for name in sorted(duel.names, key=lambda each: duel.final(each)[0]):
        mean, error = duel.final(name)
        shown_error = f"{error:.1f}" if duel.n_trials > 1 else "-"
        table.add_row(name, LEARNERS[name], f"{mean:.0f}", shown_error, f"{mean / best:.2f}" if best > 0 else "-")
    return table
