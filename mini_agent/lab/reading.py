"""Reading a JSON body that may have any shape: what is not as expected counts as empty."""

import json
from typing import Any

from mini_agent.core.messages import ERROR_PREFIX, Message, ToolResult, ToolSpec


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def text(content: Any) -> str:
    """The text of a content field: a string, or a list of parts."""
    if isinstance(content, list):
        return "".join(string(part.get("text")) for part in mappings(content))
    return string(content)


def arguments(written: Any) -> dict[str, Any]:
    """The arguments in a JSON text."""
    try:
        return mapping(json.loads(written))
    except (TypeError, ValueError, RecursionError):
        return {}


def count(*values: Any) -> int | None:
    """The first that is a number of tokens."""
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool)), None)


def tool(name: Any) -> ToolSpec:
    """A tool that was offered; a script looks at the name only."""
    return ToolSpec(string(name), "", {})


def told(content: str, call_id: str) -> ToolResult:
    """A result in a family that has no field for failure."""
    return ToolResult(content.removeprefix(ERROR_PREFIX), content.startswith(ERROR_PREFIX), call_id)


def add_result(messages: list[Message], result: ToolResult) -> None:
    """Adds a result to those directly before it, or as the first of a new message."""
    earlier = messages.pop().blocks if messages and messages[-1].role == "tool" else ()
    messages.append(Message("tool", (*earlier, result)))
