"""The Responses family as a provider speaks it.

Wire shapes: https://platform.openai.com/docs/api-reference/responses and .../responses-streaming
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mini_agent.core.answers import Answer, CallPiece, Piece, ReasoningPiece, TextPiece
from mini_agent.core.messages import (
    AnyBlock,
    Message,
    Reasoning,
    Request,
    StopReason,
    Text,
    ToolCall,
    Usage,
)
from mini_agent.lab import reading
from mini_agent.lab.parts import Reply, event_stream, json_reply, sse
from mini_agent.lab.playing import PLAINLY, Ask, Step, blocks, steps
from mini_agent.lab.seals import disclose, enclose

_INCOMPLETE: dict[StopReason, str] = {
    "max_tokens": "max_output_tokens",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}


class _Kind(NamedTuple):
    """How one kind of item streams.

    delta, key: the name of its deltas, and of the field with the whole of them. inner: where in the item they belong.
    container: the name of the part of the item that holds them, if there is one, and what it is at first.
    """

    prefix: str
    delta: str
    key: str
    inner: dict[str, int]
    container: str
    part: dict[str, Any]


_KINDS: dict[type[Piece], _Kind] = {
    ReasoningPiece: _Kind(
        "rs",
        "reasoning_summary_text",
        "text",
        {"summary_index": 0},
        "reasoning_summary_part",
        {"type": "summary_text", "text": ""},
    ),
    TextPiece: _Kind(
        "msg",
        "output_text",
        "text",
        {"content_index": 0},
        "content_part",
        {"type": "output_text", "text": "", "annotations": []},
    ),
    CallPiece: _Kind("fc", "function_call_arguments", "arguments", {}, "", {}),
}

_NOT_YET: dict[str, Any] = {
    "summary": [],
    "content": [],
    "arguments": "",
    "encrypted_content": None,
    "status": "in_progress",
}
"""What an item's fields are when it has only begun."""


