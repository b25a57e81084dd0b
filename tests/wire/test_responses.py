"""Answers of the Responses family, streamed and whole, right and wrong."""

import itertools
import json
from typing import Any

import msgspec
import pytest
from chat_player import DONE, Played, sse
from family_player import Case, answer, failed, fits, play, three_ways
from hypothesis import given, settings
from hypothesis import strategies as st
from responses_corpus import (
    CASES,
    CREATED,
    END,
    PARTS,
    USAGE,
    added,
    call,
    completed,
    done,
    event,
    fragment,
    fragment_done,
    incomplete,
    message,
    reasoning,
    response,
    summary,
    text,
    text_done,
    whole,
)

from mini_agent.core.errors import CutError, ModelError, ProtocolError
from mini_agent.core.events import (
    BackendToolCompleted,
    BackendToolStarted,
    ChannelToken,
    DoomLoopSignal,
    FirstToken,
    ToolCallDelta,
)
from mini_agent.core.messages import Reasoning, Response, Text, ToolCall, Usage
from mini_agent.core.profile import Profile
from mini_agent.wire.failures import failure, wait_named

STAMP: dict[str, Any] = {"request_id": "request", "attempt": 1}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_providers_send(case: Case) -> None:
    fits("responses", case)


def test_a_stream_becomes_the_right_events() -> None:
    played = three_ways(
        "responses",
        [
            CREATED,
            added(reasoning()),
            summary("hm"),
            done(reasoning("hm", sealed="E")),
            added(message(), 1),
            text("He", 1),
            text("llo", 1),
            done(message("Hello"), 1),
            added(call("", "ls"), 2),
            fragment("{", 2),
            fragment("}", 2),
            fragment_done("{}", 2),
            done(call("{}", "ls"), 2),
            completed(reasoning("hm", sealed="E"), message("Hello"), call("{}", "ls")),
        ],
    )
    assert played.events == [
        FirstToken(t=103.0, n=3, ttft_s=3.0, **STAMP),
        ChannelToken(t=103.0, n=3, channel="reasoning", text="hm", **STAMP),
        ChannelToken(t=106.0, n=6, channel="text", text="He", **STAMP),
        ChannelToken(t=107.0, n=7, channel="text", text="llo", **STAMP),
        ToolCallDelta(t=109.0, n=9, index=0, id="c", name="ls", arguments="", **STAMP),
        ToolCallDelta(t=110.0, n=10, index=0, id="c", name="ls", arguments="{", **STAMP),
        ToolCallDelta(t=111.0, n=11, index=0, id="c", name="ls", arguments="}", **STAMP),
    ]
    assert played.response == Response(
        (
            Reasoning("hm", field="reasoning_item", encrypted="E", id="rs"),
            Text("Hello"),
            ToolCall("c", "ls"),
        ),
        stop_reason="tool_use",
        raw_stop_reason="completed",
        usage=Usage(input_tokens=1, output_tokens=2),
        id="r",
        model="gpt",
    )
    assert played.decoder.ended


def test_the_whole_response_makes_the_same_events_in_one_piece() -> None:
    played = play(
        "responses", [whole(reasoning("hm", sealed="E"), message("Hello"), call('{"d":"."}', "ls"))]
    )
    stamp: dict[str, Any] = {"t": 101.0, "n": 1, **STAMP}
    assert played.events == [
        FirstToken(ttft_s=1.0, **stamp),
        ChannelToken(channel="reasoning", text="hm", **stamp),
        ChannelToken(channel="text", text="Hello", **stamp),
        ToolCallDelta(index=0, id="c", name="ls", arguments='{"d":"."}', **stamp),
    ]
    assert played.response == Response(
        (
            Reasoning("hm", field="reasoning_item", encrypted="E", id="rs"),
            Text("Hello"),
            ToolCall("c", "ls", {"d": "."}),
        ),
        stop_reason="tool_use",
        raw_stop_reason="completed",
        usage=Usage(input_tokens=1, output_tokens=2),
        id="r",
        model="gpt",
    )


FIRST, SECOND = reasoning(sealed="E1", item_id="r1"), reasoning("two", sealed="E2", item_id="r2")


