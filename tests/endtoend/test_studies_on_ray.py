"""Studies on Ray: the same bytes as in processes, whatever is lost on the way; only the driver writes."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from coterie.__main__ import main
from coterie.errors import ClusterError, LearnerError
from coterie.logs import write_log
from coterie.product.cluster import connection
from coterie.runs.cluster import tasks
from coterie.runs.cluster.tasks import RayCluster
from coterie.runs.runner import Processes, run_study
from coterie.runs.store import Store, Unit
from coterie.runs.studies import run_study as run_study_by_name
from coterie.runs.study import Study, study_from
from recorded import small_log
from terminal import coterie

ray = pytest.importorskip("ray", reason="Ray comes with the extra 'ray'")
pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]

STORE = 100 * 2**20
WORLD = {"name": "small", "n_users": 6, "n_arms": 5, "n_candidates": 3, "dimension": 3, "horizon": 30}
FILE = """\
trials = 8
[[worlds]]
name = "small"
n_users = 8
n_arms = 8
n_candidates = 4
dimension = 3
horizon = 1500
[[policies]]
policy = "lk-gp-ucb"
[[policies]]
policy = "lk-gp-ts"
"""
DIES_ONCE = """\
import os
from pathlib import Path
from types import SimpleNamespace
from beside import first

class DiesOnce:
    def __init__(self, *, graph, arms, seed, folder=""):
        self.mark = Path(folder) / str(seed)

    def select(self, user, candidates):
        if not self.mark.exists():
            self.mark.write_text(str(os.getpid()))
            os._exit(1)
        return SimpleNamespace(arm=first(candidates))

    def update(self, user, arm, reward): pass
"""
STAYS = """\
import time
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

class Stays:  # on the node that is to be lost; those on others wait until it is there
    def __init__(self, *, graph, arms, seed, folder="", node=""):
        import ray
        (Path(folder) / "begun" / uuid4().hex).touch()
        there = Path(folder) / "there"
        if ray.is_initialized() and ray.get_runtime_context().get_node_id() == node:
            there.touch()
            time.sleep(600)
        deadline = time.monotonic() + 120
        while not there.exists() and time.monotonic() < deadline:
            time.sleep(0.01)

    def select(self, user, candidates):
        return SimpleNamespace(arm=candidates[0])

    def update(self, user, arm, reward): pass
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Gives two nodes of one CPU each, and connects to the first."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": STORE}
    soon = {"health_check_period_ms": 500, "health_check_failure_threshold": 4}  # a node is known to be lost
    head = {**node, "include_dashboard": False, "_system_config": soon}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        made.add_node(**node)
        ray.init(address=made.address, logging_level="ERROR", log_to_driver=False)
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def study(**changes: Any) -> Study:
    given = {
        "trials": 2,
        "learners": {"lambda_base": 0.05},
        "worlds": [WORLD],
        "tuning": {"trials": 1, "horizon": 10, "width": [0.5, 2.0], "lambda_base": [0.01]},
        "policies": [{"policy": name} for name in ("lk-gp-ucb", "auto-ts", "random")],
        **changes,
    }
    return study_from(given)


def contents(folder: Path) -> dict[str, bytes]:
    """Returns all files but timings and what is made of them."""
    files = [path for path in folder.rglob("*") if path.is_file() and not {"timings", "estimates"} & {*path.parts}]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.mark.usefixtures("cluster")
def test_the_same_bytes_as_in_processes_and_only_the_driver_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_study(study(), tmp_path / "processes", place=Processes(1))
    written, real = list[Path](), Store._writing

    @contextmanager
    def noted(store: Store, path: Path) -> Iterator[BinaryIO]:
        written.append(path)
        with real(store, path) as file:
            yield file

    monkeypatch.setattr(Store, "_writing", noted)
    told: list[tuple[Unit, int, float, float]] = []
    run_study(study(), tmp_path / "ray", place=RayCluster(), on_unit=lambda *args: told.append(args))
    assert contents(tmp_path / "ray") == contents(tmp_path / "processes")
    there = {path for path in (tmp_path / "ray").rglob("*") if path.is_file() and path.name != ".lock"}
    assert set(written) == there
    assert [left for _, left, _, _ in told] == list(range(len(told)))[::-1]
    assert told[-1][2] == pytest.approx(told[-1][3])


