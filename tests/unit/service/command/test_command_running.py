"""What the command does once the service is ready: the demonstration's key, and lines that can be pasted."""

import asyncio
import re

import pytest

from coterie.service.command.running import _demo_key, _tell_key
from coterie.service.engine.running import RunningEngine
from coterie.service.journal import MemoryJournal
from coterie.service.records import Arm, Graph, NewExperiment


def test_the_demonstration_has_one_key_however_often_it_is_started() -> None:
    async def twice() -> None:
        running = RunningEngine(MemoryJournal)
        await running.start()
        first, second = await _demo_key(running), await _demo_key(running)
        keys = running.engine.state.keys
        assert len(keys) == 1
        assert keys.find(first) is None
        assert keys.find(second) is not None
        await running.stop()

    asyncio.run(twice())


def test_lines_to_paste_have_an_event_of_their_own_and_make_no_experiment_that_is_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def told_twice() -> None:
        running = RunningEngine(MemoryJournal)
        await running.start()
        await _tell_key(running, "http://here", wants_key=False, is_demo=False)
        running.engine.create(NewExperiment(id="songs", graph=Graph(users=["bo"]), arms=[Arm(id="hymn")]))
        await _tell_key(running, "http://here", wants_key=True, is_demo=False)
        await running.stop()

    asyncio.run(told_twice())
    first, second = capsys.readouterr().out.split("Ctrl-C ends it.")[:2]
    asked = [re.search(r'"event_id": "(.*?)"', each) for each in (first, second)]
    rewarded = [re.search(r"/v1/events/(.*?)/reward", each) for each in (first, second)]
    assert [each and each[1] for each in asked] == [each and each[1] for each in rewarded]
    assert len({each and each[1] for each in asked}) == 2
    assert ('\'{"id": "songs"' in first, '\'{"id": "songs"' in second) == (True, False)
