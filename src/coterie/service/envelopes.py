"""What goes around the records: batches and their results, lists, keys, errors. App and client share these."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from coterie.service.records import (
    MOST_ROWS,
    Answer,
    Arm,
    DecisionAnswer,
    DecisionRequest,
    EventId,
    ExperimentId,
    ExperimentView,
    Record,
    RewardAnswer,
    RewardRequest,
    Scope,
    User,
)

MOST_IN_BATCH = 1000
MOST_KEY_EXPERIMENTS = 1000


class Refusal(Answer, frozen=True, kw_only=True):
    """Why a request was refused.

    Attributes:
        code: The kind of error, for programs.
        problem: What was met.
        rule: What is allowed.
        remedy: What to do about it.
        path: Where in the body, as "$.candidates[3]"; unset where it is no matter of one place.
    """

    code: str
    problem: str
    rule: str
    remedy: str
    path: str | UnsetType = UNSET


class ErrorAnswer(Answer, frozen=True, kw_only=True):
    """The body of every answer that is an error."""

    error: Refusal


class Experiments(Answer, frozen=True, kw_only=True):
    """The experiments that a key may read."""

    experiments: list[ExperimentView]


class AllUsers(Record, frozen=True, kw_only=True):
    """The whole list of users; others are removed."""

    users: Annotated[list[User], Meta(min_length=1, max_length=MOST_ROWS)]


class AllArms(Record, frozen=True, kw_only=True):
    """The whole list of arms; others are retired."""

    arms: Annotated[list[Arm], Meta(min_length=1, max_length=MOST_ROWS)]


class DecisionBatch(Record, frozen=True, kw_only=True):
    """Decisions to be made, each for itself, in order."""

    decisions: Annotated[list[DecisionRequest], Meta(min_length=1, max_length=MOST_IN_BATCH)]


class DecisionResult(Answer, frozen=True, kw_only=True):
    """What came of one decision of a batch: the status that it would have had alone, and the answer or the error."""

    status: int
    decision: DecisionAnswer | UnsetType = UNSET
    error: Refusal | UnsetType = UNSET


class DecisionResults(Answer, frozen=True, kw_only=True):
    """What came of a batch of decisions, in its order."""

    results: list[DecisionResult]


class EventReward(RewardRequest, frozen=True, kw_only=True):
    """What came of a decision, and of which."""

    event_id: EventId


class RewardBatch(Record, frozen=True, kw_only=True):
    """Rewards, each for itself, in order."""

    rewards: Annotated[list[EventReward], Meta(min_length=1, max_length=MOST_IN_BATCH)]


class RewardResult(Answer, frozen=True, kw_only=True):
    """What came of one reward of a batch: the status that it would have had alone, and the answer or the error."""

    status: int
    reward: RewardAnswer | UnsetType = UNSET
    error: Refusal | UnsetType = UNSET


class RewardResults(Answer, frozen=True, kw_only=True):
    """What came of a batch of rewards, in its order."""

    results: list[RewardResult]


class NewKey(Record, frozen=True, kw_only=True):
    """A key to be made: what it may do, and in which experiments; none given means in all."""

    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=4)]
    experiments: Annotated[list[ExperimentId], Meta(min_length=1, max_length=MOST_KEY_EXPERIMENTS)] | None = None


class KeyView(Answer, frozen=True, kw_only=True):
    """A key as others may know it."""

    id: str
    scopes: list[Scope]
    experiments: list[str] | None = None


class MadeKey(KeyView, frozen=True, kw_only=True):
    """A key that was just made: this is the only answer that holds the key itself."""

    key: str


class Keys(Answer, frozen=True, kw_only=True):
    """The keys that are good now."""

    keys: list[KeyView]
