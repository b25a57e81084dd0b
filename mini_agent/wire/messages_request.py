"""The Messages family, outwards: a `Request` to the body of a POST; no I/O.

The rules are those of Anthropic's API reference and of its error messages: two roles that take turns and begin with the
user's, results at the front of the message behind their calls, sealed reasoning unchanged, no blank text.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mini_agent.core.messages import Image, Message, Reasoning, Request, Text, ToolCall, ToolResult
from mini_agent.core.profile import Profile
from mini_agent.wire.outgoing import clean_ids, clean_name, echoed, json_text, kept
from mini_agent.wire.shaping import shaped

THINKING = "thinking"
REDACTED = "redacted_thinking"

DEFAULT_MAX_TOKENS = 8192
"""The cap on an answer, which this family always wants, where nothing is known of the model."""

_THOUGHTS = frozenset({THINKING, REDACTED})
_LEFT_OUT = {"type": "text", "text": "(The beginning of this conversation was left out.)"}


def encode(request: Request, profile: Profile, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The body of a request. without: what is left out, because the provider refused it (`Attempt.without`).

    A cap on the answer is always needed: of that, only what was asked for is left out.
    """
    model = request.model or profile.model
    capped = request.max_tokens is not None and without.isdisjoint(_cap_names(profile))
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": request.max_tokens if capped else _own_cap(profile, model),
        "messages": _messages(*kept(request.messages, profile, without)),
    }
    if request.system:
        body["system"] = request.system
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
    body["stream"] = request.stream
    return _with_room(shaped(body, request, profile, without - _cap_names(profile)))


def _cap_names(profile: Profile) -> frozenset[str]:
    """What `Attempt.without` may call the cap on the answer: our name or the vendor's, as a pointer or not."""
    names = ("max_tokens", profile.rename.get("max_tokens", "max_tokens"))
    return frozenset(f"{mark}{name}" for mark in ("", "/") for name in names)


def _own_cap(profile: Profile, model: str) -> int:
    """As much as the model gives, so that a long file is not cut."""
    known = [cap for cap in (profile.default_max_tokens, profile.facts(model).max_output) if cap is not None]
    return min(known, default=DEFAULT_MAX_TOKENS)


def _with_room(body: dict[str, Any]) -> dict[str, Any]:
    """The body with room for an answer behind the thinking: `budget_tokens` must be less than `max_tokens`."""
    thinking, cap = body.get("thinking"), body.get("max_tokens")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    if isinstance(budget, int) and isinstance(cap, int) and cap <= budget:
        return {**body, "max_tokens": budget + cap}
    return body


def _messages(messages: Sequence[Message], profile: Profile) -> list[dict[str, Any]]:
    ids = clean_ids(messages)
    plain = echoed(messages, profile)
    encoded: list[dict[str, Any]] = []
    for place, message in enumerate(messages):
        if message.role == "assistant":
            role, content = "assistant", _assistant(message, ids, profile, echoed=place in plain)
        else:
            role, content = "user", list(_user(message, ids))
        if encoded and encoded[-1]["role"] == role:
            encoded[-1]["content"] += content
        elif content:
            encoded.append({"role": role, "content": content})
    if encoded and encoded[0]["role"] == "assistant":
        encoded.insert(0, {"role": "user", "content": [_LEFT_OUT]})
    if (
        encoded
        and encoded[-1]["role"] == "assistant"
        and (last := encoded[-1]["content"][-1])["type"] == "text"
    ):
        last["text"] = last["text"].rstrip()
    return encoded


def _user(message: Message, ids: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The blocks of a message of the user or of the tools."""
    for block in message.blocks:
        match block:
            case Text() if block.text.strip():
                yield {"type": "text", "text": block.text}
            case Image():
                data = base64.b64encode(block.data).decode()
                source = {"type": "base64", "media_type": block.media_type, "data": data}
                yield {"type": "image", "source": source}
            case ToolResult():
                result = {
                    "type": "tool_result",
                    "tool_use_id": ids.get(block.call_id, block.call_id),
                    "content": block.content,
                }
                yield {**result, "is_error": True} if block.is_error else result
            case _:
                pass


def _assistant(
    message: Message, ids: Mapping[str, str], profile: Profile, *, echoed: bool
) -> list[dict[str, Any]]:
    """The blocks of an answer. Calls come last, because what follows one would be read as the beginning of an answer."""
    said: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for block in message.blocks:
        match block:
            case Text() if block.text.strip():
                said.append({"type": "text", "text": block.text})
            case Reasoning() if (thought := _thought(block, echoed=echoed)) is not None:
                said.append(thought)
            case ToolCall():
                arguments = msgspec.json.decode(json_text(block.arguments))
                call = {"id": ids[block.id], "name": clean_name(block.name), "input": arguments}
                calls.append({"type": "tool_use", **call})
            case _:
                pass
    if echoed and profile.echo_missing is not None and not any(block["type"] in _THOUGHTS for block in said):
        said.insert(0, {"type": THINKING, "thinking": profile.echo_missing, "signature": ""})
    while said and not calls and said[-1]["type"] in _THOUGHTS:
        said.pop()  # thought without a word behind it is refused
    return said + calls


def _thought(block: Reasoning, *, echoed: bool) -> dict[str, Any] | None:
    """A block of reasoning unchanged, None for one that would be refused: another family's, or one without a seal.

    echoed: whether the vendor wants it back without one, too.
    """
    if block.field == REDACTED and block.encrypted:
        return {"type": REDACTED, "data": block.encrypted}
    if block.field == THINKING and (block.signature or (echoed and block.text)):
        return {"type": THINKING, "thinking": block.text, "signature": block.signature or ""}
    return None
