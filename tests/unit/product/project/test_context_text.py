"""Contexts from the shell: a text, or JSON, that a saved bandit decides in."""

import json
from pathlib import Path
from typing import Any

import pytest

import coterie as ct
from coterie.errors import ContextError, ParameterError
from coterie.kernels.schema import ContextSchema
from coterie.product.project import shell
from coterie.product.project.context_text import read_context

SCHEMA = ContextSchema.of({"hour": "number", "device": "category", "late": "flag"})


@pytest.mark.parametrize(
    ("text", "context"),
    [
        ("hour=21,device=phone,late=true", {"hour": 21.0, "device": "phone", "late": True}),
        (" hour = 21 , device = my phone , late = FALSE ", {"hour": 21.0, "device": "my phone", "late": False}),
        ("hour=nine,device=7,late=1", {"hour": "nine", "device": "7", "late": "1"}),
        ("device=true", {"device": "true"}),
        ('{"hour": 21, "device": "a,b=c"}', {"hour": 21, "device": "a,b=c"}),
        ("page=x=y", {"page": "x=y"}),
        ("[1, 2.5]", [1, 2.5]),
    ],
)
def test_a_value_is_of_the_kind_that_is_known(text: str, context: Any) -> None:
    assert read_context(text, SCHEMA) == context


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'' of the context has no name and value"),
        ("hour", "'hour' of the context has no name and value"),
        ("=3", "'=3' of the context has no name and value"),
        ("hour=1,hour=2", "the context has 'hour' twice"),
        ('{"hour": 1, "hour": 2}', "the context has 'hour' twice"),
        ('{"hour": }', "is no JSON: Expecting value"),
    ],
)
def test_what_is_no_context_is_told(text: str, words: str) -> None:
    with pytest.raises(ContextError, match=words):
        read_context(text, SCHEMA)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    graph = ct.UserGraph.from_edges([("ana", "bo")])
    ct.Bandit(graph=graph, arms={"tea": [0.0], "cola": [1.0]}).save(tmp_path / "bandit")
    return tmp_path / "bandit"


def test_a_saved_bandit_learns_the_first_context_and_keeps_to_it(file: Path) -> None:
    shell.decide(file, "ana", context="hour=21,device=phone")
    shell.reward(file, 0, 1.0)
    made = json.loads(shell.decide(file, "bo", ["tea"], context="hour=9,device=7", as_json=True))
    assert (made["id"], made["arm"]) == (1, "tea")
    assert "contexts  hour (number), device (category: 2 known)" in shell.inspect(file)
    before = file.read_bytes()
    for context, words in (
        (None, "the context has no 'hour'"),
        ("hour=late,device=x", "'hour' of the context is 'late'"),
    ):
        with pytest.raises(ContextError, match=words):
            shell.decide(file, "ana", context=context)
    assert file.read_bytes() == before
    assert shell.inspect(file, user="ana", arm="tea", context="hour=9,device=phone").startswith("'tea' for 'ana'")
    with pytest.raises(ParameterError, match="--context is given without --user"):
        shell.inspect(file, context="hour=9")


def test_an_arm_of_one_request_is_named_while_it_waits(file: Path) -> None:
    bandit = ct.Bandit.load(file)
    bandit.decide("ana", {"mate": [0.5]}, {"hour": 3})
    bandit.save(file)
    assert "1 without a reward: 0 (mate for ana)" in shell.inspect(file)


def test_arms_without_features_and_unknown_categories_are_told(tmp_path: Path) -> None:
    graph = ct.UserGraph.from_edges([("ana", "bo")])
    bandit = ct.Bandit(graph=graph, arms=["tea", "cola"], context_schema={"device": ["phone"]})
    bandit.decide("ana", None, {"device": "watch"})
    bandit.save(tmp_path / "bandit")
    told = shell.inspect(tmp_path / "bandit")
    assert "arms      2 with no features" in told
    assert "contexts  device (category: 1 known, 1 times an unknown one)" in told
