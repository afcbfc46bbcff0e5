"""What an engine of the service is to answer, in plain tables: no journal, no bandit, nothing of the engine's code."""

from dataclasses import dataclass, field
from typing import Any

HELD_FOR = 600.0
LATE, HELD, APPLIED, DUPLICATE, REFUSED = "late", "held", "applied", "duplicate", "refused"


@dataclass
class Decided:
    """A decision: of its places, what came of each that was learned."""

    user: str
    made_at: float
    n_places: int
    is_active: bool
    waits: bool = True
    user_is_gone: bool = False
    learned: dict[int, list[float]] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    held: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Model:
    """One experiment, in plain tables.

    Attributes:
        wait_time: As the experiment's settings, like those that follow.
        decisions: By event id, in order.
        n_rewards: How many places were learned since the last reset, but those of users who are gone.
        early: Rewards before their decision: when, and what.
        seen: All reward ids of an event id, whatever became of them.
    """

    wait_time: float
    default: float | None
    how: str
    max_pending: int
    range: tuple[float, float] | None = None
    decisions: dict[str, Decided] = field(default_factory=dict)
    n_decisions: int = 0
    n_rewards: int = 0
    early: dict[str, list[tuple[float, dict[str, Any]]]] = field(default_factory=dict)
    seen: dict[str, set[str]] = field(default_factory=dict)
    is_archived: bool = False

    @property
    def waiting(self) -> list[Decided]:
        return [each for each in self.decisions.values() if each.waits]

    def expire(self, now: float, room: int = 0) -> None:
        if self.is_archived:
            return
        excess = sum(each.n_places for each in self.waiting) + room - self.max_pending
        for each in self.waiting:
            if each.made_at >= now - self.wait_time and excess <= 0:
                return
            excess -= each.n_places
            each.waits = False
            if self.default is not None and each.is_active and not each.user_is_gone:
                missing = [place for place in range(1, each.n_places + 1) if place not in each.learned]
                self.n_rewards += len(missing)
                each.learned |= {place: [self.default] for place in missing}

    def decide(self, name: str, user: str, now: float, n_places: int, deferred: bool) -> None:
        self.expire(now, n_places)
        self.decisions[name] = Decided(user, now, n_places, not deferred)
        self.n_decisions += n_places
        for _, reward in self.early.pop(name, []):
            self.reward(name, reward, now)

    def reward(self, name: str, reward: dict[str, Any], now: float) -> str:
        if name not in self.decisions:
            return self._too_early(name, reward, now)
        self.expire(now)
        each, given = self.decisions[name], reward.get("reward_id")
        waits = each.waits and not self.is_archived
        if given is not None and given in (each.ids if waits else self.seen.get(name, set())):
            return DUPLICATE
        if self.range is not None and not self.range[0] <= reward["value"] <= self.range[1]:
            return REFUSED
        if waits and reward.get("place", 1) > each.n_places:
            return REFUSED
        status = self._status(each, reward) if waits else LATE
        if given is not None:
            self.seen.setdefault(name, set()).add(given)
            if status != LATE:
                each.ids.add(given)
        return status

    def _too_early(self, name: str, reward: dict[str, Any], now: float) -> str:
        given, before = reward.get("reward_id"), self.early.get(name, [])
        if given is not None and given in {each.get("reward_id") for _, each in before}:
            return DUPLICATE
        self.early.setdefault(name, []).append((now, reward))
        if given is not None:
            self.seen.setdefault(name, set()).add(given)
        return HELD

    def _status(self, each: Decided, reward: dict[str, Any]) -> str:
        place = reward.get("place", 1)
        if not each.is_active:
            each.held.append(reward)
            return HELD
        if place in each.learned and self.how == "first":
            return DUPLICATE
        if each.user_is_gone:
            return LATE
        self.n_rewards += place not in each.learned
        each.learned.setdefault(place, []).append(reward["value"])
        return APPLIED

    def activate(self, name: str, now: float) -> str:
        self.expire(now)
        each = self.decisions[name]
        if self.is_archived or not each.waits:
            return LATE
        if each.is_active:
            return DUPLICATE
        each.is_active, again = True, each.held
        each.held, each.ids = [], each.ids - {reward.get("reward_id") for reward in again}
        for reward in again:
            self.reward(name, reward, now)
        return "activated"

    def tick(self, now: float) -> None:
        self.expire(now)
        self.early = {name: some for name, some in self.early.items() if some[0][0] > now - HELD_FOR}

    def reset(self) -> None:
        self.n_decisions = self.n_rewards = 0
        for each in self.decisions.values():
            each.waits = False

    def remove_user(self, user: str) -> None:
        for each in self.decisions.values():
            if each.user == user and not each.user_is_gone:
                each.user_is_gone = True
        self.n_rewards = -1  # to be counted again by whoever asks

    def count_rewards(self, since: "list[Decided]") -> int:
        return sum(len(each.learned) for each in since if not each.user_is_gone)
