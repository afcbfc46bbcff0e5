"""The journal: every decision is made again bit for bit, and a journal that does not fit is told."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.errors import CoterieError, JournalError, ParameterError
from coterie.models import ENGINES
from coterie.product.changes import CHANGES
from coterie.product.files.recording import decisions_in, read, written
from coterie.product.project import shell

ARMS = dict(zip("abcde", np.random.default_rng(0).normal(size=(5, 2)), strict=True))
KINDS: list[dict[str, Any]] = [
    {"policy": "auto-ucb"},
    {"policy": "auto-ts", "min_propensity": 0.05},
    {"policy": "lk-gp-ts", "sampling": "joint", "min_propensity": 0.02},
    {"policy": "lk-gp-ucb", "forgetting": 0.996},  # up to date after every third reward, or when it is read
    {"policy": "lk-gp-ts", "window": 4},
    {"policy": "club"},
    {"policy": "auto-ts", "reward": "binary", "likelihood": "bernoulli"},
    {"policy": "lk-gp-ucb", "expire_after": 5.0, "max_pending": 4},
    {"policy": "lk-gp-ts", "pending": "hallucinate", "expire_after": 5.0},
    {"policy": "auto-ts", "places": [1.0, 0.6, 0.3], "window": 9},
    {"policy": "auto-ucb", "places": "learned"},
]
Step = tuple[str, int, float]
Kept = tuple[Path, Path, list[ct.Decision]]
STEPS = st.lists(
    st.tuples(
        st.sampled_from([*["decide", "learn"] * 3, *["reward", "read", "save"] * 2, "batch", *sorted(CHANGES)]),
        st.integers(0, 2**16),
        st.floats(-3, 3, allow_subnormal=False),
    ),
    min_size=4,
    max_size=25,
)


def make(**options: Any) -> ct.Bandit:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", 7, 0.5)], users=["ana", "bo", 7, "dee"])
    return ct.Bandit(**{"graph": graph, "arms": ARMS, "policy": "lk-gp-ucb", "seed": 3, **options})


def told(decision: ct.Decision) -> tuple[Any, ...]:
    """Returns all that is known of a decision."""
    return (
        decision.id,
        decision.user,
        decision.arm,
        decision.mean,
        decision.std,
        decision.score,
        decision.explored,
        decision.propensity,
        decision.propensity_error,
        decision.candidates,
    )


class Life:
    """A bandit that lives through generated steps, its decisions, and the files that it was saved to on the way."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder, self.now, self.binary = folder, 100.0, options.get("reward") == "binary"
        self.bandit = make(journal=folder / "journal", clock=lambda: self.now, **options)
        self.made: list[ct.Decision] = []
        self.saved: list[tuple[Path, int]] = []
        self.save()

    def save(self) -> None:
        path = self.folder / f"snapshot-{len(self.saved)}"
        self.bandit.save(path)
        self.saved.append((path, self.bandit.n_decisions))

    def take(self, step: str, pick: int, value: float) -> None:
        """Does what the step says with users and arms picked by a number; a refused call is part of life."""
        bandit, self.now = self.bandit, self.now + pick % 5
        value = float(value > 0) if self.binary else value
        users, arms = bandit.graph.users, bandit.arms.ids
        user, other, arm = users[pick % len(users)], users[pick // 7 % len(users)], arms[pick // 3 % len(arms)]
        calls: dict[str, Callable[[], Any]] = {
            "decide": lambda: bandit.decide(user, None if pick % 2 else (each for each in arms[pick % 3 :])),
            "batch": lambda: bandit.decide_many(iter((user, other)), arms),
            "rank": lambda: bandit.rank(user, None if pick % 2 else iter(arms[pick % 3 :]), 1 + pick % 3),
            "reward": lambda: bandit.reward(pick % max(len(self.made), 1), value, replace=pick % 3 == 0),
            "learn": lambda: bandit.learn(user, arm, value),
            "read": lambda: (bandit.predict(user), bandit.explain(user, arm), bandit.n_pending),
            "save": self.save,
            "add_user": lambda: bandit.add_user(f"new-{pick}", {user: abs(value) + 0.1}),
            "add_users": lambda: bandit.add_users({f"new-{pick}": {user: 0.4}, f"newer-{pick}": {f"new-{pick}": 1.0}}),
            "remove_user": lambda: bandit.remove_user(user) if len(users) > 3 else None,
            "connect": lambda: bandit.connect(user, other, abs(value) + 0.1),
            "connect_many": lambda: bandit.connect_many(iter([(user, other, abs(value)), (other, users[0], 0.0)])),
            "disconnect": lambda: bandit.disconnect(user, other),
            "add_arms": lambda: bandit.add_arms({f"new-{pick}": [value, 0.1]}),
            "update_features": lambda: bandit.update_features({arm: [value, -value]}),
            "retire_arms": lambda: bandit.retire_arms(iter([arm])),
            "revive_arms": lambda: bandit.revive_arms(iter([arm])),
        }
        try:
            given = calls[step]() if step in calls else None
        except CoterieError:
            return
        if step in ("decide", "batch", "rank"):
            self.made += decisions_in(given)


@pytest.mark.parametrize("options", KINDS, ids=lambda options: "-".join(map(str, options.values())))
@settings(max_examples=8, deadline=None)
@example(steps=[("decide", 0, 0.0), ("reward", 0, 1.0), ("reward", 0, 8.9e-62), ("save", 0, 0.0)])
@example(steps=[("decide", 0, 0.0), ("reward", 0, 1.0), ("reward", 0, 0.0), ("save", 0, 0.0)])
@given(steps=STEPS)
def test_every_decision_is_made_again_from_any_snapshot_before_it(options: dict[str, Any], steps: list[Step]) -> None:
    with TemporaryDirectory() as folder:
        life = Life(Path(folder), **options)
        for step in [*steps, ("decide", 1, 0.0)]:
            life.take(*step)
        for snapshot, n_decisions in life.saved:
            for decision in life.made[n_decisions:]:
                again = ct.replay(snapshot, life.folder / "journal", decision=decision.id)
                assert told(again) == told(decision)


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_every_engine_replays(tmp_path: Path, engine: str) -> None:
    life = Life(tmp_path, policy="lk-gp-ts", engine=engine)
    rng = np.random.default_rng(0)
    for number in range(60):
        step = "save" if number == 30 else ("decide", "read", "reward")[number % 3]
        life.take(step, int(rng.integers(999)), rng.normal())
    for snapshot, _ in life.saved:
        again, last = ct.replay(snapshot, tmp_path / "journal", decision=life.made[-1].id), life.made[-1]
        assert told(again) == told(last)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def changes(path: Path) -> list[str]:
    return [line["call"] for line in lines(path) if "change" in line]


def test_a_line_is_written_for_what_succeeded_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    bandit = make(journal=path)
    refused: list[Callable[[], Any]] = [
        lambda: bandit.decide("zoe"),
        lambda: bandit.decide("ana", []),
        lambda: bandit.decide_many(["ana", "zoe"]),
        lambda: bandit.rank("ana", k=6),
        lambda: bandit.reward(0, 1.0),
        lambda: bandit.learn("ana", "a", float("nan")),
        lambda: bandit.add_user("ana"),
        lambda: bandit.add_user(("a", 1)),  # type: ignore[arg-type, unused-ignore]
        lambda: bandit.add_arms({("a", 1): [0.0, 0.0]}),
        lambda: bandit.retire_arms(["x"]),
    ]
    for call in refused:
        with pytest.raises(CoterieError):
            call()
    assert changes(path) == []
    bandit.predict("ana")
    first = bandit.decide("ana")
    bandit.decide_many(["bo", 7])
    bandit.reward(first.id, 0.1 + 0.2)
    bandit.reward(first.id, np.float64(1 / 3), replace=True)
    assert changes(path) == ["decide", "decide_many", "reward", "reward"]
    last = lines(path)[-1]
    assert (last["change"], last["decisions"], last["rewards"]) == (3, 3, 1)
    assert last["with"] == {"decision": 0, "reward": 1 / 3, "replace": True}
    assert lines(path)[2]["gave"] == [[first.arm, first.mean, first.std, first.score]]
    assert "at" not in last


def test_a_read_that_brings_weights_up_to_date_is_a_change(tmp_path: Path) -> None:
    bandit = make(journal=tmp_path / "journal", forgetting=0.996)  # a decision does so after every third reward
    bandit.save(tmp_path / "snapshot")
    for reward in (1.0, 2.0):
        bandit.learn("ana", "a", reward)
    bandit.explain("ana", "a")
    for reward in (-1.0, -2.0):
        bandit.learn("ana", "b", reward)
    decision = bandit.decide("ana")
    assert changes(tmp_path / "journal") == ["learn", "learn", "_relearn", "learn", "learn", "decide"]
    assert told(ct.replay(tmp_path / "snapshot", tmp_path / "journal", decision=0)) == told(decision)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """A snapshot, the journal that goes on after it, and the decisions in it; two were made before."""
    bandit = make(policy="lk-gp-ts", journal=tmp_path / "journal")
    made = [bandit.decide("ana"), bandit.decide("bo")]
    bandit.save(tmp_path / "snapshot")
    bandit.reward(0, 1.0)
    made += [bandit.decide("ana"), bandit.decide("dee")]
    return tmp_path / "snapshot", tmp_path / "journal", made


def test_a_decision_that_is_not_there_is_told(kept: Kept) -> None:
    snapshot, journal, made = kept
    assert told(ct.replay(snapshot, journal, decision=3)) == told(made[3])
    assert ct.replay(snapshot, journal, decision=3) == made[3] != made[2]
    assert len({*made, ct.replay(snapshot, journal, decision=3)}) == len(made)
    with pytest.raises(JournalError, match=r"decision 1 was made before the snapshot.*earlier snapshot"):
        ct.replay(snapshot, journal, decision=1)
    with pytest.raises(JournalError, match=r"decision 4 is not in .* which ends before decision 4; a replay"):
        ct.replay(snapshot, journal, decision=4)
    with pytest.raises(ParameterError, match="decision is -1"):
        ct.replay(snapshot, journal, decision=-1)


def test_a_torn_last_line_is_tolerated_and_told(kept: Kept) -> None:
    snapshot, journal, made = kept
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-7])
    assert told(ct.replay(snapshot, journal, decision=2)) == told(made[2])
    with pytest.raises(JournalError, match=r"ends before decision 3; its last line is cut off"):
        ct.replay(snapshot, journal, decision=3)
    with pytest.warns(UserWarning, match="was cut off, and is dropped"):
        bandit = ct.Bandit.load(snapshot, journal=journal)
    assert bandit.n_decisions == 3
    assert told(bandit.decide("dee")) == told(made[3])
    assert told(ct.replay(snapshot, journal, decision=3)) == told(made[3])


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (
            lambda text: text.replace('"reward":1.0', '"reward":-5.0'),
            r"decision 2 is not the one .* mean is .* and was",
        ),
        (lambda text: text.replace('"user":"dee"', '"user":"zoe"'), r"change 4, decide, cannot be made again .*'zoe'"),
        (lambda text: text.replace('"call":"reward"', '"call":"save"'), "change 2 is 'save', which this version"),
        (lambda text: text.replace('"change":2', '"change":3'), "change 3 stands where change 2 belongs"),
        (lambda text: text.replace('"rewards":1', '"rewards":9'), "change 3 came after 2 and 9, and the bandit has 2"),
        (lambda text: text.replace('"with":{"decision"', '"with":{"choice"'), "change 2, reward, cannot be made again"),
        (lambda text: text.replace('{"change":2', '{change":2'), "line 5 is damaged"),
        (lambda text: text.replace('"format":1', '"format":2'), "it has format 2"),
        (lambda text: text.partition("\n")[2], "does not begin as a journal"),
        (lambda text: "".join(text.splitlines(keepends=True)[:3]), "saved after change 2, and the journal holds 1"),
        (lambda _: "", "does not begin as a journal"),
    ],
)
def test_a_journal_that_does_not_fit_is_told(kept: Kept, damage: Callable[[str], str], what: str) -> None:
    snapshot, journal, _ = kept
    text = journal.read_text(encoding="utf-8")
    assert damage(text) != text
    journal.write_text(damage(text), encoding="utf-8")
    with pytest.raises(JournalError, match=what):
        ct.replay(snapshot, journal, decision=3)


