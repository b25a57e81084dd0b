"""Answers of the Messages family, streamed and whole, right and wrong."""

import itertools
import json
from typing import Any

import msgspec
import pytest
from chat_player import DONE, Played, sse
from family_player import Case, answer, failed, fits, play, three_ways
from hypothesis import given, settings
from hypothesis import strategies as st
from messages_corpus import (
    CASES,
    HELLO,
    PING,
    START,
    STOP,
    arguments,
    block,
    call,
    end,
    finish,
    piece,
    said,
    text,
    thought,
    whole,
)

from mini_agent.core.errors import CutError, ModelError, ProtocolError
from mini_agent.core.events import (
    BackendToolCompleted,
    BackendToolStarted,
    ChannelToken,
    FirstToken,
    ReasoningCompleted,
    ResponseStarted,
    ToolCallDelta,
)
from mini_agent.core.messages import Reasoning, Response, Text, ToolCall, Usage

STAMP: dict[str, Any] = {"request_id": "request", "attempt": 1}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_providers_send(case: Case) -> None:
    fits("messages", case)


THINKS = (
    block(0, type="thinking", thinking="", signature=""),
    thought(0, "a"),
    thought(0, "b"),
    piece(0, "signature_delta", signature="SIG"),
    end(0),
    block(1, type="redacted_thinking", data="X"),
    end(1),
)


def test_c05_a_stream_becomes_the_right_events_and_keeps_its_seals() -> None:
    played = three_ways("messages", [START, *THINKS, *call(2, "t", "ls", "{", "}"), finish("tool_use"), STOP])
    assert played.events == [
        ResponseStarted(
            t=101.0, n=1, response_id="m", usage=Usage(input_tokens=10, output_tokens=1), **STAMP
        ),
        FirstToken(t=103.0, n=3, ttft_s=3.0, **STAMP),
        ChannelToken(t=103.0, n=3, channel="reasoning", text="a", **STAMP),
        ChannelToken(t=104.0, n=4, channel="reasoning", text="b", **STAMP),
        ReasoningCompleted(t=106.0, n=6, index=0, signature="SIG", **STAMP),
        ToolCallDelta(t=109.0, n=9, index=0, id="t", name="ls", arguments="", **STAMP),
        ToolCallDelta(t=110.0, n=10, index=0, id="t", name="ls", arguments="{", **STAMP),
        ToolCallDelta(t=111.0, n=11, index=0, id="t", name="ls", arguments="}", **STAMP),
    ]
    assert played.response == Response(
        (
            Reasoning("ab", field="thinking", signature="SIG"),
            Reasoning(field="redacted_thinking", encrypted="X"),
            ToolCall("t", "ls"),
        ),
        stop_reason="tool_use",
        raw_stop_reason="tool_use",
        usage=Usage(input_tokens=10, output_tokens=5),
        id="m",
        model="claude",
    )
    assert played.decoder.ended
    assert played.decoder.finished


def test_c05_thoughts_stay_apart_and_where_they_were() -> None:
    response = answer(
        "messages",
        [
            START,
            block(0, type="thinking", thinking=""),
            thought(0, "one"),
            piece(0, "signature_delta", signature="S1"),
            end(0),
            *said("look", index=1),
            block(2, type="thinking", thinking="", signature="S2"),
            thought(2, "two"),
            end(2),
            *call(3, "t", "ls", "{}"),
            finish("tool_use"),
            STOP,
        ],
    )
    assert response.blocks == (
        Reasoning("one", field="thinking", signature="S1"),
        Text("look"),
        Reasoning("two", field="thinking", signature="S2"),
        ToolCall("t", "ls"),
    )


@pytest.mark.parametrize(
    "signatures", [("SIG",), ("S", "I", "G"), ("S", "SI", "SIG"), ("SIG", "SIG"), ("", "SIG", "")]
)
def test_c05_a_signature_whole_in_pieces_growing_or_repeated(signatures: tuple[str, ...]) -> None:
    seals = (piece(0, "signature_delta", signature=one) for one in signatures)
    start = block(0, type="thinking", thinking="", signature="")
    response = answer("messages", [START, start, *seals, end(0), *said("x", index=1), finish("end_turn")])
    assert response.blocks == (Reasoning(field="thinking", signature="SIG"), Text("x"))


