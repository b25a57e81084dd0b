"""The model over real sockets: what comes out of streams as servers really send them, and of servers that fail."""

import asyncio
import gzip
import random
import sys
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from mini_agent.core.answers import Answer, CallPiece, ReasoningPiece, TextPiece
from mini_agent.core.errors import ConfigError, ModelError
from mini_agent.core.events import (
    AttemptEnded,
    AttemptProgress,
    ChannelToken,
    Completed,
    FirstToken,
    Notice,
    Retrying,
    StreamStarted,
    ToolCallDelta,
)
from mini_agent.core.messages import Message, Reasoning, Request, Text, ToolCall, Usage
from mini_agent.core.profile import Deadlines, Profile
from mini_agent.lab.replies import Cut, Hold, Pause, Reply, chat_stream, error, event_stream
from mini_agent.lab.server import LabServer
from mini_agent.models.base import complete
from mini_agent.models.http import HttpModel
from mini_agent.models.policy import RetryPolicy
from mini_agent.models.retrying import RetryingModel
from mini_agent.models.traced import TracedModel
from mini_agent.wire.exchange import Exchange
from mini_agent.wire.pacing import PacedStream
from mini_agent.wire.profiles import shown
from mini_agent.wire.transport import Transport

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))
import deepseek_stream

REQUEST = Request((Message("user", (Text("hi"),)),), model="m")
HELLO = Answer((TextPiece("hel"), TextPiece("lo")), usage=Usage(input_tokens=3, output_tokens=2))
ONE = b'data: {"choices":[{"index":0,"delta":{"content":"one"}}]}\n\n'
STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"


class Lab:
    """A lab server with a model on it, wrapped as the program wraps it; waits between retries are noted, not waited."""

    def __init__(self, server, deadlines=None, pace_s=None, key=""):
        profile = Profile(
            name="generic",
            base_url=server.base_url,
            key_env=("SOME_API_KEY",),
            deadlines=deadlines or Deadlines(),
        )
        self.server = server
        self.transport = Transport(connect_s=profile.deadlines.connect_s, pace_s=pace_s)
        self.http = HttpModel(profile, key, self.transport, user_agent="test")
        self.waits = []
        self.ended = []
        retrying = RetryingModel(self.http, RetryPolicy(), rng=random.Random(1), sleep=self.sleep)
        self.model = TracedModel(retrying, self.ended.append)

    async def sleep(self, seconds):
        self.waits.append(seconds)

    async def events(self, request=REQUEST):
        async with aclosing(self.model.stream(request)) as stream:
            return [event async for event in stream]

    async def fails(self, request=REQUEST):
        with pytest.raises(ModelError) as raised:
            await complete(self.http, request)
        return raised.value


@pytest.fixture
async def lab():
    """lab(*script) starts a server that answers so, and a model on it."""
    opened = []

    async def start(*script, **options):
        server = await LabServer(list(script)).__aenter__()
        one = Lab(server, **options)
        opened.append(one)
        return one

    yield start
    for one in opened:
        await one.model.aclose()
        await one.server.__aexit__(None, None, None)


def of(events, kind):
    return [event for event in events if isinstance(event, kind)]


def unstreamed(request=REQUEST):
    return msgspec.structs.replace(request, stream=False)


DEEPSEEK = (
    Reasoning(deepseek_stream.REASONING, field="reasoning_content"),
    Text(deepseek_stream.TEXT),
    ToolCall(deepseek_stream.CALL_ID, "read_file", {"path": "a.go"}),
)


