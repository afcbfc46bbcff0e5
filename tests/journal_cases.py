"""Journals to be tried: every class of the package that is one is found, and opened in a folder."""

import pkgutil
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import isclass, signature
from pathlib import Path
from typing import Any
from zlib import crc32

from hypothesis import strategies as st

import coterie.service.journal as package
from coterie.service.journal import Event, ServiceJournal

MEMBERS = {name for name in vars(ServiceJournal) if not name.startswith("_")}


def journal_classes() -> list[type[Any]]:
    """Returns every class in the package that has all that a journal has."""
    modules = [import_module(f"{package.__name__}.{each.name}") for each in pkgutil.iter_modules(package.__path__)]
    found = {each for module in modules for each in vars(module).values() if isclass(each)} - {ServiceJournal}
    return sorted((each for each in found if MEMBERS.issubset(dir(each))), key=lambda each: each.__name__)


def is_kept(kind: type[Any]) -> bool:
    """Returns whether what a journal holds is there when it is opened again."""
    return "path" in signature(kind).parameters


def opener(kind: type[Any], path: Path) -> Callable[[], ServiceJournal]:
    """Returns what opens a journal at a path, as fast as it can."""
    given = {"path": path, "synchronous": "NORMAL"}
    chosen = {name: given[name] for name in signature(kind).parameters if name in given}
    return lambda: kind(**chosen)


def event(seq: int, *, experiment: str = "news", key: str = "", size: int = 20) -> Event:
    """Returns an event whose body says whether it is whole."""
    filler = bytes((seq * 7 + each) % 251 for each in range(min(size, 251))) * (size // 251 + 1)
    return Event(seq, float(seq), experiment, "decided", key, crc32(filler[:size]).to_bytes(4) + filler[:size])


def is_whole(found: Event) -> bool:
    """Returns whether an event made by `event` is as it was made."""
    return int.from_bytes(found.body[:4]) == crc32(found.body[4:])


def numbered(drawn: Sequence[Sequence[Event]]) -> list[list[Event]]:
    """Returns batches whose events have the numbers from 1 on."""
    numbers = iter(range(1, 1 + sum(map(len, drawn))))
    return [[each._replace(seq=next(numbers)) for each in batch] for batch in drawn]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
events = st.builds(
    Event,
    seq=st.just(0),
    at=st.floats(0, 1e12),
    experiment=st.sampled_from(["", "news", "büros 書"]) | texts,
    kind=st.sampled_from(["decided", "rewarded"]) | texts,
    key=st.sampled_from(["", "a", "b", "ключ"]) | texts,
    body=st.binary(max_size=40),
)
batches = st.lists(st.lists(events, max_size=5), max_size=6).map(numbered)
