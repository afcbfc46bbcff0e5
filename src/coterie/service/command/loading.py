"""Tables of users, edges and arms, sent to an experiment in batches."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from coterie.errors import ArmError, GraphError, InputError, ParameterError, counted
from coterie.logs.tables import read_table
from coterie.product.bulk.progress import ProgressLines
from coterie.product.project.checked import read_arms, read_edges
from coterie.service.client import Arm, Client, Edge, RequestRefusedError

FIRST = 1000  # users and arms that a new experiment is made with; the others follow in batches


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What was read from files, all of it checked before any of it is sent.

    Attributes:
        users: Those that are named, and those of the edges.
        edges: Who is near whom.
        arms: Each with its features.
    """

    users: list[str]
    edges: list[Edge]
    arms: list[Arm]

    def __str__(self) -> str:
        counts = {"user": len(self.users), "edge": len(self.edges), "arm": len(self.arms)}
        return ", ".join(counted(f"{number:,}", noun) for noun, number in counts.items() if number)


def read_tables(*, users: Path | None, edges: Path | None, arms: Path | None, header: bool | None = None) -> Tables:
    """Returns what tables hold, CSV or Parquet; raises if there is none, or one is wrong.

    Args:
        users: The id first; the first line of CSV names the columns.
        edges: Two users, and perhaps a weight.
        arms: The id first, then features; the first line of CSV names the columns.
        header: Whether the CSV file of edges has one; none to see for ourselves.
    """
    if users is None and edges is None and arms is None:
        raise ParameterError("there is nothing to load", "tables are --users, --edges and --arms", "Name at least one")
    joined = [] if edges is None else read_edges(edges, header=header).rows
    ends = (str(end) for edge in joined for end in edge[:2])
    named = [] if users is None else _read_ids(users, GraphError)
    return Tables(
        users=list(dict.fromkeys([*named, *ends])),
        edges=[Edge(user=str(user), other=str(other), weight=weight) for user, other, weight in joined],
        arms=[] if arms is None else _read_arms(arms),
    )


def _read_ids(path: Path, error: type[InputError]) -> list[str]:
    """Returns the first column of a table, whose columns have names."""
    table = read_table(path, error)
    rows = table.rows[1:] if table.names is None else table.rows
    for number, cells in rows:
        if not cells[0]:
            raise table.wrong(number, "the id is missing", "every row has one", "Fill it in")
    return [cells[0] for _, cells in rows]


def _read_arms(path: Path) -> list[Arm]:
    if len(read_table(path, ArmError).rows[0][1]) == 1:
        return [Arm(id=arm) for arm in _read_ids(path, ArmError)]
    arms = read_arms(path)
    return [Arm(id=str(arm), features=dict(zip(arms.names[1:], row, strict=True))) for arm, row in arms.rows.items()]


def load(client: Client, experiment: str, tables: Tables, *, create: bool, lines: ProgressLines) -> str:
    """Sends tables to an experiment, and returns a line on what it holds then.

    Args:
        client: Of the service.
        experiment: Its id.
        tables: What to send.
        create: Whether to make the experiment if it is not there.
        lines: Are told how far it is.
    """
    _check_there(client, experiment, tables, create)

    def told(what: str, total: int) -> Callable[[int], None]:
        lines(f"loading {what}", 0, total, what)
        return lambda done: lines(f"loading {what}", done, total, what)

    if tables.users:
        client.add_users(experiment, tables.users, progress=told("users", len(tables.users)))
    if tables.edges:
        client.set_edges(experiment, tables.edges, progress=told("edges", len(tables.edges)))
    if tables.arms:
        client.put_arms(experiment, tables.arms, progress=told("arms", len(tables.arms)))
    view = client.experiment(experiment)
    holds = f"{view.n_users:,} users, {view.n_edges:,} edges and {view.n_arms:,} arms"
    return f"loaded {tables}; experiment {experiment!r} has {holds}"


def _check_there(client: Client, experiment: str, tables: Tables, create: bool) -> None:
    """Makes the experiment if that is wanted; raises if it is not there otherwise."""
    try:
        client.experiment(experiment)
        return
    except RequestRefusedError as error:
        if error.status != 404:
            raise
    if not create:
        rule = "tables are loaded into an experiment that is there"
        raise ParameterError(f"there is no experiment {experiment!r}", rule, "Create it first, or pass --create")
    if not tables.users or not tables.arms:
        rule = "a new experiment has users and arms"
        raise ParameterError(f"experiment {experiment!r} cannot be made", rule, "Give --arms, and --edges or --users")
    client.create_experiment(experiment, arms=tables.arms[:FIRST], users=tables.users[:FIRST])
