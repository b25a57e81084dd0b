"""What encoders have in common on the way out: ids and names that strict providers take, reasoning that goes back."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from mini_agent.core.messages import ERROR_PREFIX, Message, Reasoning, ToolResult
from mini_agent.core.profile import Profile
from mini_agent.wire.shaping import REASONING

SIZE = 64
"""Characters of an id or a name; what OpenAI's reference allows, and nobody allows less."""

_STRANGE = re.compile(r"[^a-zA-Z0-9_-]")


def clean_name(name: str) -> str:
    """A call's name as every provider takes it. Models make names up, and one that is refused would end the session."""
    return _STRANGE.sub("_", name)[:SIZE] or "unnamed"


def json_text(arguments: dict[str, Any]) -> str:
    """The arguments of a call as JSON that every parser takes: what is not finite becomes null."""
    return msgspec.json.encode(arguments).decode()


def result_text(result: ToolResult) -> str:
    """A result's text where the family has no field for failure: an error says so in its first word."""
    return f"{ERROR_PREFIX}{result.content}" if result.is_error else result.content


def clean_ids(messages: Sequence[Message]) -> dict[str, str]:
    """By the id of each call, the one to send: of letters, digits, `_` and `-`, and no two alike.

    Made in order, so that an id stays the same while the history grows: providers keep what they have read before.
    """
    sent: dict[str, str] = {}
    used: dict[
        str, int
    ] = {}  # with how often it was taken, so that many alike are not counted through each time
    for message in messages:
        for call in message.tool_calls:
            if call.id in sent:
                continue
            clean = candidate = _STRANGE.sub("_", call.id)[:SIZE] or "call"
            while candidate in used:
                used[clean] += 1
                candidate = f"{clean[: SIZE - 1 - len(str(used[clean]))]}-{used[clean]}"
            used[candidate] = 1
            sent[call.id] = candidate
    return sent


def kept(
    messages: Sequence[Message], profile: Profile, without: frozenset[str]
) -> tuple[Sequence[Message], Profile]:
    """What goes back in the families that seal reasoning: all of it, or none where the provider refused it.

    A seal that one server does not take stays wrong, and so does what stood beside it.
    """
    if REASONING not in without:
        return messages, profile
    bare = [
        Message(message.role, tuple(block for block in message.blocks if not isinstance(block, Reasoning)))
        for message in messages
    ]
    return bare, msgspec.structs.replace(profile, echo_reasoning="never")


def echoed(messages: Sequence[Message], profile: Profile) -> set[int]:
    """The places of the messages whose reasoning goes back although nothing seals it.

    DeepSeek wants it of every assistant message of a user's turn in which a tool was called, the last answer included, then
    and in all later turns; elsewhere it ignores it.
    """
    assistants = {place for place, message in enumerate(messages) if message.role == "assistant"}
    if profile.echo_reasoning == "always":
        return assistants
    if profile.echo_reasoning == "never":
        return set()
    turn = 0
    turns: list[int] = []
    with_calls: set[int] = set()
    for message in messages:
        turn += message.role == "user"
        turns.append(turn)
        if message.tool_calls:
            with_calls.add(turn)
    return {place for place in assistants if turns[place] in with_calls}
