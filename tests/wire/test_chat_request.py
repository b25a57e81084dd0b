"""Requests in the words of the chat-completions family."""

import json
import math
from typing import Any

import msgspec
import pytest

from mini_agent.core.messages import (
    Image,
    Message,
    Reasoning,
    Request,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from mini_agent.core.profile import EchoReasoning, Profile
from mini_agent.wire.chat_completions import encode

READ = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def assistant(reasoning: str = "", text: str = "", *calls: ToolCall) -> Message:
    return Message("assistant", (Reasoning(reasoning), *((Text(text),) if text else ()), *calls))


def results(*ids: str) -> Message:
    return Message("tool", tuple(ToolResult(f"result of {call_id}", call_id=call_id) for call_id in ids))


def sent(*messages: Message, profile: Profile | None = None) -> list[dict[str, Any]]:
    messages_sent = encode(Request(messages), profile or Profile())["messages"]
    assert isinstance(messages_sent, list)
    return messages_sent


def test_a_whole_request() -> None:
    request = Request(
        (
            user("read a"),
            assistant(
                "r", "I look.", ToolCall("c1", "read_file", {"path": "é"}), ToolCall("c2", "read_file", {})
            ),
            results("c1", "c2"),
        ),
        system="Be short.",
        tools=(READ,),
        model="deepseek-flash",
        max_tokens=100,
    )
    assert encode(request, Profile(extra_body={"thinking": {"type": "disabled"}})) == {
        "model": "deepseek-flash",
        "messages": [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "read a"},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "read_file", "arguments": '{"path":"é"}'},
                    },
                    {"id": "c2", "type": "function", "function": {"name": "read_file", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "result of c1"},
            {"role": "tool", "tool_call_id": "c2", "content": "result of c2"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read_file",
                    "description": "Reads a file.",
                    "parameters": READ.parameters,
                },
            }
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 100,
        "thinking": {"type": "disabled"},
    }


def test_the_least_request() -> None:
    assert encode(Request((user("hi"),), stream=False), Profile(model="m")) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": False,
    }


def test_what_the_profile_says_is_done() -> None:
    profile = Profile(rename={"max_tokens": "max_completion_tokens"}, refuses=("stream_options",))
    body = encode(Request((user("hi"),), model="m", max_tokens=5), profile)
    assert body["max_completion_tokens"] == 5
    assert not {"max_tokens", "stream_options", "tools"} & set(body)


def test_refused_fields_are_left_out() -> None:
    request = Request((user("hi"),), model="m", max_tokens=5)
    body = encode(
        request,
        Profile(extra_body={"top_k": 1}),
        frozenset({"stream_options", "max_tokens", "top_k", "images"}),
    )
    assert set(body) == {"model", "messages", "stream"}


