"""The runner: the same bytes whatever the jobs, nothing recomputed, nothing overwritten."""

from pathlib import Path

import numpy as np
import pytest

from coterie.errors import CandidatesError, SettingError, StoreError
from coterie.problems import WorldSettings
from coterie.runs.entries import LearnerSettings, learner_settings
from coterie.runs.results import results_of
from coterie.runs.runner import Processes, choose, missing_units, run_study
from coterie.runs.store import Store, Unit
from coterie.runs.study import Study, study_from
from coterie.runs.trial import PILOT, Trial, play
from coterie.runs.worlds import DrawnWorld


def small(**changes: object) -> Study:
    world = {"name": "small", "n_users": 6, "n_arms": 5, "n_candidates": 3, "dimension": 3, "horizon": 30}
    given = {
        "trials": 2,
        "learners": {"lambda_base": 0.05},
        "worlds": [world, {**world, "name": "noisy", "noise_std": 0.5, "tuned_on": "small"}],
        "tuning": {"trials": 2, "horizon": 10, "width": [0.5, 2.0], "lambda_base": [0.01]},
        "policies": [{"policy": name} for name in ("lk-gp-ucb", "lk-gp-ts", "per-user-linucb", "random", "oracle")],
        **changes,
    }
    return study_from(given)


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and "timings" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_the_same_bytes_whatever_the_jobs(tmp_path: Path) -> None:
    run_study(small(), tmp_path / "one")
    run_study(small(), tmp_path / "two", place=Processes(2))
    one = contents(tmp_path / "one")
    assert one == contents(tmp_path / "two")
    assert sum(name.endswith(".parquet") for name in one) == 2 * 3 + 2 * 2 * 5  # three policies have a grid


def test_results_are_read_back(tmp_path: Path) -> None:
    results = results_of(run_study(small(), tmp_path / "out"))
    assert results.worlds == ["small", "noisy"]
    assert results.policies("small") == ["lk-gp-ucb", "lk-gp-ts", "per-user-linucb", "random", "oracle"]
    assert results.regrets["small"]["random"].shape == (2, 30)
    assert (results.final("small", "oracle") == 0).all()
    assert (results.final("small", "random") > 0).all()
    assert results.seconds["small"]["lk-gp-ucb"].shape == (2,)
    assert set(results.tuned["small"]["lk-gp-ucb"]) == {"width", "lambda_base"}
    assert len(results.pilot["small"]["lk-gp-ucb"]) == 2
    assert results.settings["worlds"][0]["noise_std"] == 0.1


