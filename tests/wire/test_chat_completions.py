"""Answers of the chat-completions family, streamed and whole, right and wrong."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from chat_corpus import CHUNKS, FRAMED, STOP, Case
from chat_player import DONE, call, calls, delta, play, sse, three_ways
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_agent.core.errors import CutError, ModelError, ProtocolError
from mini_agent.core.events import ChannelToken, FirstToken, ToolCallDelta
from mini_agent.core.messages import Reasoning, Response, Text, ToolCall, Usage
from mini_agent.core.profile import Profile
from mini_agent.wire.chat_completions import ChatDecoder, Origin
from mini_agent.wire.framing import ServerSentEvent


def answer(chunks: Sequence[bytes]) -> Response:
    played = three_ways(chunks)
    assert played.error is None
    assert played.response is not None
    return played.response


def failed(chunks: Sequence[bytes]) -> ModelError:
    played = three_ways(chunks)
    assert played.response is None
    assert played.error is not None
    return played.error


def whole(message: dict[str, Any], finish: str | None = "stop", **fields: Any) -> bytes:
    """An answer that was not streamed."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return json.dumps({"object": "chat.completion", "choices": [choice], **fields}).encode()


@pytest.mark.parametrize("case", [*FRAMED, *CHUNKS], ids=lambda case: case.id)
def test_what_providers_send(case: Case) -> None:
    response = answer(case.chunks)
    assert response.text == case.text
    assert response.reasoning == case.reasoning
    assert tuple((block.id, block.name, block.arguments) for block in response.tool_calls) == case.calls
    assert all(block.invalid is None for block in response.tool_calls)
    assert response.raw_stop_reason == case.raw
    assert response.stop_reason == case.stop
    assert response.usage == Usage(**case.usage)


def test_a_deepseek_stream_becomes_the_right_events() -> None:
    played = three_ways(
        [
            sse(
                {
                    "id": "r-1",
                    "model": "deepseek-flash",
                    "choices": [
                        {
                            "index": 0,
                            "delta": {"role": "assistant", "content": None, "reasoning_content": "hm"},
                        }
                    ],
                }
            ),
            delta("He", reasoning_content=None),
            delta("llo"),
            b": keep-alive\n\n",
            calls(call(0, "c1", "read_file", "", type="function")),
            calls(call(0, arguments='{"path":')),
            calls(call(0, arguments='"a.go"}')),
            sse(
                {
                    "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "tool_calls"}],
                    "usage": {"prompt_tokens": 12, "completion_tokens": 7, "prompt_cache_hit_tokens": 4},
                }
            ),
            DONE,
        ]
    )
    stamp: dict[str, Any] = {"request_id": "request", "attempt": 1}
    assert played.events == [
        FirstToken(t=101.0, n=1, ttft_s=1.0, **stamp),
        ChannelToken(t=101.0, n=1, channel="reasoning", text="hm", **stamp),
        ChannelToken(t=102.0, n=2, channel="text", text="He", **stamp),
        ChannelToken(t=103.0, n=3, channel="text", text="llo", **stamp),
        ToolCallDelta(t=104.0, n=4, index=0, id="c1", name="read_file", arguments="", **stamp),
        ToolCallDelta(t=105.0, n=5, index=0, id="c1", name="read_file", arguments='{"path":', **stamp),
        ToolCallDelta(t=106.0, n=6, index=0, id="c1", name="read_file", arguments='"a.go"}', **stamp),
    ]
    assert played.response == Response(
        (
            Reasoning("hm", field="reasoning_content"),
            Text("Hello"),
            ToolCall("c1", "read_file", {"path": "a.go"}),
        ),
        stop_reason="tool_use",
        raw_stop_reason="tool_calls",
        usage=Usage(input_tokens=12, output_tokens=7, cached_tokens=4),
        id="r-1",
        model="deepseek-flash",
    )
    assert played.decoder.ended
    assert played.decoder.finished


WORDS = st.text(st.sampled_from("ab <>\n\ud83d\ude00é"), max_size=6)


