"""What the lab server can answer: exact bytes and the faults between them, and builders for chat-completions bodies.

Wire shapes: https://api-docs.deepseek.com/api/create-chat-completion and OpenAI's chat-completions reference.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mini_agent.core.answers import Answer, CallPiece, ReasoningPiece, TextPiece
from mini_agent.core.messages import StopReason, Usage

Framing = Literal["chunked", "length", "close", "raw"]
"""How the end of a body is told: chunked transfer encoding, a content-length, or the closed connection (RFC 9112, 6.3).

Raw: nothing is added, not even a status line; the parts are all there is, and the connection closes after them.
"""


@dataclass(frozen=True, slots=True)
class Pause:
    """Silence for that many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection ends here. reset: with RST, where the client may lose what it had not read; else with FIN."""

    reset: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """Silence until the client goes away."""


Part = bytes | Pause | Cut | Hold


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer as it goes over the socket.

    body: each `bytes` is one write, and one HTTP chunk where the framing is chunked. TCP may still join or split what it
    carries; a `Pause` between two writes keeps them apart. headers: given ones replace the framing's own, so that a
    content-length can lie. With raw framing status and headers are not sent.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Sequence[Part] = ()
    framing: Framing = "chunked"


def error(
    status: int, body: str | bytes | Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Reply:
    """An error reply. body: a message, put into OpenAI's error object; any other JSON object; or bytes as they are."""
    if isinstance(body, str):
        body = {"error": {"message": body, "type": None, "code": None}}
    if not isinstance(body, bytes):
        headers = {"content-type": "application/json", **(headers or {})}
        body = _json(body)
    return Reply(status, headers or {}, (body,), "length")


def event_stream(*parts: Part, framing: Framing = "chunked") -> Reply:
    """A 200 whose body is server-sent events, given as bytes and faults."""
    return Reply(200, {"content-type": "text/event-stream"}, parts, framing)


def chat_stream(answer: Answer) -> Reply:
    """`answer` as a stream of chat completions: one event a piece, then finish_reason and usage, then `[DONE]`."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    begun: set[int] = set()
    for piece in answer.pieces:
        match piece:
            case ReasoningPiece(text):
                deltas.append({"reasoning_content": text})
            case TextPiece(text):
                deltas.append({"content": text})
            case CallPiece(index):
                deltas.append({"tool_calls": [{"index": index, **_call(piece, opening=index not in begun)}]})
                begun.add(index)
    chunks = [_chunk(answer, delta, None) for delta in deltas]
    chunks.append(_chunk(answer, {}, _FINISH_REASONS.get(answer.stop_reason, answer.stop_reason)))
    return event_stream(*(b"data: " + _json(chunk) + b"\n\n" for chunk in chunks), b"data: [DONE]\n\n")


def chat_json(answer: Answer) -> Reply:
    """`answer` as one chat-completions object, as it comes where streaming is off."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [_call(call, opening=True) for call in answer.calls]
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": _FINISH_REASONS.get(answer.stop_reason, answer.stop_reason),
    }
    body = {**_envelope(answer, "chat.completion"), "choices": [choice], **_usage(answer.usage)}
    return Reply(200, {"content-type": "application/json"}, (_json(body),), "length")


_FINISH_REASONS: dict[StopReason, str] = {
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
}


def _chunk(answer: Answer, delta: dict[str, Any], finish_reason: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    usage = _usage(answer.usage) if finish_reason else {}
    return {**_envelope(answer, "chat.completion.chunk"), "choices": [choice], **usage}


def _envelope(answer: Answer, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-lab", "object": kind, "created": 0, "model": answer.model}


def _call(piece: CallPiece, *, opening: bool) -> dict[str, Any]:
    if not opening:
        return {"function": {"arguments": piece.arguments}}
    return {
        "id": piece.id,
        "type": "function",
        "function": {"name": piece.name, "arguments": piece.arguments},
    }


def _usage(usage: Usage) -> dict[str, Any]:
    """The usage field, with what is known; nothing where nothing is."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return {}
    told: dict[str, Any] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    if usage.cached_tokens is not None:
        told["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    if usage.reasoning_tokens is not None:
        told["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return {"usage": told}


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
