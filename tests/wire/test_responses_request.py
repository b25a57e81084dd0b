"""Requests in the words of the Responses family."""

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given, settings
from wire_histories import HISTORIES

from mini_agent.core.history import repair
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
from mini_agent.wire.responses import encode

READ = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
SEALED = Reasoning("hm", field="reasoning_item", encrypted="E", id="rs_1")
OPEN = Reasoning("r", field="reasoning_item", id="rs_2")
NEXT = Reasoning("hm", field="reasoning_item", encrypted="E", id="rs_3")
CALL = ToolCall("c1", "ls", {"d": "."})


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def assistant(*blocks: Any) -> Message:
    return Message("assistant", tuple(Text(one) if isinstance(one, str) else one for one in blocks))


def results(*ids: str) -> Message:
    return Message("tool", tuple(ToolResult(f"result of {call_id}", call_id=call_id) for call_id in ids))


def sent(*messages: Message, profile: Profile | None = None) -> list[dict[str, Any]]:
    encoded = encode(Request(messages), profile or Profile())["input"]
    assert isinstance(encoded, list)
    return encoded


def asked(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def called(call_id: str = "c1", name: str = "ls", arguments: str = '{"d":"."}') -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def output(call_id: str = "c1") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": f"result of {call_id}"}


SENT_SEALED = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "E",
}


def plain(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}


def check(body: dict[str, Any]) -> None:
    """What OpenAI demands of a body whose conversation it does not store; each of these is an error 400 there."""
    json.dumps(body, allow_nan=False).encode()
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]
    open_ids: list[str] = []
    ids: set[str] = set()
    items = body["input"]
    for place, item in enumerate(items):
        following = items[place + 1] if place + 1 < len(items) else {"type": "nothing"}
        match item["type"]:
            case "message":
                part = {"user": {"input_text", "input_image"}, "assistant": {"output_text"}}[item["role"]]
                assert item["content"]
                assert {one["type"] for one in item["content"]} <= part
                assert item["role"] == "assistant" or not open_ids
            case "reasoning":
                assert item["encrypted_content"]
                assert isinstance(item["summary"], list)
                assert following["type"] == "function_call" or following.get("role") == "assistant"
            case "function_call":
                assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", item["call_id"])
                assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", item["name"])
                assert isinstance(json.loads(item["arguments"]), dict)
                assert item["call_id"] not in ids
                ids.add(item["call_id"])
                open_ids.append(item["call_id"])
            case "function_call_output":
                open_ids.remove(item["call_id"])
                assert item["output"].strip()
            case unknown:
                raise AssertionError(unknown)
    assert not open_ids


@settings(deadline=None, max_examples=200)
@given(HISTORIES)
def test_any_repaired_history_obeys_the_rules(messages: list[Message]) -> None:
    check(encode(Request(tuple(repair(messages)), system="s", tools=(READ,)), Profile()))


def test_a_whole_request() -> None:
    request = Request(
        (
            user("read a"),
            assistant(
                SEALED, "I look.", ToolCall("c1", "read_file", {"path": "é"}), ToolCall("c2", "read_file")
            ),
            Message("tool", (ToolResult("one", call_id="c1"), ToolResult("no", is_error=True, call_id="c2"))),
            user("go on"),
        ),
        system="Be short.",
        tools=(READ,),
        model="gpt",
        max_tokens=100,
        effort="high",
    )
    profile = Profile(
        effort={"high": {"reasoning": {"effort": "high"}}},
        extra_body={"reasoning": {"summary": "auto"}},
    )
    assert encode(request, profile) == {
        "model": "gpt",
        "instructions": "Be short.",
        "input": [
            asked("read a"),
            SENT_SEALED,
            said("I look."),
            called("c1", "read_file", '{"path":"é"}'),
            called("c2", "read_file", "{}"),
            {"type": "function_call_output", "call_id": "c1", "output": "one"},
            {"type": "function_call_output", "call_id": "c2", "output": "Error: no"},
            asked("go on"),
        ],
        "tools": [
            {
                "type": "function",
                "name": "read_file",
                "description": "Reads a file.",
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                "strict": False,
            }
        ],
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "stream": True,
        "max_output_tokens": 100,
        "reasoning": {"effort": "high", "summary": "auto"},
    }


def test_the_least_request() -> None:
    assert encode(Request((user("hi"),), stream=False), Profile(model="m")) == {
        "model": "m",
        "input": [asked("hi")],
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "stream": False,
    }


def test_what_the_profile_says_is_done_and_what_was_refused_is_left_out() -> None:
    profile = Profile(refuses=("include", "store"), rename={"max_output_tokens": "cap"})
    body = encode(
        Request((user("hi"),), model="m", max_tokens=5, system="s"), profile, frozenset({"instructions"})
    )
    assert body == {"model": "m", "input": [asked("hi")], "stream": True, "cap": 5}
    for name in ("max_output_tokens", "cap"):
        request = Request((user("hi"),), model="m", max_tokens=5)
        assert not {"max_output_tokens", "cap"} & set(encode(request, profile, frozenset({name})))


