"""Recovery over real sockets: which connection an attempt goes out on, what it leaves out, and what it is given up for."""

import base64
import random
from contextlib import aclosing

import msgspec
import pytest

from mini_agent.core.answers import Answer, CallPiece, ReasoningPiece, TextPiece
from mini_agent.core.errors import ModelError
from mini_agent.core.events import (
    ChannelToken,
    Completed,
    DoomLoopSignal,
    ImagesStripped,
    Notice,
    Retrying,
    StreamStarted,
    ToolCallDelta,
)
from mini_agent.core.messages import Image, Message, Request, Text, Usage
from mini_agent.core.profile import Profile
from mini_agent.lab.replies import Cut, Hold, Reply, error, event_stream, sse
from mini_agent.lab.server import Faulty, LabServer
from mini_agent.models.http import HttpModel
from mini_agent.models.policy import RetryPolicy
from mini_agent.models.retrying import RetryingModel
from mini_agent.models.traced import TracedModel
from mini_agent.wire.transport import Transport

FAMILIES = ("chat", "responses", "messages")
REQUEST = Request((Message("user", (Text("hi"),)),), model="m", max_tokens=1000)
PNG = b"\x89PNG\r\n\x1a\n" + b"pixels" * 40
PICTURED = msgspec.structs.replace(
    REQUEST, messages=(Message("user", (Text("look"), Image("image/png", PNG))),)
)
HELLO = Answer((TextPiece("hel"), TextPiece("lo")), usage=Usage(input_tokens=3, output_tokens=2))
LOOP = ("Let me do it. ",) * 400


class Recovering:
    """A lab server with a model on it, wrapped as the program wraps it; waits between attempts are noted, not waited."""

    def __init__(self, server, policy, profile):
        self.server = server
        self.waits = []
        self.ended = []
        http = HttpModel(profile, "", Transport(connect_s=10), user_agent="test")
        retrying = RetryingModel(http, policy, rng=random.Random(1), sleep=self._sleep)
        self.model = TracedModel(retrying, self.ended.append)

    async def _sleep(self, seconds):
        self.waits.append(seconds)

    async def events(self, request=REQUEST):
        async with aclosing(self.model.stream(request)) as stream:
            return [event async for event in stream]

    async def fails(self, request=REQUEST):
        with pytest.raises(ModelError) as raised:
            await self.events(request)
        return raised.value

    @property
    def connections(self):
        return [request.connection for request in self.server.requests]


@pytest.fixture
async def recovering():
    """recovering(*script) starts a server that answers so, and a model on it."""
    opened = []

    async def start(*script, api="chat", policy=None, doom_event=None):
        server = await LabServer(list(script)).__aenter__()
        profile = Profile(
            name="generic",
            api=api,
            base_url=server.base_url,
            key_env=("SOME_API_KEY",),
            doom_event=doom_event,
        )
        one = Recovering(server, policy or RetryPolicy(), profile)
        opened.append(one)
        return one

    yield start
    for one in opened:
        await one.model.aclose()
        await one.server.__aexit__(None, None, None)
        assert one.server.violations == []


def of(events, kind):
    return [event for event in events if isinstance(event, kind)]


def decisions(events):
    return [one.decision for one in of(events, Retrying)]


# Fresh connections


KEPT = {"503": error(503, "busy"), "500": error(500, b"<html>oops</html>"), "502": error(502, b"")}
"""Faults after which the connection could be used again."""

BROKEN = {
    "cut half-way": Faulty(HELLO, "cut@1"),
    "reset half-way": Faulty(HELLO, "reset@1"),
    "closed before the status line": Reply(body=(Cut(),), framing="raw"),
    "a broken chunk": Faulty(HELLO, "bad-chunk@1"),
}


@pytest.mark.parametrize("fault", [*KEPT, *BROKEN])
async def test_d11_the_first_retry_comes_on_a_connection_of_its_own(recovering, fault):
    one = await recovering(HELLO, {**KEPT, **BROKEN}[fault], HELLO, HELLO, HELLO)
    await one.events()
    events = await one.events()
    assert decisions(events) == ["fresh_connection"]
    assert events[-1].response.text == "hello"
    await one.events()
    await one.events()
    first, second, retried, *later = one.connections
    assert first == second  # there was a connection that could have been used
    assert retried not in (first, *later)
    assert len(set(later)) == 1
    assert (later[0] == first) is (fault in KEPT)


