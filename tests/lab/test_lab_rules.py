"""The rules: what obeys them passes, and every single breach is found and named by its place."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lab_histories import BODIES, Body, changed, chat, conversations, messages, responses

from mini_agent.core.messages import Message, Reasoning, Text, ToolCall, ToolResult
from mini_agent.lab.rules import violations

TALK = [
    Message("user", (Text("hi"),)),
    Message(
        "assistant",
        (
            Reasoning("hm"),
            Text("two calls"),
            ToolCall("call_1", "read", {"a": 1}),
            ToolCall("call_2", "read"),
        ),
    ),
    Message("tool", (ToolResult("one", call_id="call_1"), ToolResult("two", call_id="call_2"))),
    Message("assistant", (Reasoning("so"), Text("done"))),
    Message("user", (Text("more"),)),
    Message("assistant", (Reasoning("again"), ToolCall("call_3", "read"))),
    Message("tool", (ToolResult("three", is_error=True, call_id="call_3"),)),
]

Breach = tuple[str, Callable[[Body], Any], str]
"""What it does, the change in place, and words that the finding has in it."""


def put(*path: Any) -> Callable[[Body], Any]:
    """A change: the last of `path` is set where the others lead."""

    def change(body: Any) -> None:
        *way, key, value = path
        for step in way:
            body = body[step]
        body[key] = value

    return change


def drop(*path: Any) -> Callable[[Body], Any]:
    def change(body: Any) -> None:
        *way, key = path
        for step in way:
            body = body[step]
        del body[key]

    return change


def move(field: str, place: int, to: int) -> Callable[[Body], Any]:
    return lambda body: body[field].insert(to, body[field].pop(place))


def add(field: str, place: int, entry: Any) -> Callable[[Body], Any]:
    return lambda body: body[field].insert(place, entry)


def again(field: str, place: int) -> Callable[[Body], Any]:
    return lambda body: body[field].insert(place + 1, body[field][place])


# chat: 0 system, 1 user, 2 assistant with calls, 3 4 tool, 5 assistant, 6 user, 7 assistant with a call, 8 tool
M = "messages"
CHAT: list[Breach] = [
    ("no model", drop("model"), "model"),
    ("stream a string", put("stream", "yes"), "stream"),
    ("stream_options without stream", drop("stream"), "stream_options"),
    ("no messages", put(M, []), "messages"),
    ("only the system", lambda body: body.update(messages=body[M][:1]), "nothing but"),
    ("a message that is none", put(M, 1, "hi"), "messages[1]"),
    ("unknown role", put(M, 1, "role", "person"), "messages[1] has an unknown role"),
    ("system later", move(M, 0, 1), "messages[1] is a system message"),
    ("user without content", put(M, 1, "content", None), "messages[1] has no content"),
    ("user with blank content", put(M, 1, "content", " \n"), "messages[1] has no content"),
    ("user with empty parts", put(M, 1, "content", []), "messages[1] has no content"),
    ("content a number", put(M, 1, "content", 7), "messages[1].content"),
    ("unknown part", put(M, 1, "content", [{"type": "input_text", "text": "x"}]), "messages[1].content[0]"),
    ("blank part", put(M, 1, "content", [{"type": "text", "text": ""}]), "messages[1].content[0]"),
    ("image without one", put(M, 1, "content", [{"type": "image_url"}]), "messages[1].content[0]"),
    ("an empty answer", put(M, 5, "content", None), "messages[5] has no content and no calls"),
    ("tool_calls empty", put(M, 5, "tool_calls", []), "messages[5].tool_calls"),
    ("user with calls", put(M, 1, "tool_calls", [{}]), "messages[1] has tool_calls"),
    ("a result is missing", drop(M, 4), "call call_2 has no result"),
    ("a result twice", again(M, 4), "messages[5] is a second result of call call_2"),
    ("a result after the next answer", move(M, 4, 5), "call call_2 has no result before messages[4]"),
    ("a result before its call", move(M, 8, 7), "result of no call"),
    ("a result of nothing", put(M, 4, "tool_call_id", "call_9"), "result of no call: call_9"),
    ("a result without id", drop(M, 4, "tool_call_id"), "result of no call"),
    ("an empty result", put(M, 4, "content", ""), "messages[4] has no content"),
    (
        "user between call and result",
        add(M, 4, {"role": "user", "content": "x"}),
        "no result before messages[4]",
    ),
    ("calls in the last message", drop(M, 8), "no result before the end"),
    ("an id twice", put(M, 7, "tool_calls", 0, "id", "call_1"), "used before"),
    ("a call without id", drop(M, 7, "tool_calls", 0, "id"), "messages[7].tool_calls[0] has no id"),
    ("a call of another type", put(M, 7, "tool_calls", 0, "type", "custom"), "messages[7].tool_calls[0]"),
    (
        "a call without name",
        put(M, 7, "tool_calls", 0, "function", "name", ""),
        "messages[7].tool_calls[0] has no name",
    ),
    (
        "a name with spaces",
        put(M, 7, "tool_calls", 0, "function", "name", "read it"),
        "messages[7].tool_calls[0]",
    ),
    (
        "arguments an object",
        put(M, 7, "tool_calls", 0, "function", "arguments", {}),
        "arguments are no string",
    ),
    (
        "arguments empty",
        put(M, 7, "tool_calls", 0, "function", "arguments", ""),
        "arguments are no valid JSON",
    ),
    (
        "arguments cut",
        put(M, 7, "tool_calls", 0, "function", "arguments", '{"a": '),
        "arguments are no valid JSON",
    ),
    (
        "arguments a list",
        put(M, 7, "tool_calls", 0, "function", "arguments", "[]"),
        "arguments are no JSON object",
    ),
    ("tools empty", put("tools", []), "tools"),
    ("a tool without name", drop("tools", 0, "function", "name"), "tools[0]"),
    ("a tool twice", again("tools", 0), "taken"),
    (
        "a schema that is none",
        put("tools", 0, "function", "parameters", {"type": "string"}),
        "tools[0].parameters",
    ),
    ("no tool at all", put("tools", 0, 5), "tools[0]"),
    ("max_tokens 0", put("max_tokens", 0), "max_tokens"),
]

# messages: 0 user, 1 thinking text tool_use tool_use, 2 results, 3 thinking text, 4 user, 5 thinking tool_use, 6 result
C = "content"
MESSAGES: list[Breach] = [
    ("no max_tokens", drop("max_tokens"), "max_tokens"),
    ("max_tokens true", put("max_tokens", True), "max_tokens"),
    ("budget too large", put("thinking", "budget_tokens", 4096), "budget_tokens"),
    ("budget too small", put("thinking", "budget_tokens", 1), "budget_tokens"),
    ("system blank", put("system", [{"type": "text", "text": " "}]), "system[0]"),
    ("system a number", put("system", 5), "system"),
    ("no messages", put(M, []), "messages"),
    ("a system message", put(M, 0, "role", "system"), "messages[0] has an unknown role"),
    ("a tool message", put(M, 2, "role", "tool"), "messages[2] has an unknown role"),
    ("first the assistant's", drop(M, 0), "messages[0] is not the user's"),
    ("no content", put(M, 0, C, []), "messages[0] has no content"),
    ("content null", put(M, 0, C, None), "messages[0] has no content"),
    ("blank content", put(M, 0, C, " "), "messages[0].content is a blank text"),
    ("a blank text", put(M, 1, C, 1, "text", "\n"), "messages[1].content[1] is a blank text"),
    ("no block", put(M, 0, C, ["hi"]), "messages[0].content[0] is no block"),
    ("unknown block", put(M, 0, C, 0, "type", "input_text"), "messages[0].content[0] is of a type"),
    (
        "the user calls",
        put(M, 0, C, 0, {"type": "tool_use", "id": "x", "name": "read", "input": {}}),
        "messages[0].content[0]",
    ),
    (
        "the assistant gives a result",
        add(M, 7, {"role": "assistant", C: [{"type": "tool_result"}]}),
        "messages[7].content[0]",
    ),
    (
        "an image without source",
        put(M, 0, C, 0, {"type": "image", "source": {"type": "base64"}}),
        "messages[0].content[0]",
    ),
    ("thinking later", lambda body: body[M][1][C].append(body[M][1][C].pop(0)), "does not come first"),
    (
        "thinking at the end",
        lambda body: body[M][3][C].append({"type": "thinking", "thinking": "x", "signature": "s"}),
        "nothing follows",
    ),
    ("thinking without signature", drop(M, 1, C, 0, "signature"), "messages[1].content[0] has no signature"),
    ("an empty signature", put(M, 1, C, 0, "signature", ""), "messages[1].content[0] has no signature"),
    ("thinking altered", put(M, 1, C, 0, "thinking", "hm."), "not the thinking that was signed"),
    ("thinking left out in the loop", drop(M, 5, C, 0), "thinking is on"),
    (
        "redacted without data",
        put(M, 1, C, 0, {"type": "redacted_thinking"}),
        "messages[1].content[0] has no data",
    ),
    ("a result is missing", drop(M, 2, C, 1), "call call_2 has no result"),
    ("a result twice", lambda body: body[M][2][C].append(body[M][2][C][0]), "second result of call call_1"),
    ("results behind text", lambda body: body[M][2][C].insert(0, {"type": "text", "text": "x"}), "behind"),
    ("a text between results", lambda body: body[M][2][C].insert(1, {"type": "text", "text": "x"}), "behind"),
    ("results a turn later", move(M, 2, 4), "no result before"),
    ("a result of nothing", put(M, 2, C, 0, "tool_use_id", "call_9"), "result of no call: call_9"),
    (
        "a result with a blank block",
        put(M, 2, C, 0, C, [{"type": "text", "text": ""}]),
        "messages[2].content[0].content[0]",
    ),
    ("a result of another type", put(M, 2, C, 0, C, 5), "messages[2].content[0].content"),
    ("is_error a string", put(M, 2, C, 0, "is_error", "no"), "is_error"),
    ("calls in the last message", drop(M, 6), "no result before the end"),
    ("an id twice", put(M, 5, C, 1, "id", "call_1"), "used before"),
    ("an id with a colon", put(M, 5, C, 1, "id", "call:3"), "letters, digits"),
    ("input a string", put(M, 5, C, 1, "input", "{}"), "input is no object"),
    ("a call without name", drop(M, 5, C, 1, "name"), "messages[5].content[1] has no name"),
    ("an answer begun with a blank at its end", add(M, 7, {"role": "assistant", C: "so: "}), "white space"),
    (
        "a tool of chat completions",
        put("tools", 0, {"type": "function", "function": {"name": "read"}}),
        "tools[0]",
    ),
    ("a tool without schema", drop("tools", 0, "input_schema"), "tools[0].input_schema"),
]

# responses: 0 user, 1 reasoning, 2 message, 3 4 calls, 5 6 outputs, 7 reasoning, 8 message, 9 user, 10 reasoning, 11 call,
# 12 output
I = "input"  # noqa: E741  the field's own name
RESPONSES: list[Breach] = [
    ("input blank", put(I, " "), "input is blank"),
    ("input empty", put(I, []), "input"),
    ("store a string", put("store", "no"), "store"),
    ("instructions a list", put("instructions", ["x"]), "instructions"),
    ("max_output_tokens 0", put("max_output_tokens", 0), "max_output_tokens"),
    ("no item", put(I, 0, "hi"), "input[0] is no item"),
    ("unknown type", put(I, 0, "type", "tool_result"), "input[0] is of an unknown type"),
    ("unknown role", put(I, 0, "role", "tool"), "input[0] has an unknown role"),
    ("blank content", put(I, 0, C, "  "), "input[0] has no content"),
    ("no content", put(I, 0, C, []), "input[0] has no content"),
    ("a blank part", put(I, 0, C, 0, "text", ""), "input[0].content[0] is a blank text"),
    ("the assistant's part of the user", put(I, 0, C, 0, "type", "output_text"), "input[0].content[0]"),
    ("the user's part of the assistant", put(I, 8, C, 0, "type", "input_text"), "input[8].content[0]"),
    ("a part of chat completions", put(I, 0, C, 0, "type", "text"), "input[0].content[0]"),
    ("an image without one", put(I, 0, C, 0, {"type": "input_image"}), "input[0].content[0] has no image"),
    ("an output is missing", drop(I, 6), "call call_2 has no result"),
    ("an output twice", again(I, 6), "second result of call call_2"),
    ("an output before its call", move(I, 12, 11), "result of no call: call_3"),
    ("an output of nothing", put(I, 6, "call_id", "call_9"), "result of no call: call_9"),
    ("an output without content", drop(I, 6, "output"), "input[6] has no output"),
    ("the user between call and output", move(I, 9, 5), "no result before input[5]"),
    ("a call at the end", drop(I, 12), "no result before the end"),
    ("a call_id twice", put(I, 11, "call_id", "call_1"), "used before"),
    ("a call without call_id", drop(I, 11, "call_id"), "input[11] has no id"),
    ("a call without name", drop(I, 11, "name"), "input[11] has no name"),
    ("arguments an object", put(I, 11, "arguments", {}), "arguments are no string"),
    ("arguments cut", put(I, 11, "arguments", "{"), "arguments are no valid JSON"),
    ("an item's id twice", put(I, 11, "id", "fc_3"), "used before: fc_3"),
    ("an id of another kind", put(I, 11, "id", "call_3"), "does not begin with fc"),
    (
        "reasoning alone at the end",
        add(I, 13, {"type": "reasoning", "summary": [], "encrypted_content": "x"}),
        "has to follow",
    ),
    ("reasoning before the user", move(I, 8, 7), "has to follow"),
    ("reasoning not encrypted", drop(I, 1, "encrypted_content"), "nothing is kept"),
    (
        "encrypted content altered",
        lambda body: body[I][1].update(encrypted_content=body[I][1]["encrypted_content"][:-1]),
        "decrypted",
    ),
    ("reasoning without summary", drop(I, 1, "summary"), "summary"),
    (
        "stored reasoning without id",
        lambda body: (body.pop("store"), put(I, 1, {"type": "reasoning", "summary": []})(body)),
        "nor an id",
    ),
    (
        "a tool of chat completions",
        put("tools", 0, {"type": "function", "function": {"name": "read"}}),
        "tools[0]",
    ),
    ("a schema that is none", put("tools", 0, "parameters", []), "tools[0].parameters"),
]

BREACHES = [
    (api, *breach)
    for api, breaches in (("chat", CHAT), ("messages", MESSAGES), ("responses", RESPONSES))
    for breach in breaches
]


@pytest.mark.parametrize("api", BODIES)
@given(conversations())
@settings(max_examples=30)
def test_what_obeys_passes(api: Any, history: list[Message]) -> None:
    assert violations(api, BODIES[api](history)) == []
    assert violations("chat", chat(history), echo_reasoning=True) == []


@pytest.mark.parametrize(
    ("api", "what", "change", "words"), BREACHES, ids=[f"{api}: {what}" for api, what, *_ in BREACHES]
)
def test_each_breach_is_found(api: Any, what: str, change: Callable[[Body], Any], words: str) -> None:
    body = BODIES[api](TALK)
    assert violations(api, body) == []
    found = violations(api, changed(body, change))
    assert any(words in each for each in found), found


def places(body: Any, kind: Callable[[Any], bool]) -> list[tuple[list[Any], int]]:
    """Where in lists, at any depth, an object of a kind is."""
    found: list[tuple[list[Any], int]] = []
    if isinstance(body, list):
        found += (
            (body, place) for place, entry in enumerate(body) if isinstance(entry, dict) and kind(entry)
        )
    for entry in body.values() if isinstance(body, dict) else body if isinstance(body, list) else ():
        found += places(entry, kind)
    return found


RESULTS = {"tool", "tool_result", "function_call_output"}
CALLS = {"tool_use", "function_call", "function"}
ID_KEYS = ("tool_call_id", "tool_use_id", "call_id", "id")


def is_result(entry: Body) -> bool:
    return bool({entry.get("role"), entry.get("type")} & RESULTS)


def is_call(entry: Body) -> bool:
    return entry.get("type") in CALLS and bool({"id", "call_id"} & set(entry))


def lose(entries: list[Any], place: int) -> None:
    del entries[place]


def double(entries: list[Any], place: int) -> None:
    entries.insert(place, dict(entries[place]))


def rename(entries: list[Any], place: int) -> None:
    key = next(key for key in ID_KEYS if key in entries[place])
    entries[place][key] += "x"


@pytest.mark.parametrize("api", BODIES)
@pytest.mark.parametrize("kind", [is_result, is_call])
@pytest.mark.parametrize("change", [lose, double, rename])
@given(data=st.data())
@settings(max_examples=12)
def test_calls_and_results_anywhere_are_matched(
    api: Any, kind: Any, change: Any, data: st.DataObject
) -> None:
    body = BODIES[api](data.draw(conversations()))
    found = places(body.get("messages") or body["input"], kind)
    assume(found)
    if kind is is_call and change is rename and api == "responses":
        found = [
            (entries, place) for entries, place in found if entries[place].pop("id")
        ]  # its own id is another's
    change(*data.draw(st.sampled_from(found)))
    assert violations(api, body) != []


@pytest.mark.parametrize("api", BODIES)
@given(data=st.data())
@settings(max_examples=20)
def test_a_blank_text_anywhere_is_found(api: Any, data: st.DataObject) -> None:
    body = BODIES[api](data.draw(conversations()))
    entries = body.get("messages") or body["input"]
    texts = [
        (entry, "content") for entry in entries if entry.get("content") and isinstance(entry["content"], str)
    ]
    texts += (
        (where[place], "text") for where, place in places(entries, lambda entry: bool(entry.get("text")))
    )
    entry, key = data.draw(st.sampled_from(texts))
    entry[key] = data.draw(st.sampled_from(["", " ", "\n\t"]))
    # An assistant that calls may say nothing, in chat completions.
    assume(not (entry[key] == "" and entry.get("tool_calls")))
    assert violations(api, body) != []


def paths(value: Any, *way: Any) -> Iterator[tuple[Any, ...]]:
    """The ways to everything in a JSON value."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*way, key)
        yield from paths(value[key], *way, key)