@pytest.mark.usefixtures("cluster")
def test_a_log_is_sent_and_never_read_on_a_node(tmp_path: Path) -> None:
    write_log(small_log(n_arms=16, liked=6), tmp_path / "log")
    world = {"folder": str(tmp_path / "log"), "data": "plain", "n_candidates": 4, "least_positives": 5, "horizon": 40}
    worlds = [{**world, "name": name, "negatives": name} for name in ("uniform", "popularity")]
    policies = [{"policy": name} for name in ("gob-lin", "auto-ucb", "popularity")]
    given = study_from({"trials": 1, "worlds": worlds, "policies": policies})
    run_study(given, tmp_path / "processes")
    (tmp_path / "log").rename(tmp_path / "gone")  # this process has read it
    plans: list[list[Unit]] = []
    run_study(given, tmp_path / "ray", place=RayCluster(), on_plan=plans.append)
    assert contents(tmp_path / "ray") == contents(tmp_path / "processes")
    assert all(unit.cost > 0 for unit in plans[0])
    assert len(list((tmp_path / "ray" / "estimates").rglob("*.json"))) == 3


@pytest.mark.usefixtures("cluster")
def test_a_worker_that_dies_costs_its_unit_which_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "marks").mkdir()
    (tmp_path / "dies_once.py").write_text(DIES_ONCE)
    (tmp_path / "beside.py").write_text("def first(candidates): return candidates[0]\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    dying = {"policy": "dies_once:DiesOnce", "folder": str(tmp_path / "marks")}
    given = study_from({"trials": 2, "worlds": [WORLD], "policies": [{"policy": "random"}, dying]})
    run_study(given, tmp_path / "ray", place=RayCluster())
    assert len(list((tmp_path / "marks").iterdir())) == 2
    run_study(given, tmp_path / "processes")
    assert contents(tmp_path / "ray") == contents(tmp_path / "processes")


@pytest.mark.usefixtures("cluster")
def test_a_method_that_fails_is_named_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "class Mine:\n    def __init__(self, *, graph, arms, seed): pass\n    def select(self, *_): return 1 / 0\n"
    (tmp_path / "fails_there.py").write_text(f"{code}    def update(self, *_): pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    given = study_from({"trials": 1, "worlds": [WORLD], "policies": [{"policy": "fails_there:Mine"}]})
    with pytest.raises(LearnerError, match=r"ZeroDivisionError.*\(fails_there.py, line 3\), in trial 0 of 'small'"):
        run_study(given, tmp_path / "out", place=RayCluster())


@pytest.mark.usefixtures("cluster")
def test_other_versions_on_a_node_are_told_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {tuple(each.items()) for each in connection.versions_of_nodes().values()} == {
        tuple(connection.versions_here().items())
    }
    other = {**connection.versions_here(), "scipy": "1.0"}
    monkeypatch.setattr(connection, "versions_of_nodes", lambda: {"10.0.0.7": other})
    assert main(["run", "demo", "--quick", "--on", "ray", "--out", str(tmp_path / "out")]) == 2
    assert "node 10.0.0.7 has scipy 1.0, and this machine" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_first_task_runs_on_a_node_that_has_no_coterie_at_all() -> None:
    from ray import cloudpickle

    sent = cloudpickle.dumps(connection._look()).hex()
    code = (
        f"sys.modules['coterie'] = None; print(pickle.loads(bytes.fromhex('{sent}'))(['numpy', 'no-such'])['no-such'])"
    )
    run = [sys.executable, "-c", f"import pickle, sys; {code}"]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "none\n"


@pytest.mark.usefixtures("cluster")
def test_a_node_that_comes_later_with_other_versions_does_no_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "versions_here", lambda: {"numpy": "0.1"})
    with pytest.raises(ClusterError, match=r"has numpy .*, and this machine 0\.1"):
        run_study(study(), tmp_path / "out", place=RayCluster())
    assert not (tmp_path / "out" / "trials").exists()


@pytest.mark.usefixtures("cluster")
def test_units_that_fit_on_no_node_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "UNIT_MEMORY", 2**50)
    with pytest.raises(ClusterError, match=r"no node of the cluster has a CPU and 1\.04858e\+06 GiB"):
        run_study(study(), tmp_path / "out", place=RayCluster())


