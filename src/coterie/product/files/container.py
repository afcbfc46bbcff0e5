r"""One file of named arrays and JSON: versioned, checksummed, written whole or not at all; no pickle.

8 bytes    b"COTERIE\0"
4 bytes    version of the format, little-endian
4 bytes    CRC-32 of the header
8 bytes    length of the header
header     JSON: {"state": ..., "arrays": [{"name", "dtype", "shape", "order", "offset", "crc32"}, ...]}
arrays     raw little-endian values, each at a multiple of 64 bytes from the start of the file; in C order, or with the
           first index running fastest where "order" is "F"

What a saved bandit puts in it:

state      "settings" (what the Bandit was made with), "users", "arms", "retired", "n_decisions", "learned_at_once" (how
           many of the rewards were learned together, before the others), "stale" (rewards since the weights of older
           ones were last brought up to date), "journal" (its name and how many changes it held, if one is kept),
           "belief" (what the policy's `state` gives, {"array": name} for an array)
arrays     the graph's weights as CSR ("graph_starts", "graph_columns", "graph_weights"), "features", every reward in
           order ("event_users", "event_arms", "event_rewards"), "pending" (number, user, arm), "pending_made_at",
           "settled" (number, event), and the belief's as "belief/...": the kernel's two covariances, the collapsed
           history, and what the engine believes by

`checked/schema.py` says what each of these may be; nothing else is in a file.

Format 1 has no "order" (all is in C order), no "stale" and no "belief": its rewards are learned again.
"""

import json
import math
import os
import struct
import zlib
from collections.abc import Iterable, Mapping
from hashlib import sha256
from io import BufferedIOBase, BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from coterie.errors import SavedFileError
from coterie.product.files.atomic import not_written, replacing
from coterie.product.files.checked.kinds import FLOATS, WHOLES, Held, list_of, one_of, plain, table_of, whole

MAGIC = b"COTERIE\0"
VERSION = 2
ALIGNMENT = 64
USUAL = "bandit.coterie"  # what `coterie init` calls the file in its folder
IN_MEMORY = Path("a bandit in memory")  # in errors, where there is no file
FIXED = struct.Struct("<8sIIQ")
MOST_AXES = 3
PART = table_of(
    {
        "name": plain(str),
        "dtype": one_of(*FLOATS, *WHOLES),  # numbers only: another kind may be read as pointers
        "shape": list_of(whole()),
        "offset": whole(),
        "crc32": whole(),
    },
    {"order": one_of("C", "F")},  # format 1 knows no order
)
HEADER = table_of({"state": plain(dict), "arrays": list_of(PART)})


class Content(NamedTuple):
    """What a file holds.

    Attributes:
        state: The JSON.
        arrays: By name, all in memory: whatever becomes of the file later, they stay.
        digest: Identifies what is in the file: a hash of its header, checksums included.
    """

    state: dict[str, Any]
    arrays: dict[str, Any]
    digest: str


class Part(NamedTuple):
    """Where an array lies in a file, as the header has it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    order: str
    offset: int
    crc32: int

    @property
    def n_bytes(self) -> int:
        """How many bytes it takes; exact, however large."""
        return np.dtype(self.dtype).itemsize * math.prod(self.shape)


def write_container(path: Path, state: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Writes state and arrays to a file, which is there whole or not at all."""
    laid_out = _laid_out(path, state, arrays)  # which may raise: before there is a file
    with replacing(path) as file:
        _write(file, *laid_out)


def as_bytes(state: Mapping[str, Any], arrays: Mapping[str, Any]) -> bytes:
    """Returns what `write_container` writes."""
    file = BytesIO()
    _write(file, *_laid_out(IN_MEMORY, state, arrays))
    return file.getvalue()


def _laid_out(path: Path, state: Mapping[str, Any], arrays: Mapping[str, Any]) -> tuple[bytes, list[Any]]:
    """Returns the header and the arrays that follow it."""
    parts = {name: array if array.flags.forc else array.copy() for name, array in arrays.items()}
    try:
        return _header(state, parts), list(parts.values())
    except ValueError as error:  # a number that is not finite, or half of a character
        raise not_written(path, str(error)) from None


def _write(file: BinaryIO, header: bytes, arrays: list[Any]) -> None:
    file.write(FIXED.pack(MAGIC, VERSION, zlib.crc32(header), len(header)))
    file.write(header)
    for array in arrays:
        file.write(b"\0" * (-file.tell() % ALIGNMENT))
        file.write(_as_laid_out(array))


def read_container(path: Path) -> Content:
    """Returns what a file holds, or raises and says what is wrong with it.

    Every byte is read once, in order, and accounted for; no more memory is taken than the file is long.
    """
    try:
        if path.exists() and not path.is_dir() and not path.is_file():  # opening a pipe would wait for ever
            raise broken(path, "it is not a plain file")
        with path.open("rb") as file:
            return _content(path, file)
    except OSError as error:
        what, inside = f"{str(path)!r} cannot be loaded: {error.strerror or error}", path / USUAL
        remedy = f"Pass {str(inside)!r}" if os.path.isfile(inside) else "Check the path"
        raise SavedFileError(what, "a saved bandit is a file that can be read", remedy) from None


