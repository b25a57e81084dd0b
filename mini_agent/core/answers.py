"""A model's answer as it is played: pieces in the order in which they stream, before any wire has touched them."""

import re
from collections.abc import Iterator

import msgspec

from mini_agent.core.messages import StopReason, Usage


class ReasoningPiece(msgspec.Struct, frozen=True, tag="reasoning"):
    text: str


class TextPiece(msgspec.Struct, frozen=True, tag="text"):
    text: str


class CallPiece(msgspec.Struct, frozen=True, tag="call"):
    """A fragment of a tool call. `index` is the call's place among the calls; pieces of several calls may interleave.

    `id` and `name` are the same in every piece of a call; `arguments` is this piece's part of their JSON text.
    """

    index: int
    id: str
    name: str
    arguments: str = ""


Piece = ReasoningPiece | TextPiece | CallPiece


class Answer(msgspec.Struct, frozen=True):
    """One whole answer. `usage` is what the provider would report."""

    pieces: tuple[Piece, ...]
    stop_reason: StopReason = "end_turn"
    usage: Usage = Usage()
    model: str = "demo"

    @property
    def reasoning(self) -> str:
        return "".join(piece.text for piece in self.pieces if isinstance(piece, ReasoningPiece))

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces if isinstance(piece, TextPiece))

    @property
    def calls(self) -> tuple[CallPiece, ...]:
        """One piece for each call, with its whole arguments, in the order in which the calls first appeared."""
        calls: dict[int, CallPiece] = {}
        arguments: dict[int, list[str]] = {}
        for piece in self.pieces:
            if isinstance(piece, CallPiece):
                calls.setdefault(piece.index, piece)
                arguments.setdefault(piece.index, []).append(piece.arguments)
        return tuple(
            msgspec.structs.replace(call, arguments="".join(arguments[index]))
            for index, call in calls.items()
        )

    @property
    def whole(self) -> tuple[Piece, ...]:
        """The same answer in as few pieces as can be: reasoning, text, then each call."""
        reasoning = (ReasoningPiece(self.reasoning),) if self.reasoning else ()
        text = (TextPiece(self.text),) if self.text else ()
        return (*reasoning, *text, *self.calls)


def reasoning_pieces(text: str) -> Iterator[ReasoningPiece]:
    return (ReasoningPiece(part) for part in split(text))


def text_pieces(text: str) -> Iterator[TextPiece]:
    return (TextPiece(part) for part in split(text))


def call_pieces(index: int, call_id: str, name: str, arguments: str) -> Iterator[CallPiece]:
    """The pieces of one call: its id and name first, then the arguments' text."""
    yield CallPiece(index, call_id, name)
    for part in split(arguments):
        yield CallPiece(index, call_id, name, part)


def split(text: str) -> list[str]:
    """`text` in pieces of about a token's size: a word's beginning with the space before it. Joined, they are `text`."""
    return re.findall(r"\s*\S{1,5}|\s+", text)
