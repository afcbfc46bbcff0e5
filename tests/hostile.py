"""Saved files with one thing changed, and checksums that are right again."""

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from coterie.product.files.container import ALIGNMENT, FIXED, MAGIC, VERSION

ODD_NUMBERS = [-1, 0, 1, 2, 7, 2**31, 2**63, 2**70, 10**400, -0.5, 0.5, 1e-300, 1e308, np.nan, np.inf, -np.inf]
ODD_TEXTS = ["", "x", "exact", "sparse", "auto-ts", "club", "\ud800"]
ODD_TABLES: list[Any] = [[], [[]], [1], {}, {"array": "features"}, {"array": "nothing"}, {"array": 3}, {"x": 1}]
ODD_VALUES: list[Any] = [None, True, False, *ODD_NUMBERS, *ODD_TEXTS, *ODD_TABLES]
ODD_SHAPES: list[Any] = [[2**60], [2**32, 2**32], [-1], [1.5], "x", None, [], [0]]
ODD_DTYPES = ["|O", ">f8", "<f4", "<i8", "<i4", "<f8", "<U2", "|V8", "|b1", "<c16", "M8[s]", "", "x", 3, None, ["<f8"]]
IN_ARRAYS = [0.0, -1.0, 1.0, 0.5, 3.0, 1e9, -1e300, 1e308, np.nan, np.inf, -np.inf, 2.0**62]
NEW_NAMES = ["journal", "clock", "graph", "arms", "x", "seed", "model", "array", "score", ""]


@dataclass
class Raw:
    """A file taken apart: its JSON, and of each array what the header says and the bytes."""

    state: dict[str, Any]
    told: list[dict[str, Any]]
    blobs: list[bytes]
    header: dict[str, Any] = field(default_factory=dict)  # what else is to be in it
    tail: bytes = b""

    @classmethod
    def of(cls, content: bytes) -> "Raw":
        length = FIXED.unpack(content[: FIXED.size])[3]
        header = json.loads(content[FIXED.size : FIXED.size + length])
        blobs = []
        for each in header["arrays"]:
            size = int(np.prod(each["shape"])) * np.dtype(each["dtype"]).itemsize
            blobs.append(content[each["offset"] : each["offset"] + size])
        return cls(header["state"], header["arrays"], blobs)

    def copy(self) -> "Raw":
        told = json.loads(json.dumps(self.told))
        return Raw(json.loads(json.dumps(self.state)), told, list(self.blobs))

    def packed(self, *, moved: dict[int, int] | None = None) -> bytes:
        """Returns the file; `moved` adds to the offset that some arrays are told to have."""
        moved, sums = moved or {}, [zlib.crc32(blob) for blob in self.blobs]
        told = [{**each, "crc32": total} for each, total in zip(self.told, sums, strict=True)]
        room = len(self._json(told)) + 24 * len(told)
        place, gaps = FIXED.size + room, []
        for i, blob in enumerate(self.blobs):
            gaps.append(-place % ALIGNMENT)
            told[i]["offset"] = place + gaps[-1] + moved.get(i, 0)
            place += gaps[-1] + len(blob)
        header = self._json(told).ljust(room)
        body = b"".join(b"\0" * gap + blob for gap, blob in zip(gaps, self.blobs, strict=True))
        return FIXED.pack(MAGIC, VERSION, zlib.crc32(header), len(header)) + header + body + self.tail

    def _json(self, told: list[dict[str, Any]]) -> bytes:
        return json.dumps({"state": self.state, "arrays": told, **self.header}).encode()