def test_c04_broken_arguments_are_refused_with_a_reason() -> None:
    chunks = [START, *call(0, "t", "bash", "code", '":', ' "ls"}'), finish("tool_use"), STOP]
    (block_,) = answer("messages", chunks).tool_calls
    assert block_.arguments == {}
    assert "not valid JSON" in (block_.invalid or "")


ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@pytest.mark.parametrize(
    "before", [(), (START, block(0, type="text", text=""), text(0, "par")), HELLO[:-1], (PING,)]
)
def test_c01_a17_an_error_in_the_middle_of_a_stream(before: tuple[bytes, ...]) -> None:
    for event in (sse(ERROR, "error"), sse(ERROR), sse({"error": ERROR["error"]}, "error  ")):
        error = failed("messages", [*before, event])
        assert (error.kind, error.provider_type, error.retryable) == ("overloaded", "overloaded_error", True)
        assert error.message == "Overloaded"


@pytest.mark.parametrize(
    ("kind", "ours", "retryable"),
    [
        ("overloaded_error", "overloaded", True),
        ("rate_limit_error", "rate_limit", True),
        ("api_error", "provider", True),
        ("timeout_error", "provider", True),
        ("invalid_request_error", "bad_request", False),
        ("authentication_error", "auth", False),
        ("permission_error", "auth", False),
        ("billing_error", "quota", False),
        ("not_found_error", "bad_request", False),
        ("request_too_large", "too_large", False),
    ],
)
def test_c01_the_type_of_an_error_decides_about_another_try(kind: str, ours: str, retryable: bool) -> None:
    event = {"type": "error", "error": {"type": kind, "message": "boom"}, "request_id": "req"}
    for chunks in ([sse(event, "error")], [json.dumps(event).encode()]):
        error = failed("messages", chunks)
        assert (error.kind, error.retryable, error.message) == (ours, retryable, "boom")


@pytest.mark.parametrize(
    "chunks",
    [
        [START, *said("hi")],
        [START, *said("hi"), finish(None)],
        [START, *call(0, "t", "write_file", '{"path":"a","con')],
        [START, *said("hi"), finish("end_turn")[:-40]],
        [START, PING],
        [PING],
        [b": keep-alive\n\n"],
        [],
        [whole([{"type": "text", "text": "hi"}])[:-20]],
    ],
)
def test_c02_a_cut_message_is_no_answer(chunks: list[bytes]) -> None:
    error = failed("messages", chunks)
    assert isinstance(error, CutError)
    assert error.retryable


@pytest.mark.parametrize(
    "chunks",
    [
        [sse({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]})],
        [b'{"data": {"answer": "hi"}, "success": true}'],
        [sse({"type": "response.created"}, "response.created")],
    ],
)
def test_json_of_another_kind_is_said_to_be_none_of_this(chunks: list[bytes]) -> None:
    error = failed("messages", chunks)
    assert isinstance(error, ProtocolError)
    assert not error.retryable
    assert "base URL" in (error.hint or "")


def test_a_broken_event_fails_the_attempt_unless_the_answer_was_whole() -> None:
    broken = b"event: content_block_delta\ndata: {broken\n\n"
    error = failed("messages", [*HELLO[:3], broken, *HELLO[3:]])
    assert isinstance(error, ProtocolError)
    assert error.retryable
    played = three_ways("messages", [*HELLO[:-1], broken, STOP, broken])
    assert played.text == "Hello"
    assert [notice.parse_error for notice in played.notices] == ["{broken"]
    assert answer("messages", [b"event: ping\ndata: {broken\n\n", *HELLO]).text == "Hello"


def backend(played: Played) -> list[Any]:
    return [
        event
        for event in played.events
        if isinstance(event, BackendToolStarted | BackendToolCompleted | ToolCallDelta)
    ]


RESULT = [{"type": "web_search_result", "url": "https://a.example", "title": "A"}]


