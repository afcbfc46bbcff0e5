"""The list of events: everything that changes what the service knows is one of these, and a replay makes them again.

An event's `changes` are the lines of the bandit's own journal that it led to (`product/files/recording.py`): decisions,
rewards, users, edges, arms, hyperparameters that were taken. The rest of it is what only the service knows.
"""

from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType
from msgspec.json import Decoder, Encoder

from coterie.service.records import (
    DecisionAnswer,
    ExperimentSettings,
    NewExperiment,
    RewardRequest,
    RewardStatus,
    Scope,
)

Line: TypeAlias = dict[str, Any]  # of a bandit's journal


class Body(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag=str.lower):
    """What an event holds beside its number, time and experiment."""

    changes: list[Line] = []


class Opened(Body, frozen=True, kw_only=True):
    """A process began to write; the versions that numbers may depend on."""

    versions: dict[str, str]


class Created(Body, frozen=True, kw_only=True):
    """An experiment was made."""

    experiment: NewExperiment


class Configured(Body, frozen=True, kw_only=True):
    """Settings are others now."""

    settings: ExperimentSettings


class Archived(Body, frozen=True, kw_only=True):
    """An experiment takes no further decisions."""


class Reset(Body, frozen=True, kw_only=True):
    """An experiment forgot what it had learned; graph, arms and settings stayed."""


class Changed(Body, frozen=True, kw_only=True):
    """Users, edges or arms changed, or the posterior was brought up to date (upkeep).

    Attributes:
        part: What changed.
    """

    part: Literal["graph", "arms", "upkeep"]


class Decided(Body, frozen=True, kw_only=True):
    """A decision was made.

    Attributes:
        answer: What was answered.
        digest: Of the request, by which a repeat is known.
        first: The number of its first decision with the bandit.
        user: For whom; what else was asked for is in the bandit's line.
        deferred: Whether it counts only once it is activated.
    """

    answer: DecisionAnswer
    digest: str
    first: int
    user: str
    deferred: bool = False


class Activated(Body, frozen=True, kw_only=True):
    """A deferred decision counts from now on; or would have, had it not been too late."""

    status: Literal["activated", "late"] = "activated"


class Rewarded(Body, frozen=True, kw_only=True):
    """A reward came.

    Attributes:
        reward: What came.
        status: What became of it.
        value: What the bandit was given: all rewards of the decision so far, aggregated. Unset where nothing.
        may_reward: The experiments of the key with which a held reward came; none means all.
    """

    reward: RewardRequest
    status: RewardStatus
    value: float | UnsetType = UNSET
    may_reward: list[str] | None = None


class Expired(Body, frozen=True, kw_only=True):
    """Decisions waited too long, or there were too many.

    Attributes:
        ids: Which.
        value: What those without a reward were learned as; unset where they were not.
    """

    ids: list[str]
    value: float | UnsetType = UNSET


class Unclaimed(Body, frozen=True, kw_only=True):
    """Rewards that were held for decisions that never came are held no longer."""

    ids: list[str]


class KeyMade(Body, frozen=True, kw_only=True):
    """A key was made; only its hash is known.

    Attributes:
        id: By which it is named.
        hash: SHA-256 of the whole key.
        scopes: What it may do.
        experiments: Where; none means everywhere.
        replaces: The key that it takes the place of, which is revoked.
    """

    id: str
    hash: str
    scopes: list[Scope]
    experiments: list[str] | None = None
    replaces: str | None = None


class KeyRevoked(Body, frozen=True, kw_only=True):
    """A key is no good any more."""

    id: str


AnyBody: TypeAlias = (
    Opened
    | Created
    | Configured
    | Archived
    | Reset
    | Changed
    | Decided
    | Activated
    | Rewarded
    | Expired
    | Unclaimed
    | KeyMade
    | KeyRevoked
)

encode = Encoder().encode
decode = Decoder(AnyBody).decode


def kind_of(body: AnyBody) -> str:
    """Returns the name by which the journal knows it.

    Examples:
        >>> kind_of(Archived())
        'archived'
    """
    return type(body).__name__.lower()
