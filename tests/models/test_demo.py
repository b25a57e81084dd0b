"""The demo model keeps the contract of a Streamer, takes the time it says it takes, and fails as often as it is told."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_agent.core.answers import Answer, call_pieces
from mini_agent.core.errors import CutError, DeadlineError, EmptyAnswerError, ModelError, ProviderError
from mini_agent.core.events import (
    AttemptEvent,
    AttemptProgress,
    ChannelToken,
    Completed,
    FirstToken,
    StreamEvent,
    StreamStarted,
    ToolCallDelta,
)
from mini_agent.core.messages import Message, Request, Response, Text, ToolResult, ToolSpec
from mini_agent.models.base import Attempt, complete, new_attempt
from mini_agent.models.demo import DemoModel

TOOLS = tuple(
    ToolSpec(name, "", {}) for name in ("read_file", "write_file", "edit_file", "list_dir", "run_bash")
)
WORDS = ["read a.py", "edit a.py", "write a.py", "run ls", "parallel", "cut", "long", "hello"]


class Clock:
    """Time that passes only in sleep."""

    def __init__(self) -> None:
        self.t = 1000.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.t

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.t += seconds
        await asyncio.sleep(0)


def demo(clock: Clock, seed: int = 1, **rates: Any) -> DemoModel:
    return DemoModel(rng=random.Random(seed), sleep=clock.sleep, now=clock.now, **rates)


def request(task: str, **more: Any) -> Request:
    return Request((Message("user", (Text(task),)),), tools=TOOLS, **more)


async def drain(
    model: DemoModel,
    asked: Request,
    attempt: Attempt | None = None,
    into: list[StreamEvent] | None = None,
) -> list[StreamEvent]:
    """The events; `into` keeps those that came before an error."""
    events = [] if into is None else into
    async with aclosing(model.stream(asked, attempt)) as stream:
        async for event in stream:
            events.append(event)
    return events


async def drain_broken(
    model: DemoModel, asked: Request, attempt: Attempt | None = None
) -> tuple[list[StreamEvent], ModelError]:
    """The events up to the error, and the error."""
    events: list[StreamEvent] = []
    with pytest.raises(ModelError) as caught:
        await drain(model, asked, attempt, into=events)
    return events, caught.value


def whose(event: StreamEvent) -> tuple[str, int]:
    """The request and the attempt an event belongs to."""
    assert isinstance(event, AttemptEvent)
    return event.request_id, event.attempt


def said(events: list[StreamEvent], channel: str) -> str:
    return "".join(e.text for e in events if isinstance(e, ChannelToken) and e.channel == channel)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("task", WORDS)
async def test_the_contract_of_a_streamer_holds(task: str, stream: bool) -> None:
    events = await drain(demo(Clock()), request(task, stream=stream), Attempt("r1", number=3))
    assert isinstance(events[0], StreamStarted)
    assert isinstance(events[-1], Completed)
    assert [type(event) for event in events].count(StreamStarted) == 1
    assert [type(event) for event in events].count(Completed) == 1
    assert all(whose(event) == ("r1", 3) for event in events)
    pieces = [event for event in events if isinstance(event, FirstToken | ChannelToken | ToolCallDelta)]
    assert [type(event) for event in pieces].count(FirstToken) == 1
    assert isinstance(pieces[0], FirstToken)
    assert all(event.text for event in events if isinstance(event, ChannelToken))
    response = events[-1].response
    assert said(events, "text") == response.text
    assert said(events, "reasoning") == response.reasoning


@pytest.mark.parametrize("task", WORDS)
async def test_streamed_and_unstreamed_are_the_same_answer_in_the_same_time(task: str) -> None:
    async def run(stream: bool) -> tuple[Response, float]:
        clock = Clock()
        response = await complete(demo(clock), request(task, stream=stream))
        return response, sum(clock.waits)

    streamed, unstreamed = await run(True), await run(False)
    assert streamed[0] == unstreamed[0]
    assert streamed[1] == pytest.approx(unstreamed[1])
    assert streamed[1] == pytest.approx(0.015 * (1 + (streamed[0].usage.output_tokens or 0)))


async def test_unstreamed_text_comes_in_one_piece() -> None:
    events = await drain(demo(Clock()), request("cut", stream=False))
    assert [e.channel for e in events if isinstance(e, ChannelToken)] == ["reasoning", "text"]
    assert len([e for e in events if isinstance(e, ToolCallDelta)]) == 1
    first = next(e for e in events if isinstance(e, FirstToken))
    assert events[-1].t - events[0].t == pytest.approx(first.ttft_s)


async def test_streamed_pieces_come_one_by_one_and_numbered() -> None:
    clock = Clock()
    events = await drain(demo(clock, delay_ms=20), request("read a.py"))
    pieces = [event for event in events if isinstance(event, ChannelToken | ToolCallDelta)]
    assert [piece.n for piece in pieces] == list(range(1, len(pieces) + 1))
    assert clock.waits == [0.02] * (len(pieces) + 1)
    deltas = [event for event in events if isinstance(event, ToolCallDelta)]
    assert deltas[0].arguments == ""
    assert {(delta.index, delta.id, delta.name) for delta in deltas} == {(0, "call_1", "read_file")}
    assert "".join(delta.arguments for delta in deltas) == '{"path": "a.py"}'


async def test_the_first_token_is_not_the_name_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Answer(tuple(call_pieces(0, "c", "list_dir", "{}")), "tool_use")
    monkeypatch.setattr("mini_agent.models.demo.demo_answer", lambda _: answer)
    events = await drain(demo(Clock()), request("go"))
    assert [type(event) for event in events[2:5]] == [ToolCallDelta, FirstToken, ToolCallDelta]


async def test_the_cut_call_has_no_arguments_but_a_reason() -> None:
    response = await complete(demo(Clock()), request("cut"))
    assert response.stop_reason == "max_tokens"
    assert response.tool_calls[0].arguments == {}
    assert "not valid JSON" in (response.tool_calls[0].invalid or "")


async def test_parallel_calls_keep_their_own_arguments() -> None:
    first = await complete(demo(Clock()), request("parallel"))
    (call,) = first.tool_calls
    results = Message("tool", (ToolResult("a.py\nb.py\nsrc/", call_id=call.id),))
    history = (*request("parallel").messages, first.message, results)
    response = await complete(demo(Clock()), Request(history, tools=TOOLS))
    assert [(c.name, c.arguments["path"]) for c in response.tool_calls] == [
        ("read_file", "a.py"),
        ("read_file", "b.py"),
        ("list_dir", "src"),
    ]
    assert all(call.invalid is None for call in response.tool_calls)


async def test_an_empty_answer_is_an_error() -> None:
    events, error = await drain_broken(demo(Clock()), request("empty"), Attempt("r1", number=2))
    assert isinstance(error, EmptyAnswerError)
    assert (error.request_id, error.attempt) == ("r1", 2)
    assert not any(isinstance(event, FirstToken | ChannelToken) for event in events)


async def fates(**rates: Any) -> list[str]:
    """What became of 200 attempts with one model."""
    model = demo(Clock(), **rates)
    found: list[str] = []
    for _ in range(200):
        try:
            await complete(model, request("read a.py"))
            found.append("answer")
        except ModelError as error:
            found.append(error.kind)
    return found


async def test_no_rate_never_fails() -> None:
    assert set(await fates()) == {"answer"}


async def test_fail_rate_1_fails_always_half_by_rate_limit_half_by_overload() -> None:
    found = await fates(fail_rate=1)
    assert set(found) == {"rate_limit", "overloaded"}
    assert 70 < found.count("rate_limit") < 130


async def test_cut_rate_1_cuts_always() -> None:
    assert set(await fates(cut_rate=1)) == {"cut"}


async def test_rates_are_shares_drawn_anew_and_repeatable() -> None:
    found = await fates(fail_rate=0.5, cut_rate=0.5, seed=7)
    assert 70 < 200 - found.count("rate_limit") - found.count("overloaded") < 130
    assert 25 < found.count("cut") < 75
    assert found == await fates(fail_rate=0.5, cut_rate=0.5, seed=7)
    assert found != await fates(fail_rate=0.5, cut_rate=0.5, seed=8)


async def test_one_rate_does_not_move_the_other() -> None:
    failing = await fates(fail_rate=0.5, seed=3)
    both = await fates(fail_rate=0.5, cut_rate=1, seed=3)
    assert both == [fate if fate != "answer" else "cut" for fate in failing]


async def test_a_refusal_is_what_a_provider_would_say() -> None:
    model = demo(Clock(), fail_rate=1)
    errors = [(await drain_broken(model, request("hello"), Attempt("r", number=n)))[1] for n in range(1, 30)]
    by_status = {error.status: error for error in errors if isinstance(error, ProviderError)}
    assert set(by_status) == {429, 503}
    assert all(error.retryable and "DEMO_FAIL_RATE is 1" in error.message for error in errors)
    assert by_status[429].kind == "rate_limit"
    assert by_status[429].retry_after_s == 1
    assert by_status[429].headers["retry-after"] == "1"
    assert by_status[503].kind == "overloaded"
    assert by_status[503].retry_after_s is None
    assert [error.attempt for error in errors] == list(range(1, 30))


@pytest.mark.parametrize("stream", [True, False])
async def test_a_cut_stream_breaks_half_way(stream: bool) -> None:
    whole = await drain(demo(Clock()), request("hello", stream=stream))
    events, error = await drain_broken(demo(Clock(), cut_rate=1), request("hello", stream=stream))
    assert isinstance(error, CutError)
    assert error.retryable
    assert "DEMO_CUT_RATE is 1" in error.message
    half = sum(isinstance(event, ChannelToken) for event in whole) / 2 if stream else 0
    assert sum(isinstance(event, ChannelToken) for event in events) == half
    assert events[-1].t - events[0].t == pytest.approx((whole[-1].t - whole[0].t) / 2, abs=0.016)


async def test_the_meter_says_what_a_socket_would_have_brought() -> None:
    clock = Clock()
    attempt = new_attempt()
    await drain(demo(clock, delay_ms=10), request("read a.py"), attempt)
    response = await complete(demo(Clock()), request("read a.py"))
    meter = attempt.meter
    assert meter.first_byte_s == pytest.approx(0.02)
    assert meter.read_gaps_s == pytest.approx([0.01] * ((response.usage.output_tokens or 0) - 1))
    assert len(meter.event_bytes) == response.usage.output_tokens
    text = response.text + response.reasoning + '{"path": "a.py"}'
    assert sum(meter.event_bytes) == meter.bytes == len(text.encode())
    assert meter.usage == response.usage
    assert meter.connect_s is None


async def test_unstreamed_the_meter_has_one_event() -> None:
    attempt = new_attempt()
    await drain(demo(Clock()), request("cut", stream=False), attempt)
    assert attempt.meter.read_gaps_s == []
    assert attempt.meter.event_bytes == [attempt.meter.bytes]
    assert attempt.meter.bytes > 100


async def test_a_long_pause_tells_that_it_is_one() -> None:
    clock = Clock()
    events = await drain(demo(clock, delay_ms=2500), request("hello", max_tokens=1))
    assert [(e.phase, e.silent_s) for e in events if isinstance(e, AttemptProgress)] == [
        ("silent", 1.0),
        ("silent", 2.0),
        ("headers", 0.0),
        ("silent", 1.0),
        ("silent", 2.0),
    ]
    assert clock.waits == [1.0, 1.0, 0.5] * 2


async def test_the_total_deadline_ends_it_at_once_and_unretried() -> None:
    clock = Clock()
    attempt = Attempt("r", deadline=asyncio.get_running_loop().time() + 0.005)
    events, error = await drain_broken(demo(clock, delay_ms=60_000), request("hello"), attempt)
    assert isinstance(error, DeadlineError)
    assert error.kind == "total_timeout"
    assert not error.retryable
    assert sum(clock.waits) <= 0.005
    assert len(events) == 1


async def test_an_attempt_is_made_where_none_is_given() -> None:
    model = demo(Clock())
    first, second = await drain(model, request("hello")), await drain(model, request("hello"))
    assert {whose(event) for event in first} == {whose(first[0])}
    assert whose(first[0])[1] == 1
    assert whose(first[0]) != whose(second[0])


async def test_cancelling_in_a_wait_goes_through_and_leaves_nothing() -> None:
    waiting = asyncio.Event()

    async def forever(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    model = DemoModel(rng=random.Random(1), sleep=forever, now=Clock().now)
    task = asyncio.create_task(complete(model, request("hello")))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_it_can_be_closed_after_any_event() -> None:
    total = len(await drain(demo(Clock()), request("read a.py")))
    for stop in range(total):
        async with aclosing(demo(Clock()).stream(request("read a.py"))) as events:
            await take(events, stop)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def take(events: AsyncIterator[StreamEvent], count: int) -> None:
    for _ in range(count):
        await anext(events)


@settings(max_examples=40, deadline=None)
@given(st.text(), st.booleans(), st.integers(0, 20) | st.none())
def test_no_text_breaks_it(task: str, stream: bool, max_tokens: int | None) -> None:
    asked = request(task, stream=stream, max_tokens=max_tokens)
    with contextlib.suppress(EmptyAnswerError):  # the word `empty` is a text as well
        assert isinstance(asyncio.run(complete(demo(Clock(), delay_ms=0), asked)), Response)
