"""What the rules of several families look at in the same way: texts, names, ids, arguments, tools."""

import json
import re
from collections.abc import Iterator
from typing import Any

_NAME = re.compile(r"[a-zA-Z0-9_-]+")


def is_text(value: Any) -> bool:
    """Whether it is a text that says something."""
    return isinstance(value, str) and bool(value.strip())


def is_name(value: Any, most: int | None = 64) -> bool:
    """Whether it can name a tool. most: characters."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None and len(value[:most]) == len(value)


def is_count(value: Any) -> bool:
    """Whether it can be a number of tokens."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def bad_arguments(written: Any) -> str | None:
    """Why the arguments of a call are not what they should be: an object in a JSON text. None where they are."""
    if not isinstance(written, str):
        return "are no string"
    try:
        value = json.loads(written)
    except (ValueError, RecursionError):
        return "are no valid JSON"
    return None if isinstance(value, dict) else "are no JSON object"


def bad_tools(tools: Any, schema: str, *, inside: str = "", optional: bool = False) -> Iterator[str]:
    """What is wrong with the tools that are offered.

    schema: the field with the JSON Schema of a tool's parameters. optional: whether it may be left out. inside: the field
    that holds name and schema; "" where the tool itself does.
    """
    if tools is None:
        return
    if not isinstance(tools, list) or not tools:
        yield "tools is no list, or an empty one"
        return
    names: set[str] = set()
    for place, tool in enumerate(tools):
        kind = tool.get("type", "custom") if isinstance(tool, dict) else None
        if kind not in ("function", "custom"):
            if not is_text(kind):
                yield f"tools[{place}] is no tool"
            continue  # one that the provider runs
        inner = tool.get(inside) if inside else tool
        if not isinstance(inner, dict) or not is_name(inner.get("name"), most=128):
            yield f"tools[{place}] has no name of letters, digits, _ and -"
            continue
        if inner["name"] in names:
            yield f"tools[{place}] has a name that is taken: {inner['name']}"
        names.add(inner["name"])
        parameters = inner.get(schema)
        if parameters is None and optional:
            continue
        if not isinstance(parameters, dict) or parameters.get("type") != "object":
            yield f"tools[{place}].{schema} is no JSON Schema of an object"


class Calls:
    """The calls of a history and their results: each is answered once, directly after, by its id."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._answered: set[str] = set()
        self._waiting: dict[str, str] = {}

    def call(self, where: str, call_id: Any) -> Iterator[str]:
        """A call. where: its place, for the message."""
        if not is_text(call_id):
            yield f"{where} has no id"
            return
        if call_id in self._seen:
            yield f"{where} has an id that was used before: {call_id}"
        self._seen.add(call_id)
        self._waiting[call_id] = where

    def result(self, where: str, call_id: Any) -> Iterator[str]:
        """A result of one of the calls directly before it."""
        if isinstance(call_id, str) and call_id in self._waiting:
            del self._waiting[call_id]
            self._answered.add(call_id)
        elif isinstance(call_id, str) and call_id in self._answered:
            yield f"{where} is a second result of call {call_id}"
        elif isinstance(call_id, str) and call_id in self._seen:
            yield f"{where} does not come directly after its call {call_id}"
        else:
            yield f"{where} is the result of no call: {call_id}"

    def settle(self, where: str) -> Iterator[str]:
        """Nothing may be unanswered here. where: what comes instead, or the end."""
        for call_id, place in self._waiting.items():
            yield f"{place}: call {call_id} has no result before {where}"
        self._waiting.clear()
