"""A model whose attempts a test wrote down, wrapped as the program wraps it, and a clock that passes only on request."""

import asyncio
import random
from contextlib import aclosing

from mini_agent.core.errors import ModelError
from mini_agent.core.events import ChannelToken, Completed, FirstToken, StreamStarted
from mini_agent.core.messages import Message, Request, Response, Text, Usage
from mini_agent.models.base import new_attempt
from mini_agent.models.policy import RetryPolicy
from mini_agent.models.retrying import RetryingModel
from mini_agent.models.traced import TracedModel

REQUEST = Request((Message("user", (Text("hi"),)),), model="m")
ANSWER = Response((Text("whole"),), usage=Usage(input_tokens=3, output_tokens=1))


class Clock:
    """Time that passes only when somebody waits."""

    def __init__(self):
        self.time = 1000.0
        self.waits = []

    def now(self):
        return self.time

    async def sleep(self, seconds):
        self.waits.append(seconds)
        self.time += seconds


class Attempts:
    """A Streamer that plays one item an attempt: text pieces, functions that make an event, then an error or a Response;
    None stays silent for ever.
    """

    def __init__(self, clock, *script):
        self._clock = clock
        self._script = list(script)
        self.seen = []
        self.requests = []
        self.open = 0

    async def stream(self, request, attempt=None):
        attempt = attempt or new_attempt()
        self.seen.append(attempt)
        self.requests.append(request)
        at = {"t": self._clock.now(), "request_id": attempt.request_id, "attempt": attempt.number}
        self.open += 1
        try:
            yield StreamStarted(**at, model="m", api="chat")
            attempt.meter.bytes += 100
            for part in self._script.pop(0):
                await self._clock.sleep(0.5)
                if part is None:
                    await asyncio.Event().wait()
                if isinstance(part, ModelError):
                    raise part
                if isinstance(part, Response):
                    yield Completed(**at, response=part)
                    continue
                if callable(part):
                    yield part(at)
                    continue
                yield FirstToken(**at, n=1, ttft_s=0.5)
                yield ChannelToken(**at, n=1, channel="text", text=part)
        finally:
            self.open -= 1

    async def aclose(self):
        pass


def wrapped(clock, *script, sink=None, total_s=0, **policy):
    """The scripted model and, around it, the two wrappers; `clock` is that of the waits between attempts."""
    inner = Attempts(Clock(), *script)
    retrying = RetryingModel(
        inner, RetryPolicy(**policy), rng=random.Random(1), sleep=clock.sleep, now=clock.now
    )
    return inner, TracedModel(retrying, sink or (lambda ended: None), total_s=total_s, now=inner._clock.now)


async def drain(model, events, request=REQUEST, attempt=None):
    """Everything `model` says, into `events`, which has it also where it raises."""
    async with aclosing(model.stream(request, attempt)) as stream:
        async for event in stream:
            events.append(event)


def of(events, kind):
    return [event for event in events if isinstance(event, kind)]


def names(events):
    return [type(event).__name__ for event in events]