@settings(deadline=None, max_examples=80)
@given(
    st.lists(WORDS, max_size=3),
    st.lists(WORDS, max_size=5),
    st.lists(
        st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=5), max_size=2), max_size=3
    ),
    st.sampled_from(["stop", "length", "tool_calls", "odd"]),
)
def test_a_streamed_answer_equals_the_whole_one(
    thoughts: list[str], words: list[str], arguments: list[dict[str, Any]], finish: str
) -> None:
    entries = [
        call(place, f"c{place}", "f", json.dumps(value), seal=place) for place, value in enumerate(arguments)
    ]
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    streamed = play(
        [
            sse({"id": "r", "model": "m", "choices": []}),
            *(delta(reasoning_content=thought) for thought in thoughts),
            *(delta(word) for word in words),
            *(
                calls({**entry, "function": {**entry["function"], "arguments": part}})
                for entry in entries
                for text in (entry["function"]["arguments"],)
                for part in (text[:3], text[3:])
            ),
            delta(finish=finish),
            sse({"choices": [], "usage": usage}),
            DONE,
        ]
    )
    message = {"content": "".join(words), "reasoning_content": "".join(thoughts), "tool_calls": entries}
    unstreamed = play([whole(message, finish, id="r", model="m", usage=usage)])
    assert streamed.response is not None
    assert streamed.response == unstreamed.response


def test_a_whole_answer_makes_the_same_events_in_one_piece() -> None:
    entry = call(0, "c1", "ls", "{}")
    played = play(
        [whole({"content": "Hello", "tool_calls": [entry], "reasoning_content": "hm"}, "tool_calls")]
    )
    stamp: dict[str, Any] = {"request_id": "request", "attempt": 1, "t": 101.0, "n": 1}
    assert played.events == [
        FirstToken(ttft_s=1.0, **stamp),
        ChannelToken(channel="reasoning", text="hm", **stamp),
        ChannelToken(channel="text", text="Hello", **stamp),
        ToolCallDelta(index=0, id="c1", name="ls", arguments="{}", **stamp),
    ]


def test_a_whole_answer_without_a_finish_reason_is_whole() -> None:
    assert answer([whole({"content": "hi"}, None)]).text == "hi"
    assert isinstance(failed([whole({"content": "hi"})[:-30]]), CutError)


def test_content_and_thinking_in_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "plan"}]},
        {"type": "text", "text": "a"},
        {"type": "odd"},
        3,
        {"type": "text", "text": "b"},
    ]
    response = answer([delta(), sse({"choices": [{"delta": {"content": parts}, "finish_reason": "stop"}]})])
    assert (response.reasoning, response.text) == ("plan", "ab")


def test_b19_the_field_of_the_reasoning_is_kept() -> None:
    response = answer([delta(reasoning="a"), delta(reasoning_content="b"), STOP])
    assert response.blocks == (Reasoning("ab", field="reasoning"),)
    profile = Profile(reasoning_fields=("inner_voice",))
    other = play([delta("x", inner_voice="v", reasoning="no"), STOP], profile)
    assert (other.reasoning, other.text) == ("v", "x")


