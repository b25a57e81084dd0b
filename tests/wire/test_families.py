"""One conversation in each of the three families: the same to everything above the wire, and each sent back as it wants."""

import json
from typing import Any, NamedTuple

import msgspec
import pytest
from chat_player import DONE, delta
from chat_player import call as chat_call
from chat_player import calls as chat_calls
from chat_player import sse as event

from mini_agent.core.history import Conversation
from mini_agent.core.messages import (
    AnyBlock,
    Message,
    Reasoning,
    Request,
    Response,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from mini_agent.core.profile import APIS, Api, Profile
from mini_agent.lab.replies import Reply, event_stream
from mini_agent.lab.server import LabServer
from mini_agent.models.base import complete
from mini_agent.models.http import HttpModel
from mini_agent.wire.transport import Transport

PATHS: dict[Api, str] = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}


class Served(NamedTuple):
    """An answer of one family: as events, and as one document."""

    events: list[bytes]
    document: dict[str, Any]

    def reply(self, *, stream: bool) -> Reply:
        if stream:
            return event_stream(*self.events)
        return Reply(
            200, {"content-type": "application/json"}, (json.dumps(self.document).encode(),), "length"
        )


def chat(number: int, thought: str, text: str, *, calls: bool) -> Served:
    usage = {
        "prompt_tokens": 12,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    head = {"id": f"r{number}", "model": "m"}
    entry = chat_call(0, "c1", "ls", '{"d":"."}', type="function")
    finish = "tool_calls" if calls else "stop"
    message = {
        "content": text or None,
        "reasoning_content": thought,
        **({"tool_calls": [entry]} if calls else {}),
    }
    events = [
        event({**head, "choices": []}),
        delta(reasoning_content=thought[:2]),
        delta(reasoning_content=thought[2:]),
        *([delta(text[:3]), delta(text[3:])] if text else []),
        *(
            [chat_calls(chat_call(0, "c1", "ls", "")), chat_calls(chat_call(0, arguments='{"d":"."}'))]
            if calls
            else []
        ),
        delta(finish=finish),
        event({"choices": [], "usage": usage}),
        DONE,
    ]
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return Served(events, {**head, "object": "chat.completion", "choices": [choice], "usage": usage})


def responses(number: int, thought: str, text: str, *, calls: bool) -> Served:
    def happened(kind: str, **fields: Any) -> bytes:
        return event({"type": f"response.{kind}", **fields}, f"response.{kind}")

    summary = [{"type": "summary_text", "text": thought}]
    first = {"type": "reasoning", "id": f"rs{number}", "summary": summary, "encrypted_content": f"E{number}"}
    item: dict[str, Any]
    if calls:
        item = {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "ls", "arguments": '{"d":"."}'}
        pieces = [
            happened("output_item.added", output_index=1, item={**item, "arguments": ""}),
            happened("function_call_arguments.delta", item_id="fc1", output_index=1, delta='{"d"'),
            happened("function_call_arguments.delta", item_id="fc1", output_index=1, delta=':"."}'),
            happened("function_call_arguments.done", item_id="fc1", output_index=1, arguments='{"d":"."}'),
        ]
    else:
        item = {"type": "message", "id": "i1", "content": [{"type": "output_text", "text": text}]}
        pieces = [
            happened("output_item.added", output_index=1, item={**item, "content": []}),
            happened("output_text.delta", item_id="i1", output_index=1, content_index=0, delta=text[:3]),
            happened("output_text.delta", item_id="i1", output_index=1, content_index=0, delta=text[3:]),
            happened("output_text.done", item_id="i1", output_index=1, content_index=0, text=text),
        ]
    whole = {
        "id": f"r{number}",
        "object": "response",
        "model": "m",
        "status": "completed",
        "error": None,
        "output": [first, item],
        "usage": {
            "input_tokens": 12,
            "input_tokens_details": {"cached_tokens": 4},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 3},
        },
    }
    events = [
        happened("created", response={**whole, "status": "in_progress", "output": [], "usage": None}),
        happened(
            "output_item.added",
            output_index=0,
            item={"type": "reasoning", "id": f"rs{number}", "summary": []},
        ),
        happened(
            "reasoning_summary_text.delta",
            item_id=f"rs{number}",
            output_index=0,
            summary_index=0,
            delta=thought,
        ),
        happened("output_item.done", output_index=0, item=first),
        *pieces,
        happened("output_item.done", output_index=1, item=item),
        happened("completed", response=whole),
    ]
    return Served(events, whole)


