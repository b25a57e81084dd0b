"""Text that repeats itself without end: what counts as such and what does not, in whatever pieces it comes."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_agent.core.repeated_text import LONGEST_UNIT, WINDOW, TextGuard, label


def verdict(pieces):
    """What is repeated, and the text up to the piece that showed it; None where nothing is."""
    guard = TextGuard()
    for number, piece in enumerate(pieces):
        unit = guard.feed(piece)
        if unit is not None:
            return unit, "".join(pieces[: number + 1])
    return None


def split(text, sizes):
    """`text` in pieces of these sizes, over and over."""
    pieces, at = [], 0
    for size in itertools.cycle(sizes):
        if at >= len(text):
            return pieces
        pieces.append(text[at : at + size])
        at += size
    return pieces


def unit_of(text, *sizes):
    seen = verdict(split(text, sizes or [7]))
    return seen and seen[0]


@pytest.mark.parametrize("size", [1, 2, 13, 14, 499, 500, 501, 4000, 5600, 10_000])
def test_e13_a_sentence_for_ever_is_noticed_whatever_the_size_of_the_pieces(size):
    assert unit_of("Let me do it. " * 400, size) == "Let me do it. "


@pytest.mark.parametrize(
    "unit", ["a", "\n", " ", "-", "|", "The ", "ha, ", "I see. But wait, no: ", "再来一次。", "🙂 "]
)
def test_e13_whatever_is_said_for_ever_is_noticed(unit):
    assert unit_of(unit * WINDOW) == unit


def test_e13_it_is_noticed_within_the_next_five_hundred_characters():
    text = "A plan, with a beginning of its own. " + "The " * 2000
    _, until = verdict(list(text))
    assert WINDOW <= len(until) - 37 <= WINDOW + 500


def rows(row):
    return "| name | size | note |\n|------|------|------|\n" + "".join(row(number) for number in range(60))


REPORTS = {
    "a ruler": "-" * 200,
    "a ruler among words": "before\n" + "-" * 200 + "\nafter\n" * 20,
    "a table": rows(lambda number: f"| file{number:03}.py | {number * 37} | a note on it |\n"),
    "a table of equal rows": rows(lambda number: "| - | 0 | nothing to report on this one |\n"),
    "a wide ruler in every section": "".join(f"## {n}\n\n{'=' * 300}\n\nText {n}.\n\n" for n in range(40)),
    "a numbered list": "".join(f"{number}. Check the next file.\n" for number in range(1, 400)),
    "a long listing": "".join(f"0x{number:04x}, " for number in range(2000)),
    "a refrain": ("Let me do it. " * 250 + "Now that it is done, on to the next. ") * 3,
    "alternating rows that end": "yes\nno\n" * 500,
}


@pytest.mark.parametrize("text", REPORTS.values(), ids=REPORTS)
@pytest.mark.parametrize("size", [1, 100, 100_000])
def test_e13_good_reports_are_left_alone(text, size):
    assert unit_of(text, size) is None


def test_a_unit_longer_than_the_longest_is_left_alone():
    paragraph = "".join(random.Random(3).choices("abcdefghij ", k=LONGEST_UNIT + 1))
    assert unit_of(paragraph * 40) is None
    assert unit_of(paragraph[:-1] * 40) is not None


@settings(deadline=None)
@given(st.text(min_size=1, max_size=LONGEST_UNIT), st.text(max_size=1200), st.integers(1, 900))
def test_any_unit_for_four_and_a_half_thousand_characters_is_noticed(unit, before, size):
    text = before + (unit * (WINDOW + 500))[: WINDOW + 500]
    found = unit_of(text, size)
    assert found is not None
    assert len(found) <= len(unit)
    assert found in unit * 3


@pytest.mark.parametrize("unit", ["-" * 220 + "\n", "no " * 70 + "yes ", "ab" * 60 + "ba" * 60])
def test_a_unit_that_repeats_something_itself_is_noticed_wherever_it_begins(unit):
    for lead in range(0, 500, 7):
        assert unit_of("." * lead + unit * 24, 1000)


@settings(deadline=None)
@given(
    st.text("ab", min_size=1, max_size=6),
    st.integers(0, 5000),
    st.text("ab\n", max_size=60),
    st.lists(st.integers(1, 1300), min_size=1, max_size=9),
)
def test_any_split_gives_the_same_verdict(unit, length, middle, sizes):
    text = middle + (unit * 5000)[:length] + middle + (unit[::-1] * 5000)[:length]
    assert unit_of(text, *sizes) == unit_of(text, len(text) or 1) == unit_of(text, 1)


@settings(deadline=None)
@given(st.integers(0), st.sampled_from(["ab", "abc \n", "0123456789abcdef"]))
def test_random_text_is_never_repetition(seed, alphabet):
    assert unit_of("".join(random.Random(seed).choices(alphabet, k=9000)), 333) is None


def test_what_is_kept_does_not_grow_with_the_text():
    guard = TextGuard()
    for number in range(20_000):
        guard.feed(f"{number} ")
    assert len(guard._window) == WINDOW
    assert sum(map(len, guard._new)) < 500


@pytest.mark.parametrize(
    ("unit", "told"),
    [
        ("Let me do it. ", "Let me do it."),
        ("two\n lines ", "two lines"),
        ("\n\n", "blank lines"),
        ("  ", "spaces"),
        ("x" * 100, "x" * 59 + "…"),
        ("half \ud83d", "half \ufffd"),
    ],
)
def test_a_unit_is_told_in_one_short_line(unit, told):
    assert label(unit) == told
