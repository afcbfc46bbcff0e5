"""What is known, the keys, and whether the service is there."""

from collections.abc import Iterable
from typing import Any

from coterie.service.client.requests.call import (
    Call,
    Plan,
    Steps,
    as_any,
    as_lines,
    as_nothing,
    encode,
    got,
    path_of,
    sent,
)
from coterie.service.client.sending.failures import ServiceError
from coterie.service.envelopes import (
    Keys,
    KeyView,
    MadeKey,
    NewKey,
)
from coterie.service.records import (
    Context,
    Scope,
)

# What is known


def explain(experiment: str, user: str, arm: str, context: Context | None = None) -> Plan[dict[str, Any]]:
    """Returns why the service believes what it believes of an arm for a user."""
    params = {"user": user, "arm": arm}
    if context is not None:
        params["context"] = encode(context).decode()
    path = path_of("v1", "experiments", experiment, "explain")
    return Call(method="GET", path=path, params=params, decode=as_any)


def graph_report(experiment: str) -> Plan[dict[str, Any]]:
    """Returns whether the graph helps."""
    return Call(method="GET", path=path_of("v1", "experiments", experiment, "graph-report"), decode=as_any)


def export(experiment: str) -> Plan[bytes]:
    """Returns the experiment's bandit as a file: written to disk, `coterie.Bandit.load` reads it."""
    return Call(method="GET", path=path_of("v1", "experiments", experiment, "export"), decode=bytes)


def evaluations(experiment: str, policies: Iterable[str], **options: str | float | bool) -> Plan[dict[str, Any]]:
    """Returns what other policies would have earned, by the experiment's own log; options are those of the route."""
    params = {"policies": ",".join(policies)} | {
        name: encode(value).decode().strip('"') for name, value in options.items()
    }
    path = path_of("v1", "experiments", experiment, "evaluations")
    return Call(method="GET", path=path, params=params, decode=as_any)


def metrics() -> Plan[str]:
    """Returns the counts of the service, in the text format of Prometheus."""
    return Call(method="GET", path=path_of("metrics"), decode=lambda content: content.decode())


def log_page(experiment: str, from_seq: int, limit: int) -> Plan[list[dict[str, Any]]]:
    """Returns some events of an experiment, from a number on, in order."""
    params = {"from_seq": str(from_seq), "limit": str(limit)}
    path = path_of("v1", "experiments", experiment, "log")
    return Call(method="GET", path=path, params=params, decode=as_lines)


# Keys


def keys() -> Steps[list[KeyView]]:
    """Returns the keys that are good now."""
    return (yield from got(Keys, "v1", "keys")).keys


def make_key(scopes: Iterable[Scope], experiments: Iterable[str] | None = None) -> Plan[MadeKey]:
    """Makes a key, and returns it: nobody can be told it again."""
    body = NewKey(scopes=list(scopes), experiments=None if experiments is None else list(experiments))
    return sent(MadeKey, "POST", body, "v1", "keys", is_repeatable=False)


def rotate_key(id: str) -> Plan[MadeKey]:
    """Puts a new key in the place of one, which is no good from then on; returns the new one."""
    return sent(MadeKey, "POST", None, "v1", "keys", id, "rotate", is_repeatable=False)


def revoke_key(id: str) -> Plan[None]:
    """Makes a key no good, at once."""
    path = path_of("v1", "keys", id)
    return Call(method="DELETE", path=path, decode=as_nothing, is_repeatable=False)


# Health


def livez() -> Plan[bool]:
    """Returns whether there is a service at the address."""
    return _answers("livez")


def ready() -> Plan[bool]:
    """Returns whether the service takes decisions; it does not before its log is read."""
    return _answers("readyz")


def _answers(part: str) -> Steps[bool]:
    try:
        yield from Call(method="GET", path=path_of(part), decode=as_nothing, attempts=1)
    except ServiceError as error:
        if error.status not in (None, 503):
            raise
        return False
    return True
