import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_agent.ui.text import (
    SGR,
    Neutraliser,
    cells,
    expand_tabs,
    fit,
    fit_end,
    neutralise,
    one_line,
    paint,
    visible,
    wrap,
    wrap_open,
)

ALPHABET = "ab [];?0m\n\r\t\x07\x08\x1b\x9b\x9d\x90\\]P(c~\u202e\u2066\u200f漢é\u0301👩\u200d❤\ufe0f\ud83d\ude00\x7f\x00"
nasty = st.text(st.sampled_from(ALPHABET), max_size=60)


def harmless(text: str) -> bool:
    return not any(
        (unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t")
        or char in "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
        for char in text
    )


@given(nasty, st.lists(st.integers(0, 60)))
def test_f07_nothing_that_drives_a_terminal_survives_any_split(text: str, cuts: list[int]) -> None:
    whole = neutralise(text)
    stream, at, out = Neutraliser(), 0, ""
    for cut in sorted(cuts):
        out += stream.feed(text[at:cut])
        at = max(at, cut)
    out += stream.feed(text[at:])
    assert out == whole
    assert harmless(whole)
    whole.encode()


@pytest.mark.parametrize(
    ("given_", "shown"),
    [
        ("a\x1b]52;c;ZXZpbA==\x07b", "ab"),
        ("\x1b[2Jx", "x"),
        ("\x1bcx", "x"),
        ("\x1b(Bx", "x"),
        ("\x1b]8;;http://x\x1b\\t", "t"),
        ("\x1bP1$r0m\x1b\\t", "t"),
        ("ok\rrm -rf", "ok\nrm -rf"),
        ("a\r\nb", "a\nb"),
        ("x\x08\x08", "x"),
        ("\x1b]0;title\nnext", "\nnext"),
        ("\x1b]0;never ends", ""),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[12\x1b[1mx", "x"),
        ("a\x1b", "a"),
        ("\u202eabc", "abc"),
        ("â\x80\x9dgarbled", "âgarbled"),
        ("\ud83d\ude00 \ud83d", "😀 "),
        ("\ud83d.", "\ufffd."),
        ("tab\tnewline\n", "tab\tnewline\n"),
    ],
)
def test_f07_samples(given_: str, shown: str) -> None:
    assert neutralise(given_) == shown


def test_f07_an_escape_split_over_two_deltas() -> None:
    stream = Neutraliser()
    assert stream.feed("a\x1b") + stream.feed("[2") + stream.feed("Jb") == "ab"


@given(nasty)
def test_f07_questions_show_what_is_hidden(text: str) -> None:
    assert visible(text).isprintable()
    assert visible(text) == text or not text.isprintable()


def test_visible_is_repr_like() -> None:
    assert visible("rm\x1b[2K\u202e x\n") == "rm\\x1b[2K\\u202e x\\n"


words = st.text(st.sampled_from("abcdef   漢字é\u0301👩\u200d❤\ufe0f,"), max_size=120)


@given(words, st.integers(2, 30))
def test_wrap_keeps_every_word_within_the_width(text: str, width: int) -> None:
    rows = wrap(text, width)
    assert all(cells(row) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == text.replace(" ", "")


@given(words, st.lists(st.integers(0, 120)), st.integers(2, 30))
def test_wrapping_a_stream_is_wrapping_the_whole(text: str, cuts: list[int], width: int) -> None:
    rows: list[str] = []
    rest, at = "", 0
    for cut in [*sorted(cuts), len(text)]:
        full, rest = wrap_open(rest + text[at:cut], width)
        rows += full
        at = max(at, cut)
    assert [*rows, rest.rstrip(" ")] == wrap(text, width)


def test_wrap_breaks_at_words_and_beside_wide_characters() -> None:
    assert wrap("one two three", 8) == ["one two", "three"]
    assert wrap("  indented words", 10) == ["  indented", "words"]
    assert wrap("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert wrap("漢字漢字漢", 5) == ["漢字", "漢字", "漢"]
    assert wrap("漢字abc def", 5) == ["漢字", "abc", "def"]
    assert wrap("a\n\nb", 10) == ["a", "", "b"]
    assert wrap("", 10) == [""]


@pytest.mark.parametrize("text", [" " * 50_000, "e" + "\u0301" * 50_000, "\u200d" * 50_000, "x" * 50_000])
def test_the_rest_stays_short_whatever_comes(text: str) -> None:
    rest = ""
    for at in range(0, len(text), 10):
        _, rest = wrap_open(rest + text[at : at + 10], 20)
        assert len(rest) <= 160


def test_widths() -> None:
    assert cells("漢字") == 4
    assert cells("e\u0301") == 1
    assert cells("❤\ufe0f") == 2
    assert expand_tabs("a\tb\t漢\tc") == "a   b   漢  c"


@given(words, st.integers(0, 30))
def test_fit_never_exceeds(text: str, width: int) -> None:
    assert cells(fit(text, width)) <= width
    assert cells(fit_end(text, width)) <= width
    assert fit(text, cells(text)) == fit_end(text, cells(text)) == text


def test_fit_says_that_it_cut() -> None:
    assert fit("abcdef", 4) == "abc…"
    assert fit_end("abcdef", 4) == "…def"


def test_one_line_and_paint() -> None:
    assert one_line(" a\x1b[2J\n\tb ") == "a b"
    assert SGR.sub("", paint("x", "red")) == "x"
    assert paint("", "red") == ""
