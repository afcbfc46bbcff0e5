"""The project's files, written together or not at all, and over nothing that was there."""

import csv
import io
import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from coterie.errors import ParameterError, SavedFileError, counted
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.policies.rules.propensity import check_least
from coterie.product.bandit import Bandit
from coterie.product.project.checked import Arms, Edges, read_arms, read_edges

BANDIT, APP, README, EDGES, ARMS = "bandit.coterie", "app.py", "README.md", "edges.csv", "arms.csv"

APP_TEXT = '''\
"""Decides for a user, learns the reward and saves: a start for a program of your own."""

import sys
from pathlib import Path

from coterie.product import kept

FILE = Path(__file__).with_name("bandit.coterie")
USER = {user}

with kept(FILE) as bandit:  # loads, keeps other programs out, and saves at the end
    decision = bandit.decide(USER)
    print(f"decision {{decision.id}}: show {{decision.arm!r}} to {{USER!r}}", flush=True)  # before it is kept

print("Reward (a number; nothing if it comes later): ", end="", flush=True)
if answer := sys.stdin.readline().strip():
    with kept(FILE) as bandit:
        bandit.reward(decision.id, float(answer))
        print(bandit)
'''

README_TEXT = """\
# A bandit of your own

`bandit.coterie` holds {users}, {edges} and {arms}, and has learned nothing yet.

    coterie decide bandit.coterie {user:<12}# which arm to show; add arms to choose among these only
    coterie reward bandit.coterie 0 1.0       # what came of decision 0; any number, any time later
    coterie inspect bandit.coterie            # what it holds and has learned
    python app.py                             # the same from Python: a start for your own program

`edges.csv` and `arms.csv` are what it was made from; changing them changes nothing. Users, edges and arms come and go
with `bandit.add_user`, `connect`, `add_arms`, `retire_arms` in Python. A service keeps a `coterie.Bandit` in memory and
saves it now and then: each command reads the whole file.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What was made: where, the bandit in it, and the header that was found above the edges, if any."""

    folder: Path
    bandit: Bandit
    edges_header: list[str] | None

    def __str__(self) -> str:
        graph, arms = self.bandit.graph, self.bandit.arms
        above = "no header" if self.edges_header is None else f"below the header {','.join(self.edges_header)!r}"
        user, file = shlex.quote(str(graph.users[0])), shlex.quote(str(self.folder / BANDIT))
        return (
            f"made {self.folder}: {counted(graph.n_users, 'user')} and {counted(graph.n_edges, 'edge')} ({above}), "
            f"{counted(len(arms), 'arm')}, {counted(arms.dimension, 'feature')}\n"
            f"  {BANDIT:<20} the saved bandit\n"
            f"  {APP:<20} a program that decides, learns and saves\n"
            f"  {f'{EDGES}, {ARMS}':<20} what it was made from\n"
            f"  {README:<20} what to do next\n"
            f"next: coterie decide {file} {user}"
        )


def init_project(
    folder: Path,
    *,
    edges: Path,
    arms: Path,
    policy: str = "auto-ucb",
    reward: str = "real",
    min_propensity: float = 0.0,
    seed: int = 0,
    header: bool | None = None,
    int_ids: bool = False,
) -> Project:
    """Returns the project made from a file of edges and one of arms; on an error nothing was written.

    Args:
        folder: Where; made if need be. Nothing in it is overwritten.
        edges: CSV or Parquet: two users, and perhaps a weight.
        arms: CSV with a header or Parquet: the id, then features that are numbers.
        policy: By name.
        reward: "real", or "binary" for rewards of 0 and 1.
        min_propensity: The least probability of every arm, of which there may be so many that all can have it: the
            program that is written chooses among all.
        seed: Fixes the randomness.
        header: Whether the CSV file of edges has one; none to see for ourselves.
        int_ids: Whether ids that are all whole numbers become numbers, in each file for itself; else they are texts.
    """
    _check_free(folder)
    joined, pool = read_edges(edges, header=header, int_ids=int_ids), read_arms(arms, int_ids=int_ids)
    if int_ids and not (joined.numbered or pool.numbered):
        problem = f"neither the users of {edges.name} nor the arms of {arms.name} are all whole numbers"
        raise ParameterError(problem, "--int-ids is for ids that are", "Leave it out, or correct the ids")
    named = ArmPool(list(pool.rows.values()), ids=pool.rows, feature_names=pool.names[1:])
    graph = UserGraph.from_edges(joined.rows)
    bandit = Bandit(graph=graph, arms=named, policy=policy, reward=reward, min_propensity=min_propensity, seed=seed)
    check_least(min_propensity, len(named))
    _write(folder, bandit, _texts(bandit, joined, pool))
    return Project(folder=folder, bandit=bandit, edges_header=joined.header)


def _check_free(folder: Path) -> None:
    taken = [name for name in (BANDIT, APP, README, EDGES, ARMS) if (folder / name).exists()]
    if taken:
        rule = "init never overwrites a file"
        raise SavedFileError(f"{str(folder / taken[0])!r} exists already", rule, "Choose another folder")


def _texts(bandit: Bandit, edges: Edges, arms: Arms) -> dict[str, str]:
    first, graph = bandit.graph.users[0], bandit.graph
    counts = {"user": graph.n_users, "edge": graph.n_edges, "arm": len(bandit.arms)}
    held = {f"{noun}s": counted(number, noun) for noun, number in counts.items()}
    return {
        APP: APP_TEXT.format(user=json.dumps(first, ensure_ascii=False)),
        README: README_TEXT.format(**held, user=shlex.quote(str(first))),
        EDGES: _csv([("user", "other", "weight"), *edges.rows]),
        ARMS: _csv([arms.names, *([arm, *row] for arm, row in arms.rows.items())]),
    }


def _csv(rows: Iterable[Iterable[object]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _write(folder: Path, bandit: Bandit, texts: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    try:
        for name, text in texts.items():
            with (folder / name).open("x", encoding="utf-8", newline="\n") as file:
                written.append(folder / name)
                file.write(text)
        bandit.save(folder / BANDIT)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