@pytest.mark.parametrize(
    "chunks",
    [
        [
            done(FIRST),
            done(call("{}", "f", "a", "fa"), 1),
            done(SECOND, 2),
            done(call("{}", "g", "b", "fb"), 3),
            END,
        ],
        [completed(FIRST, call("{}", "f", "a", "fa"), SECOND, call("{}", "g", "b", "fb"))],
        [
            done(call("{}", "f", "a", "fa"), 1),
            done(call("{}", "g", "b", "fb"), 3),
            completed(FIRST, call("{}", "f", "a", "fa"), SECOND, call("{}", "g", "b", "fb")),
        ],
        [
            fragment("{}", 1, "fa"),
            fragment("{}", 3, "fb"),
            completed(FIRST, call("{}", "f", "a", "fa"), SECOND, call("{}", "g", "b", "fb")),
        ],
    ],
)
def test_c14_each_item_of_reasoning_stays_before_its_call(chunks: list[bytes]) -> None:
    assert answer("responses", chunks).blocks == (
        Reasoning("", field="reasoning_item", encrypted="E1", id="r1"),
        ToolCall("a", "f"),
        Reasoning("two", field="reasoning_item", encrypted="E2", id="r2"),
        ToolCall("b", "g"),
    )


def test_c14_the_last_word_on_a_seal_counts() -> None:
    chunks = [
        added(reasoning(sealed="early")),
        done(reasoning(sealed="late")),
        *PARTS,
        completed(reasoning(), message("Hello")),
    ]
    assert answer("responses", chunks).blocks[0] == Reasoning(
        "", field="reasoning_item", encrypted="late", id="rs"
    )


def error_(code: str | None, text_: str) -> dict[str, Any]:
    return {"code": code, "message": text_}


@pytest.mark.parametrize(
    "chunks",
    [
        [event("failed", response=response(status="failed", error=error_("server_error", "boom")))],
        [event("failed", response={"error": error_("server_error", "boom")})],
        [sse({"type": "error", "code": "server_error", "message": "boom", "param": None}, "error")],
        [sse({"type": "error", "code": "server_error", "message": "boom"})],
        [sse({"type": "error", "error": {"type": "server_error", **error_("server_error", "boom")}})],
        [sse({"error": error_("server_error", "boom")})],
        [whole(status="failed", error=error_("server_error", "boom"))],
        [CREATED, *PARTS, event("failed", response={"error": error_("server_error", "boom")}), DONE],
        [CREATED, *PARTS, event("completed", response=response(error=error_("server_error", "boom")))],
    ],
)
def test_c10_a17_a_failed_response_is_an_error(chunks: list[bytes]) -> None:
    error = failed("responses", chunks)
    assert (error.kind, error.code, error.message, error.retryable) == (
        "provider",
        "server_error",
        "boom",
        True,
    )


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_c10_a_failed_response_without_an_error_is_one_too(status: str) -> None:
    for chunks in ([event(status, response={})], [completed(status=status)], [whole(status=status)]):
        error = failed("responses", chunks)
        assert status in error.message
        assert error.retryable


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        ("rate_limit_exceeded", "rate_limit", True),
        ("server_error", "provider", True),
        ("server_is_overloaded", "overloaded", True),
        ("vector_store_timeout", "provider", True),
        ("insufficient_quota", "quota", False),
        ("usage_limit_reached", "quota", False),
        ("context_length_exceeded", "context_overflow", False),
        ("invalid_prompt", "bad_request", False),
    ],
)
def test_c10_the_code_decides_about_another_try(code: str, kind: str, retryable: bool) -> None:
    error = failed("responses", [event("failed", response={"error": error_(code, "x")})])
    assert (error.kind, error.retryable, error.code) == (kind, retryable, code)


def test_c10_the_wait_is_in_the_message() -> None:
    said = "Rate limit reached. Please try again in 1.5s."
    error = failed("responses", [event("failed", response={"error": error_("rate_limit_exceeded", said)})])
    assert error.retry_after_s == 1.5


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("Please try again in 6ms.", 0.006),
        ("Please try again in 1m12.5s. Visit us.", 72.5),
        ("try again in 2 minutes", 120.0),
        ("Try again in 1h2m3s", 3723.0),
        ("Please retry after 86400 seconds", 86400.0),
        ("please retry in 36.9s.", 36.9),
        ("try again in 20", None),
        ("try again in a moment", None),
        ("try again in 3 monkeys", None),
        (f"try again in {'9' * 400}s", None),
        ("it took 5s", None),
    ],
)
def test_c10_r4_waits_that_messages_name(said: str, seconds: float | None) -> None:
    assert wait_named(said) == seconds
    body = json.dumps({"error": {"message": said}}).encode()
    assert failure(429, {}, body, now=0.0).retry_after_s == seconds
    assert failure(429, {"retry-after": "7"}, body, now=0.0).retry_after_s == max(7, seconds or 0)


