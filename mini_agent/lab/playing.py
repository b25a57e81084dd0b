"""How an `Answer` is played: what a request wants of it, and its pieces laid out in blocks.

Chat completions has one text and numbered calls; the other two families send blocks (items), each opened and closed.
"""

from dataclasses import dataclass
from typing import Literal

import msgspec

from mini_agent.core.answers import Answer, CallPiece, Piece, ReasoningPiece, TextPiece

Omission = Literal["finish", "end"]
"""What a stream can be played without: the word why it finished, or its end mark."""


@dataclass(frozen=True, slots=True)
class Ask:
    """How an answer is wanted.

    tag: what ids are made of, another for each request of a conversation. encrypted: whether reasoning comes as
    an encrypted item too, where the family has such. without: what is left out on purpose.
    """

    streams: bool = True
    tag: str = "1"
    encrypted: bool = True
    without: frozenset[Omission] = frozenset()


PLAINLY = Ask()
"""Nothing special."""


@dataclass(frozen=True, slots=True)
class Step:
    """One piece and its block. place: the block's number, from 0. whole: the complete block as one piece."""

    place: int
    piece: Piece
    whole: Piece
    opens: bool
    closes: bool


def steps(answer: Answer) -> list[Step]:
    """The pieces of `answer` with the blocks they make: a run of text or of reasoning is one, and so is each call.

    Interleaved calls stay interleaved. A piece of text or reasoning without a word is left out.
    """
    placed = _placed(answer)
    wholes = _wholes(placed)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for position, (place, _) in enumerate(placed):
        first.setdefault(place, position)
        last[place] = position
    return [
        Step(place, piece, wholes[place], opens=first[place] == position, closes=last[place] == position)
        for position, (place, piece) in enumerate(placed)
    ]


def blocks(answer: Answer) -> list[Piece]:
    """The blocks of `answer`, each as one piece."""
    return list(_wholes(_placed(answer)).values())


def with_thought(answer: Answer) -> Answer:
    """The same answer of a model that always thinks first."""
    if answer.reasoning:
        return answer
    return msgspec.structs.replace(answer, pieces=(ReasoningPiece("Let me see."), *answer.pieces))


def _placed(answer: Answer) -> list[tuple[int, Piece]]:
    placed: list[tuple[int, Piece]] = []
    calls: dict[int, int] = {}
    count = 0
    for piece in answer.pieces:
        if isinstance(piece, CallPiece):
            place = calls.setdefault(piece.index, count)
        elif not piece.text:
            continue
        else:
            place = placed[-1][0] if placed and type(placed[-1][1]) is type(piece) else count
        count = max(count, place + 1)
        placed.append((place, piece))
    return placed


def _wholes(placed: list[tuple[int, Piece]]) -> dict[int, Piece]:
    parts: dict[int, list[Piece]] = {}
    for place, piece in placed:
        parts.setdefault(place, []).append(piece)
    return {place: _joined(pieces) for place, pieces in parts.items()}


def _joined(pieces: list[Piece]) -> Piece:
    match pieces[0]:
        case CallPiece() as call:
            arguments = (piece.arguments for piece in pieces if isinstance(piece, CallPiece))
            return msgspec.structs.replace(call, arguments="".join(arguments))
        case ReasoningPiece() | TextPiece() as said:
            texts = (piece.text for piece in pieces if not isinstance(piece, CallPiece))
            return msgspec.structs.replace(said, text="".join(texts))
