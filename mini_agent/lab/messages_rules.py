"""The rules of Messages.

From https://docs.anthropic.com/en/api/messages and its pages on tool use and extended thinking.
"""

from collections.abc import Iterator
from typing import Any

from mini_agent.lab.rule_parts import Calls, bad_tools, is_count, is_name, is_text
from mini_agent.lab.seals import is_altered

_OF_THE_USER = ("text", "image", "document", "search_result", "tool_result")
_OF_THE_ASSISTANT = ("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use")
_RESULTS = "_tool_result"
"""Ends the types of the results of tools that the provider ran; they stand in the assistant's messages."""

_SOURCES = {"base64": ("media_type", "data"), "url": ("url",), "file": ("file_id",)}
"""Of images, with the fields that each has."""

_THOUGHT = ("thinking", "redacted_thinking")
_LEAST_BUDGET = 1024

Blocks = list[tuple[str, dict[str, Any]]]
"""The blocks of a turn, each with its place."""


def broken_in_messages(body: dict[str, Any]) -> Iterator[str]:
    """What breaks a rule."""
    yield from bad_tools(body.get("tools"), "input_schema")
    if not is_count(body.get("max_tokens")):
        yield "max_tokens is missing"
    if "system" in body:
        yield from _bad_system(body["system"])
    yield from _bad_thinking(body)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages is no list, or an empty one"
        return
    turns: list[tuple[str, Blocks]] = []
    for place, entry in enumerate(messages):
        where = f"messages[{place}]"
        role = entry.get("role") if isinstance(entry, dict) else None
        if role not in ("user", "assistant"):
            yield f"{where} has an unknown role: {role}"
            continue
        blocks, problems = _blocks(entry.get("content"), where)
        yield from problems
        if role == "assistant":
            yield from _misplaced_thought(blocks, body)
        if turns and turns[-1][0] == role:  # successive messages of one role are one turn to the provider
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, blocks))
    if turns and turns[0][0] != "user":
        yield "messages[0] is not the user's"
    yield from _bad_turns(turns)
    if _thinking(body) == "enabled":
        yield from _without_thought(turns)


def _thinking(body: dict[str, Any]) -> Any:
    """How the model is to think: `enabled` is always and first."""
    thinking = body.get("thinking")
    return thinking.get("type") if isinstance(thinking, dict) else None


def _bad_system(system: Any) -> Iterator[str]:
    if isinstance(system, list):
        for place, block in enumerate(system):
            if not isinstance(block, dict) or block.get("type") != "text" or not is_text(block.get("text")):
                yield f"system[{place}] is no text, or a blank one"
    elif not isinstance(system, str):
        yield "system is neither a text nor a list of blocks"


def _bad_thinking(body: dict[str, Any]) -> Iterator[str]:
    if _thinking(body) != "enabled":
        return
    budget, limit = body["thinking"].get("budget_tokens"), body.get("max_tokens")
    if not is_count(budget) or budget < _LEAST_BUDGET:
        yield f"thinking.budget_tokens is less than {_LEAST_BUDGET}"
    elif is_count(limit) and budget >= limit:
        yield "thinking.budget_tokens is not less than max_tokens"


def _blocks(content: Any, where: str) -> tuple[Blocks, list[str]]:
    """The blocks of a message, and why it has none."""
    if isinstance(content, str):
        return [(f"{where}.content", {"type": "text", "text": content})], []
    if not isinstance(content, list) or not content:
        return [], [f"{where} has no content"]
    places = [(f"{where}.content[{place}]", block) for place, block in enumerate(content)]
    problems = [f"{place} is no block" for place, block in places if not isinstance(block, dict)]
    return [(place, block) for place, block in places if isinstance(block, dict)], problems


def _misplaced_thought(blocks: Blocks, body: dict[str, Any]) -> Iterator[str]:
    """Where thinking is always and first, a message that has some begins with it; no message ends with it."""
    thoughts = [where for where, block in blocks if block.get("type") in _THOUGHT]
    if not thoughts:
        return
    if thoughts[0] != blocks[0][0] and _thinking(body) == "enabled":
        yield f"{thoughts[0]} is thinking that does not come first"
    if thoughts[-1] == blocks[-1][0]:
        yield f"{thoughts[-1]} is thinking, and nothing follows it"