@pytest.mark.parametrize("api", BODIES)
def test_nothing_in_a_body_breaks_the_checker(api: Any) -> None:
    """Any value in any place of a request that was good."""
    good = BODIES[api](TALK)
    for way in paths(good):
        for value in (None, True, 5, "x", [], {}, [[]], [{}], {"type": []}, [{"type": []}]):
            found = violations(api, changed(good, put(*way, value)), echo_reasoning=True)
            assert all(isinstance(each, str) for each in found)
    for value in (None, True, 5, "x", [], {}):
        assert violations(api, value) != []


def test_e05_deepseek_wants_the_reasoning_of_every_answer_of_a_turn_with_calls() -> None:
    body = chat(TALK)
    for place in (2, 5, 7):
        silent = changed(body, drop("messages", place, "reasoning_content"))
        assert violations("chat", silent) == []
        assert violations("chat", silent, echo_reasoning=True) == [
            f"messages[{place}]: the reasoning_content must be passed back"
        ]
        assert (
            violations(
                "chat", changed(body, put("messages", place, "reasoning_content", "")), echo_reasoning=True
            )
            == []
        )
    talk = [Message("user", (Text("hi"),)), Message("assistant", (Text("yo"),)), *TALK]
    assert violations("chat", chat(talk), echo_reasoning=True) == []


