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

Format 1 has no "order" (all is in C order), no "stale" and no "belief": its rewards are learned again.
"""

import json
import os
import struct
import zlib
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from io import BufferedReader
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np

from coterie.errors import SavedFileError

MAGIC = b"COTERIE\0"
VERSION = 2
ALIGNMENT = 64
MAPPED = 2**24  # bytes from which on an array stays in the file until it is needed
USUAL = "bandit.coterie"  # what `coterie init` calls the file in its folder
FIXED = struct.Struct("<8sIIQ")


def write_container(path: Path, state: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Writes state and arrays under another name and renames the file: it is there whole or not at all."""
    if path.is_dir():
        raise not_written(path, "it is a folder")
    parts = {name: array if array.flags.forc else array.copy() for name, array in arrays.items()}
    header = _header(state, parts)
    partial = path.with_name(f"{path.name}.{os.getpid()}-{get_ident()}.partial")  # no other thread's either
    try:
        with partial.open("wb") as file:
            file.write(FIXED.pack(MAGIC, VERSION, zlib.crc32(header), len(header)))
            file.write(header)
            for array in parts.values():
                file.write(b"\0" * (-file.tell() % ALIGNMENT))
                file.write(_as_laid_out(array))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise not_written(path, error.strerror or str(error)) from None
    finally:
        with suppress(OSError):  # where there is no folder, there is nothing in it
            partial.unlink(missing_ok=True)


def read_container(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns state and arrays, or raises and says what is wrong with the file."""
    try:
        with path.open("rb") as file:
            described = _described(path, file)
            return described["state"], {each["name"]: _array(path, file, each) for each in described["arrays"]}
    except OSError as error:
        what, inside = f"{str(path)!r} cannot be loaded: {error.strerror or error}", path / USUAL
        remedy = f"Pass {str(inside)!r}" if inside.is_file() else "Check the path"
        raise SavedFileError(what, "a saved bandit is a file that can be read", remedy) from None


def not_written(path: Path, why: str) -> SavedFileError:
    """Returns the error of a file or folder that cannot be made."""
    rule = "what is written goes to a folder that exists, under a name that no folder has"
    return SavedFileError(f"{str(path)!r} cannot be written: {why}", rule, "Mend that, or give another path")


def digest(path: Path) -> str:
    """Returns a text that tells a file from others with anything else in them, from its header, checksums included."""
    with path.open("rb") as file:
        length = FIXED.unpack(file.read(FIXED.size))[3]
        return sha256(file.read(length)).hexdigest()


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


def _described(path: Path, file: BufferedReader) -> dict[str, Any]:
    """Returns the header."""
    start = file.read(FIXED.size)
    if len(start) < FIXED.size or not start.startswith(MAGIC):
        raise _broken(path, "it is not a file that Coterie saved")
    _, version, checksum, length = FIXED.unpack(start)
    if version > VERSION:
        raise SavedFileError(
            f"{str(path)!r} has format {version}",
            f"this version of Coterie reads formats up to {VERSION}",
            "Use the version that wrote it, or a newer one",
        )
    header = file.read(length) if length <= _size(file) else b""
    if len(header) < length or zlib.crc32(header) != checksum:
        raise _broken(path, "its header is damaged or cut off")
    return dict(json.loads(header))


def _array(path: Path, file: BufferedReader, described: Mapping[str, Any]) -> Any:
    """Returns an array, read to where it stays; a large one is mapped: what is written to it is the caller's alone."""
    shape, offset, dtype = tuple(described["shape"]), described["offset"], np.dtype(described["dtype"])
    n_bytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    whole = offset + n_bytes <= _size(file)
    order = described.get("order", "C")
    if whole and n_bytes >= MAPPED and os.name != "nt":  # there a file that is mapped cannot be replaced by a newer one
        out = np.asarray(np.memmap(file, dtype, "c", offset, shape, order))
    else:
        out = np.empty(shape if whole else 0, dtype, order=order)
        file.seek(offset)
        whole = whole and file.readinto(_as_laid_out(out)) == n_bytes
    if not whole or zlib.crc32(_as_laid_out(out)) != described["crc32"]:
        raise _broken(path, f"its part {described['name']!r} is damaged or cut off")
    return out


def _size(file: BufferedReader) -> int:
    return os.fstat(file.fileno()).st_size


def _broken(path: Path, why: str) -> SavedFileError:
    return SavedFileError(f"{str(path)!r} cannot be loaded: {why}", "a saved bandit is read whole", "Use a backup")