async def test_a_deepseek_stream_comes_out_as_the_right_events_and_response(lab):
    one = await lab(deepseek_stream.streamed())
    events = await one.events()
    said = [event for event in events if not isinstance(event, AttemptProgress)]
    assert [type(event).__name__ for event in said] == [
        "StreamStarted",
        "FirstToken",
        "ChannelToken",
        "ChannelToken",
        "ChannelToken",
        "ToolCallDelta",
        "ToolCallDelta",
        "ToolCallDelta",
        "Completed",
    ]
    assert [event.channel for event in of(events, ChannelToken)] == ["reasoning", "text", "text"]
    assert [event.n for event in of(events, ChannelToken)] == [1, 2, 3]
    assert [event.arguments for event in of(events, ToolCallDelta)] == ["", '{"path":"', 'a.go"}']
    response = events[-1].response
    assert response.blocks == DEEPSEEK
    assert (response.stop_reason, response.raw_stop_reason) == ("tool_use", "tool_calls")
    assert response.usage == Usage(input_tokens=30, output_tokens=25, cached_tokens=10, reasoning_tokens=6)


async def test_w6_the_same_answer_unstreamed_is_the_same_response(lab):
    one = await lab(deepseek_stream.streamed(), deepseek_stream.unstreamed())
    streamed = (await one.events())[-1].response
    whole = await one.events(unstreamed())
    assert whole[-1].response == streamed
    assert [request.json["stream"] for request in one.server.requests] == [True, False]
    assert [event.text for event in of(whole, ChannelToken)] == [
        deepseek_stream.REASONING,
        deepseek_stream.TEXT,
    ]
    assert len(of(whole, FirstToken)) == 1


async def test_a_stream_cut_before_its_end_is_retried(lab):
    one = await lab(event_stream(ONE, Cut()), event_stream(ONE), chat_stream(HELLO))
    events = await one.events()
    assert [event.error.kind for event in of(events, Retrying)] == ["cut", "cut"]
    assert events[-1].response.text == "hello"
    assert [ended.outcome for ended in one.ended] == ["failed", "failed", "completed"]


async def test_d12_a_call_cut_in_the_middle_never_becomes_a_call(lab):
    half = Answer((CallPiece(0, "c", "write_file", '{"path":"a","content":"abc'),))
    cut = chat_stream(half)
    one = await lab(Reply(200, cut.headers, cut.body[:2]), chat_stream(HELLO))
    assert (await one.events())[-1].response.tool_calls == ()


async def test_503_then_429_then_success_makes_two_retries_and_honours_the_wait(lab):
    one = await lab(error(503, "busy"), error(429, "slow down", {"retry-after": "7"}), HELLO)
    events = await one.events()
    retries = of(events, Retrying)
    assert [(retry.retry, retry.error.status, retry.decision) for retry in retries] == [
        (1, 503, "fresh_connection"),
        (2, 429, "backoff"),
    ]
    assert 0.5 <= one.waits[0] <= 1
    assert one.waits[1] == 7
    assert events[-1].response.text == "hello"
    assert len({event.request_id for event in of(events, StreamStarted)}) == 1
    assert [event.attempt for event in of(events, StreamStarted)] == [1, 2, 3]


async def test_400_is_not_retried(lab):
    one = await lab(error(400, "no such field"))
    with pytest.raises(ModelError, match="HTTP 400: no such field") as raised:
        await one.events()
    assert (raised.value.kind, raised.value.attempt, len(one.server.requests)) == ("bad_request", 1, 1)


async def test_two_interleaved_calls_do_not_mix(lab):
    pieces = (
        CallPiece(0, "a", "read_file", ""),
        CallPiece(1, "b", "list_dir", '{"pa'),
        CallPiece(0, "a", "read_file", '{"path":'),
        CallPiece(1, "b", "list_dir", 'th":"y"}'),
        CallPiece(0, "a", "read_file", '"x"}'),
    )
    one = await lab(Answer(pieces, stop_reason="tool_use"))
    assert (await one.events())[-1].response.tool_calls == (
        ToolCall("a", "read_file", {"path": "x"}),
        ToolCall("b", "list_dir", {"path": "y"}),
    )


async def test_w4_a_connection_that_breaks_after_the_finish_reason_leaves_the_answer_whole(lab):
    one = await lab(event_stream(ONE, STOP, Cut(reset=True)))
    response = (await one.events())[-1].response
    assert (response.text, response.usage) == ("one", Usage())
    assert one.waits == []


