"""Rewards are gathered, sent together and never lost: what the service has not answered for is sent again or told."""

import time
from collections.abc import Iterable, Iterator
from threading import Event

import pytest

from coterie.errors import DecisionError, ParameterError
from coterie.service.client import Batcher, EventReward, RequestRefusedError, ServiceError
from coterie.service.client.batching.gathered import MOST_WAITING
from coterie.service.envelopes import Refusal, RewardResult
from coterie.service.records import RewardAnswer

WHY = Refusal(code="reward", problem="the reward is 7", rule="rewards are 0 or 1", remedy="Pass such")
FAILURE = ServiceError("no answer", "it was tried 8 times", "Check that the service runs")


class Service:
    """Takes rewards but for those of 7, and those of 5 the first time; can be down."""

    def __init__(self) -> None:
        self.batches, self.taken = list[list[EventReward]](), dict[str, EventReward]()
        self.is_down, self.busy, self.called = False, set[str](), Event()

    def __call__(self, rewards: Iterable[EventReward]) -> list[RewardResult]:
        self.batches.append(list(rewards))
        self.called.set()
        if self.is_down:
            raise FAILURE
        return [self._take(reward) for reward in self.batches[-1]]

    def _take(self, reward: EventReward) -> RewardResult:
        assert reward.reward_id is not None
        if reward.value == 7 or (reward.value == 5 and reward.reward_id not in self.busy):
            self.busy.add(reward.reward_id)
            return RewardResult(status=422 if reward.value == 7 else 503, error=WHY)
        assert reward.reward_id not in self.taken
        self.taken[reward.reward_id] = reward
        return RewardResult(status=200, reward=RewardAnswer(event_id=reward.event_id, status="applied", seq=1))


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def slow(service: Service) -> Iterator[Batcher]:
    """A batcher that sends nothing before a hundred are there."""
    batcher = Batcher(service, size=100, seconds=3600.0)
    yield batcher
    service.is_down = False
    batcher.close()


def test_it_sends_when_so_many_are_there(service: Service) -> None:
    with Batcher(service, size=10, seconds=3600.0) as rewards:
        for i in range(35):
            rewards.reward(f"e{i}", 1.0)
    assert [reward.event_id for reward in service.taken.values()] == [f"e{i}" for i in range(35)]
    assert max(map(len, service.batches)) == 10
    assert rewards.n_sent == 35


def test_it_sends_what_has_waited_long_enough(service: Service) -> None:
    with Batcher(service, size=1000, seconds=0.02) as rewards:
        rewards.reward("e", 1.0)
        assert service.called.wait(5.0)


def test_it_does_not_send_before(service: Service, slow: Batcher) -> None:
    slow.reward("e", 1.0)
    time.sleep(0.05)
    assert not service.batches
    slow.flush()
    assert len(service.taken) == 1


def test_what_is_refused_is_told_and_the_others_are_taken(service: Service, slow: Batcher) -> None:
    for event_id, value in (("a", 1.0), ("b", 7.0), ("c", 0.0)):
        slow.reward(event_id, value)
    with pytest.raises(RequestRefusedError, match="1 reward refused, the last of event 'b': the reward is 7"):
        slow.flush()
    assert [reward.event_id for reward in service.taken.values()] == ["a", "c"]
    assert [reward.event_id for reward, _ in slow.refused] == ["b"]
    slow.flush()


def test_what_the_service_cannot_take_now_is_sent_again(service: Service, slow: Batcher) -> None:
    for event_id, value in (("a", 1.0), ("b", 5.0), ("c", 0.0)):
        slow.reward(event_id, value)
    slow.flush()
    assert {reward.event_id for reward in service.taken.values()} == {"a", "b", "c"}


def test_nothing_is_lost_while_the_service_is_down(service: Service, slow: Batcher) -> None:
    service.is_down = True
    slow.reward("e", 1.0)
    with pytest.raises(ServiceError, match="no answer"):
        slow.flush()
    assert [reward.event_id for reward in slow.unsent] == ["e"]
    service.is_down = False
    slow.flush()
    assert not slow.unsent
    assert len(service.taken) == 1
    first, last = service.batches[0], service.batches[-1]
    assert first == last


def test_it_goes_on_by_itself_when_the_service_is_back(service: Service) -> None:
    service.is_down = True
    with Batcher(service, size=1, seconds=0.02) as rewards:
        rewards.reward("e", 1.0)
        assert service.called.wait(5.0)
        service.is_down = False
        end = time.monotonic() + 5.0
        while rewards.unsent and time.monotonic() < end:
            time.sleep(0.005)
        assert len(service.taken) == 1


def test_closing_says_what_could_not_be_sent(service: Service) -> None:
    service.is_down = True
    rewards = Batcher(service, size=100, seconds=3600.0)
    rewards.reward("e", 1.0)
    with pytest.raises(ServiceError):
        rewards.close()
    assert [reward.event_id for reward in rewards.unsent] == ["e"]
    rewards.close()
    with pytest.raises(DecisionError, match="closed"):
        rewards.reward("f", 1.0)


def test_a_reward_that_finds_no_room_is_refused_while_the_service_is_down(service: Service) -> None:
    service.is_down = True
    rewards = Batcher(service, size=1, seconds=3600.0)
    for i in range(MOST_WAITING):
        rewards.reward(f"e{i}", 1.0)
    with pytest.raises(ServiceError, match="no answer"):
        rewards.reward("one too many", 1.0)
    assert len(rewards.unsent) == MOST_WAITING
    with pytest.raises(ServiceError):
        rewards.close()


@pytest.mark.parametrize("odd", [{"size": 0}, {"size": 1001}, {"seconds": 0.0}])
def test_settings_are_checked(service: Service, odd: dict[str, int]) -> None:
    with pytest.raises(ParameterError):
        Batcher(service, **odd)