def test_c10_a_spent_quota_says_when_it_is_renewed() -> None:
    spent = {"type": "usage_limit_reached", "message": "The usage limit has been reached"}
    for named, words in (
        ({"resets_in_seconds": 5400}, "1.5 h"),
        ({"resets_at": 1790000000}, "2026-09-21 14:13"),
    ):
        error = failed("responses", [event("failed", response={"error": {**spent, **named}})])
        assert not error.retryable
        assert words in (error.hint or "")


@pytest.mark.parametrize(
    "chunks",
    [
        [added(call("")), fragment('{"path":"a",'), fragment('"con')],
        [CREATED, *PARTS],
        [CREATED, *PARTS, text_done("Hello"), done(message("Hello"))],
        [CREATED, added(call('{"x":1}')), done(call('{"x":1}'))],
        [CREATED, *PARTS, event("in_progress", response={"usage": USAGE})],
        [CREATED, *PARTS, END[:-40]],
        [whole(message("Hello"))[:-20]],
        [whole(status="in_progress")],
        [whole(status="queued")],
        [CREATED],
        [],
    ],
)
def test_c12_without_its_end_a_response_is_no_answer(chunks: list[bytes]) -> None:
    error = failed("responses", chunks)
    assert isinstance(error, CutError)
    assert error.retryable


@pytest.mark.parametrize(
    "chunks",
    [
        [sse({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]})],
        [sse({"type": "message_start", "message": {}}, "message_start"), sse({"type": "message_stop"})],
        [b'{"data": {"answer": "hi"}, "success": true}'],
    ],
)
def test_json_of_another_kind_is_said_to_be_none_of_this(chunks: list[bytes]) -> None:
    error = failed("responses", chunks)
    assert isinstance(error, ProtocolError)
    assert not error.retryable


def test_a_broken_event_fails_the_attempt_and_what_follows_the_end_is_ignored() -> None:
    error = failed("responses", [PARTS[0], b"data: {broken\n\n", PARTS[1], END])
    assert isinstance(error, ProtocolError)
    assert error.retryable
    played = three_ways(
        "responses", [*PARTS, END, b"data: {broken\n\n", text("more"), sse({"error": "boom"})]
    )
    assert played.text == "Hello"
    assert played.notices == []


def test_broken_arguments_are_refused_with_a_reason() -> None:
    (block,) = answer("responses", [added(call("")), fragment('{"x":'), END]).tool_calls
    assert block.arguments == {}
    assert "not valid JSON" in (block.invalid or "")


SEARCH = {"type": "web_search_call", "id": "ws", "status": "in_progress"}
FOUND = {**SEARCH, "status": "completed", "action": {"type": "search", "query": "x"}}


def backend(played: Played) -> list[Any]:
    return [event for event in played.events if isinstance(event, BackendToolStarted | BackendToolCompleted)]


def test_tools_that_the_provider_runs() -> None:
    ran = {
        "type": "mcp_call",
        "id": "m",
        "name": "find",
        "server_label": "w",
        "arguments": "{}",
        "error": "gone",
    }
    played = three_ways(
        "responses",
        [
            added(SEARCH),
            event("web_search_call.searching", item_id="ws", output_index=0),
            event("web_search_call.completed", item_id="ws", output_index=0),
            done(FOUND),
            event("mcp_call_arguments.delta", item_id="m", output_index=1, delta="{}"),
            done(ran, 1),
            text("ok", 2),
            completed(FOUND, ran, message("ok"), {"type": "file_search_call", "id": "f", "status": "failed"}),
        ],
    )
    assert [(type(one).__name__, one.n, one.id, one.name) for one in backend(played)] == [
        ("BackendToolStarted", 1, "ws", "web_search"),
        ("BackendToolCompleted", 4, "ws", "web_search"),
        ("BackendToolStarted", 6, "m", "find"),
        ("BackendToolCompleted", 6, "m", "find"),
        ("BackendToolStarted", 8, "f", "file_search"),
        ("BackendToolCompleted", 8, "f", "file_search"),
    ]
    ended = [one for one in backend(played) if isinstance(one, BackendToolCompleted)]
    assert [one.is_error for one in ended] == [False, True, True]
    assert ended[0].output == {"action": {"type": "search", "query": "x"}}
    assert played.response is not None
    assert played.response.blocks == (Text("ok"),)
    assert played.response.stop_reason == "end_turn"


