"""The hand-over: in order, none lost, a bounded distance ahead, and the last event never waits."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from mini_agent.agent.handover import HandOver
from mini_agent.core.events import Notice


def event(number):
    return Notice(t=0.0, level="info", text=str(number))


@given(st.lists(st.sampled_from(["put", "put_now", "pause"]), max_size=40), st.integers(1, 5), st.booleans())
def test_every_event_arrives_once_and_in_order(steps, bound, slow):
    async def run():
        handover = HandOver(bound)
        handover.open()
        ahead = 0
        taken = []

        async def produce():
            number = 0
            for step in steps:
                if step == "pause":
                    await asyncio.sleep(0)
                    continue
                (await handover.put(event(number))) if step == "put" else handover.put_now(event(number))
                number += 1
            handover.close()
            return number

        task = asyncio.create_task(produce())
        async for one in handover.events():
            taken.append(int(one.text))
            ahead = max(ahead, len(handover._events))
            if slow:
                await asyncio.sleep(0)
        assert taken == list(range(await task))
        assert ahead <= bound + 1 + steps.count("put_now")

    asyncio.run(run())


async def test_a_producer_waits_for_a_slow_consumer():
    handover = HandOver(bound=3)
    handover.open()
    produced = []

    async def produce():
        for number in range(100):
            await handover.put(event(number))
            produced.append(number)
        handover.close()

    task = asyncio.create_task(produce())
    taken = 0
    async for _ in handover.events():
        taken += 1
        await asyncio.sleep(0)
        assert len(produced) <= taken + 4
    await task
    assert taken == 100


async def test_settled_waits_until_the_consumer_has_come_back():
    handover = HandOver()
    handover.open()
    log = []

    async def produce():
        await handover.put(event(1))
        await handover.settled()
        log.append("settled")
        handover.close()

    task = asyncio.create_task(produce())
    async for _ in handover.events():
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        log.append("consumed")
    await task
    assert log == ["consumed", "settled"]


async def test_after_the_close_no_put_waits_nothing_is_added_and_nothing_settles():
    handover = HandOver(bound=1)
    handover.open()
    handover.put_now(event(1))
    handover.close()
    await handover.put(event(2))
    settling = asyncio.ensure_future(handover.settled())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not settling.done()  # only a cancel ends it: what would be done then, nobody would know of
    settling.cancel()
    assert [one.text async for one in handover.events()] == ["1"]