def messages(number: int, thought: str, text: str, *, calls: bool) -> Served:
    def happened(kind: str, **fields: Any) -> bytes:
        return event({"type": kind, **fields}, kind)

    def piece(index: int, kind: str, **fields: Any) -> bytes:
        return happened("content_block_delta", index=index, delta={"type": kind, **fields})

    head = {"id": f"r{number}", "type": "message", "role": "assistant", "model": "m"}
    read = {"input_tokens": 8, "cache_read_input_tokens": 4}
    written = {"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 3}}
    reason = "tool_use" if calls else "end_turn"
    first = {"type": "thinking", "thinking": thought, "signature": f"S{number}"}
    if calls:
        block = {"type": "tool_use", "id": "c1", "name": "ls", "input": {"d": "."}}
        start = {**block, "input": {}}
        pieces = [piece(1, "input_json_delta", partial_json=part) for part in ("", '{"d"', ':"."}')]
    else:
        block = {"type": "text", "text": text}
        start = {**block, "text": ""}
        pieces = [piece(1, "text_delta", text=part) for part in (text[:3], text[3:])]
    events = [
        happened("message_start", message={**head, "content": [], "usage": {**read, "output_tokens": 1}}),
        happened("content_block_start", index=0, content_block={**first, "thinking": "", "signature": ""}),
        happened("ping"),
        piece(0, "thinking_delta", thinking=thought),
        piece(0, "signature_delta", signature=f"S{number}"),
        happened("content_block_stop", index=0),
        happened("content_block_start", index=1, content_block=start),
        *pieces,
        happened("content_block_stop", index=1),
        happened("message_delta", delta={"stop_reason": reason}, usage=written),
        happened("message_stop"),
    ]
    return Served(
        events, {**head, "content": [first, block], "stop_reason": reason, "usage": {**read, **written}}
    )


SERVE = {"chat": chat, "responses": responses, "messages": messages}


class Held(NamedTuple):
    """A conversation as it was held: its answers, its history, and the bodies of its requests."""

    answers: list[Response]
    history: tuple[Message, ...]
    bodies: list[Any]


async def hold(api: Api, *, stream: bool) -> Held:
    """The user asks, the model thinks and calls, gets the result, thinks and answers; the user goes on."""
    serve = SERVE[api]
    script = [
        serve(1, "I look.", "", calls=True).reply(stream=stream),
        serve(2, "One file.", "There is one file.", calls=False).reply(stream=stream),
        serve(3, "Thanked.", "Gladly.", calls=False).reply(stream=stream),
    ]
    conversation = Conversation()
    answers: list[Response] = []

    async def ask(model: HttpModel) -> None:
        request = Request(conversation.sendable(), system="Be short.", model="m", stream=stream)
        answers.append(await complete(model, request))
        conversation.add_response(answers[-1])

    async with LabServer(script) as lab:
        profile = Profile(api=api, base_url=lab.base_url, echo_reasoning="with_tool_calls")
        model = HttpModel(profile, "", Transport(connect_s=10), user_agent="test")
        conversation.add_user("what is here?")
        await ask(model)
        conversation.add_result(ToolResult("a.py", call_id="c1"))
        await ask(model)
        conversation.add_user("thanks")
        await ask(model)
        await model.aclose()
        assert [request.path for request in lab.requests] == [f"/v1{PATHS[api]}"] * 3
        return Held(answers, conversation.messages, [request.json for request in lab.requests])


def bare(blocks: tuple[AnyBlock, ...]) -> tuple[AnyBlock, ...]:
    """Blocks without what one family alone puts on its reasoning."""
    return tuple(Reasoning(block.text) if isinstance(block, Reasoning) else block for block in blocks)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("api", APIS)
async def test_every_family_gives_the_same_answers_and_the_same_history(api: Api, stream: bool) -> None:
    held = await hold(api, stream=stream)
    usage = Usage(input_tokens=12, output_tokens=7, cached_tokens=4, reasoning_tokens=3)
    answers = [
        msgspec.structs.replace(one, blocks=bare(one.blocks), raw_stop_reason=None) for one in held.answers
    ]
    assert answers == [
        Response(
            (Reasoning("I look."), ToolCall("c1", "ls", {"d": "."})),
            stop_reason="tool_use",
            usage=usage,
            id="r1",
            model="m",
        ),
        Response((Reasoning("One file."), Text("There is one file.")), usage=usage, id="r2", model="m"),
        Response((Reasoning("Thanked."), Text("Gladly.")), usage=usage, id="r3", model="m"),
    ]
    assert [Message(message.role, bare(message.blocks)) for message in held.history] == [
        Message("user", (Text("what is here?"),)),
        Message("assistant", (Reasoning("I look."), ToolCall("c1", "ls", {"d": "."}))),
        Message("tool", (ToolResult("a.py", call_id="c1"),)),
        Message("assistant", (Reasoning("One file."), Text("There is one file."))),
        Message("user", (Text("thanks"),)),
        Message("assistant", (Reasoning("Thanked."), Text("Gladly."))),
    ]


@pytest.mark.parametrize("api", APIS)
async def test_streamed_and_whole_are_the_same_even_in_their_seals(api: Api) -> None:
    streamed, whole = await hold(api, stream=True), await hold(api, stream=False)
    assert streamed.answers == whole.answers
    assert streamed.history == whole.history


def sealed(number: int, thought: str) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": thought}]
    return {"type": "reasoning", "id": f"rs{number}", "summary": summary, "encrypted_content": f"E{number}"}


def said(role: str, kind: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


SENT_BACK: dict[Api, list[dict[str, Any]]] = {
    "chat": [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "what is here?"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "I look.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"d":"."}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
        {"role": "assistant", "content": "There is one file.", "reasoning_content": "One file."},
        {"role": "user", "content": "thanks"},
    ],
    "responses": [
        said("user", "input_text", "what is here?"),
        sealed(1, "I look."),
        {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": '{"d":"."}'},
        {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
        sealed(2, "One file."),
        said("assistant", "output_text", "There is one file."),
        said("user", "input_text", "thanks"),
    ],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "what is here?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I look.", "signature": "S1"},
                {"type": "tool_use", "id": "c1", "name": "ls", "input": {"d": "."}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.py"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "One file.", "signature": "S2"},
                {"type": "text", "text": "There is one file."},
            ],
        },
        {"role": "user", "content": [{"type": "text", "text": "thanks"}]},
    ],
}


@pytest.mark.parametrize("api", APIS)
async def test_the_next_request_carries_back_what_the_family_wants(api: Api) -> None:
    body = (await hold(api, stream=True)).bodies[-1]
    assert body["input" if api == "responses" else "messages"] == SENT_BACK[api]
    assert body.get("system") == ("Be short." if api == "messages" else None)
    assert body.get("instructions") == ("Be short." if api == "responses" else None)
