"""Slates of a journal are evaluated as slates: as the same events are that a log has in its tables."""

from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.__main__ import main
from coterie.errors import DecisionError
from coterie.logs import Contexts, Events, Log, Ragged, read_log, write_log
from coterie.product.evaluation import Asked, Logged, Target, compare
from coterie.product.evaluation.material import Material, material_of, material_of_journal

USERS = ["ana", "bo", "cy"]
DRINKS = {"tea": [0.1, 0.9], "cola": [0.8, 0.2], "milk": [0.2, 0.4], "juice": [0.6, 0.5]}
SCHEMA = {"rain": "number", "when": "category"}
IN_CONTEXT = {"arms": list(DRINKS), "context_schema": SCHEMA, "places": "learned"}


class Shop:
    """A bandit with a journal, whose owner also writes a log: a row for each decision, and the last reward of each."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        given: dict[str, Any] = {"arms": DRINKS, "policy": "auto-ts", "min_propensity": 0.1, "seed": 0} | settings
        graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy")])
        self.folder, self.rows, self.rewards = folder, list[dict[str, Any]](), dict[int, float]()
        self.bandit = ct.Bandit(graph=graph, journal=folder / "journal", **given)
        self.bandit.save(folder / "start")

    def rank(self, user: str, k: int, context: Any = None) -> ct.Slate:
        slate = self.bandit.rank(user, k=k, context=context)
        self.rows += slate.rows()
        return slate

    def decide(self, user: str, candidates: Any = None, context: Any = None) -> ct.Decision:
        made = self.bandit.decide(user, candidates, context)
        (row,) = ct.Slate([made], context).rows()
        self.rows.append(row | {"slate": -1, "place": -1})
        return made

    def reward(self, decisions: Iterable[ct.Decision], rewards: Iterable[float], **how: Any) -> None:
        given = dict(zip([each.id for each in decisions], rewards, strict=True))
        self.bandit.reward_many(list(given), list(given.values()), **how)
        self.rewards |= given

    def log(self) -> Log:
        """Returns the log, written to tables and read back: the rewarded decisions of users who are there."""
        graph, pool = self.bandit.graph, self.bandit.arms
        rows = [row for row in self.rows if row["decision"] in self.rewards and row["user"] in graph.index]
        contexts = [row["context"] for row in rows]
        events = Events(
            user=np.array([graph.index_of(row["user"]) for row in rows]),
            arm=np.array([pool.index_of(row["arm"]) for row in rows]),
            reward=np.array([self.rewards[row["decision"]] for row in rows]),
            candidates=Ragged.of([[pool.index_of(arm) for arm in row["candidates"]] for row in rows]),
            propensity=np.array([row["propensity"] for row in rows]),
            context=None if None in contexts else Contexts.of(contexts),
            slate=np.array([row["slate"] for row in rows]),
            place=np.array([row["place"] for row in rows]),
        )
        write_log(Log(graph=graph, arms=pool if pool.has_features else pool.ids, events=events), self.folder / "log")
        return read_log(self.folder / "log")

    def both(self) -> tuple[Material, Material]:
        """Returns what policies are judged on: that of the journal, and that of the log."""
        return material_of_journal(self.folder / "start", self.folder / "journal"), material_of(self.log())

    def agreed(self) -> Logged:
        """Returns the decisions of the journal, which are those of the log."""
        journal, log = self.both()
        for each in fields(Logged):
            ours, logged = getattr(journal.logged, each.name), getattr(log.logged, each.name)
            if each.name == "contexts" and ours is not None:
                assert [ours[row] for row in range(len(ours))] == [logged[row] for row in range(len(logged))]
            elif each.name != "chances":  # a log has none
                np.testing.assert_array_equal(ours, logged, err_msg=each.name)
        assert [each for each in journal.notes if "slate" in each] == [each for each in log.notes if "slate" in each]
        return journal.logged


def lived(folder: Path, n: int = 60, **settings: Any) -> Shop:
    """Returns a shop after slates and plain decisions in turn, of which some got no reward and some another one."""
    shop, rng = Shop(folder, wait_for_fits=True, **settings), np.random.default_rng(0)
    for turn in range(n):
        told = {"rain": float(rng.normal()), "when": str(rng.choice(["am", "pm"]))}
        context, user = told if "context_schema" in settings else None, USERS[turn % 3]
        slate = list(shop.rank(user, 3, context)) if turn % 3 else [shop.decide(user, list(DRINKS)[:2], context)]
        seen = [each for each in slate if rng.random() < 0.9]
        shop.reward(seen, [(each.arm == "tea") + 0.1 * rng.normal() for each in seen])
        if turn % 10 == 1:
            shop.reward(seen[:1], [2.0], replace=True)
    return shop


# The same estimates


@pytest.mark.parametrize("settings", [{}, {"arms": list(DRINKS)}, IN_CONTEXT], ids=["features", "ids", "contexts"])
@pytest.mark.parametrize("learning", [False, True])
def test_a_journal_gives_the_estimates_of_its_log(tmp_path: Path, settings: dict[str, Any], learning: bool) -> None:
    journal, log = lived(tmp_path, **settings).both()
    names = None if learning else ["replay", "ips", "snips", "dm", "dr", "switch"]  # all that need no chances
    targets = [Target.of("lk-gp-ts"), Target.of("auto-ucb"), Target.of("auto-ucb", places="learned")]
    asked = Asked(estimators=names, learning=learning, n_draws=50)
    found = [compare(each.logged, targets, graph=each.graph, arms=each.arms, asked=asked) for each in (journal, log)]
    for ours, logged in zip(found[0].evaluations, found[1].evaluations, strict=True):
        assert ours.estimates == logged.estimates, ours.policy
        assert ours.logger == logged.logger


def test_places_of_a_journal_are_no_independent_decisions(tmp_path: Path) -> None:
    """All places of a slate fare alike, so that there are as many independent rewards as slates."""
    shop, rng = Shop(tmp_path, policy="random"), np.random.default_rng(1)
    for turn in range(100):
        shop.reward(shop.rank(USERS[turn % 3], 4), [float(rng.normal())] * 4)
    found = material_of_journal(tmp_path / "start", tmp_path / "journal")
    widths = {}
    for name, log in {"slates": found.logged, "alone": replace(found.logged, slates=None)}.items():
        asked = Asked(estimators=["snips"])
        judged = compare(log, [Target.of("random")], graph=found.graph, arms=found.arms, asked=asked).evaluations[0]
        widths[name] = judged.logger.high - judged.logger.low
    assert widths["slates"] == pytest.approx(2 * widths["alone"], rel=0.15)


def test_the_command_line_says_which_decisions_are_of_slates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lived(tmp_path, 30)
    command = ["evaluate", str(tmp_path / "journal"), "--bandit", str(tmp_path / "start"), "--policy", "random"]
    assert main([*command, "--reward-model", "gp-ucb"]) == 0
    assert "are the places of 20 slates: each is judged among the candidates that earlier places left." in (
        capsys.readouterr().out
    )


# The same decisions


def test_slates_and_plain_decisions_come_in_their_order(tmp_path: Path) -> None:
    shop = Shop(tmp_path, **IN_CONTEXT)
    dry, wet = {"rain": 0.0, "when": "am"}, {"rain": 1.5, "when": "pm"}
    plain, slate, other = shop.decide("ana", context=dry), shop.rank("bo", 3, wet), shop.decide("bo", context=wet)
    shop.reward([other, slate[2], plain, slate[0], slate[1]], [5.0, 4.0, 1.0, 2.0, 3.0])
    log = shop.agreed()
    assert log.rewards.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert log.slate_starts.tolist() == [0, 1, 4]
    assert log.shown_at is not None
    assert log.shown_at.tolist() == [1, 1, 2, 3, 1]
    assert log.sizes.tolist() == [4, 4, 3, 2, 4]


def test_a_slate_without_rewards_is_left_out(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.rank("ana", 3)
    shop.reward(shop.rank("bo", 2), [1.0, 0.0])
    shop.rank("cy", 2)
    log = shop.agreed()
    assert log.users.tolist() == [1, 1]
    assert log.slate_starts.tolist() == [0]


def test_a_place_that_alone_has_a_reward_stays_where_it_was(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    first, second = shop.rank("ana", 4), shop.rank("ana", 4)
    shop.reward([second[1], first[2]], [1.0, 0.5])
    log = shop.agreed()
    assert log.rewards.tolist() == [0.5, 1.0]
    assert log.slate_starts.tolist() == [0, 1]
    assert log.shown_at is not None
    assert log.shown_at.tolist() == [3, 2]
    assert log.sizes.tolist() == [2, 3]


def test_slates_of_which_none_was_rewarded_are_no_slates(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.rank("ana", 2)
    shop.reward([shop.decide("bo")], [1.0])
    found = material_of_journal(tmp_path / "start", tmp_path / "journal")
    assert found.logged.slates is None
    assert found.logged.shown_at is None
    assert found.notes == ("Of 3 decisions 1 have a reward in the journal; the others are left out.",)


def test_the_last_reward_of_a_place_counts(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    slate = shop.rank("ana", 3)
    shop.reward(slate, [0.0, 0.0, 0.0])
    shop.reward([shop.decide("cy")], [7.0])
    shop.reward([slate[1]], [1.0], replace=True)
    shop.reward([slate[2], slate[1]], [3.0, 2.0], replace=True)
    assert shop.agreed().rewards.tolist() == [0.0, 2.0, 3.0, 7.0]


def test_places_that_have_expired_or_were_dropped_are_left_out(tmp_path: Path) -> None:
    now = [0.0]
    shop = Shop(tmp_path, expire_after=10.0, max_pending=4, clock=lambda: now[0])
    late = shop.rank("ana", 3)
    shop.reward([late[1]], [1.0])
    now[0] = 20.0
    crowded = shop.rank("bo", 3)
    with pytest.raises(DecisionError, match="decision 2 is no longer remembered"):
        shop.reward(late[2:], [5.0])
    after = shop.rank("cy", 3)  # a place too many wait
    with pytest.raises(DecisionError, match="decision 3 is no longer remembered"):
        shop.reward([crowded[0]], [5.0])
    shop.reward([crowded[2], *after], [2.0, 3.0, 4.0, 5.0])
    log = shop.agreed()
    assert log.rewards.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert log.slate_starts.tolist() == [0, 1, 2]


def test_slates_of_users_who_are_gone_are_left_out(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    for user in USERS:
        shop.reward(shop.rank(user, 2), [1.0, 0.0])
    shop.bandit.remove_user("bo")
    log = shop.agreed()
    assert log.slate_starts.tolist() == [0, 2]
    assert log.users.tolist() == [0, 0, 1, 1]


def test_slates_before_the_snapshot_are_left_out(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.reward(shop.rank("ana", 2), [1.0, 0.0])
    shop.bandit.save(tmp_path / "start")
    shop.rows.clear()
    shop.reward(shop.rank("cy", 2), [0.5, 0.25])
    assert shop.agreed().rewards.tolist() == [0.5, 0.25]
