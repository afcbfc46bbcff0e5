"""What can be asked of an experiment beside its decisions: explanations, reports, a file, its log, other policies.

Each may be called from any thread: what takes long works on a copy, which holds up decisions only while it is made.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

from msgspec import Raw, Struct
from msgspec.json import encode as as_json

from coterie.product.bandit import Bandit
from coterie.product.evaluation.evaluating import compare
from coterie.product.evaluation.material import check_long, material_of
from coterie.product.evaluation.report import answer, known
from coterie.product.evaluation.targets import Asked, Target
from coterie.service.engine.bandits import bandit_as_bytes, bandit_of_bytes
from coterie.service.engine.engine import Engine
from coterie.service.engine.logged import log_of
from coterie.service.journal import Event

MOST_CONTRIBUTIONS = 100  # that an explanation names; the largest come first


def explain(
    engine: Engine, experiment: str, user: str, arm: str, context: Mapping[str, Any] | Sequence[float] | None = None
) -> dict[str, Any]:
    """Returns which users, arms and rewards moved an estimate, by how much; ids are texts."""
    found = copy_of(engine, experiment).explain(user, arm, context)
    largest = [
        {"reward": number, "user": str(who), "arm": str(what), "value": value, "contribution": share}
        for number, who, what, value, share in found.by_event[:MOST_CONTRIBUTIONS]
    ]
    numbers = {name: getattr(found, name) for name in ("mean", "std", "level", "rest", "alone", "logit")}
    pair, text = {"user": str(found.user), "arm": str(found.arm)}, {"text": str(found)}
    shares = {"by_user": _largest(found.by_user), "by_arm": _largest(found.by_arm), "by_reward": largest}
    return {**pair, **known(numbers), **shares, **text}


def graph_report(engine: Engine, experiment: str) -> dict[str, Any]:
    """Returns what the rewards say about the graph."""
    found = copy_of(engine, experiment).graph_report()
    shares = [{"rewards": after, **each} for after, each in found.shares]
    return {**known(asdict(found)), "shares": shares, "helps": found.helps, "text": str(found)}


def export(engine: Engine, experiment: str) -> bytes:
    """Returns the file of an experiment's bandit, which `Bandit.load` reads."""
    return bandit_as_bytes(engine.state.get(experiment).bandit)


def copy_of(engine: Engine, experiment: str) -> Bandit:
    """Returns a bandit that believes what an experiment's does, and keeps no journal."""
    bandit, replay = bandit_of_bytes(export(engine, experiment))
    replay.end()
    return bandit


class LogLine(Struct, frozen=True, kw_only=True):
    """An event as it is read."""

    seq: int
    at: float
    kind: str
    experiment: str
    key: str
    body: Raw


def log(engine: Engine, experiment: str, from_seq: int = 1, limit: int | None = None) -> Iterator[bytes]:
    """Yields the durable events of an experiment from a number on, a line of JSON each."""
    engine.state.get(experiment)
    return map(_line, islice(engine.state.journal.read(from_seq, experiment=experiment), limit))


def _line(event: Event) -> bytes:
    seq, at, experiment, kind, key, body = event
    made = LogLine(seq=seq, at=at, kind=kind, experiment=experiment, key=key, body=Raw(body))
    return as_json(made) + b"\n"


def evaluate(engine: Engine, experiment: str, policies: Sequence[str], **asked: Any) -> dict[str, Any]:
    """Returns what other policies would have earned in this experiment, by its own log, as `coterie evaluate` does.

    Args:
        engine: Which knows the experiment.
        experiment: Its id.
        policies: By name.
        **asked: Of `Asked`: how they are to be judged.
    """
    found = engine.state.get(experiment)
    logged = log_of(found.bandit, engine.state.journal.read(1, experiment=experiment))
    material = material_of(logged)
    check_long(material)
    how = Asked(**{"offset": 0.0 if asked.get("learning") else "mean", **asked})
    targets = [Target.of(name) for name in policies]
    answers = compare(material.logged, targets, graph=material.graph, arms=material.arms, asked=how)
    judged = [asdict(each) | {"answer": answer(each)} for each in answers.evaluations]
    gaps = [asdict(gap) for gap in answers.gaps]
    about = {
        "n_decisions": len(material.logged),
        "left_out": logged.left_out,
        "notes": material.notes,
        "text": str(answers),
    }
    return {**about, "policies": known(judged), "by": answers.by, "best": answers.best, "gaps": known(gaps)}


def _largest(shares: Mapping[Any, float]) -> dict[str, float]:
    return {str(name): share for name, share in islice(shares.items(), MOST_CONTRIBUTIONS)}