def test_a_result_that_is_missing_is_said_once() -> None:
    for api, place in (("chat", 4), ("responses", 6)):
        body = changed(BODIES[api](TALK), drop("messages" if api == "chat" else "input", place))
        (found,) = violations(api, body)  # type: ignore[arg-type]  both are families
        assert "call_2 has no result" in found


def test_e07_a_blank_text_or_a_blank_at_the_end_is_found_in_messages() -> None:
    talk = [*TALK, Message("assistant", (Text("abc \n"),))]
    assert any("white space" in each for each in violations("messages", messages(talk)))
    assert violations("messages", messages([*talk, Message("user", (Text("x"),))])) == []


def test_c14_reasoning_without_its_item_or_its_encrypted_content_is_found() -> None:
    stored = changed(
        responses(TALK), lambda body: [body.pop("store"), body["input"][1].pop("encrypted_content")]
    )
    assert violations("responses", stored) == []
    stored["store"] = False
    assert violations("responses", stored) == [
        "input[1] has no encrypted_content, and with store false nothing is kept"
    ]
    stored["input"][1] |= {"content": [{"type": "reasoning_text", "text": "hm"}]}
    del stored["input"][1]["id"]
    assert violations("responses", stored) == []
    cut = changed(responses(TALK), lambda body: body.update(input=body["input"][:2]))
    assert violations("responses", cut) == ["input[1] is reasoning without the item that has to follow it"]


