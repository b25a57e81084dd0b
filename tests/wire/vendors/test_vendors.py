"""Each vendor's own stream through the decoder of its family, and what its next request carries and leaves out."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from vendor_shapes import CHAT, DEEPSEEK, MISTRAL, MOONSHOT, Shape
from vendor_shapes_other import OTHERS

from mini_agent.core.messages import Message, Request, Response, Text, ToolCall, ToolResult, ToolSpec, Usage
from mini_agent.core.profile import Effort, Profile
from mini_agent.wire.adapters import adapter
from mini_agent.wire.assembly import Origin
from mini_agent.wire.framing import BodyDecoder
from mini_agent.wire.profiles import shipped, speaking

PROFILES = shipped()
READ = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
UNSHAPED = {"model", "messages", "tools", "stream"}


def label(shape: Shape) -> str:
    return f"{shape.vendor} {shape.api}"


def of(shape: Shape) -> Profile:
    return speaking(PROFILES[shape.vendor], shape.api)


def answer(profile: Profile, chunks: Iterable[bytes]) -> Response:
    body, decoder = BodyDecoder(), adapter(profile.api).decoder(profile, Origin("r", 1, 0.0))
    n = 0
    for chunk in (*chunks, None):
        for event in body.close() if chunk is None else body.feed(chunk):
            n += 1
            decoder.decode(event, n, 0.0, at_end=chunk is None)
    return decoder.close()


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def next_body(profile: Profile, response: Response, effort: Effort | None = "high") -> dict[str, Any]:
    """The request that brings the results of the answer's calls."""
    results = tuple(ToolResult("text of a", call_id=call.id) for call in response.tool_calls)
    messages = (user("read a"), response.message, Message("tool", results))
    request = Request(messages, system="Be short.", tools=(READ,), model="m", max_tokens=100, effort=effort)
    return adapter(profile.api).encode(request, profile, frozenset())


@pytest.mark.parametrize("shape", [*CHAT, *OTHERS], ids=label)
def test_its_own_stream_becomes_the_answer(shape: Shape) -> None:
    profile = of(shape)
    response = answer(profile, [shape.stream])
    assert response == answer(profile, (shape.stream[i : i + 1] for i in range(len(shape.stream))))
    assert response.reasoning == shape.reasoning
    assert response.text == shape.text
    assert [(call.id, call.name, call.arguments, call.invalid) for call in response.tool_calls] == [
        (call_id, "read_file", {"path": "a"}, None) for call_id in shape.ids
    ]
    assert (response.stop_reason, response.raw_stop_reason) == ("tool_use", shape.raw)
    assert response.usage == Usage(**shape.usage)


@pytest.mark.parametrize("shape", CHAT, ids=label)
def test_its_next_request_is_as_it_wants_it(shape: Shape) -> None:
    profile = of(shape)
    response = answer(profile, [shape.stream])
    body = next_body(profile, response)
    assert {name: value for name, value in body.items() if name not in UNSHAPED} == shape.sent
    assert shape.off.items() <= next_body(profile, response, "off").items()
    system, _, assistant, *results = body["messages"]
    assert system["role"] == "system"
    calls = assistant.pop("tool_calls")
    assert assistant == {"role": "assistant", "content": shape.text, **shape.back}
    assert [call["id"] for call in calls] == [result["tool_call_id"] for result in results] == [*shape.ids]
    assert {name: calls[0][name] for name in calls[0].keys() - {"id", "type", "function"}} == shape.call


@pytest.mark.parametrize("shape", OTHERS, ids=label)
def test_its_next_request_in_another_family_is_as_it_wants_it(shape: Shape) -> None:
    profile = of(shape)
    response = answer(profile, [shape.stream])
    body = next_body(profile, response)
    assert shape.sent.items() <= body.items()
    assert shape.off.items() <= next_body(profile, response, "off").items()
    if shape.api == "responses":
        thought, said, call, result = body["input"][1:]
        assert (said["type"], call["type"], result["type"]) == (
            "message",
            "function_call",
            "function_call_output",
        )
        assert (call["call_id"], result["call_id"]) == (shape.ids[0], shape.ids[0])
    else:
        _, assistant, results = body["messages"]
        thought, said, call = assistant["content"]
        assert (said["type"], call["type"]) == ("text", "tool_use")
        assert (call["id"], results["content"][0]["tool_use_id"]) == (shape.ids[0], shape.ids[0])
    assert thought == shape.back


def test_every_vendor_has_its_stream_in_the_family_it_is_spoken_to_in() -> None:
    shapes = {(shape.vendor, shape.api) for shape in (*CHAT, *OTHERS)}
    assert {(name, profile.api) for name, profile in PROFILES.items()} <= shapes


FOREIGN = Message(
    "assistant",
    (ToolCall("toolu_01A-b", "read_file", {"path": "a"}, extra={"extra_content": {"x": 1}}),),
)
HISTORY = (user("a"), FOREIGN, Message("tool", (ToolResult("text", call_id="toolu_01A-b"),)), user("b"))


def taken_over(shape: Shape) -> list[dict[str, Any]]:
    """The messages of a request whose history another vendor's model has begun."""
    profile = of(shape)
    messages = adapter(profile.api).encode(Request(HISTORY, model="m"), profile, frozenset())["messages"]
    assert isinstance(messages, list)
    return messages


def test_mistral_gets_short_ids_an_answer_after_results_and_nobody_elses_keys() -> None:
    messages = taken_over(MISTRAL)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "user"]
    (call,) = messages[1]["tool_calls"]
    assert set(call) == {"id", "type", "function"}
    assert len(call["id"]) == 9
    assert call["id"].isalnum()
    assert messages[2]["tool_call_id"] == call["id"]
    assert messages[3]["content"]


def test_e05_a_history_without_reasoning_is_taken_by_those_who_want_it() -> None:
    assert taken_over(DEEPSEEK)[1]["reasoning_content"] == ""
    assert taken_over(MOONSHOT)[1]["reasoning_content"].isspace()
    assert taken_over(DEEPSEEK)[1]["tool_calls"][0]["extra_content"] == {"x": 1}


def test_openai_in_chat_completions_wants_its_own_names() -> None:
    profile = speaking(PROFILES["openai"], "chat")
    body = next_body(profile, Response((FOREIGN.blocks[0],)))
    assert body["max_completion_tokens"] == 100
    assert "max_tokens" not in body
    assert "reasoning" not in body
    assert body["reasoning_effort"] == "high"
    assert body["messages"][0]["role"] == "developer"
    assert set(body["messages"][2]["tool_calls"][0]) == {"id", "type", "function"}
    assert "reasoning_effort" not in next_body(profile, Response((FOREIGN.blocks[0],)), None)


def test_every_level_of_every_vendor_in_every_family_makes_a_body() -> None:
    levels: tuple[Effort | None, ...] = (None, "off", "low", "medium", "high")
    for profile in PROFILES.values():
        for api in (profile.api, *profile.families):
            spoken = speaking(profile, api)
            bodies = [next_body(spoken, Response((Text("hi"),)), level) for level in levels]
            assert all(msgspec.json.encode(body) for body in bodies)
            assert "base_url" not in bodies[0]