async def test_what_comes_after_the_end_is_ignored(lab):
    one = await lab(event_stream(ONE, STOP, DONE, b"data: }garbage{\n\n"))
    events = await one.events()
    assert of(events, Notice) == []
    assert events[-1].response.text == "one"


async def test_w3_garbage_before_the_end_is_told_and_the_attempt_asked_for_again(lab):
    one = await lab(event_stream(ONE, b"data: {gar\n\n", STOP, DONE), HELLO)
    events = await one.events()
    assert of(events, Notice)[0].parse_error == "{gar"
    assert [retry.error.kind for retry in of(events, Retrying)] == ["protocol"]
    assert events[-1].response.text == "hello"


async def test_w3_the_servers_retry_field_is_a_lower_bound_for_the_wait(lab):
    one = await lab(event_stream(b"retry: 9000\n\n", ONE, Cut()), HELLO)
    await one.events()
    assert one.waits == [9]


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (
            Reply(200, {"content-type": "text/html"}, (b"<!doctype html><title>Log in</title>",), "length"),
            "protocol",
            "Log in",
        ),
        (
            Reply(200, {"content-type": "application/json"}, (b'{"status":"ok"}',), "length"),
            "protocol",
            "no answer of a model",
        ),
        (Reply(200, {"content-type": "text/plain"}, (b"it works!",), "length"), "protocol", "it works!"),
        (
            Reply(200, {}, (b'{"error":{"message":"upstream died","code":502}}',), "length"),
            "provider",
            "upstream died",
        ),
        (event_stream(b'event: error\ndata: {"message":"boom"}\n\n'), "provider", "boom"),
        (Reply(200, {}, (), "length"), "cut", "not one event"),
        (
            Reply(
                200,
                {"content-type": "application/x-ndjson"},
                (b'{"message":{"content":"a"},"done":false}\n{"done":true}\n',),
            ),
            "protocol",
            "no answer of a model",
        ),
        (Reply(302, {"location": "http://portal/"}, (), "length"), "bad_request", "http://portal/"),
        (Reply(502, {}, (b"<html><title>Bad Gateway</title>", Cut()), "chunked"), "provider", "Bad Gateway"),
    ],
    ids=[
        "html",
        "other-json",
        "plain",
        "error-in-200",
        "error-event",
        "empty",
        "a18-ndjson",
        "redirect",
        "cut-error-body",
    ],
)
async def test_w14_what_is_no_answer_is_never_an_empty_success(lab, reply, kind, said):
    one = await lab(reply, reply)
    for request in (REQUEST, unstreamed()):
        failed = await one.fails(request)
        assert failed.kind == kind
        assert said in failed.message
        assert "\n" not in failed.message


async def test_a6_an_empty_answer_is_asked_for_three_times_and_then_said(lab):
    empty = Answer((ReasoningPiece("hm"),))
    one = await lab(empty, empty, empty)
    with pytest.raises(ModelError, match="gave up after 2 retries") as raised:
        await one.events()
    assert raised.value.kind == "empty"
    assert len(one.server.requests) == 3


async def test_a14_a_json_answer_to_a_streaming_request_counts(lab):
    one = await lab(deepseek_stream.unstreamed())
    assert (await one.events())[-1].response.blocks == DEEPSEEK


async def test_a15_blank_lines_before_an_unstreamed_answer_are_waiting(lab):
    one = await lab(
        Reply(200, {}, (b"\n\n", b"\n", deepseek_stream.UNSTREAMED)), Reply(200, {}, (b"\n\n\n",))
    )
    assert (await one.events(unstreamed()))[-1].response.blocks == DEEPSEEK
    assert (await one.fails(unstreamed())).retryable


async def test_a19_a_packed_stream_is_unpacked(lab):
    packed = gzip.compress(ONE + STOP + DONE)
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    one = await lab(
        Reply(200, headers, (packed[:10], packed[10:25], packed[25:])),
        Reply(200, headers, (b"not gzip",)),
        HELLO,
    )
    assert (await one.events())[-1].response.text == "one"
    assert one.server.requests[0].headers["accept-encoding"] == "identity"
    events = await one.events()
    assert [retry.error.kind for retry in of(events, Retrying)] == ["protocol"]


