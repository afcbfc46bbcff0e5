"""`coterie fit --on ray` on a real Ray: the posterior of one machine, within its error, whoever is lost meanwhile."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.__main__ import main
from coterie.errors import ClusterError
from coterie.models.engines.sparse.reward_table import COLUMNS
from coterie.product.bulk import budget
from coterie.product.bulk.budget import Reading
from coterie.product.bulk.collapse import combine_parts
from coterie.product.bulk.fitting import FitSettings, bandit_of, choose_options
from coterie.product.bulk.sources import IdRows, event_parts
from coterie.product.cluster.crew import RayCrew
from coterie.product.cluster.ray_fit import RayFit
from coterie.product.cluster.shuffle import Shuffled

ray = pytest.importorskip("ray", reason="Ray comes with the extra 'ray'")
pytest.importorskip("numba", reason="engine 'sparse' needs the extra 'scale'")
pq = pytest.importorskip("pyarrow.parquet", reason="events are in Parquet, in the extra 'data'")
pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]

N_USERS, N_ARMS, N_EVENTS = 400, 12, 3_000
STORE = 100 * 2**20
GIVEN = ("--laplacian-ridge", "0.5", "--linear", "--noise-var", "0.2")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Gives a head of two CPUs and a node of one, and connects to the head."""
    from ray.cluster_utils import Cluster

    soon = {"health_check_period_ms": 500, "health_check_failure_threshold": 4}  # a node is known to be lost
    head = {"num_cpus": 2, "object_store_memory": STORE, "include_dashboard": False, "_system_config": soon}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        made.add_node(num_cpus=1, object_store_memory=STORE)
        ray.init(address=made.address, logging_level="ERROR", log_to_driver=False)
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with edges, arms, and events in three files."""
    import pyarrow as pa

    folder, rng = tmp_path_factory.mktemp("log"), np.random.default_rng(0)
    users, features = [f"u{number}" for number in range(N_USERS)], rng.normal(size=(N_ARMS, 3))
    ring = [(user, (user + step) % N_USERS) for user in range(N_USERS) for step in (1, 2)]
    edges = {"user": [users[a] for a, _ in ring], "other": [users[b] for _, b in ring]}
    arms = {"arm": [f"a{number}" for number in range(N_ARMS)], **{f"x{j}": features[:, j] for j in range(3)}}
    pq.write_table(pa.table(edges), folder / "edges.parquet")
    pq.write_table(pa.table(arms), folder / "arms.parquet")
    (folder / "events").mkdir()
    for number in range(3):
        who, what = rng.integers(N_USERS, size=N_EVENTS // 3), rng.integers(N_ARMS, size=N_EVENTS // 3)
        reward = np.sin(who / 40) * features[what, 0] + 0.3 * rng.normal(size=len(who))
        rows = {"user": [users[each] for each in who], "arm": [f"a{each}" for each in what], "reward": reward}
        pq.write_table(pa.table(rows), folder / "events" / f"{number}.parquet")
    return folder


class World:
    """A log as a fit takes it, and what one machine makes of it."""

    def __init__(self, log: Path) -> None:
        from coterie.logs.plain.reading import read_graph_and_arms

        self.graph, arms = read_graph_and_arms(log / "edges.parquet", log / "arms.parquet", None)
        assert isinstance(arms, ct.ArmPool)
        self.arms = arms
        self.parts, self.reading = event_parts(log / "events"), Reading(500, 1000)
        settings = FitSettings(policy="lk-gp-ucb", laplacian_ridge=0.5, linear=True, noise_var=0.2)
        known = IdRows(self.graph.users), IdRows(self.arms.ids)
        self.columns = combine_parts(self.parts, *known)
        self.options = choose_options(settings, self.graph, self.arms, self.columns)
        self.model: Any = bandit_of(
            self.options, self.graph, self.arms, dict(self.columns)
        ).bandit._learned.policy.model

    def give_rows(self, fit: RayFit) -> None:
        """Gives each part its rows as they are here, for a test of the solve alone."""
        owners = fit._labels[self.columns["users"]]
        rows = [{name: self.columns[name][owners == part] for name in COLUMNS} for part in range(fit.n_parts)]
        fit._shuffled = Shuffled([ray.put(each) for each in rows], 0)

    def check(self, weights: Any) -> None:
        """Asserts that weights are those of one machine, each as far off as both bounds allow."""
        for user in range(0, N_USERS, 7):
            means = self.model.kernel.features @ weights[user]
            bound = 2 * self.model.error_bound(user)
            assert np.all(np.abs(means - self.model.predict(user)[0]) <= bound)


def test_a_fit_over_three_parts_is_that_of_one_machine(cluster: Any, log: Path) -> None:  # noqa: ARG001 - it is connected
    world = World(log)
    fit = RayFit(world.graph, world.arms, 3)
    columns = fit.columns(world.parts, world.reading)
    for name in ("users", "arms", "counts"):
        np.testing.assert_array_equal(columns[name], world.columns[name])
    np.testing.assert_allclose(columns["means"], world.columns["means"], atol=1e-12)
    np.testing.assert_allclose(columns["scatters"], world.columns["scatters"], atol=1e-9)
    world.check(fit.weights(world.options))
    assert fit.traffic is not None
    assert fit.traffic.shuffled > 0
    assert fit.traffic.solved.bytes_sent > 0
    assert fit.traffic.given == fit.n_steps * 8 * N_USERS * world.model.kernel.features.shape[1]


class Losing:
    """Loses somebody after the third step; notes how large the residual is before and after that."""

    def __init__(self, lose: Callable[[RayCrew], None]) -> None:
        self.lose, self.levels = lose, list[float]()

    def on_crew(self, crew: RayCrew) -> None:
        self.crew = crew

    def progress(self, step: int, level: float) -> None:
        self.levels.append(level)
        if step == 3:
            self.lose(self.crew)

    def check(self, fit: RayFit) -> None:
        """Asserts that somebody was lost, and that the solve went on where it was."""
        assert fit.traffic is not None
        assert fit.traffic.solved.restarts >= 1
        assert self.levels[4] == pytest.approx(self.levels[3], rel=1e-6)
        assert self.levels[3] < self.levels[2]


def test_a_part_that_is_killed_in_the_middle_goes_on_where_it_was(cluster: Any, log: Path) -> None:  # noqa: ARG001
    world, losing = World(log), Losing(lambda crew: ray.kill(crew._actors[1]))
    fit = RayFit(world.graph, world.arms, 2)
    world.give_rows(fit)
    world.check(fit.weights(world.options, losing.progress, losing.on_crew))
    losing.check(fit)


def test_so_does_one_whose_node_is_lost(cluster: Any, log: Path) -> None:
    node = cluster.add_node(num_cpus=1, object_store_memory=STORE)

    def lose(_: RayCrew) -> None:
        cluster.remove_node(node, allow_graceful=False)
        cluster.add_node(num_cpus=1, object_store_memory=STORE)

    world, losing = World(log), Losing(lose)
    fit = RayFit(world.graph, world.arms)
    assert fit.n_parts == 4  # one for each CPU, so one of them is on that node
    fit.columns(world.parts, world.reading)
    world.check(fit.weights(world.options, losing.progress, losing.on_crew))
    losing.check(fit)


def test_a_graph_has_no_more_parts_than_there_are_cpus(cluster: Any, log: Path) -> None:  # noqa: ARG001
    world = World(log)
    with pytest.raises(ClusterError, match="50 parts"):
        RayFit(world.graph, world.arms, 50)


def test_parts_that_fit_on_no_node_are_told_before_the_work(
    cluster: Any,  # noqa: ARG001
    log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(budget, "PART_PAIR", 10**12)
    where = ("--graph", str(log / "edges.parquet"), "--arms", str(log / "arms.parquet"))
    given = ("--out", str(tmp_path / "x"), *GIVEN, "--on", "ray", "--parts", "2")
    assert main(["fit", str(log / "events"), *where, *given]) == 2
    said = capsys.readouterr().err
    assert "2 parts of 1500 TB each are asked for; nodes have room for 0 of them" in said
    assert "reading 3,000 events" not in said


def test_the_command_says_what_was_sent_and_writes_the_bandit(
    cluster: Any,  # noqa: ARG001
    log: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    where = ("--graph", str(log / "edges.parquet"), "--arms", str(log / "arms.parquet"))
    out, here = tmp_path / "ray.coterie", tmp_path / "here.coterie"
    assert main(["fit", str(log / "events"), *where, "--out", str(out), *GIVEN, "--on", "ray", "--parts", "2"]) == 0
    printed = capsys.readouterr().out
    assert "B shuffled" in printed
    assert "2 parts" in printed
    assert main(["fit", str(log / "events"), *where, "--out", str(here), *GIVEN]) == 0
    one, other = ct.Bandit.load(out), ct.Bandit.load(here)
    for user in ("u0", "u123"):
        means = [{arm: mean for arm, (mean, _) in each.predict(user).items()} for each in (one, other)]
        assert means[0] == pytest.approx(means[1], abs=0.1)


def test_scores_are_the_same_bytes(cluster: Any, log: Path, tmp_path: Path) -> None:  # noqa: ARG001 - it is connected
    where = ("--graph", str(log / "edges.parquet"), "--arms", str(log / "arms.parquet"))
    bandit, places = tmp_path / "here.coterie", {"processes": tmp_path / "a.parquet", "ray": tmp_path / "b.parquet"}
    assert main(["fit", str(log / "events"), *where, "--out", str(bandit), *GIVEN]) == 0
    for place, out in places.items():
        assert main(["score", str(bandit), "--out", str(out), "--std", "--on", place]) == 0
    assert places["processes"].read_bytes() == places["ray"].read_bytes()


def test_a_row_that_is_wrong_is_named_with_its_file(
    cluster: Any,  # noqa: ARG001
    log: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import pyarrow as pa

    bad = tmp_path / "bad.parquet"
    pq.write_table(pa.table({"user": ["u0", "nobody"], "arm": ["a0", "a1"], "reward": [1.0, 2.0]}), bad)
    where = ("--graph", str(log / "edges.parquet"), "--arms", str(log / "arms.parquet"))
    assert main(["fit", str(bad), *where, "--out", str(tmp_path / "x"), *GIVEN, "--on", "ray", "--parts", "2"]) == 2
    said = capsys.readouterr().err
    assert "bad.parquet, row 2" in said
    assert "nobody" in said
    assert not (tmp_path / "x").exists()


def test_a_policy_that_is_no_solve_is_refused_on_ray(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--graph", str(log / "edges.parquet"), "--arms", str(log / "arms.parquet"))
    given = ("--policy", "auto-ucb", "--on", "ray", "--out", str(tmp_path / "x"))
    assert main(["fit", str(log / "events"), *where, *given]) == 2
    assert "lk-gp-ucb" in capsys.readouterr().err
