"""JSON as providers send it: strict and fast first, tolerant where that fails.

What is forgiven: halves of UTF-16 pairs, raw control characters in strings, NaN and Infinity, numbers out of range, a byte
order mark, broken UTF-8. Halves stay in the value, because the other half may come with the next delta.
"""

import json
from typing import Any

import msgspec

from mini_agent.core.surrogates import join_surrogates

DEPTH_LIMIT = 200
"""Levels of nesting. Far beyond any honest value, and far below where an encoder further on would run out of stack."""

_TOO_DEEP = "the JSON is nested too deeply"
_NAMES = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}


def loads(data: str | bytes) -> Any:
    """The value of one JSON document. Raises ValueError, which says what is wrong and where."""
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        value = _tolerant(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    # Counting is much quicker than walking, and what is short needs neither.
    if len(text) > 2 * DEPTH_LIMIT and text.count("{") + text.count("[") > DEPTH_LIMIT and _too_deep(value):
        raise ValueError(_TOO_DEEP)
    return value


def loads_arguments(text: str) -> tuple[dict[str, Any], str | None]:
    """The arguments of a tool call, and why they could not be used or None (product W5).

    No text and `null` mean no arguments. A string that holds an object was encoded twice and is decoded once more. What
    can't be used becomes `{}` with a reason that names the position: broken JSON must never enter a history, because
    strict servers parse it again.
    """
    text = join_surrogates(text)
    value: Any = None
    try:
        if text.strip():
            value = loads(text)
        if isinstance(value, str):
            text = join_surrogates(value)
            value = loads(text) if text.strip() else None
    except ValueError as error:
        return {}, f"the arguments are not valid JSON: {error}"
    if value is None:
        return {}, None
    if not isinstance(value, dict):
        return {}, f"the arguments must be a JSON object, not {_NAMES[type(value)]}"
    return (encodable(value) if "\\ud" in text or "\\uD" in text else value), None


def encodable(value: Any) -> Any:
    """A value that `loads` gave without lone halves of UTF-16 pairs, so that it can be shown, kept and sent."""
    text = dumps(value)
    whole = join_surrogates(text)
    return value if whole is text else _tolerant(whole)


def dumps(value: Any) -> str:
    """The JSON text of a value that `loads` gave; halves of UTF-16 pairs are still in it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _tolerant(text: str) -> Any:
    try:
        return json.loads(text.removeprefix("\ufeff"), strict=False)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def _too_deep(value: Any) -> bool:
    """Whether containers lie in each other more than `DEPTH_LIMIT` levels deep; level by level, not by recursion."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEPTH_LIMIT):
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True
