"""An answer in the words of each family, and each family's requests read back."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab_histories import BODIES, conversations

from mini_agent.core.answers import Answer, CallPiece, ReasoningPiece, TextPiece, call_pieces
from mini_agent.core.messages import Message, Reasoning, Usage
from mini_agent.core.profile import APIS, Api
from mini_agent.lab.families import FAMILIES, api_of, failed, play
from mini_agent.lab.playing import Ask, blocks, steps, with_thought
from mini_agent.lab.replies import Reply
from mini_agent.lab.seals import disclose, enclose, is_altered, sign

ANSWER = Answer(
    (
        ReasoningPiece("h"),
        ReasoningPiece("m"),
        TextPiece("Gu"),
        TextPiece("ten Tag \u2713"),
        *call_pieces(0, "c1", "read_file", '{"path": "a"}'),
        *call_pieces(1, "c2", "read_file", '{"path": "b"}'),
    ),
    "tool_use",
    Usage(input_tokens=7, output_tokens=5, cached_tokens=4, cache_write_tokens=1, reasoning_tokens=2),
    "m",
)

pieces = st.lists(
    st.builds(ReasoningPiece, st.text(max_size=3))
    | st.builds(TextPiece, st.text(max_size=3))
    | st.builds(
        lambda index, arguments: CallPiece(index, f"c{index}", "run", arguments),
        st.integers(0, 2),
        st.text(max_size=3),
    ),
    max_size=12,
)
answers = st.builds(
    lambda pieces, stop: Answer(tuple(pieces), stop),
    pieces,
    st.sampled_from(["end_turn", "tool_use", "max_tokens"]),
)


def events(reply: Reply) -> list[Any]:
    """The decoded events of a stream, the end mark as it is."""
    found = []
    for part in reply.body:
        assert isinstance(part, bytes)
        name, _, data = part.decode().rpartition("data: ")
        found.append(data.strip() if data.startswith("[") else json.loads(data))
        if name:
            assert name == f"event: {found[-1]['type']}\n"
    return found


def document(reply: Reply) -> Any:
    (part,) = reply.body
    assert isinstance(part, bytes)
    return json.loads(part)


def streamed(answer: Answer, api: Api, **ask: Any) -> list[Any]:
    return events(play(answer, api, Ask(**ask)))


def whole(answer: Answer, api: Api, **ask: Any) -> Any:
    return document(play(answer, api, Ask(streams=False, **ask)))


@given(answers)
def test_the_pieces_of_a_block_are_bracketed_and_join_to_it(answer: Answer) -> None:
    laid = steps(answer)
    wholes: dict[int, Any] = {}
    for place in sorted({step.place for step in laid}):
        own = [step for step in laid if step.place == place]
        assert [step.opens for step in own] == [True] + [False] * (len(own) - 1)
        assert [step.closes for step in own] == [False] * (len(own) - 1) + [True]
        wholes[place] = own[0].whole
    assert [step.piece for step in laid] == [
        piece for piece in answer.pieces if isinstance(piece, CallPiece) or piece.text
    ]
    assert list(wholes) == list(range(len(wholes)))
    assert list(wholes.values()) == blocks(answer)
    joined = Answer(tuple(blocks(answer)))
    assert (joined.text, joined.reasoning, joined.calls) == (answer.text, answer.reasoning, answer.calls)


@given(answers)
def test_a_messages_stream_adds_up_to_the_whole_message(answer: Answer) -> None:
    content: dict[int, Any] = {}
    opened: set[int] = set()
    start, ping, *others, delta, stop = streamed(answer, "messages")
    assert (start["type"], ping["type"], delta["type"], stop["type"]) == (
        "message_start",
        "ping",
        "message_delta",
        "message_stop",
    )
    for event in others:
        index = event["index"]
        match event["type"]:
            case "content_block_start":
                assert index == len(content)
                opened.add(index)
                content[index] = event["content_block"]
                content[index].update({"input": ""} if "input" in content[index] else {})
            case "content_block_delta":
                assert index in opened
                for key, value in event["delta"].items():
                    if key != "type":
                        content[index]["input" if key == "partial_json" else key] += value
            case "content_block_stop":
                opened.remove(index)
    assert opened == set()
    final = whole(answer, "messages")
    assert final["stop_reason"] == delta["delta"]["stop_reason"]
    for block, there in zip(content.values(), final["content"], strict=True):
        if block["type"] == "tool_use":
            call = next(call for call in answer.calls if call.id == block["id"])
            assert block["input"] == call.arguments
        else:
            assert block == there


@given(answers)
def test_a_responses_stream_adds_up_to_the_whole_response(answer: Answer) -> None:
    stream = streamed(answer, "responses")
    assert [event["sequence_number"] for event in stream] == list(range(len(stream)))
    final = whole(answer, "responses")
    assert stream[-1]["response"] == final
    assert stream[-1]["type"] == f"response.{final['status']}"
    said: dict[str, str] = {}
    done = []
    for event in stream[2:-1]:
        match event["type"].removeprefix("response."):
            case "output_item.added":
                assert event["output_index"] == len(said)
                said[event["item"]["id"]] = ""
                assert not any(event["item"].get(key) for key in ("summary", "content", "arguments"))
            case "output_item.done":
                done.append((event["output_index"], event["item"]))
            case kind if kind.endswith(".delta"):
                said[event["item_id"]] += event["delta"]
            case kind if not kind.endswith(("part.added", "part.done")):
                assert said[event["item_id"]] == event.get("text", event.get("arguments"))
    assert [item for _, item in sorted(done, key=lambda pair: pair[0])] == final["output"]


@given(answers)
def test_a_chat_stream_adds_up_to_the_whole_completion(answer: Answer) -> None:
    *chunks, done = streamed(answer, "chat")
    assert done == "[DONE]"
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    choice = whole(answer, "chat")["choices"][0]
    message = choice["message"]
    assert "".join(delta.get("content", "") for delta in deltas) == (message["content"] or "")
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == message.get(
        "reasoning_content", ""
    )
    calls: dict[int, str] = {}
    for entry in (entry for delta in deltas for entry in delta.get("tool_calls", [])):
        calls[entry["index"]] = calls.get(entry["index"], "") + entry["function"]["arguments"]
    assert list(calls.values()) == [call["function"]["arguments"] for call in message.get("tool_calls", [])]
    assert chunks[-1]["choices"][0]["finish_reason"] == choice["finish_reason"]


def test_reasoning_is_sealed_where_the_family_has_seals() -> None:
    thinking = whole(ANSWER, "messages")["content"][0]
    assert thinking == {"type": "thinking", "thinking": "hm", "signature": sign("hm")}
    reasoning = whole(ANSWER, "responses")["output"][0]
    assert reasoning["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert disclose(reasoning["encrypted_content"]) == "hm"
    assert "encrypted_content" not in whole(ANSWER, "responses", encrypted=False)["output"][0]
    assert whole(ANSWER, "chat")["choices"][0]["message"]["reasoning_content"] == "hm"


@given(st.text(), st.text())
def test_a_seal_fits_one_text_only(text: str, other: str) -> None:
    assert not is_altered(text, sign(text))
    assert is_altered(other, sign(text)) == (text != other)
    assert not is_altered(text, "EqQBCgIYAhIM")
    assert disclose(enclose(text)) == text
    assert disclose("gAAAAABo") is None
    with pytest.raises(ValueError, match=r"\w"):
        disclose(f"{enclose(text)}!")


def test_usage_is_told_in_each_familys_own_terms() -> None:
    assert whole(ANSWER, "chat")["usage"]["prompt_tokens_details"] == {"cached_tokens": 4}
    assert whole(ANSWER, "responses")["usage"] == {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 12,
    }
    assert whole(ANSWER, "messages")["usage"] == {
        "input_tokens": 2,
        "cache_read_input_tokens": 4,
        "cache_creation_input_tokens": 1,
        "output_tokens": 5,
    }
    assert streamed(ANSWER, "messages")[0]["message"]["usage"]["output_tokens"] == 1
    assert [whole(Answer(()), api).get("usage") or None for api in APIS] == [None] * 3


@pytest.mark.parametrize(
    ("stop", "words"),
    [
        ("end_turn", ("stop", ("completed", None), "end_turn")),
        ("tool_use", ("tool_calls", ("completed", None), "tool_use")),
        ("max_tokens", ("length", ("incomplete", "max_output_tokens"), "max_tokens")),
        ("content_filter", ("content_filter", ("incomplete", "content_filter"), "content_filter")),
        ("pause", ("pause", ("completed", None), "pause_turn")),
        ("context_overflow", ("context_overflow", ("completed", None), "model_context_window_exceeded")),
    ],
)
def test_why_an_answer_ended_is_said_in_each_familys_own_words(stop: Any, words: Sequence[Any]) -> None:
    answer = Answer((TextPiece("x"),), stop)
    response = whole(answer, "responses")
    reason = (response["incomplete_details"] or {}).get("reason")
    assert (
        whole(answer, "chat")["choices"][0]["finish_reason"],
        (response["status"], reason),
        whole(answer, "messages")["stop_reason"],
    ) == tuple(words)


def test_a_call_cut_off_is_no_complete_one() -> None:
    answer = Answer((TextPiece("x"), CallPiece(0, "c", "write_file", '{"path": "a')), "max_tokens")
    text, call = whole(answer, "responses")["output"]
    assert (text["status"], call["status"], call["arguments"]) == ("completed", "incomplete", '{"path": "a')
    assert whole(answer, "messages")["content"][1]["input"] == {}


@pytest.mark.parametrize("api", APIS)
def test_a_stream_can_be_without_its_finish_reason_or_its_end_mark(api: Api) -> None:
    full = streamed(ANSWER, api)
    unfinished = streamed(ANSWER, api, without=frozenset({"finish"}))
    endless = streamed(ANSWER, api, without=frozenset({"end"}))
    assert endless == full[:-1]
    assert unfinished == (full[:-1] if api == "responses" else [*full[:-2], full[-1]])
    unstreamed = whole(ANSWER, api, without=frozenset({"finish"}))
    if api == "chat":
        (unstreamed,) = unstreamed["choices"]
    key, value = {
        "chat": ("finish_reason", None),
        "messages": ("stop_reason", None),
        "responses": ("status", "in_progress"),
    }[api]
    assert unstreamed[key] == value


@pytest.mark.parametrize("api", APIS)
def test_ids_come_only_once(api: Api) -> None:
    ids = [whole(ANSWER, api, tag=tag) for tag in ("a", "b")]
    assert ids[0]["id"] != ids[1]["id"]
    items = [item["id"] for response in ids for item in response.get("output", [])]
    assert len(items) == len(set(items))


@pytest.mark.parametrize("api", APIS)
def test_errors_are_the_familys_own(api: Api) -> None:
    body = document(failed(429, "slower", api))
    assert (body["error"]["message"], body["error"]["type"]) == ("slower", "rate_limit_error")
    assert ("type" in body) == (api == "messages")
    broken = document(failed(500, "x", api))["error"]["type"]
    assert broken == ("api_error" if api == "messages" else "server_error")


def test_an_answer_can_be_made_to_think() -> None:
    assert with_thought(ANSWER) == ANSWER
    assert with_thought(Answer((TextPiece("x"),))).reasoning


@pytest.mark.parametrize(
    ("path", "api"),
    [
        ("/v1/chat/completions", "chat"),
        ("/chat/completions/", "chat"),
        ("/v1/responses", "responses"),
        ("/anthropic/v1/messages", "messages"),
        ("/messages", "messages"),
        ("/v1/messages/count_tokens", None),
        ("/v1/models", None),
        ("/", None),
    ],
)
def test_the_family_is_that_of_the_path(path: str, api: Api | None) -> None:
    assert api_of(path) == api


def plain(message: Message) -> Any:
    """What a script can see of a message."""
    reasoning = "".join(block.text for block in message.blocks if isinstance(block, Reasoning))
    calls = [(call.id, call.name, call.arguments) for call in message.tool_calls]
    results = [(result.call_id, result.content, result.is_error) for result in message.tool_results]
    return message.role, message.text, reasoning, calls, results


@pytest.mark.parametrize("api", APIS)
@given(history=conversations())
@settings(max_examples=30)
def test_a_request_is_read_back(api: Api, history: list[Message]) -> None:
    read = FAMILIES[api].request(BODIES[api](history))
    assert [plain(message) for message in read.messages] == [plain(message) for message in history]
    assert (read.system, read.model) == ("be kind", "m")
    assert [tool.name for tool in read.tools] == ["read", "run-it"]


@pytest.mark.parametrize("api", APIS)
def test_what_a_request_may_leave_out_or_write_in_short(api: Api) -> None:
    given = {"messages": [{"role": "user", "content": "hi"}], "input": "hi", "model": "m"}
    read = FAMILIES[api].request({**given, "max_tokens": 5, "max_output_tokens": 5, "stream": True})
    assert [plain(message) for message in read.messages] == [("user", "hi", "", [], [])]
    assert (read.max_tokens, read.stream) == (5, True)
    assert FAMILIES[api].request({"messages": 1, "input": 2, "tools": {}, "max_tokens": "x"}).messages == ()


def test_the_other_places_of_a_systems_word() -> None:
    items = [{"role": "developer", "content": "b"}, {"role": "user", "content": "hi"}]
    assert FAMILIES["responses"].request({"instructions": "a", "input": items}).system == "a\n\nb"
    assert FAMILIES["messages"].request({"system": [{"type": "text", "text": "a"}]}).system == "a"


def test_encrypted_reasoning_is_read_too() -> None:
    items = [
        {"type": "reasoning", "summary": [], "encrypted_content": enclose("hm")},
        {"role": "assistant", "content": "x"},
    ]
    (message,) = FAMILIES["responses"].request({"input": items}).messages
    assert plain(message) == ("assistant", "x", "hm", [], [])
    redacted = {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "d"}]}
    (message,) = FAMILIES["messages"].request({"messages": [redacted]}).messages
    assert message.blocks[0].encrypted == "d"  # type: ignore[union-attr]  it is reasoning
