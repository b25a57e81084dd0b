"""What is said between the user, the model and the tools, as frozen values.

A `Message` is a role and blocks. A `Request` is what a model is asked, a `Response` is what it answered; both are the
same for every provider. All structs are tagged with `type`, so that a journal line can be read back.
"""

from typing import Any, Literal

import msgspec

from mini_agent.core.profile import Effort

Role = Literal["user", "assistant", "tool"]

StopReason = Literal[
    "end_turn", "tool_use", "max_tokens", "content_filter", "refusal", "context_overflow", "pause", "other"
]


class Block(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag=str.lower):
    """A part of a message."""


class Text(Block, frozen=True, tag="text"):
    text: str


class Reasoning(Block, frozen=True, tag="reasoning"):
    """What the model thought, kept exactly as it came so that it can be sent back (product W7).

    field: the wire field it came in (`reasoning_content`, ...), None where the block has a place of its own.
    signature: the provider's seal on the text. encrypted: an opaque item in place of, or beside, the text.
    """

    text: str = ""
    field: str | None = None
    signature: str | None = None
    encrypted: str | None = None
    id: str | None = None


class Image(Block, frozen=True, tag="image"):
    media_type: str
    data: bytes


class ToolCall(Block, frozen=True, tag="tool_call"):
    """A request of the model to run a tool.

    arguments: the decoded object; `{}` where `invalid` says why what came could not be used.
    extra: keys the provider sent beside the known ones and may want back.
    """

    id: str
    name: str
    arguments: dict[str, Any] = {}
    invalid: str | None = None
    extra: dict[str, Any] = {}


class ToolResult(Block, frozen=True, tag="tool_result"):
    """What a tool gave. `content` is for the model; `detail`, where it says more, is for the screen only.

    A tool leaves `call_id` empty; the loop fills it in.
    """

    content: str
    is_error: bool = False
    call_id: str = ""
    detail: str | None = None


ERROR_PREFIX = "Error: "
"""Begins the content of a failed result where a protocol has no field for failure."""

AnyBlock = Text | Reasoning | Image | ToolCall | ToolResult


class Message(msgspec.Struct, frozen=True):
    """One entry of a history. A `tool` message holds the results of the assistant message directly before it."""

    role: Role
    blocks: tuple[AnyBlock, ...]

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolCall))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolResult))


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one or more requests. None where the provider did not say: never a guess.

    `input_tokens` counts everything that was read, cached or not; `output_tokens` includes the reasoning.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None

    def __add__(self, other: "Usage") -> "Usage":
        """The sum of what is known; unknown on both sides stays unknown."""
        return Usage(
            *(
                mine if theirs is None else theirs if mine is None else mine + theirs
                for mine, theirs in zip(
                    msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True
                )
            )
        )


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as a model is told of it. `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]


class Request(msgspec.Struct, frozen=True):
    """One question to a model, in no provider's words. `max_tokens` and `effort` None: the provider's own default."""

    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    model: str = ""
    max_tokens: int | None = None
    effort: Effort | None = None
    stream: bool = True


class Response(msgspec.Struct, frozen=True):
    """One complete answer. `raw_stop_reason` is the provider's own word, None where it gave none."""

    blocks: tuple[AnyBlock, ...]
    stop_reason: StopReason = "end_turn"
    raw_stop_reason: str | None = None
    usage: Usage = Usage()
    id: str = ""
    model: str = ""

    @property
    def message(self) -> Message:
        return Message("assistant", self.blocks)

    @property
    def text(self) -> str:
        return self.message.text

    @property
    def reasoning(self) -> str:
        return "".join(block.text for block in self.blocks if isinstance(block, Reasoning))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return self.message.tool_calls
