"""The chat-completions family as a provider speaks it.

Wire shapes: https://api-docs.deepseek.com/api/create-chat-completion and OpenAI's chat-completions reference.
"""

from collections.abc import Mapping
from typing import Any

from mini_agent.core.answers import Answer, CallPiece, ReasoningPiece, TextPiece
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
from mini_agent.lab.playing import PLAINLY, Ask

DONE = b"data: [DONE]\n\n"

_FINISH_REASONS: dict[StopReason, str] = {
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
}


def chat_stream(answer: Answer, ask: Ask = PLAINLY) -> Reply:
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
    chunks = [_chunk(answer, ask, delta, None) for delta in deltas]
    if "finish" not in ask.without:
        chunks.append(_chunk(answer, ask, {}, _finish_reason(answer)))
    end = () if "end" in ask.without else (DONE,)
    return event_stream(*map(sse, chunks), *end)


def chat_json(answer: Answer, ask: Ask = PLAINLY) -> Reply:
    """`answer` as one chat-completions object, as it comes where streaming is off."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [_call(call, opening=True) for call in answer.calls]
    finish_reason = None if "finish" in ask.without else _finish_reason(answer)
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    envelope = _envelope(answer, ask, "chat.completion")
    return json_reply({**envelope, "choices": [choice], **_usage(answer.usage)})


def chat_failure(kind: str, message: str) -> dict[str, Any]:
    """An error object of this family, which is also that of Responses."""
    return {"error": {"message": message, "type": kind, "param": None, "code": kind}}


def chat_request(body: Mapping[str, Any]) -> Request:
    """The core request in a body, as far as a script looks at it. What it does not know is left out."""
    system: list[str] = []
    messages: list[Message] = []
    for entry in reading.mappings(body.get("messages")):
        content = reading.text(entry.get("content"))
        match entry.get("role"):
            case "system" | "developer":
                system.append(content)
            case "user":
                messages.append(Message("user", (Text(content),)))
            case "assistant":
                messages.append(Message("assistant", tuple(_assistant(entry))))
            case "tool":
                reading.add_result(messages, reading.told(content, reading.string(entry.get("tool_call_id"))))
            case _:
                pass
    functions = [reading.mapping(tool.get("function")) for tool in reading.mappings(body.get("tools"))]
    return Request(
        tuple(messages),
        system="\n\n".join(system),
        tools=tuple(reading.tool(function.get("name")) for function in functions),
        model=reading.string(body.get("model")),
        max_tokens=reading.count(body.get("max_tokens"), body.get("max_completion_tokens")),
        stream=body.get("stream") is True,
    )


def _assistant(entry: Mapping[str, Any]) -> list[AnyBlock]:
    blocks: list[AnyBlock] = []
    if reasoning := reading.text(entry.get("reasoning_content")):
        blocks.append(Reasoning(reasoning, field="reasoning_content"))
    if text := reading.text(entry.get("content")):
        blocks.append(Text(text))
    for call in reading.mappings(entry.get("tool_calls")):
        function = reading.mapping(call.get("function"))
        arguments = reading.arguments(function.get("arguments"))
        blocks.append(
            ToolCall(reading.string(call.get("id")), reading.string(function.get("name")), arguments)
        )
    return blocks


def _finish_reason(answer: Answer) -> str:
    return _FINISH_REASONS.get(answer.stop_reason, answer.stop_reason)


def _chunk(answer: Answer, ask: Ask, delta: dict[str, Any], finish_reason: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    usage = _usage(answer.usage) if finish_reason else {}
    return {**_envelope(answer, ask, "chat.completion.chunk"), "choices": [choice], **usage}


def _envelope(answer: Answer, ask: Ask, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-lab-{ask.tag}", "object": kind, "created": 0, "model": answer.model}


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