def responses_stream(answer: Answer, ask: Ask = PLAINLY) -> Reply:
    """`answer` as a Responses stream: each piece a delta of its item, then the terminal event.

    The terminal event is why it finished and the end mark in one: the stream can only be played without both.
    """
    begun = {**_envelope(answer, ask), "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for step in steps(answer):
        events += _step_events(step, answer, ask)
    if not ask.without:
        whole = _whole(answer, ask)
        events.append({"type": f"response.{whole['status']}", "response": whole})
    numbered = ({**event, "sequence_number": number} for number, event in enumerate(events))
    return event_stream(*(sse(event, event["type"]) for event in numbered))


def responses_json(answer: Answer, ask: Ask = PLAINLY) -> Reply:
    """`answer` as one response object, as it comes where streaming is off."""
    whole = _whole(answer, ask)
    if "finish" in ask.without:
        whole.update(status="in_progress", incomplete_details=None)
    return json_reply(whole)


def responses_request(body: Mapping[str, Any]) -> Request:
    """The core request in a body, as far as a script looks at it. What it does not know is left out."""
    system = [reading.string(body.get("instructions"))]
    messages: list[Message] = []
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else reading.mappings(given)
    for item in items:
        content = reading.text(item.get("content"))
        match item.get("type", "message"), item.get("role"):
            case "message", "system" | "developer":
                system.append(content)
            case "message", "user":
                messages.append(Message("user", (Text(content),)))
            case "message", "assistant":
                _add(messages, Text(content))
            case "reasoning", _:
                _add(messages, _reasoning(item))
            case "function_call", _:
                call_id, name = (reading.string(item.get(key)) for key in ("call_id", "name"))
                _add(messages, ToolCall(call_id, name, reading.arguments(item.get("arguments"))))
            case "function_call_output", _:
                output = reading.text(item.get("output"))
                reading.add_result(messages, reading.told(output, reading.string(item.get("call_id"))))
            case _:
                pass
    return Request(
        tuple(messages),
        system="\n\n".join(filter(None, system)),
        tools=tuple(reading.tool(tool.get("name")) for tool in reading.mappings(body.get("tools"))),
        model=reading.string(body.get("model")),
        max_tokens=reading.count(body.get("max_output_tokens")),
        stream=body.get("stream") is True,
    )


def wants_encrypted(body: Mapping[str, Any]) -> bool:
    """Whether reasoning is to come as an encrypted item as well, for a client that has nothing stored."""
    include = body.get("include")
    return isinstance(include, list) and "reasoning.encrypted_content" in include


def _add(messages: list[Message], block: AnyBlock) -> None:
    """Adds to the assistant's message: its items follow each other without a bracket around them."""
    earlier = messages.pop().blocks if messages and messages[-1].role == "assistant" else ()
    messages.append(Message("assistant", (*earlier, block)))


def _reasoning(item: Mapping[str, Any]) -> Reasoning:
    encrypted = reading.string(item.get("encrypted_content"))
    summary = reading.text(item.get("summary")) or reading.text(item.get("content"))
    with contextlib.suppress(ValueError):  # that it was altered is what the rules say
        summary = summary or disclose(encrypted) or ""
    item_id = reading.string(item.get("id")) or None
    return Reasoning(summary, field="reasoning_item", encrypted=encrypted or None, id=item_id)


def _step_events(step: Step, answer: Answer, ask: Ask) -> Iterator[dict[str, Any]]:
    """The events of one piece: its delta, and what opens and closes its item where it is the first or the last."""
    kind = _KINDS[type(step.piece)]
    where = {"item_id": _item_id(step.piece, step.place, ask), "output_index": step.place, **kind.inner}
    if step.opens:
        item = _item(step.whole, step.place, answer, ask)
        begun = {name: _NOT_YET.get(name, value) for name, value in item.items()}
        yield {"type": "response.output_item.added", "output_index": step.place, "item": begun}
        if kind.container:
            yield {"type": f"response.{kind.container}.added", **where, "part": kind.part}
    yield {"type": f"response.{kind.delta}.delta", **where, "delta": _said(step.piece)}
    if step.closes:
        said = _said(step.whole)
        yield {"type": f"response.{kind.delta}.done", **where, kind.key: said}
        if kind.container:
            yield {"type": f"response.{kind.container}.done", **where, "part": {**kind.part, "text": said}}
        item = _item(step.whole, step.place, answer, ask)
        yield {"type": "response.output_item.done", "output_index": step.place, "item": item}


def _said(piece: Piece) -> str:
    return piece.arguments if isinstance(piece, CallPiece) else piece.text


def _item_id(piece: Piece, place: int, ask: Ask) -> str:
    """An id that comes only once: a client may send the item back beside those of other answers."""
    return f"{_KINDS[type(piece)].prefix}_lab_{ask.tag}_{place}"


def _item(piece: Piece, place: int, answer: Answer, ask: Ask) -> dict[str, Any]:
    """One complete output item."""
    cut_off = answer.stop_reason == "max_tokens" and piece == blocks(answer)[-1]
    status = {"status": "incomplete" if cut_off else "completed"}
    item: dict[str, Any]
    match piece:
        case ReasoningPiece(text):
            item = {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}
            if ask.encrypted:
                item["encrypted_content"] = enclose(text)
        case TextPiece(text):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            item = {"type": "message", "role": "assistant", "content": content, **status}
        case CallPiece(_, call_id, name, arguments):
            item = {
                "type": "function_call",
                "call_id": call_id,
                "name": name,
                "arguments": arguments,
                **status,
            }
    return {"id": _item_id(piece, place, ask), **item}


def _whole(answer: Answer, ask: Ask) -> dict[str, Any]:
    reason = _INCOMPLETE.get(answer.stop_reason)
    return {
        **_envelope(answer, ask),
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": [_item(piece, place, answer, ask) for place, piece in enumerate(blocks(answer))],
        "usage": _usage(answer.usage),
    }


def _envelope(answer: Answer, ask: Ask) -> dict[str, Any]:
    return {
        "id": f"resp_lab_{ask.tag}",
        "object": "response",
        "created_at": 0,
        "model": answer.model,
        "error": None,
        "incomplete_details": None,
    }


def _usage(usage: Usage) -> dict[str, Any] | None:
    """The usage field, with what is known; None where nothing is."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
