"""Making a conversation fit a model's window again (product R9): the largest tool results first, then a summary.

All of it is pure; `asking` carries it out. What a summary leaves out is gone from the model's view, and stays in the
journal.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from mini_agent.core import estimates
from mini_agent.core.history import repair
from mini_agent.core.messages import (
    AnyBlock,
    Image,
    Message,
    Reasoning,
    Request,
    Text,
    ToolCall,
    ToolResult,
)

SHORT_BYTES = 1500
"""What stays of a tool result that is shortened; its end is where errors are."""

HEAD, TAIL = 1000, 500
"""Characters of a result or a call's arguments in the record that a summary is made from."""

SUMMARY_CHARACTERS = 12_000
"""What is kept of a summary: one that is as long as what it sums up would be no help."""

_SYSTEM = (
    "You sum up the work of a coding agent, so that it can go on from your words alone. Do not answer the user, do not "
    "call tools, add nothing of your own."
)
_TASK = """\
Below is the record of a conversation between a user and a coding agent, which has become too long. Write what the agent
must know to go on: what the user wants, in their own words where these matter; what was decided and why; which files were
read or changed, and how; commands and their outcome; what is still to do. At most 600 words.

<record>
{record}
</record>
"""
_BEGIN = "The conversation up to here became too long and was summed up:"
_GO_ON = "\n\nThe user's last message follows; go on with it from where the summary ends."

LEAST_RECORD = 500
"""Tokens of a record; from less nothing can be summed up."""


def shortened(messages: Sequence[Message], target: int, cut: Callable[[str, int], str]) -> list[Message]:
    """`messages` with the largest tool results cut short, as many as it takes to come down to `target` tokens.

    cut: gives a text's beginning and end in about so many bytes, and says where the whole is. Equal to what it was given
    where no result is worth cutting.
    """
    result = list(messages)
    left = estimates.tokens(messages)
    worthwhile = sorted(
        (
            (len(block.content), position, place)
            for position, message in enumerate(messages)
            for place, block in enumerate(message.blocks)
            if isinstance(block, ToolResult) and len(block.content) > 2 * SHORT_BYTES
        ),
        key=lambda found: (-found[0], found[1], found[2]),
    )
    for _, position, place in worthwhile:
        if left <= target:
            break
        message = result[position]
        blocks = list(message.blocks)
        block = blocks[place]
        if isinstance(block, ToolResult):
            blocks[place] = msgspec.structs.replace(block, content=cut(block.content, SHORT_BYTES))
        result[position] = Message(message.role, tuple(blocks))
        left += estimates.tokens((result[position],)) - estimates.tokens((message,))
    return result


def clipped(text: str, head: int, tail: int) -> str:
    """The beginning and the end of `text`, with a line between them that says how much is missing."""
    if len(text) <= head + tail:
        return text
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[{left_out:,} characters left out here]\n{text[len(text) - tail :]}"


@dataclass(frozen=True, slots=True)
class Split:
    """A history cut in two at a border: before a message of the user, because elsewhere a call could lose its result."""

    old: Sequence[Message]
    kept: Sequence[Message]

    @property
    def prompt(self) -> tuple[AnyBlock, ...]:
        """What the user wrote last, in their own words."""
        asked = (_own(message) for message in reversed((*self.old, *self.kept)) if message.role == "user")
        return next(filter(None, asked), ())

    def joined(self, summary: str) -> list[Message]:
        """The history with `summary` in the place of its old part. There is one summary in it, never one within another."""
        said = f"{_BEGIN}\n\n{clipped(summary.strip(), SUMMARY_CHARACTERS, 0)}"
        if self.kept:
            first, *rest = self.kept
            return repair([Message("user", (Text(f"{said}\n\n"), *_own(first))), *rest])
        return repair([Message("user", (Text(f"{said}{_GO_ON}\n\n"), *self.prompt))])


def _own(message: Message) -> tuple[AnyBlock, ...]:
    """A message of the user without the summary that an earlier compaction put before it."""
    return tuple(
        block for block in message.blocks if not (isinstance(block, Text) and block.text.startswith(_BEGIN))
    )


def split(messages: Sequence[Message], keep: int) -> Split:
    """Cut at the earliest border behind which at most `keep` tokens lie, but for the very first message.

    Where even the last turn is larger, all of it is old.
    """
    place = len(messages)
    size = 0
    for position in range(len(messages) - 1, 0, -1):
        size += estimates.tokens((messages[position],))
        if size > keep:
            break
        if messages[position].role == "user":
            place = position
    return Split(messages[:place], messages[place:])


def summary_request(old: Sequence[Message], limit: int, like: Request) -> Request:
    """What asks for a summary of `old`.

    limit: tokens that the record of it may take: the beginning stays and, three times as much, the end. like: the request
    that did not fit, for the model and how it is asked.
    """
    characters = max(limit, LEAST_RECORD) * estimates.CHARACTERS_PER_TOKEN
    lines = (_line(message.role, block) for message in old for block in message.blocks)
    record = clipped("\n".join(filter(None, lines)), characters // 4, characters - characters // 4)
    task = Message("user", (Text(_TASK.format(record=record)),))
    # A cap on answers is not meant for this one: a summary that is cut is none.
    return msgspec.structs.replace(like, messages=(task,), system=_SYSTEM, tools=(), max_tokens=None)


def _line(role: str, block: AnyBlock) -> str:
    match block:
        case Text():
            return f"{role}: {clipped(block.text.strip(), SUMMARY_CHARACTERS, HEAD)}"
        case ToolCall():
            arguments = msgspec.json.encode(block.arguments).decode()
            return f"call of {block.name}: {clipped(arguments, HEAD, TAIL)}"
        case ToolResult():
            failed = " (failed)" if block.is_error else ""
            return f"its result{failed}: {clipped(block.content.strip(), HEAD, TAIL)}"
        case Image():
            return f"{role}: (an image)"
        case Reasoning():
            return ""