def content_of(content: bytes) -> Content:
    """Returns what `as_bytes` was given, or raises and says what is wrong."""
    return _content(IN_MEMORY, BytesIO(content))


def broken(path: Path, why: str) -> SavedFileError:
    """Returns the error of a file that is not as it was saved."""
    return SavedFileError(f"{str(path)!r} cannot be loaded: {why}", "a saved bandit is read whole", "Use a backup")


def _header(state: Mapping[str, Any], arrays: Mapping[str, Any]) -> bytes:
    """Returns the header; offsets depend on its own length, so it is padded to what they need."""
    described = [
        {
            "name": name,
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "order": "C" if array.flags.c_contiguous else "F",
            "offset": 0,
            "crc32": zlib.crc32(_as_laid_out(array)),
        }
        for name, array in arrays.items()
    ]
    room = len(_json(state, described)) + 20 * len(described)
    offset = FIXED.size + room
    for each, array in zip(described, arrays.values(), strict=True):
        offset += -offset % ALIGNMENT
        each["offset"] = offset
        offset += array.nbytes
    return _json(state, described).ljust(room)


def _json(state: Mapping[str, Any], arrays: list[dict[str, Any]]) -> bytes:
    return json.dumps({"state": state, "arrays": arrays}, ensure_ascii=False, allow_nan=False).encode()


def _as_laid_out(array: Any) -> memoryview:
    """Returns the values of a contiguous array as they lie in memory; nothing is copied."""
    return memoryview(array if array.flags.c_contiguous else array.T)


def _content(path: Path, file: BufferedIOBase) -> Content:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    start = file.read(FIXED.size)
    if len(start) < FIXED.size or not start.startswith(MAGIC):
        what, rule = f"{str(path)!r} is not a file that Coterie saved", "a bandit is loaded from such a file"
        raise SavedFileError(what, rule, "Check the path, or use a backup")
    _, version, checksum, length = FIXED.unpack(start)
    if version > VERSION:
        raise SavedFileError(
            f"{str(path)!r} has format {version}",
            f"this version of Coterie reads formats up to {VERSION}",
            "Use the version that wrote it, or a newer one",
        )
    header = file.read(length) if length <= size else b""
    if len(header) < length or zlib.crc32(header) != checksum:
        raise broken(path, "its header is damaged or cut off")
    try:
        state, parts = _described(_parsed(header), size)
        _check_places(parts, FIXED.size + length, size)
        arrays = {part.name: _array(file, part) for part in parts}
    except (ValueError, RecursionError) as error:
        raise broken(path, str(error)) from None
    return Content(state, arrays, sha256(header).hexdigest())


def _parsed(header: bytes) -> Any:
    """Returns the JSON; what has two meanings or none (a name twice, a number that is not finite) is refused."""
    return json.loads(header, object_pairs_hook=_once_each, parse_constant=_refused, parse_float=_finite)


def _once_each(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in pairs:
        if name in out:
            raise ValueError(f"{name!r} is there twice")
        out[name] = value
    return out


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refused(text)


def _described(header: Any, size: int) -> tuple[dict[str, Any], list[Part]]:
    """Returns the state and the parts of a header, or raises ValueError if it is not one of a file of this size."""
    read = HEADER(header, "its header", Held({}))
    parts = [Part(**{"order": "C", **each, "shape": tuple(each["shape"])}) for each in read["arrays"]]
    for part in parts:
        if len(part.shape) > MOST_AXES or max(part.offset, *part.shape, 0) > size:
            raise ValueError(f"its part {part.name!r} cannot lie in a file of {size} bytes")
    if len({part.name for part in parts}) < len(parts):
        raise ValueError("two of its parts have the same name")
    return read["state"], parts


def _check_places(parts: list[Part], place: int, size: int) -> None:
    """Raises ValueError unless the arrays follow each other from this place on to the end of the file."""
    for part in parts:
        place += -place % ALIGNMENT
        if part.offset != place or part.n_bytes > size - place:
            raise ValueError(f"its part {part.name!r} is cut off, or not where it belongs")
        place += part.n_bytes
    if place != size:
        raise ValueError(f"it has {size} bytes, and its header speaks of {place}")


def _array(file: BufferedIOBase, part: Part) -> Any:
    """Returns the next array of a file, its checksum being that of what lies in memory by now."""
    gap = file.read(-file.tell() % ALIGNMENT)
    out = np.empty(part.shape, part.dtype, order="F" if part.order == "F" else "C")
    n_read = file.readinto(_as_laid_out(out)) if part.n_bytes else 0
    if any(gap) or n_read != part.n_bytes or zlib.crc32(_as_laid_out(out)) != part.crc32:
        raise ValueError(f"its part {part.name!r} is damaged or cut off")
    return out
