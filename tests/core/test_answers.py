"""Answers in pieces: joined, they are what was said."""

from hypothesis import given
from hypothesis import strategies as st

from mini_agent.core.answers import Answer, CallPiece, Piece, ReasoningPiece, TextPiece, call_pieces, split


@given(st.text())
def test_split_pieces_join_to_the_text(text: str) -> None:
    assert "".join(split(text)) == text


@given(st.text(min_size=1))
def test_split_pieces_are_small_and_never_empty(text: str) -> None:
    assert all(1 <= len(piece.strip()) <= 5 or not piece.strip() for piece in split(text))
    assert all(split(text))


@given(st.text())
def test_a_call_is_announced_before_its_arguments(arguments: str) -> None:
    first, *rest = call_pieces(3, "id", "name", arguments)
    assert first == CallPiece(3, "id", "name", "")
    assert "".join(piece.arguments for piece in rest) == arguments
    assert {(piece.index, piece.id, piece.name) for piece in rest} <= {(3, "id", "name")}


def test_interleaved_calls_do_not_mix() -> None:
    answer = Answer(
        (
            CallPiece(1, "b", "two"),
            CallPiece(0, "a", "one", '{"x"'),
            CallPiece(1, "b", "two", "{}"),
            CallPiece(0, "a", "one", ":1}"),
        )
    )
    assert answer.calls == (CallPiece(1, "b", "two", "{}"), CallPiece(0, "a", "one", '{"x":1}'))


def test_whole_is_reasoning_text_and_calls_in_one_piece_each() -> None:
    pieces: tuple[Piece, ...] = (
        ReasoningPiece("th"),
        ReasoningPiece("ink"),
        TextPiece("sa"),
        TextPiece("y"),
        *call_pieces(0, "a", "read_file", '{"path": "x"}'),
    )
    assert Answer(pieces).whole == (
        ReasoningPiece("think"),
        TextPiece("say"),
        CallPiece(0, "a", "read_file", '{"path": "x"}'),
    )
    assert Answer(()).whole == ()
