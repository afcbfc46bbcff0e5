"""Stores that releases made are opened, migrated and replayed by this one, and answer what they answered then."""

import json
import shutil
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from coterie.service.journal import SqliteJournal
from coterie.service.journal.schema import MIGRATIONS
from service_engines import Kept
from service_store import ANSWERS, FOLDER, STORE, answers

STORES = sorted(FOLDER.parent.glob("service-store-*"))


def assert_same(found: Any, known: Any, where: str = "$") -> None:
    """Compares answers: numbers up to 1e-9, all else exactly."""
    if isinstance(known, float):
        assert found == pytest.approx(known, rel=1e-9, abs=1e-9), where
    elif isinstance(known, dict):
        assert found.keys() == known.keys(), where
        for name in known:
            assert_same(found[name], known[name], f"{where}.{name}")
    elif isinstance(known, list):
        assert len(found) == len(known), where
        for place, each in enumerate(known):
            assert_same(found[place], each, f"{where}[{place}]")
    else:
        assert found == known, where


@pytest.fixture(params=STORES, ids=lambda folder: folder.name)
def former(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """Returns a copy of a store, and what it answers."""
    known = json.loads((request.param / ANSWERS).read_text())
    return Path(shutil.copytree(request.param / STORE, tmp_path / STORE)), known


@pytest.mark.parametrize("use_snapshots", [True, False])
def test_it_answers_what_it_did(former: tuple[Path, dict[str, Any]], use_snapshots: bool) -> None:
    store, known = former
    with closing(SqliteJournal(store)) as journal:
        assert dict(sorted(Counter(event.kind for event in journal.read(1)).items())) == known.pop("kinds")
        kept = Kept(journal=journal)
        kept.engine, recovery = kept.opened(use_snapshots=use_snapshots)
        assert (recovery.snapshot > 0, recovery.n_damaged) == (use_snapshots, 0)
        assert_same(json.loads(json.dumps(answers(kept.engine))), known)


def test_it_is_of_this_version_afterwards_and_goes_on(former: tuple[Path, dict[str, Any]]) -> None:
    store, _ = former
    with closing(SqliteJournal(store)) as journal:
        kept = Kept(journal=journal)
        event_id = kept.decide("ana", "news")
        assert kept.reward(event_id, 0.5) == "applied"
        kept.snapshot()
        last = journal.last_seq
    with closing(SqliteJournal(store)) as journal:
        assert (journal.last_seq, journal._connection.pragma("user_version")) == (last, len(MIGRATIONS))
        assert Kept(journal=journal).recovery.snapshot == last


def test_there_is_one_to_be_tried() -> None:
    assert FOLDER in STORES
