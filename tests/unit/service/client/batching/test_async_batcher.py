import asyncio
from collections.abc import Awaitable, Callable, Iterable

import pytest

from coterie.errors import DecisionError
from coterie.service.client import AsyncBatcher, EventReward, RequestRefusedError, ServiceError
from coterie.service.client.batching.gathered import MOST_WAITING
from coterie.service.envelopes import Refusal, RewardResult
from coterie.service.records import RewardAnswer

WHY = Refusal(code="reward", problem="the reward is 7", rule="rewards are 0 or 1", remedy="Pass such")


class Service:
    """Takes rewards but for those of 7; can be down."""

    def __init__(self) -> None:
        self.batches, self.taken, self.is_down = list[list[EventReward]](), list[str](), False

    async def __call__(self, rewards: Iterable[EventReward]) -> list[RewardResult]:
        self.batches.append(list(rewards))
        await asyncio.sleep(0)
        if self.is_down:
            raise ServiceError("no answer", "it was tried 8 times", "Check that the service runs")
        return [self._take(reward) for reward in self.batches[-1]]

    def _take(self, reward: EventReward) -> RewardResult:
        if reward.value == 7:
            return RewardResult(status=422, error=WHY)
        self.taken.append(reward.event_id)
        return RewardResult(status=200, reward=RewardAnswer(event_id=reward.event_id, status="applied", seq=1))


def run(play: Callable[[Service], Awaitable[None]]) -> Service:
    service = Service()

    async def played() -> None:
        await asyncio.wait_for(play(service), 20)

    asyncio.run(played())
    return service


def test_it_sends_when_so_many_are_there_and_the_rest_at_the_end() -> None:
    async def play(service: Service) -> None:
        async with AsyncBatcher(service, size=10, seconds=3600.0) as rewards:
            for i in range(35):
                await rewards.reward(f"e{i}", 1.0)
        assert rewards.n_sent == 35

    service = run(play)
    assert service.taken == [f"e{i}" for i in range(35)]
    assert max(map(len, service.batches)) == 10


def test_it_sends_what_has_waited_long_enough() -> None:
    async def play(service: Service) -> None:
        async with AsyncBatcher(service, size=100, seconds=0.02) as rewards:
            await rewards.reward("e", 1.0)
            while not service.taken:
                await asyncio.sleep(0.005)

    assert run(play).taken == ["e"]


def test_what_is_refused_is_told_and_the_others_are_taken() -> None:
    async def play(service: Service) -> None:
        rewards = AsyncBatcher(service, size=10, seconds=3600.0)
        for event_id, value in (("a", 1.0), ("b", 7.0), ("c", 0.0)):
            await rewards.reward(event_id, value)
        with pytest.raises(RequestRefusedError, match="1 reward refused, the last of event 'b'"):
            await rewards.close()
        assert [reward.event_id for reward, _ in rewards.refused] == ["b"]
        with pytest.raises(DecisionError, match="closed"):
            await rewards.reward("d", 1.0)

    assert run(play).taken == ["a", "c"]


def test_nothing_is_lost_while_the_service_is_down() -> None:
    async def play(service: Service) -> None:
        service.is_down = True
        async with AsyncBatcher(service, size=1, seconds=0.01) as rewards:
            for i in range(MOST_WAITING):
                await rewards.reward(f"e{i}", 1.0)
            with pytest.raises(ServiceError, match="no answer"):
                await rewards.reward("one too many", 1.0)
            with pytest.raises(ServiceError, match="no answer"):
                await rewards.flush()
            assert len(rewards.unsent) == MOST_WAITING
            service.is_down = False
            while rewards.unsent:
                await asyncio.sleep(0.005)

    assert run(play).taken == [f"e{i}" for i in range(MOST_WAITING)]