def test_tools_that_the_provider_runs() -> None:
    played = three_ways(
        "messages",
        [
            START,
            block(0, type="server_tool_use", id="s1", name="web_search", input={}),
            arguments(0, '{"query":'),
            arguments(0, '"x"}'),
            end(0),
            block(1, type="web_search_tool_result", tool_use_id="s1", content=RESULT),
            end(1),
            block(2, type="mcp_tool_use", id="s2", name="find", server_name="w", input={"q": 1}),
            block(3, type="mcp_tool_result", tool_use_id="s2", is_error=True, content=[]),
            end(3),
            block(4, type="server_tool_use", id="s3", name="code_execution", input=None),
            *said("done", index=5),
            finish("end_turn"),
            STOP,
        ],
    )
    assert [(type(event).__name__, event.n) for event in backend(played)] == [
        ("BackendToolStarted", 5),
        ("BackendToolCompleted", 6),
        ("BackendToolStarted", 9),
        ("BackendToolCompleted", 9),
        ("BackendToolStarted", 15),
    ]
    started = [event for event in backend(played) if isinstance(event, BackendToolStarted)]
    assert [(one.id, one.name, one.input) for one in started] == [
        ("s1", "web_search", {"query": "x"}),
        ("s2", "find", {"q": 1}),
        ("s3", "code_execution", {}),
    ]
    ended = [event for event in backend(played) if isinstance(event, BackendToolCompleted)]
    assert [(one.id, one.name, one.output, one.is_error) for one in ended] == [
        ("s1", "web_search", RESULT, False),
        ("s2", "find", [], True),
    ]
    assert played.response is not None
    assert played.response.blocks == (Text("done"),)


def test_a_tool_of_the_provider_that_failed() -> None:
    failure = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    start = block(0, type="web_search_tool_result", tool_use_id="s", content=failure)
    played = three_ways("messages", [START, start, end(0), *said("x", index=1), finish("end_turn")])
    (event,) = backend(played)
    assert (event.id, event.name, event.output, event.is_error) == ("s", "web_search", failure, True)


def test_the_whole_message_makes_the_same_events_in_one_piece() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "SIG"},
        {"type": "redacted_thinking", "data": "X"},
        {"type": "text", "text": "Hello", "citations": None},
        {"type": "tool_use", "id": "t", "name": "ls", "input": {"d": "."}},
        {"type": "hologram"},
    ]
    played = play("messages", [whole(content, "tool_use")])
    stamp: dict[str, Any] = {"t": 101.0, "n": 1, **STAMP}
    usage = Usage(input_tokens=10, output_tokens=5)
    assert played.events == [
        ResponseStarted(response_id="m", usage=usage, **stamp),
        FirstToken(ttft_s=1.0, **stamp),
        ChannelToken(channel="reasoning", text="hm", **stamp),
        ReasoningCompleted(index=0, signature="SIG", **stamp),
        ChannelToken(channel="text", text="Hello", **stamp),
        ToolCallDelta(index=0, id="t", name="ls", arguments="", **stamp),
        ToolCallDelta(index=0, id="t", name="ls", arguments='{"d":"."}', **stamp),
    ]
    assert played.response == Response(
        (
            Reasoning("hm", field="thinking", signature="SIG"),
            Reasoning(field="redacted_thinking", encrypted="X"),
            Text("Hello"),
            ToolCall("t", "ls", {"d": "."}),
        ),
        stop_reason="tool_use",
        raw_stop_reason="tool_use",
        usage=usage,
        id="m",
        model="claude",
    )


WORDS = st.text(st.sampled_from("ab \n\ud83d\ude00é"), max_size=5)
BLOCKS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": WORDS}),
    st.fixed_dictionaries(
        {"type": st.just("thinking"), "thinking": WORDS, "signature": st.sampled_from(["", "SIG"])}
    ),
    st.fixed_dictionaries({"type": st.just("redacted_thinking"), "data": st.just("X")}),
    st.fixed_dictionaries(
        {
            "type": st.just("tool_use"),
            "id": st.sampled_from(["a", "b"]),
            "name": st.just("f"),
            "input": st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=4), max_size=2),
        }
    ),
    st.fixed_dictionaries({"type": st.just("future"), "x": st.integers()}),
)


