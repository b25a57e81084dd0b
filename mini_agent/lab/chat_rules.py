"""The rules of chat completions.

From OpenAI's reference (https://platform.openai.com/docs/api-reference/chat/create), DeepSeek's
(https://api-docs.deepseek.com/api/create-chat-completion, .../guides/thinking_mode), and the chat templates of local
servers, which want the system's word first.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from mini_agent.lab.rule_parts import Calls, bad_arguments, bad_tools, is_count, is_name, is_text

_SYSTEM = ("system", "developer")
_ROLES = (*_SYSTEM, "user", "assistant", "tool")
_PARTS = {"text": "text", "image_url": "image_url", "input_audio": "input_audio", "file": "file"}
"""Types of content parts, and the field that each must have."""


def broken_in_chat(body: dict[str, Any], *, echo_reasoning: bool) -> Iterator[str]:
    """What breaks a rule. echo_reasoning: whether reasoning must come back as DeepSeek wants it."""
    yield from bad_tools(body.get("tools"), "parameters", inside="function", optional=True)
    for field in ("max_tokens", "max_completion_tokens"):
        if not is_count(body.get(field, 1)):
            yield f"{field} is no number of tokens"
    if "stream_options" in body and body.get("stream") is not True:
        yield "stream_options is for streams only"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages is no list, or an empty one"
        return
    calls = Calls()
    begun = False
    for place, entry in enumerate(messages):
        where = f"messages[{place}]"
        role = entry.get("role") if isinstance(entry, dict) else None
        if role not in _ROLES:
            yield f"{where} has an unknown role: {role}"
            continue
        if role in _SYSTEM and begun:
            yield f"{where} is a {role} message, and not first"
        begun = begun or role not in _SYSTEM
        yield from _one(entry, role, where, calls)
    if not begun:
        yield "messages has nothing but the system's word"
    yield from calls.settle("the end")
    if echo_reasoning:
        yield from _without_reasoning(messages)


def _one(entry: dict[str, Any], role: str, where: str, calls: Calls) -> Iterator[str]:
    if role == "tool":
        yield from calls.result(where, entry.get("tool_call_id"))
        yield from _bad_content(entry.get("content"), where)
        return
    yield from calls.settle(where)
    asked = entry.get("tool_calls")
    if role != "assistant":
        if asked is not None:
            yield f"{where} has tool_calls in the role {role}"
        yield from _bad_content(entry.get("content"), where)
        return
    if asked is None:
        yield from _bad_content(entry.get("content"), where, " and no calls")
        return
    if not isinstance(asked, list) or not asked:
        yield f"{where}.tool_calls is no list, or an empty one"
        return
    if entry.get("content") not in (None, "", []):
        yield from _bad_content(entry["content"], where)
    for place, call in enumerate(asked):
        yield from _bad_call(call, f"{where}.tool_calls[{place}]", calls)


def _bad_content(content: Any, where: str, more: str = "") -> Iterator[str]:
    """What is wrong with a content that may not be empty."""
    if isinstance(content, list) and content:
        for place, part in enumerate(content):
            kind = part.get("type") if isinstance(part, dict) else None
            if not isinstance(kind, str) or kind not in _PARTS:
                yield f"{where}.content[{place}] is of an unknown type: {kind}"
            elif kind == "text" and not is_text(part.get("text")):
                yield f"{where}.content[{place}] is a blank text"
            elif not part.get(_PARTS[kind]):
                yield f"{where}.content[{place}] has no {_PARTS[kind]}"
    elif content in (None, "", []) or (isinstance(content, str) and not content.strip()):
        yield f"{where} has no content{more}"
    elif not isinstance(content, str):
        yield f"{where}.content is neither a text nor a list of parts"


def _bad_call(call: Any, where: str, calls: Calls) -> Iterator[str]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or call.get("type") != "function":
        yield f"{where} is no call of a function"
        return
    yield from calls.call(where, call.get("id"))
    if not is_name(function.get("name")):
        yield f"{where} has no name of letters, digits, _ and -"
    if (problem := bad_arguments(function.get("arguments"))) is not None:
        yield f"{where}: its arguments {problem}"


def _without_reasoning(messages: Sequence[Any]) -> Iterator[str]:
    """Assistant messages without their reasoning, in user's turns in which a tool was called."""
    turns: list[list[int]] = [[]]
    for place, entry in enumerate(messages):
        role = entry.get("role") if isinstance(entry, dict) else None
        if role == "user":
            turns.append([])
        elif role == "assistant":
            turns[-1].append(place)
    for turn in turns:
        if any(messages[place].get("tool_calls") for place in turn):
            for place in turn:
                # An empty one is taken: it is what stands for the thought of another vendor's model.
                if not isinstance(messages[place].get("reasoning_content"), str):
                    yield f"messages[{place}]: the reasoning_content must be passed back"
