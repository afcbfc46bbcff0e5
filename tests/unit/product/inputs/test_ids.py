"""Ids that could not be saved are refused where they come in, and nothing has changed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

import coterie as ct
from coterie.errors import InputError

ARMS = {"tea": [0.0], "milk": [1.0]}
ODD: list[Any] = [(1, 2), 1.5, None, frozenset({1}), b"ana", UUID(int=1)]


def make(**options: Any) -> ct.Bandit:
    return ct.Bandit(graph=ct.UserGraph.from_edges([("ana", "bo")]), arms=ARMS, policy="lk-gp-ucb", **options)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "add",
    [
        lambda bandit, odd: bandit.add_user(odd),
        lambda bandit, odd: bandit.add_user(odd, ["ana"]),
        lambda bandit, odd: bandit.add_users({"cy": None, odd: ["ana"]}),
        lambda bandit, odd: bandit.add_arms({odd: [0.5]}),
    ],
)
def test_an_id_that_cannot_be_saved_is_refused_at_once(add: Callable[[ct.Bandit, Any], None], odd: Any) -> None:
    bandit = make()
    with pytest.raises(InputError, match=r"ids are texts \(str\) or whole numbers \(int\)"):
        add(bandit, odd)
    assert bandit.graph.users == ("ana", "bo")
    assert bandit.arms.ids == ("tea", "milk")


@pytest.mark.parametrize("odd", [each for each in ODD if each is not None])  # a graph has no user None
def test_a_bandit_is_not_made_with_such_an_id(odd: Any) -> None:
    with pytest.raises(InputError, match="is of type"):
        ct.Bandit(graph=ct.UserGraph.from_edges([(odd, "bo")]), arms=ARMS)
    with pytest.raises(InputError, match="is of type"):
        ct.Bandit(graph=ct.UserGraph.from_edges([("ana", "bo")]), arms={odd: [0.0], "tea": [1.0]})


def test_with_a_journal_it_is_refused_as_well(tmp_path: Path) -> None:
    bandit = make(journal=tmp_path / "journal")
    before = (tmp_path / "journal").read_bytes()
    with pytest.raises(InputError, match=r"id \(1, 2\) is of type tuple"):
        bandit.add_user((1, 2))
    assert (tmp_path / "journal").read_bytes() == before


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    bandit = make()
    bandit.add_user(np.int64(7))
    bandit.add_users({np.int32(8): ["ana"], np.str_("cy"): None})
    bandit.save(tmp_path / "b")
    assert ct.Bandit.load(tmp_path / "b").graph.users == ("ana", "bo", 7, 8, "cy")