def test_a_study_goes_on_where_it_stopped(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run_study(small(), whole)
    run_study(small(), broken)
    (broken / "trials" / "noisy" / "trial-001" / "random.parquet").unlink()
    kept = broken / "trials" / "small" / "trial-000" / "random.parquet"
    before = kept.stat().st_mtime_ns
    (broken / "trials" / "small" / "trial-009.parquet.77.partial").write_bytes(b"half")
    assert results_of(Store(broken)).n_trials("noisy") == 1  # only a trial of all policies can be compared
    done: list[Unit] = []
    run_study(small(), broken, resume=True, on_unit=lambda unit, *_: done.append(unit))
    assert [(unit.kind, unit.world, unit.number, unit.policy) for unit in done] == [("trial", "noisy", 1, "random")]
    assert kept.stat().st_mtime_ns == before
    assert contents(whole) == contents(broken)


def test_a_folder_with_results_is_never_overwritten(tmp_path: Path) -> None:
    run_study(small(), tmp_path)
    before = contents(tmp_path)
    with pytest.raises(StoreError, match="never overwritten"):
        run_study(small(), tmp_path)
    with pytest.raises(StoreError, match="another 'seed'"):
        run_study(small(seed=1), tmp_path, resume=True)
    assert contents(tmp_path) == before
    assert missing_units(small(), Store(tmp_path)) == ([], [])


def test_a_result_folder_that_is_none_or_damaged_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no study"):
        results_of(Store(tmp_path))
    (tmp_path / "manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot be read"):
        results_of(Store(tmp_path))
    (tmp_path / "manifest.json").write_text('{"format": 99}', encoding="utf-8")
    with pytest.raises(StoreError, match="format 99"):
        results_of(Store(tmp_path))


def test_a_failed_trial_leaves_no_file_of_its_own(tmp_path: Path) -> None:
    study = small(policies=[{"policy": "random"}, {"policy": "no_such_module:make"}])
    with pytest.raises(SettingError, match="no_such_module:make"):
        run_study(study, tmp_path)
    assert not list(tmp_path.rglob("*.parquet"))
    assert not list(tmp_path.rglob("*.partial"))


def drawn(**changes: object) -> DrawnWorld:
    base = {"n_users": 5, "n_arms": 6, "n_candidates": 3, "dimension": 2, "horizon": 20}
    return DrawnWorld(settings=WorldSettings(**{**base, **changes}))  # type: ignore[arg-type]


def test_a_policy_depends_on_its_label_and_not_on_its_company() -> None:
    sampled = LearnerSettings(label="sampled", policy="lk-gp-ts")
    first, second = Trial(drawn(), seed=3, number=0), Trial(drawn(), seed=3, number=0)
    second.play(LearnerSettings(label="other", policy="random"))
    assert (first.play(sampled).regrets == second.play(sampled).regrets).all()
    renamed = LearnerSettings(label="renamed", policy="lk-gp-ts")
    assert (first.play(renamed).regrets != first.play(sampled).regrets).any()


def test_pilot_trials_are_other_draws() -> None:
    final, pilot = (Trial(drawn(), seed=0, number=0, kind=kind) for kind in (0, PILOT))
    assert final.rounds != pilot.rounds
    assert (final.world.arms.features != pilot.world.arms.features).any()


def test_all_policies_meet_the_same_rounds_and_noise() -> None:
    trial = Trial(drawn(n_candidates=1), seed=1, number=0)
    greedy, random = (trial.play(LearnerSettings(label=name, policy=name)) for name in ("greedy", "random"))
    assert greedy.arms == random.arms
    assert (greedy.rewards == random.rewards).all()


@pytest.mark.parametrize("graph", ["permuted", "rewired", "none"])
def test_controls_change_the_graph_that_a_policy_sees_and_nothing_else(graph: str) -> None:
    trial = Trial(drawn(n_users=12, horizon=60), seed=2, number=0)
    shown = trial.play(LearnerSettings(label="a", policy="lk-gp-ucb"))
    control = trial.play(LearnerSettings(label="a", policy="lk-gp-ucb", graph=graph))
    assert (shown.regrets != control.regrets).any()


def test_the_loop_refuses_an_arm_that_was_not_shown() -> None:
    class Wild:
        def select(self, user: object, candidates: object) -> object:  # noqa: ARG002
            return type("C", (), {"arm": "nowhere"})()

        def update(self, user: object, arm: object, reward: float) -> None: ...

    trial = Trial(drawn(), seed=0, number=0)
    with pytest.raises(CandidatesError):
        next(play(Wild(), trial.world, trial.rounds))


def test_the_least_mean_regret_is_chosen_over_trials() -> None:
    pilots = [[({"width": w}, float(r)) for w, r in zip((1, 2, 3), row, strict=True)] for row in ((1, 2, 9), (9, 2, 1))]
    record = choose(pilots)
    assert record["chosen"] == {"width": 2}
    assert [each["mean_regret"] for each in record["grid"]] == [5.0, 2.0, 5.0]


def test_a_constant_noise_asked_for_by_name_is_not_scheduled() -> None:
    given = learner_settings({"policy": "lk-gp-ucb", "noise_var": 0.2}, {"lambda_base": 0.01})
    assert given.options["noise_var"] == 0.2
    assert "lambda_base" not in given.options
    assert np.isfinite(Trial(drawn(), seed=0, number=0).play(given).regrets).all()
