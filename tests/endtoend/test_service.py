"""The service as people run it: a process that is asked over HTTP, killed and started again, and loses nothing."""

import logging
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("litestar", reason="the service comes with the extra 'service'")

import httpx
import pyarrow as pa
import pyarrow.parquet as pq

import coterie as ct
from coterie.__main__ import main
from coterie.service.app import ServiceSettings
from coterie.service.app.routes.table import ROUTES
from coterie.service.client import Client, DecisionRequest, ExperimentSettings, RequestRefusedError
from coterie.service.client.methods import Method, Methods
from coterie.service.records import NewExperiment
from served import Served

GUIDE = Path(__file__).parents[2] / "docs" / "service.md"
ARMS: dict[str, dict[str, float] | list[float] | None] = {"hymn": {"tempo": 0.2}, "punk": {"tempo": 0.9}}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with its demonstration, which several tests ask, each for an experiment of its own."""
    with Served(tmp_path_factory.mktemp("service") / "store", "--demo") as running:
        yield running
        assert running.stop(signal.SIGINT) == 0
        assert not [line for line in running.lines if "ended" in line]


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with served.client() as found:
        yield found


def test_nothing_is_lost_when_it_is_killed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    with Served(store) as first, first.client() as client:
        key = first.key
        _paste(first)
        decided = [client.decide("songs", user, event_id=f"event-{user}") for user in ("ana", "bo", "cy")]
        client.reward("event-ana", 1.0, reward_id="once")
        before = client.experiment("songs")
        first.kill()
    with Served(store, "--new-key") as again, again.client(key) as client:
        assert again.key != key
        after = client.experiment("songs")
        assert (after.n_decisions, after.n_rewards, after.model_version) == (4, 2, before.model_version)
        assert [client.decide("songs", user, event_id=f"event-{user}") for user in ("ana", "bo", "cy")] == decided
        assert client.reward("event-ana", 1.0, reward_id="once").status == "duplicate"
        assert client.reward("event-bo", 0.5).status == "applied"
        with pytest.raises(RequestRefusedError, match="event 'event-bo' was another request") as conflict:
            client.decide("songs", "ana", event_id="event-bo")
        assert conflict.value.status == 409
        assert main(["serve", "--port", "0", "--store", str(store)]) == 2
        assert "is in use by another process; one process at a time has a store." in capsys.readouterr().err
        assert again.stop() == 0
        assert "every event that was answered for is in the store" in again.errors
        assert not client.livez()


def _paste(served: Served) -> None:
    """Makes the requests that the command prints, as curl would."""
    lines = [line.strip() for line in served.lines if line.startswith("    curl")]
    head = {"Authorization": f"Bearer {served.key}", "Content-Type": "application/json"}
    answers = []
    for line in lines:
        found = re.search(r"\$COTERIE_URL(\S+?)(?: -d '(.*)')?; echo$", line)
        assert found is not None
        method = "GET" if found[2] is None else "POST"
        answers.append(httpx.request(method, served.url + found[1], content=found[2], headers=head))
    assert [answer.status_code for answer in answers] == [201, 201, 200, 200]
    assert answers[1].json()["event_id"].startswith("first-of-")
    assert answers[2].json()["status"] == "applied"
    assert answers[3].json()["settings"]["policy"] == "auto-ucb"


def test_the_client_does_what_the_service_can(client: Client, tmp_path: Path) -> None:
    settings = ExperimentSettings(reward_range=(0.0, 1.0), exploration_floor=0.1)
    made = client.create_experiment("all", arms=ARMS, edges=[("ana", "bo")], users=["cy"], settings=settings)
    assert (made.n_users, made.n_edges, made.n_arms) == (3, 1, 2)
    client.add_users("all", ["dee"])
    client.set_edges("all", [("dee", "cy")])
    client.put_arms("all", {"jazz": {"tempo": 0.5}})
    client.retire_arms("all", ["punk"])
    assert client.decide("all", "dee", probabilities=True).probabilities == pytest.approx(
        {"hymn": 0.5, "jazz": 0.5}, abs=0.4
    )
    results = client.decide_many("all", [DecisionRequest(user="ana"), DecisionRequest(user="nobody")])
    assert [result.status for result in results] == [201, 422]
    with client.batching(size=2) as rewards:
        for decision in [client.decide("all", "bo") for _ in range(5)]:
            rewards.reward(decision.event_id, 1.0)
    assert client.experiment("all").n_rewards == 5
    events = list(client.log("all", page=3))
    assert [event["kind"] for event in events].count("rewarded") == 5
    assert client.explain("all", "bo", "hymn")["user"] == "bo"
    assert "helps" in client.graph_report("all")
    (tmp_path / "all.coterie").write_bytes(client.export("all"))
    assert ct.Bandit.load(tmp_path / "all.coterie").n_rewards == 5
    assert client.archive("all").is_archived
    assert "all" in [each.id for each in client.experiments()]


def test_a_service_on_this_computer_is_reached_without_the_proxy_of_the_environment(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with served.client() as client:
        assert client.livez()


def test_keys_are_made_rotated_and_revoked(served: Served, client: Client) -> None:
    made = client.make_key(["read"])
    with served.client(made.key) as reader:
        assert isinstance(reader.experiments(), list)
        with pytest.raises(RequestRefusedError) as denied:
            reader.make_key(["admin"])
        assert denied.value.status == 403
        rotated = client.rotate_key(made.id)
        with pytest.raises(RequestRefusedError) as gone:
            reader.experiments()
        assert gone.value.status == 401
    client.revoke_key(rotated.id)
    good = client.keys()
    assert {made.id, rotated.id}.isdisjoint(key.id for key in good)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_are_loaded(
    served: Served, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COTERIE_KEY", served.key)
    tables: dict[str, dict[str, list[str] | list[float]]] = {
        "edges": {"user": ["ana", "bo"], "friend": ["bo", "cy"], "weight": [1.0, 0.5]},
        "users": {"user": ["dee"]},
        "arms": {"song": ["hymn", "punk"], "tempo": [0.2, 0.9]},
    }
    given = ["serve", "load", f"from-{kind}", "--url", served.url]
    for name, columns in tables.items():
        path = tmp_path / f"{name}.{kind}"
        if kind == "csv":
            rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
            path.write_text("\n".join(rows) + "\n")
        else:
            pq.write_table(pa.table(columns), path)
        given += [f"--{name}", str(path)]
    assert main(given) == 2
    assert f"there is no experiment 'from-{kind}'" in capsys.readouterr().err
    for _ in range(2):  # to load them again changes nothing
        assert main([*given, "--create"]) == 0
        said = capsys.readouterr().out
        assert f"experiment 'from-{kind}' has 4 users, 2 edges and 2 arms" in said
    with served.client() as client:
        assert client.decide(f"from-{kind}", "dee").arm in ("hymn", "punk")


def test_the_examples_of_the_guide_run(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COTERIE_URL", served.url)
    monkeypatch.setenv("COTERIE_KEY", served.key)
    examples = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for example in examples:
        exec(compile(example, str(GUIDE), "exec"), {"__name__": "example"})
    said = capsys.readouterr().out
    assert len(examples) == 3
    assert "4 rewards in the log" in said
    assert "'tea' for 'cy'" in said


def test_the_guide_has_every_setting_every_route_and_every_method() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for name in ServiceSettings.__struct_fields__ + NewExperiment.__struct_fields__ + DecisionRequest.__struct_fields__:
        assert f"`{name}`" in text, name
    for name, each in vars(Methods).items():
        assert f"`{name}`" in text or not isinstance(each, Method), name
    for route in ROUTES:
        assert route.path.replace("/v1/experiments/{experiment}", "").replace("/personalizer/v1.0/", "") in text, route


def test_a_port_that_is_taken_is_refused(served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port, handlers = served.url.rpartition(":")[2], list(logging.getLogger().handlers)
    assert main(["serve", "--port", port, "--store", str(tmp_path / "other")]) == 2
    assert logging.getLogger().handlers == handlers
    assert f"127.0.0.1:{port} cannot be listened on: Address already in use; " in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_settings_that_are_none_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "settings.toml"
    for text, why in (("prot = 8711", "unknown field `prot`"), ("port = 'x'", "at `$.port`"), ("port 1", "cannot be")):
        file.write_text(text)
        assert main(["serve", "--config", str(file)]) == 2
        assert why in capsys.readouterr().err


def test_the_demonstration_decides_and_learns(served: Served, client: Client) -> None:
    assert re.search(r"1 decision; mean reward -?\d.* events durable", served.wait_for("demo: "))
    end = time.monotonic() + 20
    while (view := client.experiment("demo")).n_rewards < 3 and time.monotonic() < end:
        time.sleep(0.05)
    assert view.n_rewards >= 3
    assert view.n_users == 40
    assert client.decide("demo", "user-1").arm.startswith("arm-")
