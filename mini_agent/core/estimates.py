"""How large something is to a model, where no provider has counted it yet: an estimate, never shown as a fact."""

from collections.abc import Iterable

import msgspec

from mini_agent.core.messages import AnyBlock, Image, Message, Reasoning, Request, Text, ToolCall, ToolResult

CHARACTERS_PER_TOKEN = 4
"""Of English text and code. Sizes of a history count bytes, so that scripts with more tokens a character count more."""

IMAGE_TOKENS = 1500
"""What providers count for a picture of a screen's size."""


def tokens(messages: Iterable[Message]) -> int:
    """About how many tokens a history takes."""
    return sum(_block(block) for message in messages for block in message.blocks)


def request(asked: Request) -> int:
    """About how many tokens a request takes, with its system prompt and its tools."""
    beside = len(asked.system.encode()) + len(msgspec.json.encode(asked.tools))
    return tokens(asked.messages) + beside // CHARACTERS_PER_TOKEN


def _block(block: AnyBlock) -> int:
    if isinstance(block, Image):
        return IMAGE_TOKENS
    return _bytes(block) // CHARACTERS_PER_TOKEN + 1


def _bytes(block: Text | Reasoning | ToolCall | ToolResult) -> int:
    match block:
        case Text() | Reasoning():
            return len(block.text.encode())
        case ToolResult():
            return len(block.content.encode())
        case ToolCall():
            return len(block.name) + len(msgspec.json.encode(block.arguments))
