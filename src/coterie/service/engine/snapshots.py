"""The whole state in bytes: a snapshot, from which a replay starts. It holds plain values and files of bandits.

A snapshot is taken in two steps, so that decisions go on: `Snapshots.freeze` copies what changes in place, between two
events; `FrozenState.snapshot` makes bytes of it, in any thread.
"""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.json import encode as as_json
from msgspec.msgpack import Decoder, Encoder

from coterie.algebra.giving_way import rest
from coterie.product.files.saving import bytes_of_parts, copied_parts, parts_as_saved
from coterie.service.engine.bandits import bandit_of_bytes
from coterie.service.engine.events import KeyMade
from coterie.service.engine.experiment import Experiment
from coterie.service.engine.held import HeldReward
from coterie.service.engine.pending import PendingDecision
from coterie.service.engine.state import State
from coterie.service.journal import Snapshot
from coterie.service.records import ExperimentSettings

FORMAT = 1
AT_A_TIME = 1000  # decisions that are encoded at a time: nobody else runs meanwhile


class SavedExperiment(Struct, frozen=True, kw_only=True):
    """An experiment, its bandit as a file, and its pending decisions in parts."""

    id: str
    settings: ExperimentSettings
    is_archived: bool
    graph_version: int
    arms_version: int
    model_version: int
    n_changes: int
    last_seq: int
    pending: list[bytes]
    bandit: bytes


class SavedState(Struct, frozen=True, kw_only=True):
    """All that a replay of the events up to `seq` would give; each experiment is encoded by itself."""

    format: int
    seq: int
    at: float
    keys: list[KeyMade]
    held: list[tuple[str, HeldReward]]
    experiments: list[bytes]


_encode = Encoder().encode
_decode_state = Decoder(SavedState).decode
_decode_experiment = Decoder(SavedExperiment).decode
_decode_pending = Decoder(list[PendingDecision]).decode
FIELDS = [name for name in SavedExperiment.__struct_fields__ if name not in ("pending", "bandit")]


@contextmanager
def without_collection() -> Iterator[None]:
    """Keeps the garbage collector from following the many small things that are made: none of them is garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class FrozenExperiment(NamedTuple):
    """An experiment between two events: what never changes by reference, the rest as copies."""

    fields: Mapping[str, Any]
    pending: list[PendingDecision]
    parts: dict[str, Any]

    @classmethod
    def of(cls, experiment: Experiment) -> "FrozenExperiment":
        """Returns an experiment as it stands."""
        fields = {name: getattr(experiment, name) for name in FIELDS}
        return cls(fields, list(experiment.pending), copied_parts(experiment.bandit))

    def encoded(self) -> bytes:
        """Returns it as bytes."""
        pending, bandit = list(_encoded_in_parts(self.pending)), bytes_of_parts(self.parts)
        return _encode(SavedExperiment(**self.fields, pending=pending, bandit=bandit))


def _encoded_in_parts(pending: list[PendingDecision]) -> Iterator[bytes]:
    for first in range(0, len(pending), AT_A_TIME):
        rest()
        yield _encode(pending[first : first + AT_A_TIME])


class FrozenState(NamedTuple):
    """All that is known, between two events.

    Attributes:
        saved: What is small, without experiments.
        experiments: By id, with the number of the last event; those that did not change since are bytes already.
    """

    saved: dict[str, Any]
    experiments: dict[str, tuple[int, "FrozenExperiment | bytes"]]

    def encoded(self) -> dict[str, tuple[int, bytes]]:
        """Returns the experiments as bytes, with the number of the last event of each."""
        found = self.experiments.items()
        return {name: (seq, each if isinstance(each, bytes) else each.encoded()) for name, (seq, each) in found}


class Snapshots:
    """Takes snapshots, one after another; an experiment that did not change since the last is not encoded again."""

    def __init__(self) -> None:
        self._encoded: dict[str, tuple[int, bytes]] = {}

    def freeze(self, state: State) -> FrozenState:
        """Returns all that is known after the last event, of whose changes all are in events by now."""
        with without_collection():
            return self._frozen(state)

    def _frozen(self, state: State) -> FrozenState:
        frozen: dict[str, tuple[int, FrozenExperiment | bytes]] = {}
        for name, each in state.experiments.items():
            seq, content = self._encoded.get(name, (0, b""))
            frozen[name] = each.last_seq, content if seq == each.last_seq else FrozenExperiment.of(each)
        small = {"format": FORMAT, "seq": state.seq, "at": state.at, "keys": list(state.keys)}
        return FrozenState(small | {"held": list(state.held)}, frozen)

    def snapshot(self, frozen: FrozenState) -> Snapshot:
        """Returns the snapshot of what was frozen."""
        self._encoded = frozen.encoded()
        experiments = [content for _, content in self._encoded.values()]
        return Snapshot(frozen.saved["seq"], _encode(SavedState(**frozen.saved, experiments=experiments)))


def snapshot_of(state: State) -> Snapshot:
    """Returns a snapshot after the last event; the lines of all bandits are in events by now."""
    snapshots = Snapshots()
    return snapshots.snapshot(snapshots.freeze(state))


def restore(state: State, snapshot: Snapshot) -> None:
    """Brings a state that knows nothing to where a snapshot was taken; raises ValueError if it is none of ours."""
    saved = _decode_state(snapshot.content)
    if saved.format != FORMAT or saved.seq != snapshot.seq:
        raise ValueError(f"a snapshot has format {saved.format} and number {saved.seq}")
    experiments = [_experiment_of(_decode_experiment(each)) for each in saved.experiments]  # which may raise
    state.seq, state.at = saved.seq, saved.at
    state.experiments.update({each.id: each for each in experiments})
    for key in saved.keys:
        state.keys.apply(key)
    for event_id, held in saved.held:
        state.held.add(event_id, held)


def _experiment_of(saved: SavedExperiment) -> Experiment:
    made = Experiment(saved.id, saved.settings, bandit_of_bytes(saved.bandit))
    for name in FIELDS:
        setattr(made, name, getattr(saved, name))
    for chunk in saved.pending:
        for decision in _decode_pending(chunk):
            made.pending.put(decision)
    return made


def state_digest(state: State) -> str:
    """Returns a hash of all that is known, every bit of every posterior included; two replays have the same."""
    frozen = Snapshots().freeze(state)
    digest = sha256(as_json(frozen.saved))
    for _, (_, each) in sorted(frozen.experiments.items()):
        assert isinstance(each, FrozenExperiment)
        plain, arrays = parts_as_saved(each.parts | {"journal": None})
        digest.update(as_json([each.fields, each.pending, plain], order="sorted"))
        for name, array in sorted(arrays.items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