def test_another_choice_is_named_with_the_versions_that_differ(kept: Kept) -> None:
    snapshot, journal, made = kept
    other = next(arm for arm in ARMS if arm != made[2].arm)
    text = journal.read_text(encoding="utf-8")
    before, line = text.split('"change":3')
    changed = before.replace(f'"coterie":"{ct.__version__}"', '"coterie":"0.0.9"') + '"change":3'
    journal.write_text(changed + line.replace(f'[["{made[2].arm}"', f'[["{other}"', 1), encoding="utf-8")
    expected = rf"arm is '{made[2].arm}' and was '{other}'; .*coterie 0\.0\.9, not {ct.__version__}"
    with pytest.raises(JournalError, match=expected):
        ct.replay(snapshot, journal, decision=3)


def test_a_journal_of_another_bandit_is_told(kept: Kept, tmp_path: Path) -> None:
    snapshot, journal, _ = kept
    other = make(journal=tmp_path / "other")
    other.decide("ana")
    for path in (tmp_path / "other", tmp_path / "nowhere"):
        with pytest.raises(JournalError, match=r"saved with another journal, or none|No such file"):
            ct.replay(snapshot, path, decision=2)
    with pytest.raises(JournalError, match="holds something already"):
        make(journal=journal)
    make().save(tmp_path / "alien")  # neither has a mark of another journal, and the numbers fit
    with pytest.raises(JournalError, match="does not continue the snapshot"):
        ct.replay(tmp_path / "alien", tmp_path / "other", decision=0)