def test_b26_only_what_is_missing_is_taken_from_the_message() -> None:
    message = {"content": "Hi", "reasoning_content": "r", "tool_calls": [call(0, "c1", "f", "{}")]}
    end = sse({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    assert three_ways([delta(reasoning_content="r"), end]).response == play([end]).response
    assert three_ways([delta("Hi"), calls(call(0, "c1", "f", "{}")), end]).response == play([end]).response


def test_b26_messages_in_place_of_deltas_are_pieces() -> None:
    def piece(content: str, finish: str | None = None) -> bytes:
        return sse({"choices": [{"index": 0, "message": {"content": content}, "finish_reason": finish}]})

    response = answer([piece("<thi"), piece("nk>r</think>He"), piece("llo"), piece("", "stop"), DONE])
    assert (response.reasoning, response.text) == ("r", "Hello")


def test_b07_named_entries_of_one_list_are_different_calls() -> None:
    entries = [call(None, None, "ls", ""), call(None, None, "ls", ""), call(None, None, "pwd", "{}")]
    for chunks in ([calls(*entries), STOP], [whole({"tool_calls": entries})]):
        assert [block.name for block in answer(chunks).tool_calls] == ["ls", "ls", "pwd"]
    parts = [call(None, None, "f", '{"x":'), call(None, None, None, "1}")]
    assert [block.arguments for block in answer([calls(*parts), STOP]).tool_calls] == [{"x": 1}]


def test_b31_unknown_keys_of_a_call_are_kept() -> None:
    extra = {"extra_content": {"google": {"thought_signature": "S"}}}
    response = answer([calls(call(0, "c1", "ls", "{}", type="function", **extra), finish="tool_calls"), DONE])
    assert response.tool_calls == (ToolCall("c1", "ls", {}, extra=extra),)


def test_a_kind_of_tool_that_nobody_knows_is_skipped() -> None:
    custom = {"index": 0, "id": "c0", "type": "custom", "custom": {"name": "f", "input": "x"}}
    response = answer([calls(custom), calls({"index": 0, "custom": {"input": "y"}}), delta("hi"), STOP])
    assert response.blocks == (Text("hi"),)


@pytest.mark.parametrize(
    ("arguments", "finish", "stop", "invalid"),
    [
        ('{"path":"a","content":"abc', "length", "max_tokens", True),
        ('{"path":"a"}', "length", "max_tokens", False),
        ('{"path":"a","content":"abc', "tool_calls", "tool_use", True),
        ('{"path": ', "stop", "tool_use", True),
    ],
)
def test_b23_e11_broken_arguments(arguments: str, finish: str, stop: str, invalid: bool) -> None:
    response = answer([calls(call(0, "c1", "write_file", arguments)), delta(finish=finish), DONE])
    (block,) = response.tool_calls
    assert (block.id, block.name) == ("c1", "write_file")
    assert (block.invalid is not None) == invalid
    assert not (invalid and block.arguments)
    assert (response.stop_reason, response.raw_stop_reason) == (stop, finish)


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("stop", "end_turn"),
        ("STOP", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "content_filter"),
        ("refusal", "refusal"),
        ("model_context_window_exceeded", "context_overflow"),
        ("eos", "other"),
    ],
)
def test_finish_reasons(finish: str, stop: str) -> None:
    response = answer([delta("x"), delta(finish=finish), delta(finish="stop"), DONE])
    assert (response.stop_reason, response.raw_stop_reason) == (stop, finish)


def test_a_refusal_is_said() -> None:
    response = answer([delta(refusal="I can't "), delta(refusal="do that."), STOP])
    assert (response.text, response.stop_reason) == ("I can't do that.", "refusal")


@pytest.mark.parametrize(
    ("finish", "kind"), [("insufficient_system_resource", "overloaded"), ("error", "provider")]
)
def test_an_answer_that_the_provider_broke_off_is_none(finish: str, kind: str) -> None:
    error = failed([delta("par"), delta(finish=finish), DONE])
    assert (error.kind, error.retryable, error.code) == (kind, True, finish)


@pytest.mark.parametrize(
    "chunks",
    [
        [b'event: error\ndata: {"error":{"message":"boom","type":"server_error"}}\n\n'],
        [b'event: error  \ndata: {"error":{"message":"boom"}}\n\n'],
        [b"event: error\ndata: boom\n\n"],
        [sse({"type": "error", "message": "boom"})],
        [sse({"object": "error", "message": "boom", "code": 500})],
        [sse([{"error": {"message": "boom"}}])],
        [b'{"error": "boom"}'],
        [b'[{"error": {"message": "boom", "code": 500}}]'],
        [delta("par"), sse({"error": {"message": "boom", "code": None}}), DONE],
        [delta("par"), sse({"choices": [{"error": {"message": "boom"}, "finish_reason": "error"}]})],
        [delta("par"), STOP, sse({"error": {"message": "boom"}})],
    ],
)
def test_a14_a17_b21_an_error_inside_a_success(chunks: list[bytes]) -> None:
    assert "boom" in failed(chunks).message


def test_b21_the_code_decides_about_another_try() -> None:
    def error(code: Any) -> ModelError:
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
        return failed(
            [delta("par"), sse({"error": {"code": code, "message": "up"}, "choices": [choice]}), DONE]
        )

    assert error(502).retryable
    assert error("429").kind == "rate_limit"
    assert not error(400).retryable


@pytest.mark.parametrize(
    "chunks",
    [
        [delta("ok"), calls(call(0, "c1", "write_file", '{"path":"a","content":"abc'))],
        [delta("a plausible answer.")],
        [delta("x"), sse({"choices": [], "usage": {"prompt_tokens": 1}})],
        [sse({"usage": {"prompt_tokens": 1}})],
        [b": keep-alive\n\n"],
        [b"\n\n\n"],
        [],
        [b"data: null\n\n"],
        [delta("x"), b'data: {"choices":[{"index":0,"delta":{"content":"y'],
        [b'{"choices":[{"index":0,"message":{"content":"y'],
    ],
)
def test_a09_a14_a15_b22_a_cut_answer_is_no_answer(chunks: list[bytes]) -> None:
    error = failed(chunks)
    assert isinstance(error, CutError)
    assert error.retryable


