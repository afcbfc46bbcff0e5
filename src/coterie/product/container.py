r"""One file of named arrays and JSON: versioned, checksummed, written whole or not at all; no pickle.

8 bytes    b"COTERIE\0"
4 bytes    version of the format, little-endian
4 bytes    CRC-32 of the header
8 bytes    length of the header
header     JSON: {"state": ..., "arrays": [{"name", "dtype", "shape", "offset", "crc32"}, ...]}
arrays     raw little-endian values in C order, each at a multiple of 64 bytes from the start of the file
"""

import json
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from coterie.errors import SavedFileError

MAGIC = b"COTERIE\0"
VERSION = 1
ALIGNMENT = 64
FIXED = struct.Struct("<8sIIQ")


def write_container(path: Path, state: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Writes state and arrays under another name and renames the file: it is there whole or not at all."""
    parts = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    header = _header(state, parts)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(FIXED.pack(MAGIC, VERSION, zlib.crc32(header), len(header)))
            file.write(header)
            for array in parts.values():
                file.write(b"\0" * (-file.tell() % ALIGNMENT))
                file.write(array.data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read_container(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns state and arrays, or raises and says what is wrong with the file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _broken(path, error.strerror or str(error)) from None
    if len(content) < FIXED.size or not content.startswith(MAGIC):
        raise _broken(path, "it is not a file that Coterie saved")
    _, version, checksum, length = FIXED.unpack_from(content)
    if version > VERSION:
        raise SavedFileError(
            f"{str(path)!r} has format {version}",
            f"this version of Coterie reads formats up to {VERSION}",
            "Use the version that wrote it, or a newer one",
        )
    header = content[FIXED.size : FIXED.size + length]
    if len(header) < length or zlib.crc32(header) != checksum:
        raise _broken(path, "its header is damaged or cut off")
    described = json.loads(header)
    return described["state"], {each["name"]: _array(path, content, each) for each in described["arrays"]}


def _header(state: Mapping[str, Any], arrays: Mapping[str, Any]) -> bytes:
    """Returns the header; offsets depend on its own length, so it is padded to what they need."""
    described = [
        {
            "name": name,
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "offset": 0,
            "crc32": zlib.crc32(array.data),
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


def _array(path: Path, content: bytes, described: Mapping[str, Any]) -> Any:
    dtype, shape = np.dtype(described["dtype"]), tuple(described["shape"])
    size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    raw = content[described["offset"] : described["offset"] + size]
    if len(raw) < size or zlib.crc32(raw) != described["crc32"]:
        raise _broken(path, f"its part {described['name']!r} is damaged or cut off")
    return np.frombuffer(raw, dtype).reshape(shape).copy()


def _broken(path: Path, why: str) -> SavedFileError:
    return SavedFileError(f"{str(path)!r} cannot be loaded: {why}", "a saved bandit is read whole", "Use a backup")