DOOM = Profile(doom_event="response.doom_loop_check")


def doom(*labels: str, name: str = "response.doom_loop_check") -> bytes:
    return sse({"type": "response.doom_loop_check", "doom_loop_check": {"triggers": [*labels]}}, name)


def signals(played: Played) -> list[tuple[str, ...]]:
    return [event.labels for event in played.events if isinstance(event, DoomLoopSignal)]


def test_doom_loop_frames_are_taken_out_and_their_labels_kept() -> None:
    played = three_ways(
        "responses",
        [
            PARTS[0],
            doom("tail_repetition:4@thinking"),
            doom("tail_repetition:4@thinking", "low_logprob@response", name="message"),
            b"event: response.doom_loop_check\ndata: {broken\n\n",
            b'event: response.doom_loop_check\ndata: {"error": "boom", "x": [1, null, {"y": ["\\ud83d"]}]}\n\n',
            sse({"type": "response.doom_loop_check", "doom_loop_check": {"triggers": 42}}),
            PARTS[1],
            completed(message("Hello"), doom_loop_check={"triggers": ["low_logprob@response", "last"]}),
        ],
        DOOM,
    )
    assert signals(played) == [
        ("tail_repetition:4@thinking",),
        ("low_logprob@response",),
        ("\ufffd",),
        ("last",),
    ]
    assert played.text == "Hello"
    assert played.response is not None
    assert played.notices == []


def test_doom_loop_frames_are_nothing_where_the_profile_does_not_name_them() -> None:
    played = three_ways("responses", [doom("x"), *PARTS, completed(doom_loop_check={"triggers": ["y"]})])
    assert signals(played) == []
    assert played.text == "Hello"


def test_a_text_that_speaks_of_doom_loops_is_text() -> None:
    played = three_ways("responses", [text('"response.doom_loop_check"'), END, doom("late")], DOOM)
    assert signals(played) == []
    assert played.text == '"response.doom_loop_check"'


WORDS = st.text(st.sampled_from("ab \n\ud83d\ude00é"), max_size=5)
ARGUMENTS = st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=4), max_size=2).map(
    json.dumps
)
ITEMS = st.lists(
    st.one_of(
        st.builds(message, WORDS),
        st.builds(reasoning, WORDS, sealed=st.sampled_from(["E", "F"])),
        st.builds(call, ARGUMENTS),
        st.just({"type": "hologram"}),
    ),
    max_size=4,
).map(lambda items: [{**item, "id": f"i{place}", "call_id": f"c{place}"} for place, item in enumerate(items)])


def streamed(items: list[dict[str, Any]], cut: int, *, ids: bool, places: bool) -> list[bytes]:
    """The events that make these items, with or without the ids and indices that tell them apart."""
    chunks: list[bytes] = []
    for index, item in enumerate(items):
        place = index if places else None
        name = item["id"] if ids else None
        empty = {**item, "content": [], "summary": [], "arguments": ""}
        if not ids:
            item = {key: value for key, value in item.items() if key != "id" or item["type"] == "reasoning"}
            empty.pop("id")
        chunks.append(added(empty, place))
        if item["type"] == "message":
            said = item["content"][0]["text"]
            chunks += text(said[:cut], place, name), text(said[cut:], place, name)
        elif item["type"] == "reasoning":
            said = item["summary"][0]["text"]
            chunks += summary(said[:cut], place, name), summary(said[cut:], place, name)
        elif item["type"] == "function_call":
            said = item["arguments"]
            chunks += fragment(said[:cut], place, name), fragment(said[cut:], place, name)
        chunks.append(done(item, place))
    return chunks


@settings(deadline=None, max_examples=80)
@given(ITEMS, st.integers(0, 4), st.booleans(), st.booleans(), st.booleans())
def test_w6_a_streamed_answer_equals_the_whole_one(
    items: list[dict[str, Any]], cut: int, ids: bool, places: bool, listed: bool
) -> None:
    end = completed(*items) if listed else END
    one = play("responses", [CREATED, *streamed(items, cut, ids=ids, places=places), end])
    other = play("responses", [whole(*items)])
    assert one.response is not None
    assert one.response == other.response


