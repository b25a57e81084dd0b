"""Requests in the words of the Messages family."""

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
from mini_agent.core.profile import EchoReasoning, ModelFacts, Profile
from mini_agent.wire.messages import encode

READ = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
SIGNED = Reasoning("hm", field="thinking", signature="SIG")
REDACTED = Reasoning(field="redacted_thinking", encrypted="X")


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def assistant(*blocks: Any) -> Message:
    return Message("assistant", tuple(Text(one) if isinstance(one, str) else one for one in blocks))


def results(*ids: str) -> Message:
    return Message("tool", tuple(ToolResult(f"result of {call_id}", call_id=call_id) for call_id in ids))


def sent(*messages: Message, profile: Profile | None = None) -> list[dict[str, Any]]:
    encoded = encode(Request(messages), profile or Profile())["messages"]
    assert isinstance(encoded, list)
    return encoded


def words(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in texts]


def thinking(text: str, signature: str) -> dict[str, str]:
    return {"type": "thinking", "thinking": text, "signature": signature}


def use(call_id: str, name: str = "ls", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def result(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": f"result of {call_id}"}


def check(body: dict[str, Any]) -> None:
    """What Anthropic demands of a body; each of these is an error 400 there."""
    json.dumps(body, allow_nan=False).encode()
    assert body["max_tokens"] > 0
    messages = body["messages"]
    roles = [message["role"] for message in messages]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2)
    ids: set[str] = set()
    open_ids: list[str] = []
    for place, message in enumerate(messages):
        content = message["content"]
        assert content
        types = [block["type"] for block in content]
        for block in content:
            if block["type"] == "text":
                assert block["text"].strip()
        if message["role"] == "assistant":
            assert set(types) <= {"text", "thinking", "redacted_thinking", "tool_use"}
            assert types[-1] not in ("thinking", "redacted_thinking")
            assert "tool_use" not in types or types.index("tool_use") == len(types) - types.count("tool_use")
            for block in content:
                if block["type"] == "thinking":
                    assert block["signature"]
                if block["type"] == "tool_use":
                    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", block["id"])
                    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", block["name"])
                    assert isinstance(block["input"], dict)
                    assert block["id"] not in ids
                    ids.add(block["id"])
            open_ids = [block["id"] for block in content if block["type"] == "tool_use"]
            if place == len(messages) - 1 and types[-1] == "text":
                assert content[-1]["text"] == content[-1]["text"].rstrip()
        else:
            assert set(types) <= {"text", "image", "tool_result"}
            count = types.count("tool_result")
            assert types[:count] == ["tool_result"] * count
            assert [block["tool_use_id"] for block in content[:count]] == open_ids
            assert all(block["content"].strip() for block in content[:count])
            open_ids = []
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
                SIGNED,
                REDACTED,
                "I look.",
                ToolCall("c1", "read_file", {"path": "é"}),
                ToolCall("c2", "read_file"),
            ),
            Message("tool", (ToolResult("one", call_id="c1"), ToolResult("no", is_error=True, call_id="c2"))),
            user("go on"),
        ),
        system="Be short.",
        tools=(READ,),
        model="claude",
        max_tokens=100,
        effort="high",
    )
    profile = Profile(effort={"high": {"output_config": {"effort": "high"}}}, extra_body={"top_k": 1})
    assert encode(request, profile) == {
        "model": "claude",
        "max_tokens": 100,
        "system": "Be short.",
        "messages": [
            {"role": "user", "content": words("read a")},
            {
                "role": "assistant",
                "content": [
                    thinking("hm", "SIG"),
                    {"type": "redacted_thinking", "data": "X"},
                    *words("I look."),
                    use("c1", "read_file", path="é"),
                    use("c2", "read_file"),
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
                    {"type": "tool_result", "tool_use_id": "c2", "content": "no", "is_error": True},
                    *words("go on"),
                ],
            },
        ],
        "tools": [
            {
                "name": "read_file",
                "description": "Reads a file.",
                "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
            }
        ],
        "stream": True,
        "output_config": {"effort": "high"},
        "top_k": 1,
    }


def test_the_least_request() -> None:
    body = encode(Request((user("hi"),), stream=False), Profile(model="m"))
    assert body == {
        "model": "m",
        "max_tokens": 8192,
        "messages": [{"role": "user", "content": words("hi")}],
        "stream": False,
    }