def test_images_stand_where_they_stood() -> None:
    message = Message("user", (Text("before"), Image("image/png", b"\x89PNG"), Text("after")))
    assert sent(message)[0]["content"] == [
        {"type": "input_text", "text": "before"},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw=="},
        {"type": "input_text", "text": "after"},
    ]


@pytest.mark.parametrize(
    ("blocks", "kept"),
    [
        ([SEALED, CALL], [SENT_SEALED, called()]),
        ([SEALED, "x"], [SENT_SEALED, said("x")]),
        ([SEALED, "x", NEXT, CALL], [SENT_SEALED, said("x"), {**SENT_SEALED, "id": "rs_3"}, called()]),
        ([OPEN, CALL], [called()]),
        ([CALL, SEALED], [called()]),
        (["x", SEALED], [said("x")]),
        ([OPEN, SEALED, CALL], [SENT_SEALED, called()]),
        ([Reasoning("a", field="reasoning_item", encrypted="first"), SEALED, CALL], [SENT_SEALED, called()]),
        ([Reasoning("a", field="thinking", signature="S"), CALL], [called()]),
        ([Reasoning(field="redacted_thinking", encrypted="X"), CALL], [called()]),
        ([Reasoning("a", field="reasoning_content"), CALL], [called()]),
        (
            [Reasoning(field="reasoning_item", encrypted="E"), CALL],
            [{"type": "reasoning", "summary": [], "encrypted_content": "E"}, called()],
        ),
    ],
)
def test_c14_reasoning_goes_back_sealed_and_directly_before_what_it_led_to(
    blocks: list[Any], kept: list[Any]
) -> None:
    answers = [assistant(*blocks), results("c1")] if CALL in blocks else [assistant(*blocks)]
    expected = [*kept, output()] if CALL in blocks else kept
    assert sent(user("go"), *answers, user("on"))[1:-1] == expected


def test_c14_reasoning_alone_at_the_end_is_dropped() -> None:
    assert sent(user("go"), assistant(SEALED)) == [asked("go")]


TURNS = (
    user("one"),
    assistant(OPEN, CALL),
    results("c1"),
    assistant(OPEN, "done"),
    user("two"),
    assistant(OPEN, "yes"),
    user("three"),
)


@pytest.mark.parametrize(("echo", "echoed"), [("never", 0), ("always", 3), ("with_tool_calls", 2)])
def test_e05_reasoning_without_a_seal_goes_back_as_text_where_the_vendor_wants_it(
    echo: EchoReasoning, echoed: int
) -> None:
    items = sent(*TURNS, profile=Profile(echo_reasoning=echo))
    assert [item for item in items if item["type"] == "reasoning"] == [plain("r")] * echoed
    assert [item for item in items if item["type"] != "reasoning"] == sent(*TURNS)
    if echoed:
        assert items[1:3] == [plain("r"), called()]


def test_e05_what_stands_for_reasoning_that_is_missing() -> None:
    profile = Profile(echo_reasoning="always", echo_missing="(none)")
    assert sent(user("a"), assistant("x"), user("b"), profile=profile)[1:-1] == [plain("(none)"), said("x")]
    assert sent(user("a"), assistant(SEALED, "x"), user("b"), profile=profile)[1:-1] == [
        SENT_SEALED,
        said("x"),
    ]


def test_ids_and_names_are_cleaned_alike_on_call_and_result() -> None:
    ids = ("functions.ls:0", "é" * 70)
    items = sent(user("go"), assistant(*(ToolCall(one, "a.b") for one in ids)), results(*ids))
    assert [item["call_id"] for item in items[1:]] == ["functions_ls_0", "_" * 64] * 2
    assert {item["name"] for item in items[1:3]} == {"a_b"}


def test_e11_arguments_sent_back_are_json() -> None:
    call = ToolCall("c1", "f", {"x": math.inf})
    assert sent(user("go"), assistant(call), results("c1"))[1]["arguments"] == '{"x":null}'


def test_e05_reasoning_that_was_refused_does_not_go_back_sealed_or_not() -> None:
    history = (user("a"), assistant(SEALED, "x", OPEN, CALL), results("c1"), assistant(SEALED, "y"))
    for profile in (Profile(), Profile(echo_reasoning="always", echo_missing="(none)")):
        items = encode(Request((*history, user("b"))), profile, frozenset({"reasoning"}))["input"]
        output = {"type": "function_call_output", "call_id": "c1", "output": "result of c1"}
        assert items == [asked("a"), said("x"), called(), output, said("y"), asked("b")]


def test_an_id_that_would_be_refused_is_left_out_with_the_seal_kept() -> None:
    again = Reasoning("", field="reasoning_item", encrypted="F", id="rs_1")
    other = Reasoning("", field="reasoning_item", encrypted="G", id="thought-7")
    items = sent(user("a"), assistant(SEALED, "x", again, "y"), user("b"), assistant(other, "z"), user("c"))
    thoughts = [(item.get("id"), item["encrypted_content"]) for item in items if item["type"] == "reasoning"]
    assert thoughts == [("rs_1", "E"), (None, "F"), (None, "G")]
