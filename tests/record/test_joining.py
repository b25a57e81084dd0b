"""Pieces of text become lines of a moment: nothing of them is lost, and no key gets through in halves."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
from record_lives import at, said

from mini_agent.core.events import ToolCallDelta, ToolOutput
from mini_agent.core.redact import begun_key, without_keys
from mini_agent.record.joining import Joiner

SECRET = "hush-hush 0123"


def joiner():
    return Joiner(lambda text: begun_key(text, [SECRET]))


def fragment(index, arguments, n, call_id="c", name="echo"):
    return ToolCallDelta(**at(), n=n, index=index, id=call_id, name=name, arguments=arguments)


def test_w11_pieces_join_per_channel_call_and_output_with_first_and_last_number():
    joined = joiner()
    for piece in (
        said("th", 1, "reasoning"),
        said("te", 2),
        fragment(0, '{"a', 3, name=""),
        said("ink", 4, "reasoning"),
        fragment(1, "{}", 5),
        fragment(0, '": 1}', 6),
        ToolOutput(t=5.0, call_id="x", text="one\n"),
        said("xt", 7),
        ToolOutput(t=6.0, call_id="y", text="else"),
        ToolOutput(t=7.0, call_id="x", text="two\n"),
    ):
        joined.add(piece)
    thought, text, first, second, x, y = joined.take()
    assert (thought.text, thought.channel, thought.n, thought.n_first, thought.n_last) == (
        "think",
        "reasoning",
        None,
        1,
        4,
    )
    assert (text.text, text.n_first, text.n_last, text.t) == ("text", 2, 7, 2.0)
    assert (first.arguments, first.n_first, first.n_last, first.name) == ('{"a": 1}', 3, 6, "echo")
    assert second == fragment(1, "{}", 5)
    assert (x.text, x.t, y.text) == ("one\ntwo\n", 5.0, "else")
    assert joined.take() == []


def test_w11_what_is_joined_already_keeps_its_numbers_and_attempts_stay_apart():
    joined = joiner()
    joined.add(said("a", 5))
    (five,) = joined.take()
    joined.add(said("b", None))
    joined.add(five)
    joined.add(said("c", 6))
    (first,) = joined.take()
    joined.add(first)
    joined.add(said("d", 9))
    joined.add(said("e", 1, attempt=2))
    again, other = joined.take()
    assert (again.text, again.n_first, again.n_last) == ("bacd", 5, 9)
    assert other == said("e", 1, attempt=2)


PIECES = st.lists(
    st.tuples(st.sampled_from(["text", "reasoning"]), st.sampled_from(["a", " ", "hus", "hush", "é", "\n"])),
    max_size=30,
)


@given(PIECES, st.sets(st.integers(0, 29)))
def test_joined_pieces_are_the_texts_wherever_the_time_runs_out(pieces, moments):
    joined, taken = joiner(), []
    for place, (channel, text) in enumerate(pieces):
        joined.add(said(text, place, channel))
        if place in moments:
            taken += joined.take_finished()
    taken += joined.take()
    for channel in ("text", "reasoning"):
        mine = [piece for piece in taken if piece.channel == channel]
        assert "".join(piece.text for piece in mine) == "".join(text for c, text in pieces if c == channel)
        assert all(piece.text for piece in mine)
        numbers = [
            (piece.n, piece.n) if piece.n is not None else (piece.n_first, piece.n_last) for piece in mine
        ]
        numbers = [one for one in numbers if one[0] is not None]
        assert all(first <= last for first, last in numbers)
        assert all(before[1] < after[0] for before, after in itertools.pairwise(numbers))


KEY = "sk-proj-Ab3dEf5hIj7lMn9pQrSt"


@given(st.sampled_from([SECRET, KEY]), st.sets(st.integers(1, 27)), st.sets(st.integers(0, 29)))
def test_t7_a_key_does_not_get_through_in_halves(key, cuts, moments):
    text = f"it is {key}, so"
    places = [0, *sorted(cuts), len(text)]
    joined, taken = joiner(), []
    for place, (start, end) in enumerate(itertools.pairwise(places)):
        joined.add(said(text[start:end], place))
        if place in moments:
            taken += joined.take_finished()
    taken += joined.take()
    kept = "".join(without_keys(piece.text, [SECRET]) for piece in taken)
    assert kept == "it is [redacted], so"
