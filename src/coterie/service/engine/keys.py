"""API keys: random, known by their hashes alone, good for some scopes in some experiments."""

import hashlib
import hmac
import secrets
from collections.abc import Iterator

from coterie.service.engine.events import KeyMade, KeyRevoked
from coterie.service.engine.failures import NotThereError
from coterie.service.records import Scope

PREFIX = "ctr"


def new_key(name: str | None = None) -> tuple[str, str, str]:
    """Returns the id of a new key, which may be given, the key itself, and its hash."""
    name, secret = name or secrets.token_hex(6), secrets.token_urlsafe(32)
    key = f"{PREFIX}_{name}_{secret}"
    return name, key, hashed(key)


def hashed(key: str) -> str:
    """Returns what is kept of a key; it has 256 random bits, so that nothing slower is needed."""
    return hashlib.sha256(key.encode()).hexdigest()


class Keys:
    """The keys that are good now.

    Examples:
        >>> keys, (name, key, digest) = Keys(), new_key()
        >>> keys.apply(KeyMade(id=name, hash=digest, scopes=["decide"], experiments=["news"]))
        >>> found = keys.find(key)
        >>> may(found, "decide", "news"), may(found, "decide", "other"), may(found, "admin", "news")
        (True, False, False)
    """

    def __init__(self) -> None:
        self._by_id: dict[str, KeyMade] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[KeyMade]:
        return iter(self._by_id.values())

    def find(self, key: str) -> KeyMade | None:
        """Returns what is known of a key; none if it is no good."""
        parts = key.split("_", 2)
        known = self._by_id.get(parts[1]) if len(parts) == 3 and parts[0] == PREFIX and key.isascii() else None
        return known if known is not None and hmac.compare_digest(known.hash, hashed(key)) else None

    def get(self, name: str) -> KeyMade:
        """Returns a key by its id, or raises."""
        if name not in self._by_id:
            raise NotThereError(f"key {name!r} is not there", "only keys that are good can be changed", "List them")
        return self._by_id[name]

    def apply(self, event: KeyMade | KeyRevoked) -> None:
        """Takes an event into account."""
        if isinstance(event, KeyRevoked):
            self._by_id.pop(event.id, None)
            return
        if event.replaces is not None:
            self._by_id.pop(event.replaces, None)
        self._by_id[event.id] = event


def may(key: KeyMade, scope: Scope, experiment: str | None) -> bool:
    """Returns whether a key is good for something in an experiment; None stands for what concerns all or none."""
    if "admin" not in key.scopes and scope not in key.scopes:
        return False
    return key.experiments is None or (experiment is not None and experiment in key.experiments)