def test_a_cluster_that_runs_is_joined_from_the_shell(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(FILE.replace("1500", "20").replace("8\n[[", "2\n[["), encoding="utf-8")
    given = ("run", "study.toml", "--on", "ray", "--address", cluster.address, "--out")
    done = coterie(*given, "ray", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" done, ") == 4
    assert done.stderr == ""
    run_study_by_name(tmp_path / "study.toml", out=tmp_path / "processes")
    for part in ("trials", "manifest.json"):
        assert contents(tmp_path / "ray" / part) == contents(tmp_path / "processes" / part)
    assert ray.nodes()[0]["Alive"]


@pytest.mark.usefixtures("cluster")
def test_when_no_node_is_left_the_study_ends_and_units_under_way_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import time\nclass Mine:\n    def __init__(self, *, graph, arms, seed): pass\n"
    (tmp_path / "sleeps.py").write_text(
        f"{code}    def select(self, *_): time.sleep(600)\n    def update(self, *_): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    given = study_from({"trials": 4, "worlds": [WORLD], "policies": [{"policy": "sleeps:Mine"}]})
    with monkeypatch.context() as lost:
        lost.setattr(tasks, "LOOK_EVERY", 0.1)
        lost.setattr(tasks, "NO_ROOM_FOR", 0.2)
        lost.setattr(tasks.Tasks, "_has_room", lambda tasks: not tasks._at_work)
        with pytest.raises(ClusterError, match="nodes were lost, and none is left"):
            run_study(given, tmp_path / "out", place=RayCluster())
    run_study(study(), tmp_path / "next", place=RayCluster())  # there is room again


def test_a_node_that_is_lost_costs_its_units_which_are_done_again(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "begun").mkdir()
    (tmp_path / "stays.py").write_text(STAYS)
    monkeypatch.syspath_prepend(str(tmp_path))
    leaving = cluster.add_node(num_cpus=1, object_store_memory=STORE)
    staying = {"policy": "stays:Stays", "folder": str(tmp_path), "node": leaving.node_id}
    given = study_from({"trials": 8, "worlds": [WORLD], "policies": [staying]})
    done: list[Unit] = []

    def lose(unit: Unit, *_: object) -> None:
        done.append(unit)
        if len(done) == 1:
            cluster.remove_node(leaving, allow_graceful=False)

    run_study(given, tmp_path / "ray", place=RayCluster(), on_unit=lose)
    assert len(done) == len(set(done)) == 8
    assert len(list((tmp_path / "begun").iterdir())) == 9  # the one under way there was begun twice
    run_study(given, tmp_path / "processes", place=Processes(2))
    assert contents(tmp_path / "ray") == contents(tmp_path / "processes")


def test_no_cluster_is_told_in_seconds(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = f"127.0.0.1:{taken.getsockname()[1]}"
    start = time.monotonic()
    done = coterie("run", "demo", "--on", "ray", "--address", free, "--out", "out", folder=tmp_path)
    assert done.returncode == 2
    assert f"no Ray cluster at '{free}': nobody listens there" in done.stderr
    assert "Traceback" not in done.stderr
    assert time.monotonic() - start < 30
    assert not (tmp_path / "out").exists()


def test_one_that_is_stopped_goes_on_without_ray(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(FILE, encoding="utf-8")
    command = [sys.executable, "-m", "coterie", "run", "study.toml", "--out", "out", "--on", "ray", "--jobs", "1"]
    running = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("out/trials/small/*/*.parquet"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, error = running.communicate(timeout=60)
    kept = contents(tmp_path / "out")
    assert running.returncode == 130
    assert error == "coterie: stopped; what was finished is stored, and --resume goes on with it\n"
    assert not list(tmp_path.rglob("*.partial"))
    again: list[str] = []
    run_study_by_name(
        tmp_path / "study.toml", out=tmp_path / "out", resume=True, progress=lambda unit, _: again.append(unit)
    )
    whole = contents(tmp_path / "out")
    assert {place: whole[place] for place in kept} == kept
    assert len(again) == 16 - sum(place.endswith(".parquet") for place in kept)
