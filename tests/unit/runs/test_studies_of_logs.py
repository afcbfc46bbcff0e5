"""Studies on logs: what a file may say, each policy stored by itself, nothing run twice, and what the report says."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.__main__ import main
from coterie.errors import MemoryLimitError, SettingError
from coterie.graphs import make_graph
from coterie.kernels import ArmPool
from coterie.logs import write_log
from coterie.logs.log import Events, Log, Ragged
from coterie.runs import runner
from coterie.runs.learners import make_suited
from coterie.runs.results import results_of
from coterie.runs.runner import ends_early, missing_units, run_study
from coterie.runs.store import Store, Unit, file_name
from coterie.runs.studies import find_study, studies_folder
from coterie.runs.study import Study, read_study, study_from
from coterie.runs.trial import Trial
from coterie.runs.worlds import LogSettings, LogWorld, log_settings
from recorded import small_log

POLICIES = [
    {"policy": "gob-lin"},
    {"policy": "gob-lin", "label": "gob-lin, no graph", "graph": "none"},
    {"policy": "gob-lin", "label": "gob-lin, rewired", "graph": "rewired"},
    {"policy": "popularity"},
    {"policy": "random"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_log(small_log(n_arms=16, liked=6), tmp_path / "log")
    return tmp_path / "log"


def study_on(folder: Path, **changes: Any) -> Study:
    world = {
        "data": "plain",
        "folder": str(folder),
        "n_candidates": 4,
        "least_positives": 5,
        "horizon": 40,
        "online_features": [],
    }
    worlds = [{**world, "name": name, "negatives": name} for name in ("uniform", "popularity")]
    return study_from({"trials": 2, "worlds": worlds, "policies": POLICIES, **changes})


def test_a_world_may_be_a_log_and_is_written_out_with_its_defaults() -> None:
    study = study_from({"worlds": [{"data": "lastfm", "folder": "x"}], "policies": POLICIES})
    assert study.of_logs
    written = study.as_dict()["worlds"][0]
    assert (written["protocol"], written["n_candidates"], written["online_features"]) == (
        "one-positive",
        25,
        ["popularity"],
    )
    assert study_from(study.as_dict()) == study


@pytest.mark.parametrize(
    ("world", "message"),
    [
        ({"data": "last.fm"}, "data is 'last.fm'; it is one of .* Did you mean 'lastfm'"),
        ({"data": "lastfm", "candidates": 5}, "'candidates' is no setting of a log"),
        ({"data": "lastfm", "online_features": ["likes"]}, r"online_features is \['likes'\]"),
        ({"data": "lastfm", "negatives": "popular"}, "negatives is 'popular'"),
        ({"data": "lastfm", "folder": 3}, "folder is 3; it is a text"),
    ],
)
def test_a_wrong_setting_of_a_log_is_named(world: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        study_from({"worlds": [world], "policies": POLICIES})


def test_logs_and_drawn_worlds_do_not_mix_and_logs_are_not_tuned_on() -> None:
    log = {"data": "lastfm", "name": "log"}
    with pytest.raises(SettingError, match="either all are or none"):
        study_from({"worlds": [log, {"name": "drawn"}], "policies": POLICIES})
    with pytest.raises(SettingError, match="may not choose settings"):
        study_from({"worlds": [log], "policies": POLICIES, "tuning": {}})


@pytest.mark.parametrize("name", ["lastfm", "deezer", "filmtrust"])
def test_the_studies_that_come_with_coterie_say_what_the_issue_asks_for(name: str) -> None:
    study = read_study(studies_folder() / f"{name}.toml")
    assert {each.settings.negatives for each in study.worlds if isinstance(each.settings, LogSettings)} == {
        "uniform",
        "popularity",
    }
    assert {each.graph for each in study.policies if each.policy == "auto-ucb"} == {
        "shown",
        "permuted",
        "rewired",
        "none",
    }
    assert study.trials == 5
    quick = study.changed(quick=True)
    assert (quick.trials, {each.settings.horizon for each in quick.worlds}) == (1, {5000})
    assert {*quick.left_out, *(each.label for each in quick.policies)} == {each.label for each in study.policies}
    assert study_from(quick.as_dict()) == quick


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


def test_each_policy_is_stored_when_it_is_done_and_none_runs_twice(tmp_path: Path, folder: Path) -> None:
    study, told = study_on(folder), list[Unit]()
    plans: list[list[Unit]] = []
    run_study(study, tmp_path / "out", on_unit=lambda unit, *_: told.append(unit), on_plan=plans.append)
    timings = [unit for unit in told if unit.kind == "timing"]
    assert [unit.policy for unit in timings] == [
        each["label"] if "label" in each else each["policy"] for each in POLICIES
    ]
    assert len(told) - len(timings) == 2 * 2 * 5 == len(plans[0])
    assert all(unit.cost > 0 for unit in plans[0])
    before = contents(tmp_path / "out")
    assert len(before) == 20
    gone = tmp_path / "out" / "trials" / "uniform" / "trial-001" / "popularity.parquet"
    gone.unlink()
    again: list[Unit] = []
    run_study(study, tmp_path / "out", resume=True, on_unit=lambda unit, *_: again.append(unit))
    assert [(unit.world, unit.number, unit.policy) for unit in again] == [("uniform", 1, "popularity")]
    assert contents(tmp_path / "out") == before
    assert missing_units(study, Store(tmp_path / "out")) == ([], [])


def test_every_policy_meets_the_same_rounds_and_timing_tells_memory(tmp_path: Path, folder: Path) -> None:
    store = run_study(study_on(folder), tmp_path / "out")
    results = results_of(store)
    assert results.worlds == ["uniform", "popularity"]
    world = results.logs["uniform"]
    assert list(world.rewards) == ["gob-lin", "gob-lin, no graph", "gob-lin, rewired", "popularity", "random"]
    assert all(rows.shape == (40,) for trials in world.rewards.values() for rows in trials.values())
    assert set(world.degrees[0].tolist()) == {2}  # a ring
    assert world.memory["gob-lin"] > 10 * 2**20
    assert world.facts["n_served"] == 12
    table = store.rows(Unit("uniform", 0, "random"), ["user"])
    trial = Trial(study_on(folder).worlds[0], seed=0, number=0)
    assert table["user"].to_pylist() == [str(user) for user in trial.users]


def test_what_cannot_run_is_told_and_the_rest_goes_on(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = runner.first_rounds

    def refuse(trial: Trial, policy: Any) -> Any:
        if policy.label == "gob-lin":
            raise MemoryLimitError("too many users", "there is room for fewer", "Take fewer")
        return real(trial, policy)

    monkeypatch.setattr(runner, "first_rounds", refuse)
    store = run_study(study_on(folder), tmp_path / "out")
    world = results_of(store).logs["uniform"]
    assert set(world.failed) == {"gob-lin"}
    assert "too many users" in world.failed["gob-lin"]
    assert set(world.rewards) == {"gob-lin, no graph", "gob-lin, rewired", "popularity", "random"}
    assert missing_units(study_on(folder), store) == ([], [])


def test_a_method_of_ones_own_that_fails_is_stored_with_its_place(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "class Mine:\n    def __init__(self, *, graph, arms, seed): pass\n    def select(self, *_): return 1 / 0\n"
    (tmp_path / "failing.py").write_text(f"{code}    def update(self, *_): pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    study = study_on(folder, policies=[{"policy": "random"}, {"policy": "failing:Mine"}])
    world = results_of(run_study(study, tmp_path / "out")).logs["uniform"]
    assert (
        "'failing:Mine' failed with ZeroDivisionError: division by zero (failing.py, line 3)"
        in world.failed["failing:Mine"]
    )
    assert set(world.rewards) == {"random"}


@pytest.mark.parametrize("policy", ["per-user-linucb", "per-user-gp-ucb", "pooled-linucb", "gp-ucb"])
def test_on_sparse_users_alone_and_users_as_one_choose_as_they_always_did(policy: str) -> None:
    graph, rng = make_graph("ring", 6), np.random.default_rng(0)
    arms = ArmPool(rng.standard_normal((12, 3)))
    options: dict[str, Any] = {"graph": graph, "arms": arms, "noise_var": 0.5, "width": 0.7, "seed": 0}
    ours, usual = make_suited(policy, engine="sparse", **options), make_suited(policy, engine="auto", **options)
    same = 0
    for _ in range(60):
        user, shown = int(rng.integers(6)), rng.permutation(12)[:4].tolist()
        choice = usual.select(user, shown)
        found = ours.select(user, shown)
        same += choice.arm == found.arm
        assert choice.arm != found.arm or found.mean == pytest.approx(choice.mean, abs=0.01)
        reward = float(rng.random() < 0.5)
        for each in (ours, usual):
            each.update(user, choice.arm, reward)
    assert same >= 54  # at first all arms of a smooth kernel are equals, and rounding decides


def test_only_users_in_groups_are_made_otherwise() -> None:
    graph, arms = make_graph("ring", 3), ArmPool(np.eye(2))
    assert "'groups'" in make_suited("club", graph=graph, arms=arms, engine="sparse").describe()
    assert "'sparse'" in make_suited("gob-lin", graph=graph, arms=arms, engine="sparse").describe()
    assert "'groups'" not in make_suited("per-user-linucb", graph=graph, arms=arms, engine="auto").describe()


def test_processes_end_after_a_few_units_where_policies_leave_a_fit_behind(folder: Path) -> None:
    assert not ends_early(study_on(folder))
    assert ends_early(study_on(folder, policies=[*POLICIES, {"policy": "auto-ucb"}]))


def test_files_of_labels_never_meet() -> None:
    assert file_name("a b") != file_name("a-b")
    assert file_name("../x").count("/") == 0


def with_candidates(log: Log) -> Log:
    """Returns the log with three other candidates in each row."""
    rng, arms = np.random.default_rng(0), np.arange(len(log.arm_ids))
    shown = [[int(arm), *rng.permutation(np.delete(arms, arm))[:3].tolist()] for arm in log.events.arm]
    columns: dict[str, Any] = {name: getattr(log.events, name) for name in ("user", "arm", "reward")}
    return replace(log, events=Events(**columns, candidates=Ragged.of(shown)))


def test_a_replay_has_as_many_rounds_as_its_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = small_log(n_arms=16, liked=6)
    write_log(with_candidates(log), tmp_path / "log")
    world = f'[[worlds]]\nprotocol = "replay"\ndata = "plain"\nfolder = "{tmp_path / "log"}"\n'
    (tmp_path / "mine.toml").write_text(f'trials = 2\n{world}[[policies]]\npolicy = "random"\n')
    assert main(["run", str(tmp_path / "mine.toml"), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 0
    assert f"rounds {2 * len(log.events)} in all" in " ".join(capsys.readouterr().out.split())
    short = LogSettings(protocol="replay", folder=str(tmp_path / "log"), horizon=7)
    assert LogWorld(settings=short).n_rounds == 7


def test_a_replay_says_how_many_rows_were_used(tmp_path: Path) -> None:
    log = small_log(n_arms=16, liked=6)
    write_log(with_candidates(log), tmp_path / "log")
    study = find_study(str(tmp_path / "log"))
    assert [each.name for each in study.worlds] == ["replay"]  # nobody has ten positives
    assert "left out, for no user with 10 positives" in study.title
    assert all(each.options.get("engine") in ("auto", None) for each in study.policies)
    few = replace(study, policies=tuple(each for each in study.policies if each.policy in ("popularity", "random")))
    few = replace(few, reference="popularity", trials=1)
    results = results_of(run_study(few, tmp_path / "out"))
    rewards = results.logs["replay"].rewards["random"][0]
    assert len(rewards) == len(log.events)
    assert 0 < np.count_nonzero(~np.isnan(rewards)) < 0.5 * len(rewards)


def test_a_folder_makes_the_study_of_lastfm_with_both_negatives(tmp_path: Path) -> None:
    write_log(small_log(), tmp_path / "my log")
    study = find_study(str(tmp_path / "my log"))
    assert study.name == "my-log"
    assert [each.name for each in study.worlds] == ["uniform", "popularity"]
    settings = study.worlds[0].settings
    assert isinstance(settings, LogSettings)
    assert (settings.n_candidates, settings.folder) == (20, str(tmp_path / "my log"))
    assert {each.options["engine"] for each in study.policies if each.policy == "auto-ucb"} == {"sparse"}
    by_hand = [each.label for each in study.policies if each.options.get("noise_var") == 0.1]
    assert "lk-gp-ucb, as on Last.fm" in by_hand
    assert all(label.endswith(", as on Last.fm") for label in by_hand)


def test_a_log_that_cannot_be_played_says_what_is_missing(tmp_path: Path) -> None:
    write_log(small_log(liked=4), tmp_path / "log")
    with pytest.raises(SettingError, match="has no candidates, and no user with 10 positives"):
        find_study(str(tmp_path / "log"))


def test_a_small_log_with_candidates_is_replayed_and_one_without_names_the_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = small_log(n_arms=22, liked=11)  # of 22 arms everybody had 16, and 11 candidates are shown
    write_log(with_candidates(small), tmp_path / "logged")
    study = find_study(str(tmp_path / "logged"))
    assert [each.name for each in study.worlds] == ["replay"]
    assert study.title == (
        "logged: would the graph have helped? (left out, for no user with 10 positives (least_positives) has 10 other "
        "arms never had (n_candidates - 1): uniform, popularity)"
    )
    study.check()
    write_log(small, tmp_path / "log")
    assert main(["run", str(tmp_path / "log"), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "write a study file with a smaller least_positives or n_candidates (docs/studies.md)" in said


def test_the_command_line_says_where_data_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "lastfm", "--out", str(tmp_path / "a")]) == 2
    assert "coterie run NAME --data DIR" in capsys.readouterr().err
    assert main(["run", "lastfm", "--data", str(tmp_path / "none"), "--out", str(tmp_path / "b")]) == 2
    assert "HetRec 2011 Last.fm" in capsys.readouterr().err
    assert main(["run", "demo", "--data", str(tmp_path), "--out", str(tmp_path / "c")]) == 2
    assert "drawn, not read" in capsys.readouterr().err


def test_the_command_line_runs_a_file_goes_on_and_says_it_again(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = "n_candidates = 4\nleast_positives = 5\nhorizon = 40\n"
    world = f'[[worlds]]\nname = "mine"\ndata = "plain"\nfolder = "{folder}"\n{sizes}'
    graphs = '[[policies]]\npolicy = "gob-lin"\n[[policies]]\npolicy = "gob-lin"\nlabel = "alone"\ngraph = "none"\n'
    (tmp_path / "mine.toml").write_text(f'title = "Mine"\ntrials = 1\n{world}{graphs}')
    out = tmp_path / "out"
    assert main(["run", str(tmp_path / "mine.toml"), "--out", str(out), "--jobs", "1"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "2 to play, about" in told
    assert "mine: trial 1, alone done" in told
    assert "Others drawn uniformly: whether the graph helped gob-lin cannot be judged yet" in told
    assert "too few to say whether by chance" in told
    assert (out / "report.html").exists()
    assert json.loads((out / "summary.json").read_text())["core_seconds"] > 0
    (out / "trials" / "mine" / "trial-000" / "alone.parquet").unlink()
    assert main(["run", str(tmp_path / "mine.toml"), "--out", str(out), "--jobs", "1", "--resume"]) == 0
    assert "1 to play" in capsys.readouterr().out
    for command in (["compare", str(out)], ["report", str(out)], ["plot", str(out)]):
        assert main(command) == 0
    assert "cold-start.png" in capsys.readouterr().out


def test_settings_are_read_back(tmp_path: Path, folder: Path) -> None:
    store = run_study(study_on(folder, policies=POLICIES[-2:], reference="random"), tmp_path / "out")
    given = json.loads((store.folder / "manifest.json").read_text())["study"]["worlds"][0]
    given.pop("name"), given.pop("tuned_on")
    assert log_settings(given) == study_on(folder).worlds[0].settings
