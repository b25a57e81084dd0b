"""The Messages family as a provider speaks it.

Wire shapes: https://docs.anthropic.com/en/api/messages and https://docs.anthropic.com/en/api/messages-streaming
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mini_agent.core.answers import Answer, CallPiece, Piece, ReasoningPiece, TextPiece
from mini_agent.core.messages import (
    AnyBlock,
    Message,
    Reasoning,
    Request,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from mini_agent.lab import reading
from mini_agent.lab.parts import Reply, event_stream, json_reply, sse
from mini_agent.lab.playing import PLAINLY, Ask, Step, blocks, steps
from mini_agent.lab.seals import sign

_STOP_REASONS: dict[StopReason, str] = {
    "pause": "pause_turn",
    "context_overflow": "model_context_window_exceeded",
}


def messages_stream(answer: Answer, ask: Ask = PLAINLY) -> Reply:
    """`answer` as a Messages stream: each piece a delta in its block, then stop_reason and usage, then `message_stop`."""
    start = {**_envelope(answer, ask), "content": [], "usage": _usage(answer.usage, so_far=True)}
    events = [_event("message_start", message=start), _event("ping")]
    for step in steps(answer):
        events += _block_events(step)
    if "finish" not in ask.without:
        delta = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
        events.append(_event("message_delta", delta=delta, usage=_usage(answer.usage)))
    if "end" not in ask.without:
        events.append(_event("message_stop"))
    return event_stream(*events)


def messages_json(answer: Answer, ask: Ask = PLAINLY) -> Reply:
    """`answer` as one message, as it comes where streaming is off."""
    whole = {
        **_envelope(answer, ask),
        "content": [_block(piece) for piece in blocks(answer)],
        "usage": _usage(answer.usage),
    }
    if "finish" not in ask.without:
        whole["stop_reason"] = _stop_reason(answer)
    return json_reply(whole)


def messages_failure(kind: str, message: str) -> dict[str, Any]:
    """An error object of this family."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def messages_request(body: Mapping[str, Any]) -> Request:
    """The core request in a body, as far as a script looks at it. What it does not know is left out."""
    messages: list[Message] = []
    for entry in reading.mappings(body.get("messages")):
        content = entry.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else reading.mappings(content)
        if entry.get("role") == "assistant":
            messages.append(Message("assistant", tuple(_assistant_blocks(parts))))
            continue
        for part in parts:
            if part.get("type") == "tool_result":
                call_id = reading.string(part.get("tool_use_id"))
                failed = part.get("is_error") is True
                reading.add_result(messages, ToolResult(reading.text(part.get("content")), failed, call_id))
        if said := reading.text(parts):
            messages.append(Message("user", (Text(said),)))
    return Request(
        tuple(messages),
        system=reading.text(body.get("system")),
        tools=tuple(reading.tool(tool.get("name")) for tool in reading.mappings(body.get("tools"))),
        model=reading.string(body.get("model")),
        max_tokens=reading.count(body.get("max_tokens")),
        stream=body.get("stream") is True,
    )


def thinks(body: Mapping[str, Any]) -> bool:
    """Whether every answer to this request begins with thinking (extended thinking with a budget)."""
    return reading.mapping(body.get("thinking")).get("type") == "enabled"


def _assistant_blocks(parts: list[dict[str, Any]]) -> Iterator[AnyBlock]:
    for part in parts:
        match part.get("type"):
            case "text":
                yield Text(reading.string(part.get("text")))
            case "thinking":
                text, signature = (reading.string(part.get(key)) for key in ("thinking", "signature"))
                yield Reasoning(text, field="thinking", signature=signature or None)
            case "redacted_thinking":
                yield Reasoning(field="redacted_thinking", encrypted=reading.string(part.get("data")))
            case "tool_use":
                call_id, name = (reading.string(part.get(key)) for key in ("id", "name"))
                yield ToolCall(call_id, name, reading.mapping(part.get("input")))
            case _:
                pass


def _block_events(step: Step) -> Iterator[bytes]:
    """The events of one piece: its delta, and the begin and end of its block where it is the first or the last."""
    place = step.place
    opened, delta = _begin_and_delta(step.piece)
    if step.opens:
        yield _event("content_block_start", index=place, content_block=opened)
    yield _event("content_block_delta", index=place, delta=delta)
    if step.closes:
        if isinstance(step.whole, ReasoningPiece):
            seal = {"type": "signature_delta", "signature": sign(step.whole.text)}
            yield _event("content_block_delta", index=place, delta=seal)
        yield _event("content_block_stop", index=place)


def _begin_and_delta(piece: Piece) -> tuple[dict[str, Any], dict[str, Any]]:
    match piece:
        case ReasoningPiece(text):
            begin = {"type": "thinking", "thinking": "", "signature": ""}
            return begin, {"type": "thinking_delta", "thinking": text}
        case TextPiece(text):
            return {"type": "text", "text": ""}, {"type": "text_delta", "text": text}
        case CallPiece():
            begin_call = {"type": "tool_use", "id": piece.id, "name": piece.name, "input": {}}
            return begin_call, {"type": "input_json_delta", "partial_json": piece.arguments}


def _block(piece: Piece) -> dict[str, Any]:
    match piece:
        case ReasoningPiece(text):
            return {"type": "thinking", "thinking": text, "signature": sign(text)}
        case TextPiece(text):
            return {"type": "text", "text": text}
        case CallPiece():
            arguments = reading.arguments(piece.arguments)
            return {"type": "tool_use", "id": piece.id, "name": piece.name, "input": arguments}


def _stop_reason(answer: Answer) -> str:
    return _STOP_REASONS.get(answer.stop_reason, answer.stop_reason)


def _event(name: str, **fields: Any) -> bytes:
    return sse({"type": name, **fields}, name)


def _envelope(answer: Answer, ask: Ask) -> dict[str, Any]:
    return {
        "id": f"msg_lab_{ask.tag}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "stop_reason": None,
        "stop_sequence": None,
    }


def _usage(usage: Usage, *, so_far: bool = False) -> dict[str, int]:
    """What is known. This family counts the cached input apart from the rest. so_far: before anything was written."""
    told: dict[str, int] = {}
    cached, written = usage.cached_tokens, usage.cache_write_tokens
    if usage.input_tokens is not None:
        told["input_tokens"] = usage.input_tokens - (cached or 0) - (written or 0)
    if cached is not None:
        told["cache_read_input_tokens"] = cached
    if written is not None:
        told["cache_creation_input_tokens"] = written
    if usage.output_tokens is not None:
        told["output_tokens"] = min(1, usage.output_tokens) if so_far else usage.output_tokens
    return told
