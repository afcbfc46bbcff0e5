"""A store of the service with everything in it that can happen, and what it is to answer for ever.

`python tests/service_store.py` makes tests/data/service-store-1 again. That is for before a release only: from then on
it is what that release wrote, and a later one gets a store of its own.
"""

import json
import shutil
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, get_args

from msgspec import to_builtins

from coterie.service.engine import reading
from coterie.service.engine.bandits import bandit_of_bytes
from coterie.service.engine.engine import Engine
from coterie.service.engine.events import AnyBody
from coterie.service.engine.held import HELD_FOR
from coterie.service.journal import SqliteJournal
from coterie.service.records import Arm, ArmsChange, DecisionRequest, Edge, SettingsChange, User, UsersChange
from service_engines import USERS, Kept, experiment

FOLDER = Path(__file__).parent / "data" / "service-store-1"
STORE, ANSWERS = "store", "answers.json"
CONTEXT = {"hour": 9.0, "device": "phone"}
LIKED = {"tea": 0.7, "ale": 0.4, "gin": 0.1, "rum": 0.5}


def play(kept: Kept, name: str, n_rounds: int, chance: Random, *, binary: bool = False, **asked: Any) -> None:
    """Decides and rewards for a while, with contexts where they are asked for."""
    for step in range(n_rounds):
        kept.now += 1.0
        if "context" in asked:
            asked["context"] = {"hour": float(step % 24), "device": "phone" if step % 3 else "desk"}
        answer, _ = kept.engine.decide(
            name, DecisionRequest(user=USERS[step % 4], event_id=f"{name}-{kept.now}", **asked)
        )
        value = LIKED[answer.arm] + 0.1 * (step % 4)
        if chance.random() < 0.8:
            kept.reward(answer.event_id, float(chance.random() < value) if binary else value + 0.1 * chance.gauss(0, 1))
        if step % 5 == 0:
            kept.commit()


def first_day(kept: Kept, chance: Random) -> None:
    """Makes keys and experiments, and lets them learn."""
    engine = kept.engine
    engine.make_key(["admin", "decide", "reward", "read"])
    reader, _, _ = engine.make_key(["read"], ["news"])
    decider, _, _ = engine.make_key(["decide", "reward"], ["clicks"])
    engine.rotate_key(reader.id)
    engine.revoke_key(decider.id)
    engine.create(experiment("news"))
    engine.create(experiment("moments", aggregation="mean", exploration_floor=0.02))
    engine.create(experiment("clicks", policy="auto-ts", binary=True, wait_time=30.0, default_reward=0.0))
    engine.create(experiment("forgetful", policy="lk-gp-ts", forgetting=0.98, aggregation="sum", seed=7))
    engine.create(experiment("former", policy="lk-gp-ucb"))
    play(kept, "news", 40, chance)
    play(kept, "moments", 30, chance, context=CONTEXT)
    play(kept, "clicks", 40, chance, binary=True)
    play(kept, "forgetful", 30, chance, k=2)
    play(kept, "former", 8, chance)


def second_day(kept: Kept, chance: Random) -> None:
    """Changes graphs, arms and settings, and lets everything odd happen that may."""
    engine = kept.engine
    engine.set_edges("news", [Edge(user="ana", other="di", weight=0.5), Edge(user="bo", other="cy", weight=0.0)])
    engine.change_users("news", UsersChange(add=[User(id="ed", friends={"ana": 2.0}), User(id="flo")], remove=["cy"]))
    engine.change_arms("moments", ArmsChange(put=[Arm(id="rum", features=[3.0, 1.0])], retire=["gin"]))
    engine.configure("clicks", SettingsChange(default_reward=None, exploration_floor=0.05))
    kept.reward("early", 0.5, reward_id="r1")
    kept.reward("never to come", 0.5)
    kept.decide("ana", "news", event_id="early")
    kept.decide("bo", "news", event_id="deferred", defer_activation=True)
    kept.reward("deferred", 0.9)
    engine.activate("deferred")
    kept.decide("di", "news", event_id="repeated", candidates=["tea", "ale"], probabilities=True)
    kept.decide(
        "di", "moments", event_id="shown", candidates=["tea", Arm(id="new", features=[0.5, 0.5])], context=CONTEXT
    )
    kept.reward("repeated", 0.3, reward_id="r2")
    kept.reward("repeated", 0.3, reward_id="r2")
    kept.decide("ana", "clicks", event_id="late")
    kept.now += HELD_FOR + 60.0
    engine.tick()
    kept.reward("late", 1.0)
    kept.reward("still to come", 0.5)
    engine.reset("forgetful")
    play(kept, "forgetful", 10, chance)
    play(kept, "moments", 10, chance, context=CONTEXT)
    engine.archive("former")
    kept.decide("ana", "news", event_id="waiting")


def make(store: Path) -> dict[str, Any]:
    """Makes the store, and returns what it answers."""
    chance = Random(3)
    with closing(SqliteJournal(store)) as journal:
        kept = Kept(journal=journal)
        first_day(kept, chance)
        kept.snapshot()
        kept.restart()
        second_day(kept, chance)
        kept.commit()
        kinds = Counter(event.kind for event in journal.read(1))
        assert set(kinds) == {each.__name__.lower() for each in get_args(AnyBody)}
        return {"kinds": dict(sorted(kinds.items())), **answers(kept.engine)}


def answers(engine: Engine) -> dict[str, Any]:
    """Returns what an engine knows, and believes of every pair of a user and an arm."""
    found = {name: to_builtins(engine.view(name)) for name in engine.state.experiments}
    for view in found.values():
        view.pop("seq")  # opening is an event of its own
    return {
        "experiments": found,
        "beliefs": {name: beliefs(engine, name) for name in found},
        "keys": sorted([key.id, key.hash, sorted(key.scopes), key.experiments] for key in engine.state.keys),
        "held": [event_id for event_id, _ in engine.state.held],
        "waiting": {name: [each.event_id for each in engine.state.get(name).pending] for name in found},
        "decided": {id: to_builtins(known.answer) for id in NAMED if (known := engine.state.decided(id))},
    }


NAMED = (
    "early",
    "deferred",
    "repeated",
    "shown",
    "late",
    "waiting",
    "news-1001.0",
    "moments-1060.0",
    "forgetful-1120.0",
)


def beliefs(engine: Engine, name: str) -> dict[str, list[float]]:
    """Returns mean and std of every pair; no fit that runs is taken, for the replay of the copy is not ended."""
    bandit, _ = bandit_of_bytes(reading.export(engine, name))
    context, found = CONTEXT if name == "moments" else None, {}
    for user in bandit.graph.users:
        for arm in bandit.arms.ids:
            told = bandit.explain(user, arm, context)
            found[f"{user} {arm}"] = [told.mean, told.std]
    return found


def main() -> None:
    """Makes the store again."""
    with TemporaryDirectory() as folder:
        known = make(Path(folder) / STORE)
        (Path(folder) / STORE / "lock").unlink()
        shutil.rmtree(FOLDER, ignore_errors=True)
        shutil.copytree(Path(folder) / STORE, FOLDER / STORE)
    (FOLDER / ANSWERS).write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