def test_b22_what_there_was_is_said() -> None:
    message = failed([delta("four"), calls(call(0, "c1", "f", "{"))]).message
    assert "after 2 events" in message
    assert "characters of text: 4" in message
    assert "tool calls: 1" in message


@pytest.mark.parametrize("chunks", [[delta("x <"), DONE], [delta("x <", finish="stop")]])
def test_b22_an_end_mark_or_a_finish_reason_is_enough(chunks: list[bytes]) -> None:
    assert answer(chunks).text == "x <"


def test_an_undecodable_event_is_reported_and_fails_the_attempt() -> None:
    played = three_ways([delta("a"), b"data: {broken\n\n", delta("b"), STOP, DONE])
    assert isinstance(played.error, ProtocolError)
    assert played.error.retryable
    assert played.error is played.decoder.failure
    assert [notice.parse_error for notice in played.notices] == ["{broken"]
    assert played.text == "a"


def test_an_undecodable_event_after_the_finish_reason_is_only_reported() -> None:
    played = three_ways([delta("a"), STOP, b"data: {broken\n\n", DONE])
    assert played.response is not None
    assert [notice.parse_error for notice in played.notices] == ["{broken"]


def test_what_follows_the_end_mark_is_ignored() -> None:
    error = sse({"error": {"message": "boom"}})
    played = three_ways([delta("a"), DONE, b"data: {broken\n\n", error, delta("b"), STOP])
    assert played.response is not None
    assert (played.response.text, played.response.raw_stop_reason) == ("a", None)
    assert played.notices == []


def test_end_marks_are_the_profiles() -> None:
    profile = Profile(end_marks=("", "fin"))
    assert three_ways([delta("a"), b"data: fin\n\n", delta("b")], profile).text == "a"
    assert three_ways([delta("a"), b"data\n\n", delta("b")], profile).text == "a"
    assert three_ways([delta("a"), b"data:\n\n", delta("b"), DONE]).text == "ab"
    assert isinstance(play([delta("a"), DONE], profile).error, ProtocolError)


def test_pings_are_signs_of_life_whatever_they_hold() -> None:
    pings = [
        b"event: ping\ndata: now\n\n",
        b"event: heartbeat\ndata: {\n\n",
        sse({"type": "ping"}),
        b"data: 1\n\n",
    ]
    assert answer([*pings, delta("a"), *pings, STOP, *pings]).text == "a"
    assert failed(pings).kind == "cut"


@pytest.mark.parametrize(
    "chunks",
    [
        [b'{"data": {"answer": "hi"}, "success": true}'],
        [b'{"message": {"content": "a"}, "done": false}\n', b'{"message": {"content": ""}, "done": true}\n'],
        [sse({"type": "response.created"}, "response.created"), sse({"type": "response.completed"})],
    ],
)
def test_a14_a18_json_that_is_no_chat_completion_is_said_to_be_none(chunks: list[bytes]) -> None:
    error = failed(chunks)
    assert isinstance(error, ProtocolError)
    assert not error.retryable
    assert error.body is not None
    assert error.body in b"".join(chunks).decode()
    assert "base URL" in (error.hint or "")


def test_a_finished_answer_can_be_closed_without_its_usage() -> None:
    decoder = ChatDecoder(Profile(), Origin("request", 1, 0.0))
    decoder.decode(ServerSentEvent(data=delta("a", finish="stop").decode()[6:]), 1, 1.0)
    assert decoder.finished
    assert not decoder.ended
    assert decoder.usage is None
    assert decoder.close() == Response((Text("a"),), raw_stop_reason="stop")