def _bad_turns(turns: list[tuple[str, Blocks]]) -> Iterator[str]:
    calls = Calls()
    for role, blocks in turns:
        said = ""
        for where, block in blocks:
            if block.get("type") == "tool_result" and role == "user":
                if said:
                    yield f"{where} is a tool_result behind {said}"
                yield from calls.result(where, block.get("tool_use_id"))
                yield from _bad_result(block, where)
                continue
            said = said or where
            yield from calls.settle(where) if role == "user" else ()
            yield from _bad_block(block, role, where, calls)
    yield from calls.settle("the end")
    role, blocks = turns[-1] if turns else ("user", [])
    if role == "assistant" and blocks and blocks[-1][1].get("type") == "text":
        where, block = blocks[-1]
        if str(block.get("text")) != str(block.get("text")).rstrip():
            yield f"{where} ends the messages with white space"


def _bad_block(block: dict[str, Any], role: str, where: str, calls: Calls) -> Iterator[str]:
    kind = block.get("type")
    known = _OF_THE_USER if role == "user" else _OF_THE_ASSISTANT
    if kind not in known and not (role == "assistant" and str(kind).endswith(_RESULTS)):
        yield f"{where} is of a type that the {role} has not: {kind}"
    elif kind == "text" and not is_text(block.get("text")):
        yield f"{where} is a blank text"
    elif kind == "image":
        yield from _bad_image(block, where)
    elif kind == "thinking":
        yield from _bad_thought(block, where)
    elif kind == "redacted_thinking" and not is_text(block.get("data")):
        yield f"{where} has no data"
    elif kind == "tool_use":
        yield from calls.call(where, block.get("id"))
        if not is_name(block.get("id"), most=None):
            yield f"{where} has an id that is not of letters, digits, _ and -"
        if not is_name(block.get("name"), most=128):
            yield f"{where} has no name of letters, digits, _ and -"
        if not isinstance(block.get("input"), dict):
            yield f"{where}: its input is no object"


def _bad_thought(block: dict[str, Any], where: str) -> Iterator[str]:
    text, signature = block.get("thinking"), block.get("signature")
    if not isinstance(text, str):
        yield f"{where} has no thinking"
    elif not isinstance(signature, str) or not signature:
        yield f"{where} has no signature"
    elif is_altered(text, signature):
        yield f"{where} is not the thinking that was signed"


def _bad_image(block: dict[str, Any], where: str) -> Iterator[str]:
    source = block.get("source")
    if not isinstance(source, dict) or not any(
        source.get("type") == kind and all(is_text(source.get(field)) for field in fields)
        for kind, fields in _SOURCES.items()
    ):
        yield f"{where} has no source of an image"


def _bad_result(block: dict[str, Any], where: str) -> Iterator[str]:
    content = block.get("content")
    if not isinstance(block.get("is_error", False), bool):
        yield f"{where}.is_error is no boolean"
    if isinstance(content, list):
        for place, part in enumerate(content):
            kind = part.get("type") if isinstance(part, dict) else None
            if kind == "text" and not is_text(part.get("text")):
                yield f"{where}.content[{place}] is a blank text"
            elif kind == "image":
                yield from _bad_image(part, f"{where}.content[{place}]")
            elif kind not in ("text", "document", "search_result"):
                yield f"{where}.content[{place}] is of an unknown type: {kind}"
    elif content is not None and not isinstance(content, str):
        yield f"{where}.content is neither a text nor a list of blocks"


def _without_thought(turns: list[tuple[str, Blocks]]) -> Iterator[str]:
    """Answers since the user's last word that call a tool without having thought, though thinking is on."""
    for role, blocks in reversed(turns):
        if role == "user" and any(block.get("type") != "tool_result" for _, block in blocks):
            return
        if role == "assistant" and blocks and blocks[0][1].get("type") not in _THOUGHT:
            yield f"{blocks[0][0]} is no thinking, though thinking is on: the turn's must be passed back"
