"""The chat-completions family, outwards: a `Request` to the body of a POST; no I/O."""

import base64
from typing import Any

import msgspec

from mini_agent.core.messages import (
    Image,
    Message,
    Reasoning,
    Request,
    Text,
    ToolCall,
)
from mini_agent.core.profile import Profile
from mini_agent.wire.outgoing import clean_name, echoed, json_text, result_text
from mini_agent.wire.shaping import REASONING, call_id, shaped

Content = str | list[dict[str, Any]]
"""The content of a message: a text, or parts where there is an image."""

REASONING_DETAILS = "reasoning_details"
"""The field of reasoning that goes back as the sequence it came in, not as text; `encrypted` holds its JSON text."""

_NO_THOUGHT = " "
"""Stands for reasoning that is missing where a server nobody knows complained of it: Moonshot takes no empty one."""


def encode(request: Request, profile: Profile, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The body of a request. without: what is left out, because the provider refused it (`Attempt.without`)."""
    messages = _messages(request, _contrary(profile) if REASONING in without else profile)
    body: dict[str, Any] = {"model": request.model or profile.model, "messages": messages}
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


def _contrary(profile: Profile) -> Profile:
    """With the other policy of echoing: the provider refused a request for reasoning that was there, or was missing.

    Which of the two can't be told by anything but words: DeepSeek's first thinking models refused with the same status what
    its current ones want.
    """
    if profile.echo_reasoning != "never":
        return msgspec.structs.replace(profile, echo_reasoning="never")
    missing = _NO_THOUGHT if profile.echo_missing is None else profile.echo_missing
    return msgspec.structs.replace(profile, echo_reasoning="always", echo_missing=missing)


def _messages(request: Request, profile: Profile) -> list[dict[str, Any]]:
    encoded: list[dict[str, Any]] = []
    if request.system:
        encoded.append({"role": profile.system_role, "content": request.system})
    wanted = echoed(request.messages, profile)
    for place, message in enumerate(request.messages):
        match message.role:
            case "user":
                if profile.bridge and encoded and encoded[-1]["role"] == "tool":
                    encoded.append({"role": "assistant", "content": profile.bridge})
                content = _content(message)
                if encoded and encoded[-1]["role"] == "user":
                    encoded[-1]["content"] = _joined(encoded[-1]["content"], content)
                else:
                    encoded.append({"role": "user", "content": content})
            case "assistant":
                encoded.append(_assistant(message, profile, echoed=place in wanted))
            case "tool":
                encoded.extend(
                    {
                        "role": "tool",
                        "tool_call_id": call_id(result.call_id, profile),
                        "content": result_text(result),
                    }
                    for result in message.tool_results
                )
    return encoded


def _joined(first: Content, second: Content) -> Content:
    """Two messages of the user as one: templates of local models want roles that take turns."""
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}" if first and second else first or second
    parts = _parts(first)
    for part in _parts(second):
        if parts and part["type"] == parts[-1]["type"] == "text":
            part = {**part, "text": f"{parts.pop()['text']}\n\n{part['text']}"}
        parts.append(part)
    return parts


def _parts(content: Content) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content)


def _content(message: Message) -> Content:
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


def _assistant(message: Message, profile: Profile, *, echoed: bool) -> dict[str, Any]:
    encoded: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if echoed and (thought := _thought(message, profile)) is not None:
        encoded[profile.echo_field] = thought
    if message.tool_calls:
        encoded["tool_calls"] = [_call(call, profile) for call in message.tool_calls]
    return encoded


def _thought(message: Message, profile: Profile) -> str | list[Any] | None:
    """What goes back of a message's reasoning."""
    blocks = [block for block in message.blocks if isinstance(block, Reasoning)]
    if profile.echo_field == REASONING_DETAILS:
        kept = (block.encrypted for block in blocks if block.field == REASONING_DETAILS)
        return [detail for text in kept if text for detail in msgspec.json.decode(text)] or None
    return "".join(block.text for block in blocks) or profile.echo_missing


def _call(call: ToolCall, profile: Profile) -> dict[str, Any]:
    return {
        **(call.extra if profile.echo_extra else {}),
        "id": call_id(call.id, profile),
        "type": "function",
        "function": {"name": clean_name(call.name), "arguments": json_text(call.arguments)},
    }
