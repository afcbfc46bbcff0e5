"""What can be asked of an experiment."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from coterie.errors import InputError
from coterie.product.bandit import Bandit
from coterie.service.engine import reading
from coterie.service.engine.failures import NotThereError
from coterie.service.engine.logged import log_of
from coterie.service.engine.snapshots import state_digest
from coterie.service.records import Arm, ArmsChange, UsersChange
from service_engines import ARMS, USERS, Kept, experiment


def played(n: int, *, k: int | None = None, context: bool = False, **settings: Any) -> Kept:
    kept, chance = Kept(), random.Random(0)
    kept.engine.create(experiment(**settings))
    for step in range(n):
        asked: dict[str, Any] = {"k": k} if k else {}
        if context:
            asked["context"] = {"hour": float(step % 24), "device": "phone" if step % 3 else "desk"}
        event = kept.decide(USERS[step % 4], **asked)
        for place in range(k or 1):
            kept.reward(event, chance.random(), place=place + 1)
    kept.take_fit()  # any call takes one that is ready, so that two of them might differ
    kept.commit()
    return kept


def test_an_explanation_adds_up_and_changes_nothing() -> None:
    kept = played(30)
    before = state_digest(kept.engine.state)
    found = reading.explain(kept.engine, "news", "ana", "tea")
    assert (found["user"], found["arm"], set(found["by_user"])) == ("ana", "tea", set(USERS))
    assert found["level"] + sum(found["by_user"].values()) + found["rest"] == pytest.approx(found["mean"])
    assert len(found["by_reward"]) == 30
    json.dumps(found, allow_nan=False)
    assert state_digest(kept.engine.state) == before


def test_an_explanation_names_the_largest_contributions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_CONTRIBUTIONS", 2)
    found = reading.explain(played(10).engine, "news", "ana", "tea")
    assert [len(found[name]) for name in ("by_user", "by_arm", "by_reward")] == [2, 2, 2]


def test_a_graph_report_has_numbers_and_words() -> None:
    found = reading.graph_report(played(40).engine, "news")
    assert (found["n_rewards"], found["n_users"], found["n_edges"]) == (40, 4, 3)
    assert set(found["evidence"]) == {"graph", "none", "permuted"}
    assert "log evidence" in found["text"]
    json.dumps(found, allow_nan=False)


def test_an_export_is_a_file_of_a_bandit_that_predicts_the_same(tmp_path: Path) -> None:
    kept = played(40, exploration_floor=0.05)
    (tmp_path / "bandit").write_bytes(reading.export(kept.engine, "news"))
    loaded, bandit = Bandit.load(tmp_path / "bandit"), kept.engine.state.experiments["news"].bandit
    assert all(loaded.predict(user) == bandit.predict(user) for user in USERS)
    assert loaded.decide("ana") == bandit.decide("ana")


def test_a_log_has_the_durable_events_of_one_experiment() -> None:
    kept = played(3)
    kept.engine.create(experiment("other"))
    kept.commit()
    kept.decide()
    lines = [json.loads(line) for line in reading.log(kept.engine, "news")]
    assert [line["kind"] for line in lines] == ["created", *["decided", "rewarded"] * 3]
    assert {line["experiment"] for line in lines} == {"news"}
    assert lines[1]["body"]["answer"]["event_id"] == lines[1]["key"] == lines[2]["key"]
    third = [json.loads(line) for line in reading.log(kept.engine, "news", from_seq=lines[3]["seq"], limit=2)]
    assert third == lines[3:5]


@pytest.mark.parametrize("read", [reading.graph_report, reading.export, reading.log])
def test_an_experiment_that_is_not_there_is_refused(read: Any) -> None:
    with pytest.raises(NotThereError, match="'blog' is not there"):
        read(played(1).engine, "blog")


def test_an_evaluation_judges_policies_by_the_log() -> None:
    kept = played(200, policy="random")
    found = reading.evaluate(kept.engine, "news", ["random", "greedy"], n_draws=50)
    assert [each["policy"] for each in found["policies"]] == ["random", "greedy"]
    assert (found["n_decisions"], found["policies"][0]["n_fitted"]) == (200, 100)
    snips = found["policies"][0]["estimates"]["snips"]
    assert snips["value"] == pytest.approx(found["policies"][0]["logger"]["value"])
    json.dumps(found, allow_nan=False)


def test_an_evaluation_of_slates_and_contexts_judges_each_place() -> None:
    kept = played(60, k=2, context=True, policy="auto-ts")
    found = reading.evaluate(kept.engine, "news", ["auto-ts"], n_draws=20)
    assert found["n_decisions"] == 120
    assert any("slates" in note for note in found["notes"])
    assert any("hour" in note for note in found["notes"])


def test_a_log_has_what_was_shown_rewarded_and_when() -> None:
    kept = Kept()
    kept.engine.create(experiment(policy="random", aggregation="sum", default_reward=-1.0, wait_time=10.0))
    kept.engine.change_arms("news", ArmsChange(put=[Arm(id="mead", features=[3.0, 3.0])], retire=["gin"]))
    one = kept.decide("bo")
    kept.reward(one, 1.0)
    kept.reward(one, 2.0)
    kept.decide("ana", candidates=["gin", "tea", "ale"][1:])
    kept.decide("cy", exclude=["tea"])
    kept.now += 11.0
    kept.engine.tick()
    kept.commit()
    bandit = kept.engine.state.experiments["news"].bandit
    events = log_of(bandit, kept.journal.read(1, experiment="news")).events
    shown = [[bandit.arms.ids[row] for row in events.candidates[place]] for place in range(3)]  # type: ignore[index]
    assert shown == [["tea", "ale", "mead"], ["tea", "ale"], ["ale", "mead"]]
    assert events.reward.tolist() == [3.0, -1.0, -1.0]
    assert events.propensity.tolist() == pytest.approx([1 / 3, 1 / 2, 1 / 2])  # type: ignore[union-attr]
    assert events.time.tolist() == [1000.0] * 3  # type: ignore[union-attr]


def test_a_log_begins_at_the_last_reset_and_says_what_it_leaves_out() -> None:
    kept = played(5, context=True, policy="auto-ts")
    kept.engine.reset("news")
    for user in ("ana", "bo", "cy"):
        kept.reward(kept.decide(user, context={"hour": 1.0, "device": "desk"}))
    kept.decide("ana", context={"hour": 2.0, "device": "desk"})
    guest = [*ARMS, Arm(id="new", features=[0.5, 0.5])]
    kept.reward(kept.decide("di", candidates=guest, context={"hour": 3.0, "device": "desk"}))
    kept.engine.change_users("news", UsersChange(remove=["cy"]))
    kept.commit()
    log = log_of(kept.engine.state.experiments["news"].bandit, kept.journal.read(1, experiment="news"))
    assert len(log.events) == 2
    assert log.left_out == {
        "without a reward": 1,
        "for users who are gone": 1,
        "among arms that came with the request": 1,
    }


def test_too_short_a_log_is_refused() -> None:
    with pytest.raises(InputError, match="has 3 decisions; fewer than 20 say nothing"):
        reading.evaluate(played(3).engine, "news", ["random"])
    with pytest.raises(InputError, match="no decision of this experiment has a reward"):
        reading.evaluate(played(0).engine, "news", ["random"])


def test_decisions_whose_propensities_nobody_knows_are_refused() -> None:
    kept = played(2, policy="random")
    unknown = [
        event._replace(body=event.body.replace(b'"propensity":0.3333333333333333', b'"propensity":null'))
        for event in kept.journal.read(1, experiment="news")
    ]
    with pytest.raises(InputError, match="2 decisions of 2 have no propensity"):
        log_of(kept.engine.state.experiments["news"].bandit, unknown)