def test_a_bandit_with_a_journal_is_not_loaded_without_unless_for_good(kept: Kept, tmp_path: Path) -> None:
    snapshot, journal, _ = kept
    with pytest.raises(JournalError, match=r"keeps a journal, and none was given.* journal=None"):
        ct.Bandit.load(snapshot)
    with pytest.raises(JournalError, match="keeps a journal"):
        shell.decide(snapshot, "ana")
    assert "2 made" in shell.inspect(snapshot)
    for changes in ([], [("bo", "a", 1.0)]):
        apart = ct.Bandit.load(snapshot, journal=None)
        for change in changes:
            apart.learn(*change)
        apart.save(tmp_path / "apart")
        assert ct.Bandit.load(tmp_path / "apart").n_rewards == len(changes)
        with pytest.raises(JournalError, match="does not continue the snapshot"):
            ct.Bandit.load(tmp_path / "apart", journal=journal)


def test_a_new_journal_follows_a_file_without_one_and_no_other_file(tmp_path: Path) -> None:
    for name, seed in (("mine", 3), ("other", 4)):
        make(seed=seed).save(tmp_path / name)
    ct.Bandit.load(tmp_path / "mine", journal=tmp_path / "journal").decide("ana")
    assert ct.Bandit.load(tmp_path / "mine", journal=tmp_path / "journal").n_decisions == 1
    with pytest.raises(JournalError, match="does not continue the snapshot"):
        ct.Bandit.load(tmp_path / "other", journal=tmp_path / "journal")