@pytest.mark.parametrize(
    ("body", "limits", "kind"),
    [
        ((Hold(),), {"first_event_s": 0.05}, "first_event_timeout"),
        ((b": keep-alive\n\n", Hold()), {"first_event_s": 0.05}, "first_event_timeout"),
        ((ONE, Hold()), {"idle_s": 0.05}, "idle_timeout"),
        (
            (ONE, *(part for _ in range(50) for part in (b": still here\n\n", Pause(0.02)))),
            {"stall_s": 0.2},
            "stall_timeout",
        ),
    ],
    ids=["first-event", "comments-do-not-end-it", "idle", "d14-stall"],
)
async def test_w9_each_deadline_has_its_own_kind_and_is_worth_another_try(lab, body, limits, kind):
    one = await lab(event_stream(*body), HELLO, deadlines=Deadlines(**limits))
    events = await one.events()
    assert [retry.error.kind for retry in of(events, Retrying)] == [kind]
    assert events[-1].response.text == "hello"


async def test_w9_time_in_which_the_consumer_holds_an_event_does_not_count(lab):
    one = await lab(event_stream(ONE, Pause(0.05), STOP, DONE), deadlines=Deadlines(idle_s=0.2, stall_s=0.2))
    async with aclosing(one.model.stream(REQUEST)) as stream:
        async for event in stream:
            if isinstance(event, ChannelToken):
                await asyncio.sleep(0.4)
    assert one.waits == []


async def test_a_finished_answer_does_not_wait_for_a_server_that_keeps_the_stream_open(lab, monkeypatch):
    monkeypatch.setattr("mini_agent.wire.deadlines.AFTER_FINISH_S", 0.05)
    monkeypatch.setattr("mini_agent.wire.deadlines.TICK_S", 0.05)
    one = await lab(event_stream(ONE, STOP, Hold()))
    assert (await one.events())[-1].response.text == "one"


async def test_a_refused_connection_names_the_host_and_the_cause(lab):
    one = await lab()
    await one.server.__aexit__(None, None, None)
    failed = await one.fails()
    assert (failed.kind, failed.retryable) == ("connection", True)
    assert "127.0.0.1" in failed.message
    one.server = await LabServer().__aenter__()


async def test_a_reset_before_the_status_line_is_a_broken_connection(lab):
    one = await lab(Reply(body=(Cut(reset=True),), framing="raw"), HELLO)
    events = await one.events()
    assert [retry.error.kind for retry in of(events, Retrying)] == ["connection"]


async def test_connections_are_used_again(lab):
    one = await lab(*[HELLO] * 5)
    for _ in range(5):
        await one.events()
    assert {request.connection for request in one.server.requests} == {one.server.requests[0].connection}
    assert one.ended[0].connect_s > 0
    assert one.ended[1].connect_s == 0


@pytest.mark.parametrize("moment", [StreamStarted, AttemptProgress, ChannelToken])
async def test_d16_cancel_closes_the_connection_and_leaves_the_pool_healthy(lab, moment):
    hanging = [event_stream(ONE, Hold())] * 5
    one = await lab(*hanging, HELLO)
    for _ in range(5):
        reached = asyncio.Event()

        async def ask(reached=reached):
            async with aclosing(one.model.stream(REQUEST)) as stream:
                async for event in stream:
                    if isinstance(event, moment):
                        reached.set()
                        await asyncio.Event().wait()

        task = asyncio.create_task(ask())
        await reached.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    asked = len(one.server.requests)
    await one.server.until(lambda server: len(server.disconnects) >= asked)
    assert [ended.outcome for ended in one.ended] == ["cancelled"] * 5
    one.server._script = lambda request: HELLO
    assert (await one.events())[-1].response.text == "hello"


