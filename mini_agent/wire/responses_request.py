"""The Responses family, outwards: a `Request` to the body of a POST; no I/O.

Nothing is stored at the provider: the whole conversation goes out as items, the reasoning among them as the sealed items it
came in. OpenAI refuses an item of reasoning that does not stand directly before the item it led to.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mini_agent.core.messages import (
    Image,
    Message,
    Reasoning,
    Request,
    Text,
    ToolCall,
    ToolResult,
)
from mini_agent.core.profile import Profile
from mini_agent.wire.outgoing import clean_ids, clean_name, echoed, json_text, kept, result_text
from mini_agent.wire.shaping import shaped

REASONING_ITEM = "reasoning_item"
"""Names the blocks of reasoning that came as items of this family."""


def encode(request: Request, profile: Profile, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The body of a request. without: what is left out, because the provider refused it (`Attempt.without`)."""
    items = _input(*kept(request.messages, profile, without))
    body: dict[str, Any] = {"model": request.model or profile.model, "input": items}
    if request.system:
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,  # the default would demand every parameter, the optional ones too
            }
            for tool in request.tools
        ]
    body["store"] = False
    body["include"] = ["reasoning.encrypted_content"]
    body["stream"] = request.stream
    if request.max_tokens is not None:
        body["max_output_tokens"] = request.max_tokens
    return shaped(body, request, profile, without)


def _input(messages: Sequence[Message], profile: Profile) -> list[dict[str, Any]]:
    ids = clean_ids(messages)
    plain = echoed(messages, profile)
    items: list[dict[str, Any]] = []
    for place, message in enumerate(messages):
        match message.role:
            case "user":
                items.append({"type": "message", "role": "user", "content": list(_content(message))})
            case "assistant":
                items += _assistant(message, ids, profile, echoed=place in plain)
            case "tool":
                items += (_output(result, ids) for result in message.tool_results)
    _drop_bad_ids(items)
    return items


def _drop_bad_ids(items: list[dict[str, Any]]) -> None:
    """An item's id may be left out, and is where it would be refused: a second time, or without its kind's prefix."""
    used: set[str] = set()
    for item in items:
        if "id" in item and (item["id"] in used or not item["id"].startswith("rs")):
            del item["id"]
        else:
            used.add(item.get("id", ""))


def _content(message: Message) -> Iterator[dict[str, Any]]:
    for block in message.blocks:
        if isinstance(block, Text):
            yield {"type": "input_text", "text": block.text}
        elif isinstance(block, Image):
            url = f"data:{block.media_type};base64,{base64.b64encode(block.data).decode()}"
            yield {"type": "input_image", "image_url": url}


def _output(result: ToolResult, ids: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "function_call_output",
        "call_id": ids.get(result.call_id, result.call_id),
        "output": result_text(result),
    }


def _assistant(
    message: Message, ids: Mapping[str, str], profile: Profile, *, echoed: bool
) -> Iterator[dict[str, Any]]:
    """The items of an answer. Of reasoning, what stands directly before a text or a call."""
    thought: dict[str, Any] | None = None
    if echoed and profile.echo_missing is not None:
        thought = _plain(profile.echo_missing)
    for block in message.blocks:
        match block:
            case Reasoning():
                thought = _thought(block, echoed=echoed) or thought
                continue
            case Text():
                content = {"type": "output_text", "text": block.text}
                item = {"type": "message", "role": "assistant", "content": [content]}
            case ToolCall():
                item = {
                    "type": "function_call",
                    "call_id": ids[block.id],
                    "name": clean_name(block.name),
                    "arguments": json_text(block.arguments),
                }
            case _:
                continue
        if thought is not None:
            yield thought
            thought = None
        yield item


def _thought(block: Reasoning, *, echoed: bool) -> dict[str, Any] | None:
    """An item of reasoning, None for one that would be refused: another family's, or one without a seal.

    echoed: whether the vendor wants it back without one, too: as text, which those who keep no seals read (DeepSeek).
    """
    if block.field != REASONING_ITEM:
        return None
    if not block.encrypted:
        return _plain(block.text) if echoed and block.text else None
    item: dict[str, Any] = {"type": "reasoning"}
    if block.id:
        item["id"] = block.id
    item["summary"] = [{"type": "summary_text", "text": block.text}] if block.text else []
    item["encrypted_content"] = block.encrypted
    return item


def _plain(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}