@pytest.mark.parametrize(
    ("asked", "default", "most", "sent_"),
    [
        (5, 100, 200, 5),
        (None, None, None, 8192),
        (None, 100, None, 100),
        (None, None, 64_000, 64_000),
        (None, 100, 64_000, 100),
        (None, 64_000, 100, 100),
    ],
)
def test_max_tokens_is_always_there(
    asked: int | None, default: int | None, most: int | None, sent_: int
) -> None:
    profile = Profile(default_max_tokens=default, models={"m": ModelFacts(max_output=most)})
    assert encode(Request((user("hi"),), model="m", max_tokens=asked), profile)["max_tokens"] == sent_


@pytest.mark.parametrize(
    ("default", "most", "sent_"), [(None, None, 8192), (100, 64_000, 100), (None, 64_000, 64_000)]
)
@pytest.mark.parametrize("refused", ["max_tokens", "cap"])
def test_d08_a_cap_that_is_refused_is_replaced_by_our_own(
    default: int | None, most: int | None, sent_: int, refused: str
) -> None:
    facts = {"m": ModelFacts(max_output=most)}
    profile = Profile(default_max_tokens=default, models=facts, rename={"max_tokens": "cap"})
    request = Request((user("hi"),), model="m", max_tokens=300_000)
    assert encode(request, profile)["cap"] == 300_000
    assert encode(request, profile, frozenset({"stream"}))["cap"] == 300_000
    body = encode(request, profile, frozenset({refused, "stream"}))
    assert body["cap"] == sent_
    assert not {"max_tokens", "stream"} & set(body)


def test_there_is_room_for_an_answer_behind_the_thinking() -> None:
    thinks = {"thinking": {"type": "enabled", "budget_tokens": 4000}}
    profile = Profile(effort={"high": thinks})
    for asked, sent_ in ((1000, 5000), (4000, 8000), (4001, 4001)):
        body = encode(Request((user("hi"),), max_tokens=asked, effort="high"), profile)
        assert (body["max_tokens"], body["thinking"]) == (sent_, thinks["thinking"])


def test_what_the_profile_says_is_done_and_what_was_refused_is_left_out() -> None:
    profile = Profile(rename={"max_tokens": "cap"}, refuses=("stream",), extra_body={"top_k": 1})
    body = encode(Request((user("hi"),), system="s", model="m"), profile, frozenset({"system", "top_k"}))
    assert set(body) == {"model", "cap", "messages"}


def test_roles_take_turns_and_results_come_first() -> None:
    call = ToolCall("c1", "ls")
    assert sent(
        user("a"), user("b"), assistant(call), results("c1"), user("c"), assistant("x"), assistant("y")
    ) == [
        {"role": "user", "content": words("a", "b")},
        {"role": "assistant", "content": [use("c1")]},
        {"role": "user", "content": [result("c1"), *words("c")]},
        {"role": "assistant", "content": words("x", "y")},
    ]


def test_a_history_that_begins_with_an_answer_gets_a_message_before_it() -> None:
    first, second = sent(assistant("x"))
    assert first["role"] == "user"
    assert second == {"role": "assistant", "content": words("x")}


def test_images_stand_where_they_stood() -> None:
    message = Message("user", (Text("before"), Image("image/png", b"\x89PNG"), Text("after")))
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
    assert sent(message)[0]["content"] == [
        *words("before"),
        {"type": "image", "source": source},
        *words("after"),
    ]


def test_e07_no_blank_text_and_no_blanks_at_the_end() -> None:
    call = ToolCall("c1", "ls")
    assert sent(
        Message("user", (Text("  "), Text("hi "))), assistant("\n", call), results("c1"), assistant("abc \n")
    ) == [
        {"role": "user", "content": words("hi ")},
        {"role": "assistant", "content": [use("c1")]},
        {"role": "user", "content": [result("c1")]},
        {"role": "assistant", "content": words("abc")},
    ]
    assert sent(user("a"), assistant("abc \n"), user("b"))[1]["content"] == words("abc \n")


CALL = ToolCall("c1", "ls")


