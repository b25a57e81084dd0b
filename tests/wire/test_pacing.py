"""Reads paced to frames: many pieces a wake-up once content flows, and never a delay before that."""

import asyncio

import httpcore
import pytest

from mini_agent.wire import pacing
from mini_agent.wire.pacing import PacedStream


class Inner(httpcore.AsyncNetworkStream):
    """A connection on which a byte arrives every `every` seconds of the fake clock; `late` notes how long each had lain."""

    def __init__(self, clock, every):
        self.clock = clock
        self.every = every
        self.next = clock.time + every
        self.reads = []
        self.late = []

    async def read(self, max_bytes, timeout=None):
        self.clock.time = max(self.clock.time, self.next)
        data = b""
        while self.next <= self.clock.time:
            self.late.append(self.clock.time - self.next)
            self.next += self.every
            data += b"x"
        self.reads.append(data)
        return data

    async def write(self, buffer, timeout=None):
        pass

    async def aclose(self):
        pass


class Clock:
    def __init__(self, monkeypatch):
        self.time = 100.0
        self.slept = []
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self.time)
        monkeypatch.setattr(pacing.asyncio, "sleep", self.sleep)

    async def sleep(self, seconds):
        self.slept.append(round(seconds, 6))
        self.time += seconds


@pytest.fixture
async def clock(monkeypatch):
    return Clock(monkeypatch)


async def test_the_first_quarter_of_a_second_is_not_paced_and_then_a_read_takes_a_frame(clock):
    inner = Inner(clock, 0.01)
    stream = PacedStream(inner, 0.05)
    await stream.write(b"request")
    while clock.time < 100.25:
        await stream.read(10)
    assert (clock.slept, set(inner.reads)) == ([], {b"x"})
    for _ in range(10):
        await stream.read(10)
    assert all(len(data) >= 4 for data in inner.reads[-9:])
    assert max(inner.late) <= 0.05


async def test_a_slow_stream_is_not_delayed(clock):
    inner = Inner(clock, 0.3)
    stream = PacedStream(inner, 0.05)
    for _ in range(10):
        await stream.read(10)
    assert max(inner.late) == 0


async def test_the_next_request_starts_anew(clock):
    stream = PacedStream(Inner(clock, 0.01), 0.05)
    for _ in range(30):
        await stream.read(10)
    assert clock.slept
    clock.slept.clear()
    await stream.write(b"another")
    await stream.read(10)
    await stream.read(10)
    assert clock.slept == []