def test_one_bandit_at_a_time_writes_to_a_journal(kept: Kept, tmp_path: Path) -> None:
    snapshot, journal, _ = kept
    first = ct.Bandit.load(snapshot, journal=journal)
    content = journal.read_bytes()
    with pytest.raises(JournalError, match="is in use; one bandit writes to a journal"):
        ct.Bandit.load(snapshot, journal=journal)
    with pytest.raises(JournalError, match="is in use"):
        make(journal=journal)
    assert journal.read_bytes() == content
    assert ct.replay(snapshot, journal, decision=2).id == 2
    del first
    assert ct.Bandit.load(snapshot, journal=journal).n_decisions == 4
    with pytest.raises(JournalError, match=r"No such file or directory; .* Make the folder"):
        make(journal=tmp_path / "nowhere" / "journal")


def test_a_loaded_bandit_catches_up_with_its_journal_and_goes_on(kept: Kept) -> None:
    snapshot, journal, made = kept
    again = ct.Bandit.load(snapshot, journal=journal)
    assert (again.n_decisions, again.n_rewards, again.n_pending) == (4, 1, 3)
    again.reward(made[3].id, -1.0)
    last = again.decide("bo")
    assert told(ct.replay(snapshot, journal, decision=4)) == told(last)


def test_a_new_journal_follows_the_file_that_was_loaded(kept: Kept, tmp_path: Path) -> None:
    snapshot, old, _ = kept
    bandit = ct.Bandit.load(snapshot, journal=tmp_path / "new")
    third = bandit.decide(7)
    assert told(ct.replay(snapshot, tmp_path / "new", decision=2)) == told(third)
    bandit.save(snapshot)
    with pytest.raises(JournalError, match="saved with another journal"):
        ct.replay(snapshot, old, decision=3)