def places(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the way to every value of nested tables and lists."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*at, key)
        yield from places(value, (*at, key))


def at(tree: Any, way: tuple[Any, ...]) -> Any:
    for key in way:
        tree = tree[key]
    return tree


def mutated(raw: Raw, rng: Random) -> tuple[str, bytes]:
    """Returns where something was changed, and the file with it changed."""
    return rng.choice(CHANGES)(raw.copy(), rng)


def _change_value(raw: Raw, rng: Random) -> tuple[str, bytes]:
    way = rng.choice(list(places(raw.state)))
    parent, before = at(raw.state, way[:-1]), at(raw.state, way)
    number = isinstance(before, int | float) and not isinstance(before, bool)
    after = rng.choice([*ODD_VALUES, *([-before, before + 1, before * 2, before * (1 + 1e-4)] * 4 if number else [])])
    parent[way[-1]] = after
    return "/".join(map(str, way)), raw.packed()


def _change_names(raw: Raw, rng: Random) -> tuple[str, bytes]:
    tables = [way for way in [(), *places(raw.state)] if isinstance(at(raw.state, way), dict | list)]
    way = rng.choice(tables)
    table = at(raw.state, way)
    if isinstance(table, list):
        if table and rng.random() < 0.7:
            table.pop(rng.randrange(len(table))) if rng.random() < 0.5 else table.append(rng.choice(table))
        elif table:
            rng.shuffle(table)
        else:
            table.append(rng.choice(ODD_VALUES))
        return "/".join(map(str, way)), raw.packed()
    name = rng.choice([*table, "x"])
    kind = rng.randrange(3)
    if kind == 0:
        table.pop(name, None)
    elif kind == 1:
        name = rng.choice(NEW_NAMES)
        table[name] = rng.choice(ODD_VALUES)
    elif name in table:
        table[rng.choice(["x", name.upper(), name + " "])] = table.pop(name)
    return "/".join(map(str, (*way, name))), raw.packed()


def _change_array(raw: Raw, rng: Random) -> tuple[str, bytes]:
    """Changes the numbers of an array, or how many there are."""
    i = rng.choice([i for i, blob in enumerate(raw.blobs) if blob])
    told = raw.told[i]
    array = np.frombuffer(raw.blobs[i], told["dtype"]).copy()
    shaped = array.reshape(told["shape"], order=told["order"])
    kind = rng.randrange(7)
    if kind <= 1:
        place = rng.randrange(array.size)
        value = rng.choice([*IN_ARRAYS, -float(array[place]), 2.0 * float(array[place]), float(array[place]) + 1.0])
        with np.errstate(all="ignore"):
            array[place] = np.array(value).astype(array.dtype)
    elif kind == 2:
        np.random.default_rng(rng.randrange(99)).shuffle(array)
    elif kind == 3:
        array = -array
    elif kind == 4:
        array = array[::-1].copy()
    elif kind == 5 and shaped.shape:
        axis = rng.randrange(shaped.ndim)
        shaped = np.take(shaped, range(shaped.shape[axis] - 1), axis=axis)
        told["shape"], array = list(shaped.shape), shaped.ravel(order=told["order"])
    else:
        array[:] = rng.choice([0, 1])
    raw.blobs[i] = array.tobytes()
    return str(told["name"]), raw.packed()


def _change_told(raw: Raw, rng: Random) -> tuple[str, bytes]:
    """Changes what the header says of an array."""
    i, j = (rng.randrange(len(raw.told)) for _ in range(2))
    told, kind, moved = raw.told[i], rng.randrange(9), {}
    shape = told["shape"]
    if kind == 0:
        told["dtype"] = rng.choice(ODD_DTYPES)
    elif kind == 1:
        told["order"] = {"C": "F", "F": "C"}[told["order"]] if rng.random() < 0.5 else rng.choice(["x", None, 3])
    elif kind == 2:
        moved[i] = rng.choice([-64, 64, 1, 10**6, 2**63, -(2**63)])
    elif kind == 3:
        told["name"] = rng.choice([raw.told[j]["name"], "x", "", None, 3, "belief/model"])
    elif kind == 4:
        told["shape"] = rng.choice([shape[::-1], [*shape, 1], [1, *shape], *ODD_SHAPES])
    elif kind == 5:
        raw.told[i]["name"], raw.told[j]["name"] = raw.told[j]["name"], raw.told[i]["name"]
    elif kind == 6:
        raw.told.append({**told, "name": rng.choice(["x", told["name"]])})
        raw.blobs.append(raw.blobs[i])
    elif kind == 7:
        del raw.told[i], raw.blobs[i]
    else:
        told.pop(rng.choice(list(told)), None) if rng.random() < 0.5 else told.update(x=1)
    return str(told.get("name", "told")), raw.packed(moved=moved)


def _change_file(raw: Raw, rng: Random) -> tuple[str, bytes]:
    kind = rng.randrange(5)
    if kind == 0:
        raw.tail = b"\0" * rng.choice([1, 64])
    elif kind == 1:
        raw.header = {rng.choice(["x", "arrays", "state"]): rng.choice(ODD_VALUES)}
    content = raw.packed()
    if kind == 2:
        content = content[: rng.randrange(len(content))]
    elif kind == 3:
        length = FIXED.unpack(content[: FIXED.size])[3]
        header = content[FIXED.size : FIXED.size + length].replace(b'"state": {', b'"state": {"users": [], ', 1)
        start = FIXED.pack(MAGIC, VERSION, zlib.crc32(header), len(header))
        content = start + header + content[FIXED.size + length :]
    elif kind == 4:
        place = rng.randrange(len(content))
        content = content[:place] + bytes([content[place] ^ (1 << rng.randrange(8))]) + content[place + 1 :]
    return "file", content


CHANGES = [_change_value, _change_value, _change_names, _change_array, _change_array, _change_told, _change_file]
