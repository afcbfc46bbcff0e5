"""`coterie fit` and `coterie score`: what `Bandit.fit` and `score_all` do, from files and within a memory limit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.__main__ import main
from coterie.product.bulk import budget, collapse, fit_command
from coterie.product.bulk.sources import read_part

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("numba")

N_USERS, N_ARMS, N_EVENTS = 60, 12, 900
GIVEN = ["--laplacian-ridge", "0.5", "--lengthscale", "2", "--noise-var", "0.1"]
OPTIONS: dict[str, Any] = {
    "policy": "lk-gp-ucb",
    "engine": "sparse",
    "laplacian_ridge": 0.5,
    "arm_kernel": ct.SquaredExponential(2.0),
    "noise_var": 0.1,
}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A small log as files, in the folder that commands run in; and its columns."""
    rng = np.random.default_rng(0)
    graph = ct.make_graph("watts-strogatz", N_USERS, k=4, seed=0).weights.tocoo()
    edges = [(f"u{a}", f"u{b}") for a, b in zip(graph.row, graph.col, strict=True) if a < b]
    pq.write_table(
        pa.table({"user": [a for a, _ in edges], "other": [b for _, b in edges]}), tmp_path / "edges.parquet"
    )
    features = rng.normal(size=(N_ARMS, 3)).round(3)
    lines = [f"a{arm},{','.join(map(str, row))}" for arm, row in enumerate(features.tolist())]
    (tmp_path / "arms.csv").write_text("\n".join(["arm,x,y,z", *lines]) + "\n")
    users, arms = rng.integers(N_USERS, size=N_EVENTS), rng.integers(N_ARMS, size=N_EVENTS)
    log = {
        "time": np.arange(N_EVENTS),
        "user": [f"u{user}" for user in users],
        "arm": [f"a{arm}" for arm in arms],
        "reward": features[arms, 0] * np.cos(users / 9) + 0.5 + 0.3 * rng.normal(size=N_EVENTS),
    }
    (tmp_path / "events").mkdir()
    for part in range(3):
        piece = {name: column[part * 300 : part * 300 + 300] for name, column in log.items()}
        pq.write_table(pa.table(piece), tmp_path / "events" / f"{part}.parquet", row_group_size=128)
    monkeypatch.chdir(tmp_path)
    return {"log": log, "edges": edges, "features": features}


def fit(*more: str, events: str = "events", out: str = "bandit.coterie") -> int:
    return main(["fit", events, "--graph", "edges.parquet", "--arms", "arms.csv", "--out", out, *more])


def expected(shop: dict[str, Any], **options: Any) -> ct.Bandit:
    users = dict.fromkeys([*(user for user, _ in shop["edges"]), *(other for _, other in shop["edges"])])
    graph = ct.UserGraph.from_edges(shop["edges"], users=users)
    arms = ct.ArmPool(shop["features"], ids=[f"a{arm}" for arm in range(N_ARMS)], feature_names=["x", "y", "z"])
    bandit = ct.Bandit(graph=graph, arms=arms, **options)
    bandit.fit({name: shop["log"][name] for name in ("user", "arm", "reward")})
    return bandit


def same(one: ct.Bandit, other: ct.Bandit) -> bool:
    assert one.users == other.users
    return all(one.predict(user) == other.predict(user) for user in other.users)