def test_images_are_data_urls_where_they_stand() -> None:
    message = Message("user", (Text("before"), Image("image/png", b"\x89PNG"), Text("after")))
    assert sent(message)[0]["content"] == [
        {"type": "text", "text": "before"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
        {"type": "text", "text": "after"},
    ]


def test_a_message_of_calls_alone_has_no_content() -> None:
    assert sent(user("go"), assistant("", "", ToolCall("c1", "ls")), results("c1"))[1]["content"] is None


def test_b31_extra_keys_of_a_call_go_back_verbatim() -> None:
    extra = {"extra_content": {"google": {"thought_signature": "S"}}}
    (call,) = sent(user("go"), assistant("", "", ToolCall("c1", "ls", extra=extra)), results("c1"))[1][
        "tool_calls"
    ]
    assert call == {**extra, "id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}


def test_e11_arguments_sent_back_are_valid_json() -> None:
    calls = (
        ToolCall("c1", "f", {}, invalid="the arguments are not valid JSON"),
        ToolCall("c2", "f", {"x": math.inf, "big": 10**30}),
    )
    encoded = sent(user("go"), assistant("", "", *calls), results("c1", "c2"))[1]["tool_calls"]
    assert [msgspec.json.decode(call["function"]["arguments"]) for call in encoded] == [
        {},
        {"x": None, "big": 10**30},
    ]
    json.dumps(encoded, allow_nan=False)


TURNS = (
    user("one"),
    assistant("r1", "", ToolCall("c1", "ls")),
    results("c1"),
    assistant("r2", "done"),
    user("two"),
    assistant("r3", "yes"),
    user("three"),
)


@pytest.mark.parametrize(
    ("echo", "echoed"),
    [
        ("never", [None, None, None]),
        ("always", ["r1", "r2", "r3"]),
        ("with_tool_calls", ["r1", "r2", None]),
    ],
)
def test_e05_reasoning_goes_back_where_the_provider_wants_it(
    echo: EchoReasoning, echoed: list[str | None]
) -> None:
    profile = Profile(echo_reasoning=echo, echo_field="thoughts")
    answers = [message for message in sent(*TURNS, profile=profile) if message["role"] == "assistant"]
    assert [message.get("thoughts") for message in answers] == echoed


def test_no_reasoning_no_field() -> None:
    message = assistant("", "hi")
    assert sent(user("a"), message, profile=Profile(echo_reasoning="always"))[1] == {
        "role": "assistant",
        "content": "hi",
    }


@pytest.mark.parametrize(
    ("echo", "placeholder", "thoughts"),
    [
        ("never", None, ["r1", "r2", "r3", " "]),
        ("never", "(none)", ["r1", "r2", "r3", "(none)"]),
        ("with_tool_calls", "", [None, None, None, None]),
        ("always", "", [None, None, None, None]),
    ],
)
def test_e05_where_reasoning_was_refused_the_policy_is_turned_round(
    echo: EchoReasoning, placeholder: str | None, thoughts: list[str | None]
) -> None:
    """A server refuses what it was sent, or what it was not sent: nothing else is known of it."""
    profile = Profile(echo_reasoning=echo, echo_field="thoughts", echo_missing=placeholder)
    request = Request((*TURNS, assistant("", "again"), user("four")))
    messages = encode(request, profile, frozenset({"reasoning"}))["messages"]
    answers = [message for message in messages if message["role"] == "assistant"]
    assert [message.get("thoughts") for message in answers] == thoughts


def test_e05_a_sequence_of_reasoning_that_was_refused_does_not_go_back() -> None:
    block = Reasoning("r", field="reasoning_details", encrypted='[{"type":"reasoning.encrypted","data":"E"}]')
    profile = Profile(echo_reasoning="always", echo_field="reasoning_details")
    messages = (user("a"), Message("assistant", (block, Text("x"))), user("b"))
    for without, key in ((frozenset[str](), "reasoning_details"), (frozenset({"reasoning"}), None)):
        answer = encode(Request(messages), profile, without)["messages"][1]
        assert (set(answer) - {"role", "content"} or {None}) == {key}


def test_d20_the_field_that_asks_to_think_is_told_from_what_was_thought() -> None:
    profile = Profile(extra_body={"reasoning": {"effort": "low"}}, rename={"max_tokens": "cap"})
    request = Request((user("hi"),), model="m", max_tokens=5)
    assert "reasoning" in encode(request, profile, frozenset({"reasoning"}))
    assert "reasoning" not in encode(request, profile, frozenset({"/reasoning"}))
    for name in ("max_tokens", "cap"):
        assert not {"max_tokens", "cap"} & set(encode(request, profile, frozenset({name})))


PICTURE = Image("image/png", b"\x89PNG")
SHOWN = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}


def words(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("messages", "content"),
    [
        ((user("a"), user("b")), "a\n\nb"),
        ((user("a"), user("b"), user("c")), "a\n\nb\n\nc"),
        ((Message("user", (Text("a"), PICTURE)), user("b")), [words("a"), SHOWN, words("b")]),
        ((user("a"), Message("user", (Text("b"), PICTURE))), [words("a\n\nb"), SHOWN]),
        ((Message("user", (PICTURE,)), Message("user", (PICTURE,))), [SHOWN, SHOWN]),
        (
            (Message("user", (PICTURE, Text("a"))), user("b"), Message("user", (PICTURE, Text("c")))),
            [SHOWN, words("a\n\nb"), SHOWN, words("c")],
        ),
    ],
)
def test_successive_messages_of_the_user_become_one(messages: tuple[Message, ...], content: Any) -> None:
    """Templates of local models want roles that take turns."""
    assert sent(*messages) == [{"role": "user", "content": content}]
    assert sent(*messages, assistant("", "x"), user("d"))[0]["content"] == content


def test_messages_of_the_user_that_something_stands_between_stay_apart() -> None:
    between = (assistant("", "", ToolCall("c1", "ls")), results("c1"))
    assert [one["role"] for one in sent(user("a"), *between, user("b"), user("c"))] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]
    bridged = sent(user("a"), *between, user("b"), user("c"), profile=Profile(bridge="Understood."))
    assert [one["content"] for one in bridged[-2:]] == ["Understood.", "b\n\nc"]
    assert [one["role"] for one in sent(user("a"), assistant("", "x"), user("b"))] == [
        "user",
        "assistant",
        "user",
    ]