async def test_w11_an_attempt_is_measured(lab):
    one = await lab(event_stream(ONE, Pause(0.02), ONE, STOP, DONE))
    await one.events()
    (ended,) = one.ended
    assert isinstance(ended, AttemptEnded)
    assert ended.outcome == "completed"
    assert 0 < ended.first_byte_s <= ended.first_token_s <= ended.total_s
    assert (ended.events, ended.bytes) == (4, len(ONE) * 2 + len(STOP) + len(DONE))
    assert ended.gap_max_s >= 0.015
    assert ended.event_bytes_max == len(STOP) - len(b"data: \n\n")


async def test_the_key_is_sent_and_never_told(lab):
    one = await lab(error(401, "bad key sk-1234567890abcdef"), key="sk-1234567890abcdef")
    failed = await one.fails()
    assert one.server.requests[0].headers["authorization"] == "Bearer sk-1234567890abcdef"
    assert "1234567890abcdef" not in msgspec.json.encode(failed.info()).decode()
    assert "SOME_API_KEY" in failed.hint


async def test_w10_a_slow_consumer_makes_the_read_wait(lab, monkeypatch):
    """Far more than the sockets' buffers hold: the server can't have sent it all while the consumer sleeps on its
    first piece.
    """
    sent = []
    big = b'data: {"choices":[{"index":0,"delta":{"content":"' + b"x" * 60000 + b'"}}]}\n\n'
    one = await lab(event_stream(*[big] * 400, STOP, DONE))
    held = []
    put = Exchange._put
    monkeypatch.setattr(Exchange, "_put", lambda self, arrival: (held.append(self._held), put(self, arrival)))
    async with aclosing(one.http.stream(REQUEST)) as stream:
        async for event in stream:
            if isinstance(event, ChannelToken):
                sent.append(len(event.text))
                await asyncio.sleep(0)
    assert sum(sent) == 400 * 60000
    assert max(held) < 65536 * 3


@pytest.mark.parametrize("pace_s", [0.05, None])
async def test_reads_for_a_screen_are_paced_and_others_are_not(lab, pace_s):
    """Pacing sits below httpx's public surface: this notices when it no longer gets there."""
    one = await lab(HELLO, HELLO, pace_s=pace_s)
    assert (await one.events())[-1].response.text == "hello"
    async with one.transport._client.stream("POST", one.http._url, json={}) as response:
        stream = response.extensions["network_stream"]
    assert isinstance(stream, PacedStream)
    assert stream._frame_s == (pace_s or 0)


async def test_completed_comes_once_and_last(lab):
    one = await lab(HELLO)
    events = await one.events()
    assert [event for event in events if isinstance(event, Completed)] == [events[-1]]


async def test_progress_tells_a_server_that_is_slow_from_one_that_is_silent(lab, monkeypatch):
    monkeypatch.setattr("mini_agent.wire.deadlines.TICK_S", 0.05)
    monkeypatch.setattr("mini_agent.models.http.TICK_S", 0.05)
    slow = [part for _ in range(8) for part in (b": working\n\n", Pause(0.02))]
    one = await lab(event_stream(*slow, ONE, STOP, DONE), event_stream(ONE, Pause(0.15), STOP, DONE))
    phases = [event.phase for event in of(await one.events(), AttemptProgress)]
    assert phases[:2] == ["connected", "headers"]
    assert "streaming" in phases[2:]
    silent = [event for event in of(await one.events(), AttemptProgress) if event.phase == "silent"]
    assert silent
    assert silent[-1].silent_s >= 0.05


@pytest.mark.parametrize("tail", [b"", b": still here\n\n", b'data: {"choices":[{"delta":{}}]}\n\n'])
async def test_w4_nothing_that_follows_a_finish_reason_makes_the_answer_fail(lab, monkeypatch, tail):
    monkeypatch.setattr("mini_agent.wire.deadlines.AFTER_FINISH_S", 0.2)
    endless = [part for _ in range(200) for part in ((tail, Pause(0.02)) if tail else (Pause(0.02),))]
    one = await lab(event_stream(ONE, STOP, *endless), deadlines=Deadlines(idle_s=0.1, stall_s=0.1))
    assert (await one.events())[-1].response.text == "one"
    assert one.waits == []