def test_fit_and_score_are_those_of_the_library(shop: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(*GIVEN) == 0
    told = capsys.readouterr()
    assert "read 900 events of 3 files" in told.out
    assert "given: ridge 0.5, noise variance 0.1, arm kernel SquaredExponential(2)" in told.out
    assert "no mean is farther than" in told.out
    assert "wrote bandit.coterie" in told.out
    assert "reading events: 900 rows" in told.err
    assert "solving for all users" in told.err
    bandit, wanted = ct.Bandit.load("bandit.coterie"), expected(shop, **OPTIONS)
    assert same(bandit, wanted)
    assert bandit.n_rewards == N_EVENTS
    for more, asked in (
        ([], {}),
        (["--top", "3", "--std"], {"top": 3, "std": True}),
        (["--by", "ucb", "--top", "99"], {"by": "ucb", "top": 99}),
    ):
        assert main(["score", "bandit.coterie", "--out", "scores.parquet", "--overwrite", *more]) == 0
        found, best = pq.read_table("scores.parquet").to_pydict(), ct.Bandit.load("bandit.coterie").score_all(**asked)
        assert list(found) == list(best)
        assert all(found[name] == list(best[name]) for name in best)
    assert "the best 12 of 12 arms for 60 users, by ucb" in capsys.readouterr().out
    decision = bandit.decide("u3")
    bandit.reward(decision.id, 1.0)
    bandit.add_user("eve", friends=["u3"])
    assert bandit.n_rewards == N_EVENTS + 1
    assert not list(Path().glob("*.partial"))


def test_little_memory_means_more_batches_and_the_same_bandit(
    shop: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    batches: list[int] = []

    def counted(part: Any, rows: int) -> Any:
        for batch in read_part(part, rows):
            batches.append(rows)
            yield batch

    monkeypatch.setattr(collapse, "read_part", counted)
    monkeypatch.setattr(budget, "FEWEST_ROWS", 16)
    monkeypatch.setattr(budget, "FEWEST_WAITING", 10_000)
    assert fit(*GIVEN, "--memory", "4GB", out="large.coterie") == 0
    large, batches[:] = list(batches), []
    least = next(size for size in range(budget.BASE, 2 * budget.BASE, 1000) if fits(size))
    assert fit(*GIVEN, "--memory", str(least), out="small.coterie") == 0
    assert len(large) == 3
    assert len(batches) > 10
    assert same(ct.Bandit.load("small.coterie"), ct.Bandit.load("large.coterie"))
    assert same(ct.Bandit.load("small.coterie"), expected(shop, **OPTIONS))
    capsys.readouterr()
    assert fit(*GIVEN, "--memory", "100MB", out="no.coterie") == 2
    told = capsys.readouterr()
    assert "the fit needs 3" in told.err
    assert "at most 100 MB is allowed. Raise --memory" in told.err
    assert "read " not in told.out
    assert main(["score", "small.coterie", "--out", "s.parquet", "--memory", "1MB"]) == 2
    assert not Path("no.coterie").exists()
    assert not Path("s.parquet").exists()


def fits(limit: int) -> bool:
    sizes = budget.FitSizes(n_users=N_USERS, n_edges=120, n_arms=N_ARMS, n_features=N_ARMS, n_rows=N_EVENTS)
    try:
        budget.fit_reading(sizes, limit)
    except ct.errors.MemoryLimitError:
        return False
    return True


def test_hyperparameters_are_fitted_and_told(shop: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert fit("--linear", "--seed", "4") == 0
    told = capsys.readouterr()
    assert "fitting hyperparameters to a sample" in told.err
    assert "fitted: ridge" in told.out
    bandit = ct.Bandit.load("bandit.coterie")
    options = bandit._learned.options
    assert 0.04 < options["noise_var"] < 0.2  # it is 0.09
    assert same(bandit, expected(shop, policy="lk-gp-ucb", seed=4, **options))
    assert main(["inspect", "bandit.coterie"]) == 0
    assert "900, on average" in capsys.readouterr().out


def test_auto_learns_its_own(shop: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert fit("--policy", "auto-ucb", events="events/*.parquet") == 0
    assert "Learned from 900 rewards" in capsys.readouterr().out
    assert same(ct.Bandit.load("bandit.coterie"), expected(shop, policy="auto-ucb"))
    assert main(["score", "bandit.coterie", "--out", "scores.parquet", "--top", "1"]) == 0
    assert pq.read_table("scores.parquet").num_rows == N_USERS


def test_users_without_edges_come_from_a_table(shop: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    more = {"user": ["dee"], "arm": ["a1"], "reward": [1.0], "time": [1]}
    pq.write_table(pa.table(more), "events/9.parquet")
    assert fit(*GIVEN) == 2
    told = capsys.readouterr().err
    assert "9.parquet, row 1, column 'user': it is 'dee'; users of events are in the graph." in told
    assert "--users" in told
    Path("users.csv").write_text("user\ndee\n")
    assert fit(*GIVEN, "--users", "users.csv") == 0
    assert "dee" in ct.Bandit.load("bandit.coterie").users
    assert len(shop["log"]["user"]) + 1 == ct.Bandit.load("bandit.coterie").n_rewards


def test_an_interrupt_leaves_no_file(
    shop: dict[str, Any],  # noqa: ARG001 - its files
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fit_command, "bandit_of", stop)
        assert fit(*GIVEN) == 130
    assert "coterie: stopped; bandit.coterie was not written" in capsys.readouterr().err
    assert fit(*GIVEN) == 0
    with monkeypatch.context() as patch:
        patch.setattr(ct.Bandit, "score_all", stop)
        assert main(["score", "bandit.coterie", "--out", "scores.parquet"]) == 130
    assert sorted(path.name for path in Path().iterdir()) == ["arms.csv", "bandit.coterie", "edges.parquet", "events"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--memory", "much"], "the memory is 'much'; a size is a number"),
        (["--out", "no/bandit"], "there is no folder 'no'"),
        (["--out", "events"], "it is a folder"),
        (["--out", "arms.csv"], "is there already"),
        (["--graph", "no.csv"], "there is no file 'no.csv'"),
        (["--arms", "no.csv"], "there is no file 'no.csv'"),
        (["--users", "no.csv"], "there is no file 'no.csv'"),
        (["--noise-var", "-1"], "noise_var is -1"),
        (["--policy", "auto-ucb", "--linear"], "linear is given"),
        (["--parts", "2"], "only a fit on Ray cuts the graph"),
        (["--address", "auto"], "only Ray has one"),
    ],
)
def test_mistakes_are_told_before_the_work(
    shop: dict[str, Any],  # noqa: ARG001 - its files
    arguments: list[str],
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert fit(*arguments) == 2
    found = capsys.readouterr()
    assert told in found.err
    assert found.out == ""


def test_mistakes_of_score(shop: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001
    assert main(["score", "no.coterie", "--out", "scores.parquet"]) == 2
    assert "there is no file 'no.coterie'" in capsys.readouterr().err
    assert main(["score", "arms.csv", "--out", "scores.parquet"]) == 2
    assert "not a file that Coterie saved" in capsys.readouterr().err
    assert main(["score", "arms.csv", "--out", "edges.parquet"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["score", "arms.csv", "--out", "scores.csv"]) == 2
    assert "Write scores.parquet" in capsys.readouterr().err
    assert fit(events="nothing/*.parquet") == 2
    assert "the pattern 'nothing/*.parquet' matches no file" in capsys.readouterr().err
