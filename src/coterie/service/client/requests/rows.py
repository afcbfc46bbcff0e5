"""What callers pass, as records: arms, edges, users, candidates; cut into batches that the service takes."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from msgspec.structs import replace

from coterie.errors import ParameterError
from coterie.service.client.requests.call import encode
from coterie.service.envelopes import EventReward
from coterie.service.records import Arm, DecisionRequest, Edge, Features, User
from coterie.service.time_ids import time_id

T = TypeVar("T")
ArmsLike: TypeAlias = Mapping[str, Features | None] | Iterable[str | Arm]
EdgeLike: TypeAlias = Edge | Sequence[str | float]
UserLike: TypeAlias = str | User
RewardLike: TypeAlias = EventReward | tuple[str, float]

MOST_BYTES = 3 * 2**20  # of a batch; the service takes bodies of 4 MiB unless it is told otherwise


def new_id() -> str:
    """Returns an id of our own, made before the first try, so that every try has the same."""
    return time_id(time.time())


def as_arms(given: ArmsLike) -> list[Arm]:
    """Returns arms of a map from ids to features, or of ids and arms.

    Examples:
        >>> as_arms({"tea": [0.5]}) == as_arms([Arm(id="tea", features=[0.5])])
        True
        >>> as_arms(["tea"])
        [Arm(id='tea', features=None)]
    """
    if isinstance(given, str):
        raise ParameterError(f"arms are {given!r}", "arms are a list of ids, or a map to features", "Pass a list")
    if isinstance(given, Mapping):
        return [Arm(id=arm, features=features) for arm, features in given.items()]
    return [arm if isinstance(arm, Arm) else Arm(id=arm) for arm in given]


def as_candidates(given: ArmsLike | None) -> list[str | Arm] | None:
    """Returns candidates: ids, and arms with features of their own; none given means every arm."""
    if given is None:
        return None
    return [arm.id if arm.features is None else arm for arm in as_arms(given)]


def as_edge(given: EdgeLike) -> Edge:
    """Returns an edge of two users and perhaps a weight.

    Examples:
        >>> as_edge(("ana", "bo", 0.5))
        Edge(user='ana', other='bo', weight=0.5)
    """
    match given:
        case Edge():
            return given
        case (str(user), str(other)):
            return Edge(user=user, other=other)
        case (str(user), str(other), int() | float() as weight):
            return Edge(user=user, other=other, weight=weight)
        case _:
            rule = "an edge is (user, other) or (user, other, weight), and users are texts"
            raise ParameterError(f"an edge is {given!r}", rule, "Pass such")


def as_users(given: Iterable[UserLike]) -> list[User]:
    """Returns users of ids, and of users with friends."""
    return [user if isinstance(user, User) else User(id=user) for user in given]


def as_reward(given: RewardLike) -> EventReward:
    """Returns a reward that has an id of its own."""
    reward = given if isinstance(given, EventReward) else EventReward(event_id=given[0], value=given[1])
    return reward if reward.reward_id is not None else replace(reward, reward_id=new_id())


def with_id(request: DecisionRequest) -> DecisionRequest:
    """Returns a request that has an event id."""
    return request if request.event_id is not None else replace(request, event_id=new_id())


def batches(rows: Iterable[T], most: int, most_bytes: int = MOST_BYTES) -> Iterator[list[T]]:
    """Yields rows in batches of at most so many, and of at most so many bytes of JSON.

    Examples:
        >>> list(batches(["a", "b", "c", "d" * 50], most=2, most_bytes=50))
        [['a', 'b'], ['c'], ['dddddddddddddddddddddddddddddddddddddddddddddddddd']]
    """
    batch: list[T] = []
    size = 0
    for row in rows:
        length = len(encode(row)) + 1
        if batch and (len(batch) == most or size + length > most_bytes):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += length
    if batch:
        yield batch