def streamed(content: list[dict[str, Any]], cut: int) -> list[bytes]:
    """The events that make this content."""
    chunks: list[bytes] = []
    for index, one in enumerate(content):
        kind = one["type"]
        if kind == "text":
            chunks += (
                block(index, type=kind, text=""),
                text(index, one["text"][:cut]),
                text(index, one["text"][cut:]),
            )
        elif kind == "thinking":
            chunks += (
                block(index, type=kind, thinking="", signature=""),
                thought(index, one["thinking"][:cut]),
                thought(index, one["thinking"][cut:]),
                piece(index, "signature_delta", signature=one["signature"]),
            )
        elif kind == "tool_use":
            given_ = json.dumps(one["input"])
            chunks += (
                block(index, **{**one, "input": {}}),
                arguments(index, given_[:cut]),
                arguments(index, given_[cut:]),
            )
        else:
            chunks.append(block(index, **one))
        chunks.append(end(index))
    return chunks


@settings(deadline=None, max_examples=80)
@given(
    st.lists(BLOCKS, max_size=5), st.integers(0, 4), st.sampled_from(["end_turn", "tool_use", "refusal", "x"])
)
def test_w6_a_streamed_answer_equals_the_whole_one(content: list[Any], cut: int, reason: str) -> None:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 2, "output_tokens": 4}
    one = play("messages", [START, *streamed(content, cut), finish(reason, **usage), STOP])
    other = play("messages", [whole(content, reason, usage=usage)])
    assert one.response is not None
    assert one.response == other.response


KEYS = st.sampled_from(
    [
        *("type", "index", "message", "content", "content_block", "delta", "usage", "id", "name", "input"),
        *("text", "thinking", "signature", "data", "partial_json", "stop_reason", "tool_use_id", "is_error"),
        *("input_tokens", "output_tokens", "cache_read_input_tokens", "model", "role", "x"),
    ]
)
TYPES = st.sampled_from(
    [
        *(
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
        ),
        *("message_stop", "message", "ping", "text", "thinking", "redacted_thinking", "tool_use"),
        *("server_tool_use", "web_search_tool_result", "text_delta", "thinking_delta", "signature_delta"),
        *("input_json_delta", "citations_delta", "end_turn", "max_tokens", "refusal"),
    ]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 3),
    st.just(2**70),
    st.floats(),
    st.sampled_from(["", "a", "0", "\ud83d", "{}", '{"a":1}', '"x"']),
    TYPES,
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)


@st.composite
def near_events(draw: st.DrawFn) -> Any:
    """An event whose places are right and whose values are anything."""
    part = st.dictionaries(KEYS, JSON, max_size=4)
    typed = st.tuples(TYPES, part).map(lambda pair: {**pair[1], "type": pair[0]})
    fields = {
        "index": st.integers(0, 2) | JSON,
        "content_block": typed | JSON,
        "delta": typed | JSON,
        "message": part | JSON,
        "content": st.lists(typed | JSON, max_size=3) | JSON,
        "stop_reason": TYPES | JSON,
        "usage": part | JSON,
    }
    return draw(st.fixed_dictionaries({"type": TYPES}, optional=fields))


@settings(deadline=None, max_examples=300)
@given(st.lists(near_events() | JSON, max_size=6), st.booleans())
def test_any_json_is_an_answer_or_a_model_error(payloads: list[Any], done: bool) -> None:
    played = play("messages", [*(sse(payload) for payload in payloads), DONE if done else b""])
    assert (played.response is None) != (played.error is None)
    if played.error is not None:
        assert isinstance(played.error, ModelError)
        msgspec.json.encode(played.error.info())


@settings(deadline=None, max_examples=60)
@given(st.lists(near_events(), max_size=4), st.lists(st.integers(0, 400), max_size=4))
def test_any_split_gives_the_same(payloads: list[Any], cuts: list[int]) -> None:
    body = b"".join(sse(payload) for payload in payloads)
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    chunks = [body[start:stop] for start, stop in itertools.pairwise(places)]
    assert play("messages", chunks).said() == play("messages", [body]).said()
