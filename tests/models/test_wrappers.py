"""RetryingModel and TracedModel around a model whose attempts a test wrote down."""

import asyncio
import random
from contextlib import aclosing

import pytest

from mini_agent.core.errors import CutError, ModelError, ProviderError
from mini_agent.core.events import AttemptEnded, ChannelToken, Completed, FirstToken, Retrying, StreamStarted
from mini_agent.core.messages import Message, Request, Response, Text, Usage
from mini_agent.models.base import complete, new_attempt
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
    """A Streamer that plays one item an attempt: text pieces, then an error or a Response; None stays silent for ever."""

    def __init__(self, clock, *script):
        self._clock = clock
        self._script = list(script)
        self.seen = []
        self.open = 0

    async def stream(self, request, attempt=None):
        attempt = attempt or new_attempt()
        self.seen.append(attempt)
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
                yield FirstToken(**at, n=1, ttft_s=0.5)
                yield ChannelToken(**at, n=1, channel="text", text=part)
        finally:
            self.open -= 1

    async def aclose(self):
        pass


@pytest.fixture
def clock():
    return Clock()


def wrapped(clock, *script, sink=None, **policy):
    inner = Attempts(Clock(), *script)
    retrying = RetryingModel(
        inner, RetryPolicy(**policy), rng=random.Random(1), sleep=clock.sleep, now=clock.now
    )
    return inner, TracedModel(retrying, sink or (lambda ended: None), now=inner._clock.now)


async def drain(model, events):
    async with aclosing(model.stream(REQUEST)) as stream:
        async for event in stream:
            events.append(event)


async def test_r8_a_cut_stream_is_asked_for_again_whole(clock):
    inner, model = wrapped(clock, ["half", CutError("it broke")], ["whole", ANSWER])
    events = []
    await drain(model, events)
    kinds = [type(event) for event in events]
    assert kinds.index(Retrying) < kinds.index(StreamStarted, 1)
    assert [attempt.number for attempt in inner.seen] == [1, 2]
    assert len({attempt.request_id for attempt in inner.seen}) == 1
    assert events[-1].response == ANSWER
    assert inner.open == 0


async def test_r7_before_each_wait_it_is_said_which_retry_how_long_and_why(clock):
    _, model = wrapped(clock, [CutError("one")], [CutError("two")], ["whole", ANSWER])
    events = []
    await drain(model, events)
    said = [event for event in events if isinstance(event, Retrying)]
    assert [(one.retry, one.max_retries, one.error.message) for one in said] == [(1, 4, "one"), (2, 4, "two")]
    assert [one.wait_s for one in said] == clock.waits


async def test_the_last_error_is_raised_with_a_word_on_the_retries(clock):
    _, model = wrapped(clock, *[[CutError("broke")]] * 3, max_retries=2)
    with pytest.raises(CutError) as raised:
        await complete(model, REQUEST)
    assert raised.value.message == "broke (gave up after 2 retries)"
    assert len(clock.waits) == 2


async def test_what_is_not_worth_it_is_raised_at_once(clock):
    refused = ProviderError("no", kind="bad_request", retryable=False, status=400)
    _, model = wrapped(clock, [refused])
    with pytest.raises(ProviderError) as raised:
        await complete(model, REQUEST)
    assert raised.value.message == "no"
    assert clock.waits == []


async def test_f09_cancel_ends_a_wait_at_once_and_nothing_more_is_asked(clock):
    inner, _ = wrapped(clock, [CutError("broke")])
    waiting = asyncio.Event()

    async def sleep(seconds):
        waiting.set()
        await asyncio.Event().wait()

    model = RetryingModel(inner, RetryPolicy(), rng=random.Random(1), sleep=sleep)
    task = asyncio.create_task(complete(model, REQUEST))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(inner.seen) == 1


async def test_the_total_deadline_ends_waits_and_is_not_retried(clock):
    inner = Attempts(Clock(), [CutError("broke")])
    retrying = RetryingModel(inner, RetryPolicy(base_s=30), rng=random.Random(1), sleep=clock.sleep)
    with pytest.raises(ModelError) as raised:
        await complete(TracedModel(retrying, lambda ended: None, total_s=1), REQUEST)
    assert (raised.value.kind, raised.value.retryable, clock.waits) == ("total_timeout", False, [])


async def test_every_attempt_is_measured_once_also_one_given_up(clock):
    ended = []
    _, model = wrapped(clock, ["12345678", CutError("broke")], ["whole", ANSWER], sink=ended.append)
    await drain(model, [])
    first, second = ended
    assert (first.outcome, first.attempt, first.error.kind) == ("failed", 1, "cut")
    assert (first.usage, first.estimated) == (Usage(output_tokens=2), True)
    assert (second.outcome, second.usage, second.estimated) == ("completed", ANSWER.usage, False)
    assert (second.first_token_s, second.total_s, second.bytes) == (0.5, 1.0, 100)


async def test_attempt_ended_precedes_retrying_and_follows_completed(clock):
    events = []
    _, model = wrapped(clock, [CutError("broke")], [ANSWER], sink=events.append)
    await drain(model, events)
    kinds = [type(event).__name__ for event in events]
    assert kinds == [
        "StreamStarted",
        "AttemptEnded",
        "Retrying",
        "StreamStarted",
        "Completed",
        "AttemptEnded",
    ]


@pytest.mark.parametrize("how", ["cancel", "close"])
async def test_an_attempt_that_is_cancelled_is_measured_and_closed(clock, how):
    ended = []
    inner, model = wrapped(clock, ["said", None], sink=ended.append)
    if how == "cancel":
        seen = []
        task = asyncio.create_task(drain(model, seen))
        while not any(isinstance(event, ChannelToken) for event in seen):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        async with aclosing(model.stream(REQUEST)) as stream:
            async for event in stream:
                if isinstance(event, ChannelToken):
                    break
    assert [(one.outcome, one.usage.output_tokens) for one in ended] == [("cancelled", 1)]
    assert isinstance(ended[0], AttemptEnded)
    assert inner.open == 0