KEYS = st.sampled_from(
    [
        *("type", "response", "item", "item_id", "call_id", "id", "output_index", "content_index", "part"),
        *(
            "delta",
            "text",
            "arguments",
            "name",
            "content",
            "summary",
            "encrypted_content",
            "output",
            "status",
        ),
        *("usage", "input_tokens", "output_tokens", "incomplete_details", "reason", "object", "refusal", "x"),
    ]
)
KINDS = st.sampled_from(
    [
        *("created", "completed", "incomplete", "done", "output_item.added", "output_item.done"),
        *("output_text.delta", "output_text.done", "refusal.delta", "reasoning_text.delta"),
        *("reasoning_summary_text.delta", "reasoning_summary_text.done", "function_call_arguments.delta"),
        *("function_call_arguments.done", "content_part.added", "content_part.done", "x.y", "doom"),
    ]
).map(lambda kind: f"response.{kind}")
ITEM_TYPES = st.sampled_from(
    ["message", "reasoning", "function_call", "web_search_call", "hologram", "output_text", "summary_text"]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 2),
    st.just(2**70),
    st.floats(),
    st.sampled_from(["", "a", "b", "0", "\ud83d", "{}", '{"a":1}', "completed", "incomplete", "response"]),
    ITEM_TYPES,
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)
PART = st.fixed_dictionaries({}, optional={"type": ITEM_TYPES, "text": LEAVES, "refusal": LEAVES})
ITEM = st.fixed_dictionaries(
    {"type": ITEM_TYPES},
    optional={
        "id": st.sampled_from(["a", "b", ""]) | JSON,
        "call_id": st.sampled_from(["a", "c"]) | JSON,
        "name": st.sampled_from(["f", "g"]) | JSON,
        "arguments": JSON,
        "content": st.lists(PART, max_size=2) | JSON,
        "summary": st.lists(PART, max_size=2) | JSON,
        "encrypted_content": JSON,
    },
)
NEAR = st.fixed_dictionaries(
    {"type": KINDS},
    optional={
        "item": ITEM | JSON,
        "part": PART | JSON,
        "item_id": st.sampled_from(["a", "b", "c"]) | JSON,
        "output_index": st.integers(0, 1) | JSON,
        "content_index": st.integers(0, 1) | JSON,
        "delta": LEAVES,
        "text": LEAVES,
        "arguments": LEAVES,
        "response": st.fixed_dictionaries(
            {}, optional={"output": st.lists(ITEM | JSON, max_size=3), "usage": JSON}
        )
        | JSON,
    },
)


@settings(deadline=None, max_examples=300)
@given(st.lists(NEAR | JSON, max_size=7), st.booleans())
def test_any_json_is_an_answer_or_a_model_error(payloads: list[Any], ends: bool) -> None:
    profile = Profile(doom_event="response.doom")
    played = play("responses", [*(sse(payload) for payload in payloads), DONE if ends else b""], profile)
    assert (played.response is None) != (played.error is None)
    if played.error is not None:
        assert isinstance(played.error, ModelError)
        msgspec.json.encode(played.error.info())


@settings(deadline=None, max_examples=60)
@given(st.lists(NEAR, max_size=4), st.lists(st.integers(0, 400), max_size=4))
def test_any_split_gives_the_same(payloads: list[Any], cuts: list[int]) -> None:
    body = b"".join(sse(payload) for payload in payloads)
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    chunks = [body[start:stop] for start, stop in itertools.pairwise(places)]
    assert play("responses", chunks).said() == play("responses", [body]).said()


@pytest.mark.timeout(20)  # quadratic joining would need minutes
def test_a13_a_text_in_very_many_pieces_and_once_more_whole() -> None:
    pieces = [
        f'data: {{"type":"response.output_text.delta","output_index":0,"delta":"{"x" * 20}"}}\n\n'.encode()
    ] * 50_000
    everything = message("x" * 1_000_000)
    played = play("responses", [*pieces, text_done("x" * 1_000_000), done(everything), completed(everything)])
    assert played.response is not None
    assert played.response.text == "x" * 1_000_000


def test_an_incomplete_response_with_no_call_and_no_text_is_what_it_says() -> None:
    assert answer("responses", [incomplete("max_output_tokens")]).stop_reason == "max_tokens"
