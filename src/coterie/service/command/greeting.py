"""What the command prints when the service is ready: where it is, its first key, and what to try."""

import os
from pathlib import Path

from coterie.contracts import VERSION
from coterie.errors import counted

LOOPBACK = ("127.0.0.1", "::1", "localhost")
ASK = 'curl -sS -H "Authorization: Bearer $COTERIE_KEY" -H "Content-Type: application/json"'
SONGS = (
    '{"id": "songs", "graph": {"edges": [{"user": "ana", "other": "bo"}, {"user": "bo", "other": "cy"}]}, '
    '"arms": [{"id": "hymn", "features": {"tempo": 0.2}}, {"id": "punk", "features": {"tempo": 0.9}}]}'
)


def address(host: str, port: int) -> str:
    """Returns where the service is found from this computer.

    Examples:
        >>> address("0.0.0.0", 80), address("::1", 8711)
        ('http://127.0.0.1:80', 'http://[::1]:8711')
    """
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{here}]:{port}" if ":" in here else f"http://{here}:{port}"


def where(url: str, store: str, n_events: int, host: str) -> str:
    """Returns the lines that say where the service, its store and its process are."""
    open_to_all = "" if host in LOOPBACK else f"\nIt listens on {host}, and speaks no TLS: put a proxy before it."
    events = counted(f"{n_events:,}", "event")
    kept = f"store: {Path(store).resolve()}, {events}; process: {os.getpid()}"
    return f"coterie {VERSION} at {url}; its routes: {url}/docs\n{kept}{open_to_all}"


def key_lines(url: str, key: str) -> str:
    """Returns the lines with a key that is told only now."""
    return (
        f"A key that may do everything. It is told only now; paste this into another terminal:\n\n"
        f"    export COTERIE_URL={url} COTERIE_KEY={key}\n"
    )


def try_lines(experiment: str, user: str, event_id: str, *, is_there: bool) -> str:
    """Returns requests to paste: an experiment unless it is there, a decision and its reward."""
    decision = f'{{"user": "{user}", "event_id": "{event_id}"}}'
    lines = [] if is_there else [f"{ASK} $COTERIE_URL/v1/experiments -d '{SONGS}'; echo"]
    lines += [
        f"{ASK} $COTERIE_URL/v1/experiments/{experiment}/decisions -d '{decision}'; echo",
        f"{ASK} $COTERIE_URL/v1/events/{event_id}/reward -d '{{\"value\": 1}}'; echo",
        f"{ASK} $COTERIE_URL/v1/experiments/{experiment}; echo",
    ]
    return "Then these, as they are:\n\n" + "\n".join(f"    {line}" for line in lines) + "\n"