def test_successive_messages_of_one_role_are_one_turn() -> None:
    body = messages(TALK)
    first = body["messages"][2]["content"].pop()
    body["messages"].insert(3, {"role": "user", "content": [first]})
    body["messages"].insert(4, {"role": "user", "content": "and now"})
    assert violations("messages", body) == []


def test_a_model_that_thinks_when_it_likes_may_speak_first() -> None:
    body = messages(TALK)
    body["messages"][3]["content"].insert(0, {"type": "text", "text": "well"})
    body["thinking"] = {"type": "adaptive"}
    assert violations("messages", body) == []
    body["thinking"] = {"type": "enabled", "budget_tokens": 1024}
    assert any(rule.endswith("does not come first") for rule in violations("messages", body))


def test_what_the_provider_itself_ran_is_no_call() -> None:
    body = messages(TALK)
    searched = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        {"type": "thinking", "thinking": "aha", "signature": "EqQB"},
    ]
    body["messages"][3]["content"][1:1] = searched
    body["tools"].append({"type": "web_search_20250305", "name": "web_search"})
    assert violations("messages", body) == []
    body = responses(TALK)
    body["input"].insert(2, {"type": "web_search_call", "id": "ws_1", "status": "completed"})
    body["tools"].append({"type": "web_search"})
    assert violations("responses", body) == []
