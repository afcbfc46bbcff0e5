"""The tables of a store, their version, and how a store of a former version becomes one of this."""

from pathlib import Path

import apsw

from coterie.errors import StoreError

APPLICATION_ID = int.from_bytes(b"CoJ1")  # in the header of the file: says whose it is

# Number n brings a store of version n to version n + 1. One that was released is never changed again.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        experiment TEXT NOT NULL,
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        body BLOB NOT NULL
    ) STRICT;
    CREATE INDEX events_by_key ON events (key) WHERE key <> '';
    """,
)


def prepare(connection: apsw.Connection, file: Path) -> None:
    """Makes the tables of a new store, or brings those of an older one to this version; raises if it is none."""
    version = _version_of(connection, file)
    if connection.pragma("journal_mode", "wal") != "wal":
        rule = "a store is on a local disk, where its log and shared memory can lie beside it"
        raise StoreError(f"{str(file)!r} cannot be written ahead of", rule, "Use a folder on a local disk")
    for number, statements in enumerate(MIGRATIONS[version:], version + 1):
        connection.execute(
            f"BEGIN IMMEDIATE; {statements};"
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number}; COMMIT"
        )


def _version_of(connection: apsw.Connection, file: Path) -> int:
    """Returns the version of a store, 0 for a new file, or raises if this release cannot use it."""
    owner, version = connection.pragma("application_id"), connection.pragma("user_version")
    is_empty = not connection.execute("SELECT count(*) FROM sqlite_schema").get
    if owner != APPLICATION_ID and not (owner == version == 0 and is_empty):
        rule = "a store is a folder that the service made"
        raise StoreError(f"{str(file)!r} is a database of another program", rule, "Give another folder")
    if version > len(MIGRATIONS):
        rule = f"this release reads versions up to {len(MIGRATIONS)}"
        raise StoreError(f"{str(file)!r} has version {version}", rule, "Use the release that made it, or a newer one")
    return int(version)