@pytest.mark.parametrize(
    ("blocks", "kept"),
    [
        ([SIGNED, CALL], [thinking("hm", "SIG"), use("c1")]),
        ([Reasoning("", field="thinking", signature="S"), "x"], [thinking("", "S"), *words("x")]),
        ([Reasoning("hm", field="thinking"), CALL], [use("c1")]),
        ([Reasoning("hm", field="thinking", signature=""), CALL], [use("c1")]),
        ([Reasoning("hm", field="reasoning_content"), CALL], [use("c1")]),
        ([Reasoning("hm", field="reasoning_item", encrypted="E", id="rs"), CALL], [use("c1")]),
        ([Reasoning("hm", signature="S"), CALL], [use("c1")]),
        ([CALL, SIGNED, "x"], [thinking("hm", "SIG"), *words("x"), use("c1")]),
        (["x", SIGNED], words("x")),
        (["x", REDACTED, SIGNED], words("x")),
        (["x", SIGNED, CALL], [*words("x"), thinking("hm", "SIG"), use("c1")]),
    ],
)
def test_c05_thoughts_go_back_unchanged_sealed_and_before_the_calls(
    blocks: list[Any], kept: list[Any]
) -> None:
    answers = [assistant(*blocks), results("c1")] if CALL in blocks else [assistant(*blocks)]
    assert sent(user("go"), *answers, user("on"))[1]["content"] == kept


PLAIN = Reasoning("r", field="thinking")
TURNS = (
    user("one"),
    assistant(PLAIN, CALL),
    results("c1"),
    assistant(PLAIN, "done"),
    user("two"),
    assistant(PLAIN, "yes"),
    assistant("no thoughts"),
    user("three"),
)


@pytest.mark.parametrize(
    ("echo", "echoed"), [("never", [0, 0, 0]), ("always", [1, 1, 1]), ("with_tool_calls", [1, 1, 0])]
)
def test_e05_thoughts_without_a_seal_go_back_where_the_vendor_wants_them(
    echo: EchoReasoning, echoed: list[int]
) -> None:
    answers = [
        one for one in sent(*TURNS, profile=Profile(echo_reasoning=echo)) if one["role"] == "assistant"
    ]
    thoughts = [[block for block in one["content"] if block["type"] == "thinking"] for one in answers]
    assert thoughts == [[thinking("r", "")] * count for count in echoed]


def test_e05_what_stands_for_thoughts_that_are_missing() -> None:
    profile = Profile(echo_reasoning="always", echo_missing="(none)")
    assert sent(user("a"), assistant("x"), user("b"), profile=profile)[1]["content"] == [
        thinking("(none)", ""),
        *words("x"),
    ]
    assert sent(user("a"), assistant(SIGNED, "x"), user("b"), profile=profile)[1]["content"] == [
        thinking("hm", "SIG"),
        *words("x"),
    ]


def test_ids_and_names_are_cleaned_alike_on_call_and_result() -> None:
    ids = ("functions.ls:0", "functions_ls_0", "é" * 70, "ok-1_A")
    calls = (*(ToolCall(one, "ls") for one in ids), ToolCall("n", "functions.read<|file|>"))
    messages = sent(user("go"), assistant(*calls), results(*ids, "n"))
    used = [block["id"] for block in messages[1]["content"]]
    assert used == ["functions_ls_0", "functions_ls_0-2", "_" * 64, "ok-1_A", "n"]
    assert [block["tool_use_id"] for block in messages[2]["content"]] == used
    assert messages[1]["content"][-1]["name"] == "functions_read__file__"


def test_ids_stay_the_same_while_a_history_grows() -> None:
    turns = [
        message
        for call_id in ("a.b", "a_b", "a-b", "a:b")
        for message in (user("go"), assistant(ToolCall(call_id, "ls")), results(call_id))
    ]
    longest = sent(*turns)
    for count in range(3, len(turns), 3):
        assert longest[: len(sent(*turns[:count])) - 1] == sent(*turns[:count])[:-1]


def test_e11_arguments_sent_back_are_json() -> None:
    call = ToolCall("c1", "f", {"x": math.inf, "big": 10**30})
    body = encode(Request((user("go"), assistant(call), results("c1"))), Profile())
    assert body["messages"][1]["content"] == [use("c1", "f", x=None, big=10**30)]
    json.dumps(body, allow_nan=False)


def test_e05_thoughts_that_were_refused_do_not_go_back_sealed_or_not() -> None:
    history = (
        user("a"),
        assistant(SIGNED, REDACTED, "x", ToolCall("c1", "ls")),
        results("c1"),
        assistant(SIGNED, "y"),
    )
    for profile in (Profile(), Profile(echo_reasoning="always", echo_missing="(none)")):
        messages = encode(Request((*history, user("b"))), profile, frozenset({"reasoning"}))["messages"]
        answers = [one["content"] for one in messages if one["role"] == "assistant"]
        assert answers == [[*words("x"), use("c1")], words("y")]