def test_times_come_from_the_journal(tmp_path: Path) -> None:
    now = [0.0]
    options: dict[str, Any] = {"pending": "hallucinate", "expire_after": 10.0}
    bandit = make(journal=tmp_path / "journal", clock=lambda: now[0], **options)
    bandit.save(tmp_path / "snapshot")
    first = bandit.decide("ana", ["a", "b"])
    now[0] = 5.0
    shrunk = bandit.decide("ana", ["a", "b"])
    now[0] = 50.0
    fresh = bandit.decide("ana", ["a", "b"])
    assert fresh.std == first.std
    for each in (first, shrunk, fresh):
        assert told(ct.replay(tmp_path / "snapshot", tmp_path / "journal", decision=each.id)) == told(each)
    now[0] = 3.0  # a clock that is set back does not bring back what has expired
    assert bandit.n_pending == 1
    bandit.decide("bo")
    assert [line["at"] for line in lines(tmp_path / "journal") if "at" in line] == [0.0, 5.0, 50.0, 50.0]


def test_a_change_that_cannot_be_written_is_not_made_and_can_be_made_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bandit = make(journal=tmp_path / "journal")
    bandit.save(tmp_path / "snapshot")
    bandit.decide("ana")
    held = (tmp_path / "journal").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda handle, content: os.pwrite(handle, content[:3], 0) and 3)
        with pytest.raises(JournalError, match=r"decide was not done: change 1 cannot be written .*No space left"):
            bandit.decide("bo")
    assert (tmp_path / "journal").read_bytes() == held
    assert (bandit.n_decisions, bandit.n_pending) == (1, 1)
    second = bandit.decide("bo")
    assert second.id == 1
    assert told(ct.replay(tmp_path / "snapshot", tmp_path / "journal", decision=1)) == told(second)


def test_a_journal_that_cannot_be_cut_takes_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = make(journal=tmp_path / "journal")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda handle, content: os.pwrite(handle, content[:3], 0) and 3)
        patch.setattr(os, "ftruncate", lambda *_: os.truncate(tmp_path / "no-such-folder" / "file", 0))
        with pytest.raises(JournalError, match="decide was not done"):
            bandit.decide("bo")
    with pytest.raises(JournalError, match="connect was refused: what was written of change 0 cannot be taken back"):
        bandit.connect("ana", "dee")
    bandit.save(tmp_path / "snapshot")
    assert ct.Bandit.load(tmp_path / "snapshot", journal=tmp_path / "new").decide("ana").id == 0


def test_handles_are_closed_with_the_bandit(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    for number in range(20):
        make(journal=tmp_path / f"journal-{number}")
    if before is not None:
        assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_every_public_method_reads_or_is_journalled() -> None:
    """A new method of Bandit that changes something needs `@journalled`, and a step in `Life.take`."""
    reads = {
        "predict",
        "explain",
        "describe",
        "explain_model",
        "graph_report",
        "save",
        "load",
        "export",
        "is_pending",
        "frozen",
        "restore",
    }
    reads |= {"score_all", "fit"}  # a fit is refused where a journal is kept
    public = {name for name, value in vars(ct.Bandit).items() if name[0] != "_" and not isinstance(value, property)}
    assert public - reads == CHANGES.keys() - {"_relearn", "_recover", "_take_fit"}


def test_arguments_come_back_as_they_were() -> None:
    pool = ct.ArmPool([[0.1, 1e-300]], ids=["a"], feature_names=["x", "y"])
    again = read(json.loads(json.dumps(written({"ana": {"x": None}, 7: 0.1, "arms": pool, "ids": ("a", 7)}))))
    assert again["ana"] == {"x": None}
    assert (again[7], again["ids"]) == (0.1, ["a", 7])
    assert (again["arms"].ids, again["arms"].feature_names) == (pool.ids, ("x", "y"))
    assert read(written(ct.ArmPool([[0.1]]))).feature_names is None
    np.testing.assert_array_equal(again["arms"].features, pool.features)
    assert written(np.array([1, 2])) == [1, 2]
    with pytest.raises(JournalError, match="cannot be written"):
        written(object())
