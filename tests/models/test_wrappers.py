"""Both wrappers as the program puts them together: the course of a request, its measurements and its total deadline."""

import asyncio
import random
from contextlib import aclosing

import pytest
from played_attempts import ANSWER, REQUEST, Attempts, Clock, drain, names, of, wrapped

from mini_agent.core.errors import CutError, ModelError, ProviderError
from mini_agent.core.events import (
    AttemptEnded,
    ChannelToken,
    Retrying,
    StreamStarted,
)
from mini_agent.core.messages import Image, Message, Request, Usage
from mini_agent.models.base import complete, new_attempt
from mini_agent.models.policy import RetryPolicy
from mini_agent.models.retrying import RetryingModel
from mini_agent.models.traced import TracedModel


@pytest.fixture
def clock():
    return Clock()


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


async def test_d12_what_came_after_the_last_start_is_the_answer_and_nothing_else(clock):
    _, model = wrapped(clock, ["Here is the pl", CutError("broke")], ["whole", ANSWER])
    events = []
    await drain(model, events)
    last = max(place for place, event in enumerate(events) if isinstance(event, StreamStarted))
    assert [event.text for event in of(events[last:], ChannelToken)] == ["whole"]
    assert {event.attempt for event in events[last:]} == {2}


async def test_every_attempt_is_measured_once_also_one_given_up(clock):
    ended = []
    _, model = wrapped(clock, ["12345678", CutError("broke")], ["whole", ANSWER], sink=ended.append)
    await drain(model, [])
    first, second = ended
    assert (first.outcome, first.attempt, first.error.kind) == ("failed", 1, "cut")
    assert (first.usage, first.estimated) == (Usage(output_tokens=2), True)
    assert (second.outcome, second.usage, second.estimated) == ("completed", ANSWER.usage, False)
    assert (second.first_token_s, second.total_s, second.bytes) == (0.5, 1.0, 100)


async def test_s3_so_is_one_given_up_for_its_images_or_for_repeating_itself(clock):
    ended = []
    too_large = ProviderError("too large", kind="too_large", retryable=False, status=413)
    _, model = wrapped(clock, [too_large], ["The " * 2000, None], ["whole", ANSWER], sink=ended.append)
    pictured = Request((Message("user", (Image("image/png", b"x"),)),), model="m")
    await drain(model, [], pictured)
    assert [(one.attempt, one.outcome, one.error and one.error.kind) for one in ended] == [
        (1, "failed", "too_large"),
        (2, "failed", "repetition"),
        (3, "completed", None),
    ]


async def test_s3_what_an_attempt_that_was_given_up_had_reported_of_its_usage_is_kept(clock):
    ended = []
    _, model = wrapped(clock, ["half", CutError("broke")], [ANSWER], sink=ended.append)
    attempt = new_attempt()

    async with aclosing(model.stream(REQUEST, attempt)) as events:
        async for event in events:
            if isinstance(event, ChannelToken):
                attempt.meter.usage = Usage(input_tokens=40, output_tokens=7)
    assert (ended[0].usage, ended[0].estimated) == (Usage(input_tokens=40, output_tokens=7), False)
    assert ended[1].usage == ANSWER.usage


async def test_attempt_ended_precedes_retrying_and_follows_completed(clock):
    events = []
    _, model = wrapped(clock, [CutError("broke")], [ANSWER], sink=events.append)
    await drain(model, events)
    assert names(events) == [
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


# The total deadline


async def test_the_total_deadline_ends_waits_and_is_not_retried(clock):
    inner = Attempts(Clock(), [CutError("broke")])
    retrying = RetryingModel(inner, RetryPolicy(base_s=30), rng=random.Random(1), sleep=clock.sleep)
    with pytest.raises(ModelError) as raised:
        await complete(TracedModel(retrying, lambda ended: None, total_s=1), REQUEST)
    assert (raised.value.kind, raised.value.retryable, clock.waits) == ("total_timeout", False, [])


async def test_w9_the_total_deadline_says_how_often_it_was_tried_and_no_secret(clock):
    broke = CutError("broke with sk-very-secret-key")
    broke.secrets = ("sk-very-secret-key",)
    # The first wait is less than 10 s, the second at least as long.
    inner, model = wrapped(clock, [CutError("one")], [broke], total_s=10, base_s=10)
    with pytest.raises(ModelError) as raised:
        await drain(model, [])
    error = raised.value
    assert error.kind == "total_timeout"
    assert error.message.startswith("no time is left for another try after: broke with")
    assert error.message.endswith("(gave up after 1 retry)")
    assert "secret" not in error.message
    assert (error.request_id, error.attempt) == (inner.seen[0].request_id, 2)


@pytest.mark.parametrize("without", [frozenset(), frozenset({"stream_options"})])
async def test_w9_an_attempt_without_a_total_deadline_gets_one_and_keeps_what_else_it_says(clock, without):
    inner, model = wrapped(clock, [CutError("broke")], [ANSWER], total_s=3600)
    given = new_attempt(without=without)
    before = asyncio.get_running_loop().time()
    await drain(model, [], attempt=given)
    first, second = inner.seen
    assert before + 3600 <= first.deadline <= asyncio.get_running_loop().time() + 3600
    assert second.deadline == first.deadline
    assert (first.request_id, first.without, first.meter) == (given.request_id, without, given.meter)
    assert first.meter is second.meter is given.meter


async def test_w9_a_deadline_that_is_given_stays(clock):
    inner, model = wrapped(clock, [ANSWER], total_s=3600)
    deadline = asyncio.get_running_loop().time() + 5
    await drain(model, [], attempt=new_attempt(deadline))
    assert inner.seen[0].deadline == deadline


async def test_w9_none_is_made_where_it_is_off(clock):
    inner, model = wrapped(clock, [ANSWER])
    await drain(model, [])
    assert inner.seen[0].deadline is None
