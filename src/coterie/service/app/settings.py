"""The settings of the service, validated once, at its start."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import asdict

from coterie.errors import ParameterError
from coterie.service.records import ExperimentId

Time: TypeAlias = Annotated[float, Meta(gt=0, le=86_400)]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=1_000_000)]


class ServiceSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the service runs.

    Attributes:
        host: The address that it listens on; only this computer reaches it by default.
        port: The port; 0 takes one that is free.
        store: The folder of the journal.
        most_body_bytes: The largest body of a request.
        most_bytes_in_work: The largest sum of all bodies that are read or worked on.
        most_requests: How many requests may be in work or wait for a commit; others are to come again later.
        most_connections: How many connections may be open.
        most_reads_waiting: How many long reads may wait for each other.
        header_seconds: How long the head of a request may take, and the other end to read an answer.
        request_seconds: How long a request may take, its body and its commit included.
        read_seconds: How long a long read may take, with its wait for others.
        keep_alive_seconds: How long a connection may be idle.
        shutdown_seconds: How long requests in work may take when the service stops.
        rate_per_key: Requests a second that one key may make; none means any number.
        burst_per_key: How many of them may come at once.
        snapshot_every: Events after which a snapshot is taken; 0 for never.
        tick_every: Seconds between looks for decisions that have waited too long.
        log_requests: Whether there is a line in the log for each request.
        personalizer_experiment: The experiment of the Personalizer routes, for keys that have not exactly one.
        personalizer_user: The feature of a context that is the id of the user.
    """

    host: Annotated[str, Meta(min_length=1, max_length=253)] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8711
    store: Annotated[str, Meta(min_length=1)] = "coterie-store"
    most_body_bytes: Annotated[int, Meta(ge=1024, le=2**30)] = 4 * 2**20
    most_bytes_in_work: Annotated[int, Meta(ge=1024, le=2**36)] = 64 * 2**20
    most_requests: Count = 1000
    most_connections: Count = 5000
    most_reads_waiting: Count = 8
    header_seconds: Time = 10.0
    request_seconds: Time = 20.0
    read_seconds: Time = 300.0
    keep_alive_seconds: Annotated[int, Meta(ge=1, le=3600)] = 30
    shutdown_seconds: Annotated[int, Meta(ge=1, le=3600)] = 10
    rate_per_key: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    burst_per_key: Count = 100
    snapshot_every: Annotated[int, Meta(ge=0, le=10**9)] = 20_000
    tick_every: Time = 1.0
    log_requests: bool = True
    personalizer_experiment: ExperimentId | None = None
    personalizer_user: Annotated[str, Meta(min_length=1, max_length=200)] = "user"


def settings_of(values: Mapping[str, Any]) -> ServiceSettings:
    """Returns the settings that are named, and the others as they are by default; raises ParameterError if one is none.

    Examples:
        >>> settings_of({"port": 70_000})
        Traceback (most recent call last):
        coterie.errors.ParameterError: a setting is wrong: Expected `int` <= 65535 - at `$.port`; settings of the
        service have names, types and ranges. See docs/service.md.
    """
    try:
        return convert(dict(values), ServiceSettings)
    except ValidationError as error:
        rule = "settings of the service have names, types and ranges"
        raise ParameterError(f"a setting is wrong: {error}", rule, "See docs/service.md") from None


def checked(settings: ServiceSettings) -> ServiceSettings:
    """Returns settings if each is in its range; raises ParameterError otherwise."""
    return settings_of(asdict(settings))
