"""`coterie fit --on ray` on a real Ray: the posterior of one machine, within its error, whoever is lost meanwhile."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.__main__ import main
from coterie.errors import ClusterError
from coterie.product.bulk.budget import Reading
from coterie.product.bulk.collapse import combine_parts
from coterie.product.bulk.fitting import FitSettings, bandit_of, choose_options
from coterie.product.bulk.sources import IdRows, event_parts
from coterie.product.cluster.crew import RayCrew
from coterie.product.cluster.ray_fit import RayFit

ray = pytest.importorskip("ray", reason="Ray comes with the extra 'ray'")
pytest.importorskip("numba", reason="engine 'sparse' needs the extra 'scale'")
pq = pytest.importorskip("pyarrow.parquet", reason="events are in Parquet, in the extra 'data'")
pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]

N_USERS, N_ARMS, N_EVENTS = 400, 12, 3_000
GIVEN = ("--laplacian-ridge", "0.5", "--linear", "--noise-var", "0.2")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Gives a head of two CPUs and a node of one, and connects to the head."""
    from ray.cluster_utils import Cluster

    soon = {"health_check_period_ms": 500, "health_check_failure_threshold": 4}  # a node is known to be lost
    store = 100 * 2**20
    head = {"num_cpus": 2, "object_store_memory": store, "include_dashboard": False, "_system_config": soon}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        made.add_node(num_cpus=1, object_store_memory=store)
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


def test_a_part_that_is_killed_in_the_middle_costs_its_last_step(cluster: Any, log: Path) -> None:  # noqa: ARG001
    world, crews = World(log), list[RayCrew]()
    fit = RayFit(world.graph, world.arms, 2)
    fit.columns(world.parts, world.reading)

    def kill(step: int, level: float) -> None:  # noqa: ARG001
        if step == 3 and not crews[0].losses:
            ray.kill(crews[0]._actors[1])

    world.check(fit.weights(world.options, kill, crews.append))
    assert fit.traffic is not None
    assert fit.traffic.solved.restarts == 1


def test_a_node_that_is_lost_in_the_middle_costs_little(cluster: Any, log: Path) -> None:
    world, crews = World(log), list[RayCrew]()
    fit = RayFit(world.graph, world.arms, 2)
    fit.columns(world.parts, world.reading)
    node = cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)

    def lose(step: int, level: float) -> None:  # noqa: ARG001
        if step == 3 and node in cluster.list_all_nodes():
            cluster.remove_node(node)
            for actor in crews[0]._actors[:1]:  # whether or not a part was on it
                ray.kill(actor)

    world.check(fit.weights(world.options, lose, crews.append))


def test_a_graph_has_no_more_parts_than_there_are_cpus(cluster: Any, log: Path) -> None:  # noqa: ARG001
    world = World(log)
    with pytest.raises(ClusterError, match="50 parts"):
        RayFit(world.graph, world.arms, 50)


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
    assert "MB shuffled" in printed
    assert "2 parts" in printed
    assert main(["fit", str(log / "events"), *where, "--out", str(here), *GIVEN]) == 0
    one, other = ct.Bandit.load(out), ct.Bandit.load(here)
    for user in ("u0", "u123"):
        means = [{arm: mean for arm, (mean, _) in each.predict(user).items()} for each in (one, other)]
        assert means[0] == pytest.approx(means[1], abs=0.1)


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
