"""Requests that obey every rule of their family, built by construction, and single changes that break one rule each."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from mini_agent.core.messages import ERROR_PREFIX, Message, Reasoning, Text, ToolCall, ToolResult
from mini_agent.lab.seals import enclose, sign

Body = dict[str, Any]

words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(
    lambda text: text.strip() == text != ""
)
arguments = st.dictionaries(
    words, words | st.integers() | st.none() | st.lists(words, max_size=2), max_size=2
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Turns of the user; in each, answers that call tools and their results, and often a last answer that calls none."""
    messages: list[Message] = []
    used = 0
    for _ in range(draw(st.integers(1, 3))):
        messages.append(Message("user", (Text(draw(words)),)))
        for _ in range(draw(st.integers(0, 2))):
            count = draw(st.integers(1, 3))
            calls = [
                ToolCall(f"call_{used + n}", draw(st.sampled_from(["read", "run-it"])), draw(arguments))
                for n in range(count)
            ]
            used += count
            messages.append(Message("assistant", (*_said(draw, optional=True), *calls)))
            messages.append(
                Message(
                    "tool", tuple(ToolResult(draw(words), draw(st.booleans()), call.id) for call in calls)
                )
            )
        if draw(st.booleans()) or messages[-1].role == "user":
            messages.append(Message("assistant", tuple(_said(draw, optional=False))))
    if draw(st.booleans()):
        messages.append(Message("user", (Text(draw(words)),)))
    return messages


def _said(draw: st.DrawFn, *, optional: bool) -> Iterator[Reasoning | Text]:
    yield Reasoning(draw(words))
    if not optional or draw(st.booleans()):
        yield Text(draw(words))


def _tools(schema: str) -> list[Body]:
    return [
        {"name": name, "description": name, schema: {"type": "object", "properties": {}}}
        for name in ("read", "run-it")
    ]


def chat(messages: list[Message]) -> Body:
    entries: list[Body] = [{"role": "system", "content": "be kind"}]
    for message in messages:
        if message.role == "tool":
            entries += (
                {"role": "tool", "tool_call_id": each.call_id, "content": _told(each)}
                for each in message.tool_results
            )
            continue
        entry: Body = {"role": message.role, "content": message.text or None}
        if reasoning := _reasoning(message):
            entry["reasoning_content"] = reasoning
        if message.tool_calls:
            entry["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
                }
                for call in message.tool_calls
            ]
        entries.append(entry)
    tools = [{"type": "function", "function": tool} for tool in _tools("parameters")]
    return {
        "model": "m",
        "messages": entries,
        "tools": tools,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def messages(history: list[Message]) -> Body:
    entries: list[Body] = []
    for message in history:
        content: list[Body] = []
        for block in message.blocks:
            match block:
                case Reasoning(text):
                    content.append({"type": "thinking", "thinking": text, "signature": sign(text)})
                case Text(text):
                    content.append({"type": "text", "text": text})
                case ToolCall():
                    content.append(
                        {"type": "tool_use", "id": block.id, "name": block.name, "input": block.arguments}
                    )
                case ToolResult():
                    content.append(
                        {
                            "type": "tool_result",
                            "tool_use_id": block.call_id,
                            "content": block.content,
                            "is_error": block.is_error,
                        }
                    )
        role = "assistant" if message.role == "assistant" else "user"
        if entries and entries[-1]["role"] == role:
            entries[-1]["content"] += content
        else:
            entries.append({"role": role, "content": content})
    return {
        "model": "m",
        "max_tokens": 4096,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "system": "be kind",
        "messages": entries,
        "tools": _tools("input_schema"),
    }


def responses(history: list[Message]) -> Body:
    items: list[Body] = []
    for message in history:
        for block in message.blocks:
            place = len(items)
            match block:
                case Reasoning(text):
                    items.append(
                        {
                            "type": "reasoning",
                            "id": f"rs_{place}",
                            "summary": [],
                            "encrypted_content": enclose(text),
                        }
                    )
                case Text(text) if message.role == "user":
                    items.append({"role": "user", "content": [{"type": "input_text", "text": text}]})
                case Text(text):
                    content = [{"type": "output_text", "text": text}]
                    items.append(
                        {"type": "message", "id": f"msg_{place}", "role": "assistant", "content": content}
                    )
                case ToolCall():
                    items.append(
                        {
                            "type": "function_call",
                            "id": f"fc_{place}",
                            "call_id": block.id,
                            "name": block.name,
                            "arguments": json.dumps(block.arguments),
                        }
                    )
                case ToolResult():
                    items.append(
                        {"type": "function_call_output", "call_id": block.call_id, "output": _told(block)}
                    )
    tools = [{"type": "function", **tool} for tool in _tools("parameters")]
    return {"model": "m", "store": False, "instructions": "be kind", "input": items, "tools": tools}


def _told(result: ToolResult) -> str:
    """A result where there is no field for failure."""
    return f"{ERROR_PREFIX}{result.content}" if result.is_error else result.content


def _reasoning(message: Message) -> str:
    return "".join(block.text for block in message.blocks if isinstance(block, Reasoning))


BODIES: dict[str, Callable[[list[Message]], Body]] = {
    "chat": chat,
    "messages": messages,
    "responses": responses,
}


def changed(body: Body, change: Callable[[Body], Any]) -> Body:
    """A copy of `body` with the change; `change` works in place."""
    copied = copy.deepcopy(body)
    change(copied)
    return copied