async def test_w9_an_error_body_that_drips_is_not_waited_for_without_end(lab, monkeypatch):
    monkeypatch.setattr("mini_agent.models.http.ERROR_BODY_S", 0.1)
    drip = [part for _ in range(500) for part in (b"x", Pause(0.02))]
    one = await lab(Reply(500, {}, drip))
    failed = await one.fails()
    assert (failed.status, failed.message[:10]) == (500, "HTTP 500: ")


KEY = "not-shaped-like-any-key-0123"


@pytest.mark.parametrize(
    "reply",
    [
        error(401, f"Incorrect API key provided: {KEY}"),
        error(400, {"error": {"message": "x", "code": KEY, "type": KEY}}),
        event_stream(f"data: {{gar {KEY}\n\n".encode()),
        Reply(200, {}, (f"<title>{KEY}</title>".encode(),)),
        event_stream(f'event: error\ndata: {{"message":"{KEY}"}}\n\n'.encode()),
    ],
    ids=["401", "code-and-type", "undecodable", "page", "error-event"],
)
async def test_t7_a_key_that_the_server_echoes_is_never_told(lab, reply):
    one = await lab(reply, key=KEY)
    told = []
    with pytest.raises(ModelError) as raised:
        async with aclosing(one.http.stream(REQUEST)) as stream:
            told.extend([event async for event in stream])
    assert KEY not in msgspec.json.encode([*told, raised.value.info()]).decode()


async def test_b25_an_error_with_half_a_character_in_it_can_be_told(lab):
    failed = await (await lab(error(400, b'{"error":{"message":"\\ud83d"}}'))).fails()
    assert msgspec.json.decode(msgspec.json.encode(failed.info()))["message"] == "HTTP 400: \ufffd"


@pytest.mark.parametrize("url", ["http://h:abc/v1", "http://[::1/v1", "ftp://h/v1", "http:///v1"])
def test_an_address_that_is_none_is_said_before_anything_is_asked(url):
    with pytest.raises(ConfigError, match="no address"):
        HttpModel(Profile(base_url=url), "", None, user_agent="test")


def test_t7_an_address_is_told_without_what_may_be_secret():
    assert shown("http://user:pw@host/v1?key=1#x") == "http://host/v1"
    assert shown("http://TOKEN@host/v1") == "http://host/v1"
    with pytest.raises(ConfigError) as raised:
        HttpModel(Profile(base_url="http://TOKEN@host/v1"), "", None, user_agent="test")
    assert "TOKEN" not in str(raised.value)


@pytest.mark.parametrize("reset", [True, False])
async def test_d11_a_connection_that_dies_in_mid_stream_is_asked_again(lab, reset):
    one = await lab(event_stream(ONE, Pause(0.02), Cut(reset=reset)), HELLO)
    events = await one.events()
    assert [retry.error.kind for retry in of(events, Retrying)] == ["connection" if reset else "cut"]
    assert events[-1].response.text == "hello"


async def test_d11_a_kept_connection_that_dies_before_the_status_line_is_asked_again(lab):
    """A server that closed an idle connection just as the next request went out: nothing was answered yet."""
    one = await lab(HELLO, Reply(body=(Cut(),), framing="raw"), HELLO)
    await one.events()
    events = await one.events()
    assert one.server.requests[0].connection == one.server.requests[1].connection
    assert [retry.error.kind for retry in of(events, Retrying)] == ["connection"]
    assert events[-1].response.text == "hello"


async def test_d15_no_deadline_of_httpx_ends_a_slow_answer(lab):
    """Its default of 5 s for each read would; only connecting keeps one, the others are ours."""
    one = await lab(HELLO, deadlines=Deadlines(connect_s=7))
    timeout = one.transport._client.timeout
    assert (timeout.connect, timeout.read, timeout.write, timeout.pool) == (7, None, None, None)
