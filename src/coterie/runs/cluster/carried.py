"""A store in memory: units on another machine read what was sent along, and what they make is sent back."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from coterie.runs.store import Store


class CarriedStore(Store):
    """The files of units without a folder: they write the same bytes as to one.

    Examples:
        >>> store = CarriedStore()
        >>> with store.carrying({"tuned.json": b'{"songs": {}}'}) as made:
        ...     found = store.read_tuned()
        ...     store.write_facts("songs", {"n_users": 3})
        >>> found, list(made)
        ({'songs': {}}, ['worlds/songs.json'])
    """

    def __init__(self) -> None:
        super().__init__(Path())
        self._given: Mapping[str, bytes] = {}
        self._made: dict[str, bytes] = {}

    @contextmanager
    def carrying(self, files: Mapping[str, bytes]) -> Iterator[dict[str, bytes]]:
        """Lets units read these files, and gives those that they make, by their places in a study's folder."""
        self._given, self._made = files, {}
        try:
            yield self._made
        finally:
            self._given, self._made = {}, {}

    @contextmanager
    def _writing(self, path: Path) -> Iterator[BinaryIO]:
        file = BytesIO()
        yield file
        self._made[path.as_posix()] = file.getvalue()

    def _json(self, path: Path) -> dict[str, Any]:
        place = path.as_posix()
        found = self._made.get(place) or self._given.get(place)
        return dict(json.loads(found)) if found else {}