KEYS = st.sampled_from(
    [
        *(
            "choices",
            "usage",
            "error",
            "id",
            "model",
            "object",
            "type",
            "index",
            "delta",
            "message",
            "name",
            "x",
        ),
        *(
            "finish_reason",
            "content",
            "refusal",
            "reasoning",
            "reasoning_details",
            "tool_calls",
            "function_call",
        ),
        *(
            "function",
            "arguments",
            "prompt_tokens",
            "prompt_tokens_details",
            "cached_tokens",
            "text",
            "thinking",
        ),
    ]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(2**70),
    st.floats(),
    st.sampled_from(["", "a", "0", "error", "stop", "ping", "\ud83d", "<think>", "{}", '{"a":1}', "custom"]),
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@st.composite
def near_chunks(draw: st.DrawFn) -> Any:
    """A chunk whose places are right and whose values are anything."""
    entry = st.fixed_dictionaries(
        {},
        optional={
            "index": JSON,
            "id": JSON,
            "type": JSON,
            "x": JSON,
            "function": st.dictionaries(KEYS, JSON),
        },
    )
    piece = st.dictionaries(KEYS, JSON, max_size=4) | st.fixed_dictionaries(
        {"tool_calls": st.lists(entry | JSON)}
    )
    choice = st.fixed_dictionaries(
        {}, optional={"index": st.just(0) | JSON, "delta": piece, "message": piece, "finish_reason": JSON}
    )
    return draw(
        st.fixed_dictionaries({"choices": st.lists(choice | JSON, max_size=2)}, optional={"usage": JSON})
    )


@settings(deadline=None, max_examples=200)
@given(st.lists(JSON | near_chunks(), max_size=4), st.booleans())
def test_any_json_is_an_answer_or_a_model_error(payloads: list[Any], done: bool) -> None:
    played = play([*(sse(payload) for payload in payloads), DONE if done else b""])
    assert (played.response is None) != (played.error is None)
    if played.error is not None:
        msgspec.json.encode(played.error.info())


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.sampled_from([b"data: ", b"{", b"}", b'"choices":', b"[", b"]", b"\n\n", b"null", b"\xff", b"<"])
    )
)
def test_any_bytes_are_an_answer_or_a_model_error(chunks: list[bytes]) -> None:
    played = play(chunks)
    assert (played.response is None) != (played.error is None)


@pytest.mark.parametrize("bar", ["｜", "‖", "||", "|"])  # noqa: RUF001  the bars are what is tested
def test_b27_a_call_that_leaked_as_text_is_no_answer(bar: str) -> None:
    markup = f'<{bar}DSML{bar}tool_calls><{bar}DSML{bar}invoke name="ls"></{bar}DSML{bar}invoke>'
    played = three_ways([delta(content=markup[:4]), delta(content=markup[4:]), delta(finish="stop"), DONE])
    assert isinstance(played.error, ProtocolError)
    assert played.error.retryable
    assert "markup" in played.error.message


def test_b27_an_answer_may_speak_of_the_markup() -> None:
    played = three_ways([delta(content="DSML is a markup: <DSML>"), delta(finish="stop"), DONE])
    assert played.response is not None


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"detail": "boom"}, "boom"),
        ({"message": "boom", "code": 429}, "boom"),
        ({"errors": [{"message": "boom"}]}, "boom"),
        ({"base_resp": {"status_code": 1004, "status_msg": "boom"}}, "boom"),
        ({"code": 1113, "msg": "boom"}, "boom"),
    ],
)
@pytest.mark.parametrize("before", [[], [delta("par")]], ids=["alone", "in mid-stream"])
def test_b21_an_error_that_does_not_say_error_is_no_end_of_an_answer(
    payload: dict[str, Any], said: str, before: list[bytes]
) -> None:
    error = failed([*before, sse(payload), DONE])
    assert said in error.message


def test_a_field_that_a_whole_answer_carries_besides_is_no_error() -> None:
    whole = {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]}
    assert answer([sse({**whole, "base_resp": {"status_code": 0}, "message": "ok"}), DONE]).text == "a"


def test_w14_a_stream_of_another_family_is_said_to_be_none_although_it_ends_well() -> None:
    error = failed([sse({"type": "message_start"}, "message_start"), DONE])
    assert error.kind == "protocol"
    assert "API family" in (error.hint or "")


@pytest.mark.parametrize("reason", ["abort", "timeout", "malformed_function_call"])
def test_an_answer_that_the_provider_broke_off_is_no_answer(reason: str) -> None:
    assert failed([delta("par"), delta(finish=reason), DONE]).retryable


@pytest.mark.parametrize("reason", ["SAFETY", "PROHIBITED_CONTENT", "content_filter: violence"])
def test_a_filter_is_one_by_whatever_name(reason: str) -> None:
    assert answer([delta("par"), delta(finish=reason), DONE]).stop_reason == "content_filter"
