"""Experiments, their users, edges and arms."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from coterie.service.client.requests.call import (
    Plan,
    Steps,
    got,
    sent,
)
from coterie.service.client.requests.rows import (
    ArmsLike,
    EdgeLike,
    UserLike,
    as_arms,
    as_edge,
    as_users,
    batches,
    new_id,
)
from coterie.service.envelopes import (
    AllArms,
    AllUsers,
    Experiments,
)
from coterie.service.records import (
    ArmsChange,
    Changed,
    EdgesChange,
    ExperimentSettings,
    ExperimentView,
    Graph,
    NewExperiment,
    SettingsChange,
    UsersChange,
)

T = TypeVar("T")
MOST_AT_ONCE = 1000  # rows of a change: decisions wait until it is made
MOST_REMOVED = 1000


def create_experiment(
    id: str | None = None,
    *,
    arms: ArmsLike,
    edges: Iterable[EdgeLike] = (),
    users: Iterable[str] = (),
    settings: ExperimentSettings | None = None,
) -> Plan[ExperimentView]:
    """Makes an experiment, and returns it.

    Args:
        id: Lower-case letters, digits, _ and -; one is made if none is given.
        arms: Ids with features, or ids alone.
        edges: Who is near whom: (user, other) or (user, other, weight).
        users: Users without edges; others need not be named.
        settings: How it decides and learns.
    """
    graph = Graph(users=list(users), edges=[as_edge(edge) for edge in edges])
    given = asdict(settings or ExperimentSettings())
    new = NewExperiment(id=id or new_id(), graph=graph, arms=as_arms(arms), **given)
    return sent(ExperimentView, "POST", new, "v1", "experiments", is_repeatable=False)


def experiments() -> Steps[list[ExperimentView]]:
    """Returns the experiments that the key may read."""
    return (yield from got(Experiments, "v1", "experiments")).experiments


def experiment(experiment: str) -> Plan[ExperimentView]:
    """Returns an experiment as it stands."""
    return got(ExperimentView, "v1", "experiments", experiment)


def configure(experiment: str, change: SettingsChange) -> Plan[ExperimentView]:
    """Changes settings of an experiment, and returns it."""
    return sent(ExperimentView, "PATCH", change, "v1", "experiments", experiment)


def archive(experiment: str) -> Plan[ExperimentView]:
    """Ends an experiment, which can still be read, and returns it."""
    return sent(ExperimentView, "DELETE", None, "v1", "experiments", experiment, is_repeatable=False)


def reset(experiment: str) -> Plan[ExperimentView]:
    """Lets an experiment forget what it has learned, and returns it; graph, arms and settings stay."""
    path = ("v1", "experiments", experiment, "reset")
    return sent(ExperimentView, "POST", None, *path, is_repeatable=False)


# Users, edges, arms


def _in_batches(
    path: Sequence[str],
    rows: Iterable[T],
    body: Callable[[list[T]], Struct],
    progress: Callable[[int], None] | None = None,
) -> Steps[Changed]:
    """Makes a change batch by batch, and returns what the last one led to."""
    done, changed = 0, Changed(version=0, seq=0)
    for batch in [*batches(rows, MOST_AT_ONCE)] or [[]]:
        changed = yield from sent(Changed, "PATCH", body(batch), *path)
        done += len(batch)
        if progress is not None:
            progress(done)
    return changed


def set_edges(
    experiment: str, edges: Iterable[EdgeLike], *, progress: Callable[[int], None] | None = None
) -> Plan[Changed]:
    """Sets edges, many of them in batches, and returns the last change.

    Args:
        experiment: Of which.
        edges: (user, other) or (user, other, weight), of users that are there; weight 0 takes an edge away.
        progress: Called after each batch with the number of edges so far.
    """
    path = ("v1", "experiments", experiment, "graph", "edges")
    return _in_batches(path, map(as_edge, edges), lambda batch: EdgesChange(edges=batch), progress)


def replace_edges(experiment: str, edges: Iterable[EdgeLike]) -> Plan[Changed]:
    """Sets edges, in one request, and takes all others away."""
    body = EdgesChange(edges=[as_edge(edge) for edge in edges])
    return sent(Changed, "PUT", body, "v1", "experiments", experiment, "graph", "edges")


def add_users(
    experiment: str, users: Iterable[UserLike], *, progress: Callable[[int], None] | None = None
) -> Plan[Changed]:
    """Adds users, with friends where a `User` names them, many in batches; returns the last change."""
    path = ("v1", "experiments", experiment, "users")
    return _in_batches(path, as_users(users), lambda batch: UsersChange(add=batch), progress)


def remove_users(experiment: str, users: Iterable[str]) -> Steps[Changed]:
    """Removes users with what was learned from them; returns the last change."""
    path, changed = ("v1", "experiments", experiment, "users"), Changed(version=0, seq=0)
    for batch in [*batches(users, MOST_REMOVED)] or [[]]:
        changed = yield from sent(Changed, "PATCH", UsersChange(remove=batch), *path, is_repeatable=False)
    return changed


def replace_users(experiment: str, users: Iterable[UserLike]) -> Plan[Changed]:
    """Adds the users that are new, in one request, and removes all that are not named."""
    body = AllUsers(users=as_users(users))
    return sent(Changed, "PUT", body, "v1", "experiments", experiment, "users")


def put_arms(experiment: str, arms: ArmsLike, *, progress: Callable[[int], None] | None = None) -> Plan[Changed]:
    """Adds arms, or gives them other features, many in batches; returns the last change."""
    path = ("v1", "experiments", experiment, "arms")
    return _in_batches(path, as_arms(arms), lambda batch: ArmsChange(put=batch), progress)


def retire_arms(experiment: str, arms: Iterable[str]) -> Plan[Changed]:
    """Lets arms be shown no more; what was learned of them stays."""
    path = ("v1", "experiments", experiment, "arms")
    return _in_batches(path, arms, lambda batch: ArmsChange(retire=batch))


def revive_arms(experiment: str, arms: Iterable[str]) -> Plan[Changed]:
    """Lets retired arms be shown again."""
    path = ("v1", "experiments", experiment, "arms")
    return _in_batches(path, arms, lambda batch: ArmsChange(revive=batch))


def replace_arms(experiment: str, arms: ArmsLike) -> Plan[Changed]:
    """Adds arms or gives them other features, in one request, and retires all that are not named."""
    return sent(Changed, "PUT", AllArms(arms=as_arms(arms)), "v1", "experiments", experiment, "arms")