async def test_d11_the_second_one_comes_from_the_pool_again(recovering):
    one = await recovering(error(500, "a"), error(500, "b"), error(502, "c"), HELLO)
    assert decisions(await one.events()) == ["fresh_connection", "plain", "plain"]
    first, fresh, third, fourth = one.connections
    assert fresh != first
    assert third == fourth == first


async def test_r6_a_provider_that_throttles_is_asked_again_on_the_same_connection(recovering):
    one = await recovering(error(429, "slow down"), error(529, "busy"), HELLO)
    assert decisions(await one.events()) == ["backoff", "backoff"]
    assert len(set(one.connections)) == 1


async def test_r6_each_request_has_a_fresh_connection_of_its_own(recovering):
    one = await recovering(*[error(500, "a"), HELLO] * 3)
    for _ in range(3):
        assert decisions(await one.events()) == ["fresh_connection"]
    assert len(set(one.connections[::2])) == 1
    assert len(set(one.connections[1::2])) == 3


# Images


@pytest.mark.parametrize("api", FAMILIES)
@pytest.mark.parametrize(
    "body", [b"", b"<html>413 Request Entity Too Large</html>", b'{"error":{"message":"big"}}']
)
async def test_r6_a_request_that_is_too_large_is_asked_again_without_its_images(recovering, api, body):
    one = await recovering(error(413, body), HELLO, api=api)
    events = await one.events(PICTURED)
    assert decisions(events) == ["without_images"]
    assert [stripped.count for stripped in of(events, ImagesStripped)] == [1]
    assert events[-1].response.text == "hello"
    assert one.waits == []
    first, second = (request.body for request in one.server.requests)
    assert base64.b64encode(PNG) in first
    assert base64.b64encode(PNG)[:8] not in second
    assert [(ended.outcome, ended.error and ended.error.kind) for ended in one.ended] == [
        ("failed", "too_large"),
        ("completed", None),
    ]


async def test_r6_without_images_left_it_is_final(recovering):
    one = await recovering(error(413, ""), error(413, ""))
    assert (await one.fails(PICTURED)).kind == "too_large"
    assert len(one.server.requests) == 2


# Repetition


@pytest.mark.parametrize("api", FAMILIES)
@pytest.mark.parametrize("piece", [TextPiece, ReasoningPiece])
async def test_e13_a_doom_loop_closes_its_connection_at_once_and_is_asked_anew(recovering, api, piece):
    looping = Answer(tuple(piece(text) for text in LOOP))
    one = await recovering(Faulty(looping, "stall@300"), HELLO, api=api)
    events = await one.events()
    await one.server.until(lambda server: server.disconnects)
    assert one.server.disconnects == one.server.requests[:1]
    assert [signal.labels for signal in of(events, DoomLoopSignal)] == [("Let me do it.",)]
    assert decisions(events) == ["resample"]
    assert events[-1].response.text == "hello"
    given_up, complete = one.ended
    assert (given_up.outcome, given_up.error.kind) == ("failed", "repetition")
    assert given_up.estimated or api == "messages"  # that family says at the beginning what it has read
    assert complete.usage.output_tokens == 2


async def test_e13_a_loop_that_came_whole_is_one_too(recovering):
    whole = msgspec.structs.replace(REQUEST, stream=False)
    one = await recovering(*[Answer((TextPiece("".join(LOOP)),), usage=Usage(9, 1400))] * 3)
    error = await one.fails(whole)
    assert error.kind == "repetition"
    assert "gave up after 2 retries" in error.message
    assert [ended.usage.output_tokens for ended in one.ended] == [1400] * 3


async def test_e13_reports_with_rulers_and_tables_are_left_alone(recovering):
    table = "| file | size |\n|---|---|\n" + "| - | 0 |\n" * 60
    one = await recovering(Answer((TextPiece("-" * 200 + "\n\n"), TextPiece(table))))
    assert decisions(await one.events()) == []


CREATED = sse({"type": "response.created", "response": {"id": "r", "model": "m"}}, "response.created")


def looping(*labels):
    name = "response.doom_loop_check"
    return sse({"type": name, "doom_loop_check": {"triggers": [*labels]}}, name)


