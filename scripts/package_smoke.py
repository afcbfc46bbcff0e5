"""Uses what was installed: python scripts/package_smoke.py EXTRA."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import coterie as ct
from coterie.__main__ import main

USERS, ARMS = ["ana", "bo", "cy"], {"tea": [0.0, 1.0], "coffee": [1.0, 0.5], "milk": [0.5, 0.0]}
GRAPH = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy")])


def plain() -> None:
    """The core alone: a bandit that decides, learns, is saved and loaded."""
    bandit = ct.Bandit(graph=GRAPH, arms=ARMS, seed=0, wait_for_fits=True)
    for user in USERS * 5:
        bandit.reward(bandit.decide(user).id, 1.0 if user == "ana" else 0.0)
    bandit.save("bandit.coterie")
    assert ct.Bandit.load("bandit.coterie").predict("ana") == bandit.predict("ana")
    assert main(["studies"]) == 0
    assert main(["serve"]) == 2  # which says what to install


def lab() -> None:
    """Studies and reports."""
    assert main(["demo", "--quick", "--out", "demo"]) == 0
    assert Path("demo/report.html").exists()


def data() -> None:
    """Tables of rewards."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"user": USERS, "arm": list(ARMS), "reward": [1.0, 0.0, 0.5]}), "rewards.parquet")
    assert ct.Bandit(graph=GRAPH, arms=ARMS, seed=0).fit("rewards.parquet") == 3


def ray() -> None:
    """A study on Ray, as a node does its units: without the extra `lab`."""
    world = {"n_users": 4, "n_arms": 4, "n_candidates": 2, "dimension": 2, "horizon": 10}
    study = {"trials": 1, "worlds": [world], "policies": [{"policy": "lk-gp-ucb"}]}
    assert ct.run_study(study, out="on-ray", on="ray").table().num_rows == 10


def scale() -> None:
    """Engine `sparse`."""
    bandit = ct.Bandit(graph=GRAPH, arms=ARMS, policy="lk-gp-ucb", engine="sparse")
    bandit.reward(bandit.decide("ana").id, 1.0)
    assert bandit.n_rewards == 1


def service() -> None:
    """The service as a process: it makes one decision and learns one reward."""
    from coterie.service.client import Client

    command = [sys.executable, "-m", "coterie", "serve", "--port", "0", "--store", "store"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = (re.search(r"COTERIE_URL=(\S+) COTERIE_KEY=(\S+)", line) for line in process.stdout)
        found = next(each for each in told if each is not None)
        with Client(found[1], found[2]) as client:
            client.create_experiment("drinks", arms=ARMS, edges=[("ana", "bo"), ("bo", "cy")])
            decision = client.decide("drinks", "ana")
            assert client.reward(decision.event_id, 1.0).status == "applied"
        process.terminate()
        assert process.wait(60) == 0


def sklearn() -> None:
    """The regressor."""
    model = ct.LaplacianKernelRegressor(graph=GRAPH)
    model.fit([["ana", 0.0], ["bo", 1.0]], [1.0, 0.0])
    assert len(model.predict([["cy", 0.5]])) == 1


EXTRAS: dict[str, Callable[[], None]] = {
    "none": plain,
    "lab": lab,
    "data": data,
    "ray": ray,
    "scale": scale,
    "service": service,
    "sklearn": sklearn,
}

if __name__ == "__main__":
    EXTRAS[sys.argv[1]]()
    print(f"{sys.argv[1]}: ok, from {Path(ct.__file__).parent.name}")
