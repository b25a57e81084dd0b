"""The rules of Responses.

From https://platform.openai.com/docs/api-reference/responses/create and its guides on reasoning and conversation state.
"""

from collections.abc import Iterator
from typing import Any

from mini_agent.lab.rule_parts import Calls, bad_arguments, bad_tools, is_count, is_name, is_text
from mini_agent.lab.seals import disclose

_ROLES = ("user", "assistant", "system", "developer")
_SAID = ("output_text", "refusal")
_GIVEN = ("input_text", "input_image", "input_file", "input_audio")
_ID_PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs"}
_LOOSE = ("item_reference", "compaction")
_ENDS = ("_call", "_call_output", "_list_tools", "_approval_request", "_approval_response")
"""End the types of items about tools that the provider runs or defines."""


def broken_in_responses(body: dict[str, Any]) -> Iterator[str]:
    """What breaks a rule."""
    yield from bad_tools(body.get("tools"), "parameters", optional=True)
    if not is_count(body.get("max_output_tokens", 1)):
        yield "max_output_tokens is no number of tokens"
    if not isinstance(body.get("store", True), bool):
        yield "store is no boolean"
    if not isinstance(body.get("instructions") or "", str):
        yield "instructions is no text"
    given = body.get("input")
    if isinstance(given, str):
        if not given.strip():
            yield "input is blank"
        return
    if not isinstance(given, list) or not given:
        yield "input is neither a text nor a list of items, or empty"
        return
    calls = Calls()
    ids: set[str] = set()
    for place, item in enumerate(given):
        where = f"input[{place}]"
        if not isinstance(item, dict):
            yield f"{where} is no item"
            continue
        kind = item.get("type", "message")
        if kind == "function_call_output":
            yield from calls.result(where, item.get("call_id"))
            if not isinstance(item.get("output"), str | list):
                yield f"{where} has no output"
            continue
        if kind not in ("function_call", "reasoning") and item.get("role") != "assistant":
            yield from calls.settle(where)
        yield from _bad_item(item, kind, where, calls)
        yield from _bad_id(item, kind, where, ids)
        if kind == "reasoning":
            yield from _bad_reasoning(item, where, stored=body.get("store") is not False)
            yield from _alone(given, place)
    yield from calls.settle("the end")


def _bad_item(item: dict[str, Any], kind: Any, where: str, calls: Calls) -> Iterator[str]:
    if kind == "function_call":
        yield from calls.call(where, item.get("call_id"))
        if not is_name(item.get("name")):
            yield f"{where} has no name of letters, digits, _ and -"
        if (problem := bad_arguments(item.get("arguments"))) is not None:
            yield f"{where}: its arguments {problem}"
    elif kind == "message":
        role = item.get("role")
        if role not in _ROLES:
            yield f"{where} has an unknown role: {role}"
        else:
            yield from _bad_content(item.get("content"), role, where)
    elif kind != "reasoning" and kind not in _LOOSE and not str(kind).endswith(_ENDS):
        yield f"{where} is of an unknown type: {kind}"


def _bad_content(content: Any, role: str, where: str) -> Iterator[str]:
    if isinstance(content, str):
        if not content.strip():
            yield f"{where} has no content"
        return
    if not isinstance(content, list) or not content:
        yield f"{where} has no content"
        return
    known = _SAID if role == "assistant" else _GIVEN
    for place, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in known:
            yield f"{where}.content[{place}] is of a type that the {role} has not: {kind}"
        elif str(kind).endswith("text") and not is_text(part.get("text")):
            yield f"{where}.content[{place}] is a blank text"
        elif kind == "input_image" and not (is_text(part.get("image_url")) or is_text(part.get("file_id"))):
            yield f"{where}.content[{place}] has no image"


def _bad_id(item: dict[str, Any], kind: Any, where: str, ids: set[str]) -> Iterator[str]:
    """An item's id may be left out; given, it begins as its kind's do and comes once."""
    item_id = item.get("id")
    if item_id is None:
        return
    prefix = _ID_PREFIXES.get(str(kind), "")
    if not isinstance(item_id, str) or not item_id.startswith(prefix):
        yield f"{where} has an id that does not begin with {prefix}: {item_id}"
    elif item_id in ids:
        yield f"{where} has an id that was used before: {item_id}"
    else:
        ids.add(item_id)


def _bad_reasoning(item: dict[str, Any], where: str, *, stored: bool) -> Iterator[str]:
    encrypted = item.get("encrypted_content")
    if not isinstance(item.get("summary"), list):
        yield f"{where} has no summary, not even an empty one"
    if isinstance(encrypted, str) and encrypted:
        try:
            disclose(encrypted)
        except ValueError:
            yield f"{where} has an encrypted_content that can't be decrypted"
    elif is_text(item.get("id")):
        if not stored:
            yield f"{where} has no encrypted_content, and with store false nothing is kept"
    elif not item.get("content"):  # in clear is how providers without seals take it
        yield f"{where} has neither an encrypted_content nor an id"


def _alone(given: list[Any], place: int) -> Iterator[str]:
    """Reasoning is followed by what it led to: a message or a call of the assistant, or more reasoning."""
    following = given[place + 1] if place + 1 < len(given) else None
    kind = following.get("type", "message") if isinstance(following, dict) else ""
    led = kind == "reasoning" or str(kind).endswith("_call")
    if not led and not (
        kind == "message" and isinstance(following, dict) and following.get("role") == "assistant"
    ):
        yield f"input[{place}] is reasoning without the item that has to follow it"
