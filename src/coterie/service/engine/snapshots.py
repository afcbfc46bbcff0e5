"""The whole state in bytes: a snapshot, from which a replay starts. It holds plain values and files of bandits."""

from hashlib import sha256
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.json import encode as as_json
from msgspec.msgpack import Decoder, Encoder

from coterie.product.bandit import Bandit
from coterie.product.files.saving import parts_as_saved
from coterie.service.engine.bandits import bandit_as_bytes, bandit_of_bytes
from coterie.service.engine.events import KeyMade
from coterie.service.engine.experiment import Experiment
from coterie.service.engine.held import HeldReward
from coterie.service.engine.pending import PendingDecision
from coterie.service.engine.state import State
from coterie.service.journal import Snapshot
from coterie.service.records import ExperimentSettings

FORMAT = 1


class SavedExperiment(Struct, kw_only=True):
    """An experiment, its bandit as a file."""

    id: str
    settings: ExperimentSettings
    is_archived: bool
    graph_version: int
    arms_version: int
    model_version: int
    n_changes: int
    pending: list[PendingDecision]
    bandit: bytes


class SavedState(Struct, kw_only=True):
    """All that a replay of the events up to `seq` would give."""

    format: int
    seq: int
    at: float
    keys: list[KeyMade]
    held: list[tuple[str, HeldReward]]
    experiments: list[SavedExperiment]


_encode = Encoder().encode
_decode = Decoder(SavedState).decode


def snapshot_of(state: State) -> Snapshot:
    """Returns a snapshot after the last event; the lines of all bandits are in events by now."""
    saved = SavedState(
        format=FORMAT,
        seq=state.seq,
        at=state.at,
        keys=list(state.keys),
        held=list(state.held),
        experiments=[_saved(each) for each in state.experiments.values()],
    )
    return Snapshot(state.seq, _encode(saved))


def restore(state: State, snapshot: Snapshot) -> None:
    """Brings a state that knows nothing to where a snapshot was taken; raises ValueError if it is none of ours."""
    saved = _decode(snapshot.content)
    if saved.format != FORMAT or saved.seq != snapshot.seq:
        raise ValueError(f"a snapshot has format {saved.format} and number {saved.seq}")
    experiments = {each.id: _experiment_of(each) for each in saved.experiments}  # which may raise
    state.seq, state.at = saved.seq, saved.at
    state.experiments.update(experiments)
    for key in saved.keys:
        state.keys.apply(key)
    for event_id, held in saved.held:
        state.held.add(event_id, held)


def _saved(experiment: Experiment) -> SavedExperiment:
    return SavedExperiment(
        id=experiment.id,
        settings=experiment.settings,
        is_archived=experiment.is_archived,
        graph_version=experiment.graph_version,
        arms_version=experiment.arms_version,
        model_version=experiment.model_version,
        n_changes=experiment.n_changes,
        pending=list(experiment.pending),
        bandit=bandit_as_bytes(experiment.bandit),
    )


def _experiment_of(saved: SavedExperiment) -> Experiment:
    made = Experiment(saved.id, saved.settings, bandit_of_bytes(saved.bandit))
    made.is_archived, made.n_changes = saved.is_archived, saved.n_changes
    made.graph_version, made.arms_version = saved.graph_version, saved.arms_version
    made.model_version = saved.model_version
    for decision in saved.pending:
        made.pending.add(decision)
    return made


def state_digest(state: State) -> str:
    """Returns a hash of all that is known, every bit of every posterior included; two replays have the same."""
    digest = sha256(as_json([state.seq, [each.hash for each in state.keys], list(state.held)]))
    for name, experiment in sorted(state.experiments.items()):
        saved = [name, experiment.is_archived, experiment.settings, experiment.model_version, list(experiment.pending)]
        digest.update(as_json(saved, order="sorted"))
        _add_bandit(digest, experiment.bandit)
    return digest.hexdigest()


def _add_bandit(digest: Any, bandit: Bandit) -> None:
    with bandit.frozen() as parts:
        plain, arrays = parts_as_saved(bandit, {**parts, "journal": None})
        digest.update(as_json(plain, order="sorted"))
        for name, array in sorted(arrays.items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(array).tobytes())
