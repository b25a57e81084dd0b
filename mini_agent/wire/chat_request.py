"""The chat-completions family, outwards: a `Request` to the body of a POST; no I/O."""

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from mini_agent.core.messages import (
    ERROR_PREFIX,
    Image,
    Message,
    Reasoning,
    Request,
    Text,
    ToolCall,
    ToolResult,
)
from mini_agent.core.profile import Profile
from mini_agent.wire.shaping import shaped


def encode(request: Request, profile: Profile, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The body of a request. without: top-level fields that are left out, because the provider refused them."""
    body: dict[str, Any] = {"model": request.model or profile.model, "messages": _messages(request, profile)}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in request.tools
        ]
    body["stream"] = request.stream
    if request.stream:
        body["stream_options"] = {"include_usage": True}
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    return shaped(body, request, profile, without)


def _messages(request: Request, profile: Profile) -> list[dict[str, Any]]:
    encoded: list[dict[str, Any]] = []
    if request.system:
        encoded.append({"role": profile.system_role, "content": request.system})
    echoed = _echoed(request.messages, profile)
    for place, message in enumerate(request.messages):
        match message.role:
            case "user":
                encoded.append({"role": "user", "content": _content(message)})
            case "assistant":
                encoded.append(_assistant(message, profile.echo_field if place in echoed else None))
            case "tool":
                encoded.extend(
                    {"role": "tool", "tool_call_id": result.call_id, "content": _result(result)}
                    for result in message.tool_results
                )
    return encoded


def _echoed(messages: Sequence[Message], profile: Profile) -> set[int]:
    """The places of the messages whose reasoning goes back.

    DeepSeek wants it of every assistant message of a user's turn in which a tool was called, the last answer included, then
    and in all later turns; elsewhere it ignores it.
    """
    assistants = {place for place, message in enumerate(messages) if message.role == "assistant"}
    if profile.echo_reasoning == "always":
        return assistants
    if profile.echo_reasoning == "never":
        return set()
    turn = 0
    turns: list[int] = []
    with_calls: set[int] = set()
    for message in messages:
        turn += message.role == "user"
        turns.append(turn)
        if message.tool_calls:
            with_calls.add(turn)
    return {place for place in assistants if turns[place] in with_calls}


def _result(result: ToolResult) -> str:
    """A result's text. Chat completions has no field for failure, so an error says so in its first word."""
    return f"{ERROR_PREFIX}{result.content}" if result.is_error else result.content


def _content(message: Message) -> str | list[dict[str, Any]]:
    if not any(isinstance(block, Image) for block in message.blocks):
        return message.text
    parts: list[dict[str, Any]] = []
    for block in message.blocks:
        if isinstance(block, Text):
            parts.append({"type": "text", "text": block.text})
        elif isinstance(block, Image):
            url = f"data:{block.media_type};base64,{base64.b64encode(block.data).decode()}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
    return parts


def _assistant(message: Message, echo_field: str | None) -> dict[str, Any]:
    encoded: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    reasoning = "".join(block.text for block in message.blocks if isinstance(block, Reasoning))
    if echo_field and reasoning:
        encoded[echo_field] = reasoning
    if message.tool_calls:
        encoded["tool_calls"] = [_call(call) for call in message.tool_calls]
    return encoded


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = msgspec.json.encode(call.arguments).decode()
    return {
        **call.extra,
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }
