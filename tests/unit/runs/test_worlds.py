"""What every world of a study must do, drawn or read from a log."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coterie.errors import CoterieError, SettingError
from coterie.logs import write_log
from coterie.problems import ContextSettings, WorldSettings
from coterie.runs.entries import learner_settings
from coterie.runs.study import study_from
from coterie.runs.trial import Trial
from coterie.runs.worlds import DrawnWorld, LogSettings, LogWorld, StudyWorld, give_logs, log_of
from recorded import small_log

KINDS: dict[str, Callable[[str], StudyWorld]] = {
    "drawn": lambda _: DrawnWorld(settings=WorldSettings(n_users=6, n_arms=5, n_candidates=3, horizon=200)),
    "contexts": lambda _: DrawnWorld(
        settings=ContextSettings(contexts="linear", n_users=6, n_arms=5, n_candidates=3, horizon=200)
    ),
    "one-positive": lambda folder: LogWorld(
        settings=LogSettings(folder=folder, n_candidates=4, least_positives=5, horizon=6000)
    ),
    "replay": lambda folder: LogWorld(settings=LogSettings(folder=folder, protocol="replay", horizon=6000)),
}


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> StudyWorld:
    write_log(small_log(n_arms=16, liked=6), tmp_path / "log")
    return KINDS[request.param](str(tmp_path / "log"))


def test_rounds_depend_on_the_seed_alone_and_are_judged_by_two_numbers(world: StudyWorld) -> None:
    world.check()
    first, again = (Trial(world, seed=3, number=1, rounds=40) for _ in range(2))
    assert first.rounds == again.rounds
    assert first.horizon == 40 == len(first.users) == len(first.degrees)
    for shown in first.rounds:
        judged = first.world.judge(shown, shown.candidates[0])
        assert len(judged) == 2
        assert all(isinstance(each, float) for each in judged)


@pytest.mark.parametrize("policy", ["gob-lin", "popularity", "random"])
def test_a_policy_plays_it_and_learns_what_is_known(world: StudyWorld, policy: str) -> None:
    trial = Trial(world, seed=0, number=0, rounds=40)
    played = trial.play(learner_settings({"policy": policy}, {}))
    assert len(played.arms) == len(played.rewards) == len(played.regrets) == 40
    known = ~np.isnan(played.rewards)
    assert known.all() or 0 < known.sum() < 40  # a replay knows the reward of the logged arm alone


def test_the_oracle_plays_where_the_best_is_known(world: StudyWorld) -> None:
    trial = Trial(world, seed=0, number=0, rounds=40)
    oracle = learner_settings({"policy": "oracle"}, {})
    if isinstance(world.settings, LogSettings) and world.settings.protocol == "replay":
        with pytest.raises(SettingError, match="the oracle cannot play a replay"):
            trial.play(oracle)
    else:
        assert (trial.play(oracle).regrets == 0).all()


def test_it_is_written_out_and_read_back(world: StudyWorld) -> None:
    named = replace(world, name="mine", tuned_on="mine")
    study = study_from({"worlds": [named.as_dict()], "policies": [{"policy": "random"}]})
    assert study.worlds == (named,)
    assert study.of_logs == world.is_log
    assert study.changed(quick=True).worlds[0].horizon == (5000 if world.is_log else 150)


def test_what_it_costs_is_known_or_timed(world: StudyWorld) -> None:
    assert (world.round_seconds is None) == world.is_log
    assert world.cost_key == replace(world, settings=replace(world.settings, horizon=7)).cost_key


def test_a_log_that_was_given_is_not_read() -> None:
    log = small_log()
    give_logs({("plain", "nowhere"): log})
    try:
        assert log_of("plain", "nowhere") is log
        LogWorld(settings=LogSettings(folder="nowhere", n_candidates=4)).check()
    finally:
        give_logs({})
    with pytest.raises(CoterieError):
        log_of("plain", "nowhere")