async def test_a_doom_loop_that_the_provider_sees_is_given_up_there_and_then(recovering):
    seen = looping("low_logprob@response", "tail_repetition:8@thinking")
    one = await recovering(
        event_stream(CREATED, seen, Hold()), HELLO, api="responses", doom_event="response.doom_loop_check"
    )
    events = await one.events()
    await one.server.until(lambda server: server.disconnects)
    assert decisions(events) == ["resample"]
    assert len(of(events, DoomLoopSignal)) == 1
    assert events[-1].response.text == "hello"


# Half an answer


@pytest.mark.parametrize(("api", "until"), [("chat", 4), ("responses", 10), ("messages", 8)])
async def test_d12_nothing_of_an_attempt_that_broke_is_in_the_answer(recovering, api, until):
    half = Answer(
        (
            TextPiece("Here is "),
            TextPiece("the pl"),
            *(CallPiece(0, "c1", "write_file", part) for part in ("", '{"path":"a', '","content":"x"}')),
        ),
        stop_reason="tool_use",
    )
    one = await recovering(Faulty(half, f"cut@{until}"), HELLO, api=api)
    events = await one.events()
    _, second = (place for place, event in enumerate(events) if isinstance(event, StreamStarted))
    assert [event.text for event in of(events[:second], ChannelToken)] == ["Here is ", "the pl"]
    assert of(events[:second], ToolCallDelta)
    assert [event.text for event in of(events[second:], ChannelToken)] == ["hel", "lo"]
    assert of(events[second:], ToolCallDelta) == []
    assert len(of(events, Completed)) == 1
    response = events[-1].response
    assert (response.text, response.tool_calls) == ("hello", ())


async def test_r2_a_tool_that_the_provider_ran_is_not_run_again_without_a_word(recovering):
    searching = sse(
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "web_search_call", "id": "ws", "status": "in_progress"},
        },
        "response.output_item.added",
    )
    broken = event_stream(CREATED, searching, Cut())
    one = await recovering(broken, broken, HELLO, api="responses")
    error = await one.fails()
    assert (error.kind, len(one.server.requests)) == ("cut", 2)
    assert error.message.endswith("(gave up after 1 retry; a tool run by the provider may have acted)")

    one = await recovering(broken, HELLO, api="responses")
    events = await one.events()
    assert [notice.level for notice in of(events, Notice)] == ["warning"]
    assert events[-1].response.text == "hello"


# How long the server wants to be left alone


async def test_d17_try_again_in_17_seconds_is_kept_five_times(recovering):
    throttled = error(429, "Rate limit reached for m. Please try again in 17 seconds.")
    one = await recovering(*[throttled] * 5, HELLO, policy=RetryPolicy(max_retries=5))
    assert decisions(await one.events()) == ["backoff"] * 5
    assert one.waits == [17] * 5


@pytest.mark.parametrize(
    ("headers", "message", "when"),
    [
        ({"retry-after": "3600"}, "slow down", "1 h"),
        ({"retry-after-ms": "7200000"}, "slow down", "2 h"),
        ({}, "Please retry after 86400 seconds.", "1 day"),
    ],
)
async def test_d02_a_server_that_wants_to_be_left_alone_for_long_is(recovering, headers, message, when):
    one = await recovering(error(429, message, headers))
    assert f"come back in {when})" in (await one.fails()).message
    assert (one.waits, len(one.server.requests)) == ([], 1)


@pytest.mark.parametrize("value", ["-5", "nan", "inf", "1e400", "", "soon"])
async def test_d01_a_wait_that_is_none_leaves_our_own(recovering, value):
    one = await recovering(error(429, "slow down", {"retry-after": value}), HELLO)
    await one.events()
    assert 0.5 <= one.waits[0] <= 1


@pytest.mark.parametrize(("retry_ms", "said", "wait_s"), [(9000, 3, 9), (3000, 9, 9), (1, 5, 5)])
async def test_r4_of_two_words_the_longer_wait_counts(recovering, retry_ms, said, wait_s):
    failure = sse({"error": {"code": "rate_limit_exceeded", "message": f"Please try again in {said}s"}})
    one = await recovering(event_stream(b"retry: %d\n\n" % retry_ms, failure), HELLO)
    await one.events()
    assert one.waits == [wait_s]


async def test_r4_a_veto_is_the_last_word(recovering):
    one = await recovering(error(503, "busy", {"x-should-retry": "false"}))
    assert "no use" in (await one.fails()).message
    assert len(one.server.requests) == 1
