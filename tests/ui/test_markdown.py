import re
import sys
from itertools import accumulate

import pytest
from documents import disputed, documents, normal, only_signs, parts, sizes, soup, split, whole
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mini_agent.ui.markdown import MarkdownSplitter, Piece
from mini_agent.ui.pieces import Box
from mini_agent.ui.text import neutralise

many = settings(max_examples=200, deadline=None)
WORDS = "some words of a long paragraph "


def kinds(pieces: list[Piece]) -> list[str]:
    return [piece.kind for piece in pieces if piece.first]


# What is found


@many
@given(documents)
def test_the_blocks_are_those_that_markdown_it_finds(text):
    assert normal(split(text, [1])) == whole(text)


@many
@given(soup)
def test_signs_in_any_order_are_read_as_markdown_it_reads_them(text):
    assume(not disputed(text))
    assert normal(split(text, [1])) == whole(text)


@pytest.mark.parametrize(
    "text",
    [
        "-\n\n  no item's text\n",
        "-\n\n\n- a list of its own\n",
        "1.\n\n2. the same list\n",
        "-\n  the item's text\n\n  and more\n",
        "text\n2. no list\n1. a list\n",
        "text\n-\nno list\n*\nno list either\n",
        "- a\n2. a list\n",
        "- a\n - b\n  - c\n   - d\n    - no item\n",
        "-     code\n\n-      code with a space\n",
        "-\tone\n\n\ttwo\n\n\t\tcode\n",
        ">\t\tcode\n> \tcode\n",
        "10) a\n\n    b\n11. another list\n",
        "> quote\nlazy\n    lazy\n\nnot lazy\n",
        "> # heading\nnot lazy\n",
        "> > deep\n> lazy\nlazy\n>\n> not lazy\n",
        "> ```\n> code\nno code\n",
        "- ```\n  code\n\n  code\nno code\n",
        "```\n~~~\n``\n   ```\nend\n````\ncode\n```\n```` \nend\n",
        "``` a`b\nno code\n~~~ a`b ~\ncode\n",
        "   ```\n   code\n  code\n     code\n",
        "text\n    text\n\n    code\n\n\n      code\n   text\n",
        "#no\n# \n#\n####### no\n### a ##  \n# b#\n# \\#\n",
        "a #\n---\n\na\nb #\n===\n\n    a\n---\n",
        "- a\n---\n- b\n  ---\n> c\n---\n> d\n===\n",
        "***\n- - -\n_ _ _ _\n--\n**\n",
        "[a]: /x\n===\n\n[b]: /x\n---\n\n[c]: /x\n'title'\ntext\n===\n",
        "[a]: /x 'title'\n[b]:\n/y\n\"two\nlines\"\n[c]: no definition\n",
        "a\n\n[a]: /x\n'no title' but text\n",
        '- [a]: /x\n"no title\n\n- [a]: /x\n  text\n',
        "| a |\n|---|\n| b\nc\n\n| d |\n---\n",
        "text\n| a | b |\n|---|---|\n> quote\n",
        "| a | b |\n|---|\n| c | d |\n--|--\n",
        "a | b\n- | -\n\na | b\n-|-\n# c | d\n",
        "| a\\|b |\n|--|\n    code\n",
        "> text\n| a | b |\n|---|---|\n",
        "- text\n  a | b\n--|--\n",
        "text\n     a | b\n--|--\n",
    ],
)
def test_corners_are_read_as_markdown_it_reads_them(text):
    assert normal(split(text, [1])) == whole(text)


lengthy = st.lists(
    st.one_of(
        documents,
        soup,
        st.sampled_from(
            [WORDS * 80, "*a **b " * 300, "`" * 900, "漢" * 1500, "[" * 900, " " * 900, "- " * 300]
        ),
        st.sampled_from(
            ["```\n" + "x" * 2000, "| a | b |\n|--|--|\n" + "| x | y |\n" * 30, "# " + WORDS * 70]
        ),
        st.sampled_from(
            ["\x1b]0;title\x07", "\x1b[3", "1m", "\r\n", "\r", "\x00", "\u202e", "\ud83d", "\ude00"]
        ),
    ),
    max_size=5,
).map("\n".join)


@many
@given(lengthy, sizes, st.integers(1, 120), st.integers(1, 30))
def test_the_pieces_are_the_same_however_the_text_was_cut(text, sizes, width, rows):
    splitter = MarkdownSplitter(width=width, rows=rows)
    pieces = [piece for part in parts(text, sizes) for piece in splitter.feed(part)] + splitter.close()
    at_once = MarkdownSplitter(width=width, rows=rows)
    assert pieces == at_once.feed(text) + at_once.close()


@many
@given(lengthy, sizes)
def test_each_block_has_one_beginning_and_one_end(text, sizes):
    open_: Piece | None = None
    for piece in split(text, sizes):
        assert piece.first == (open_ is None)
        if open_:
            assert (piece.kind, piece.boxes) == (open_.kind, open_.boxes)
        open_ = None if piece.last else piece
    assert open_ is None


@many
@given(st.one_of(documents, soup), sizes)
def test_what_is_shown_in_the_meantime_is_what_the_end_would_give(text, sizes):
    text = neutralise(text)
    splitter = MarkdownSplitter()
    pieces: list[Piece] = []
    for part, length in zip(parts(text, sizes), accumulate(map(len, parts(text, sizes))), strict=True):
        pieces += splitter.feed(part)
        before = splitter.peek()
        assert splitter.tail == "".join(piece.text for piece in before)
        if not only_signs(text[:length].rpartition("\n")[2]):
            assert normal(pieces + before) == normal(split(text[:length], [length]))
    assert normal(pieces + splitter.close()) == normal(split(text, [1]))


def test_a_line_that_is_but_a_sign_so_far_changes_nothing():
    splitter = MarkdownSplitter()
    splitter.feed("Some text\n")
    for sign in "-", "-", "-":
        splitter.feed(sign)
        assert kinds(splitter.peek()) == ["paragraph"]
    assert kinds(splitter.close()) == ["heading"]


# What it says of a block


def test_a_piece_says_what_rendering_needs():
    text = "# Title\n\n3. one\n4. two\n\n   > quote\n\n```py title=x\ncode\n```\n"
    title, one, two, quote, *code = split(text, [1])
    assert title == Piece("heading", "Title", level=1)
    assert (one.number, two.number) == (3, 4)
    assert one.boxes == (Box(1, 1, 3, "."),)
    assert quote.boxes == (Box(2, 1, 4, "."), Box(3))
    assert [(piece.text, piece.first, piece.last) for piece in code] == [
        ("code\n", True, False),
        ("", False, True),
    ]
    assert {piece.language for piece in code} == {"py"}
    assert [piece.spaced for piece in (title, one, two, quote, code[0])] == [False, True, False, True, True]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028"])
def test_all_line_ends_end_lines(end):
    assert normal(split(f"a{end}{end}- b{end}- c", [1])) == normal(split("a\n\n- b\n- c", [1]))


def test_f07_what_would_drive_the_terminal_is_no_part_of_a_piece():
    text = "a\x1b]52;c;ZXZpbA==\x07b\x00\n\n```x\x1b[2J\n\x9bc\u202e\n```"
    pieces = split(text, [1])
    assert [piece.text for piece in pieces] == ["ab", "c\n", ""]
    assert pieces[1].language == "x"


# What is final, and when


def held(splitter: MarkdownSplitter) -> int:
    return len(splitter.tail)


@pytest.mark.parametrize(
    ("begin", "line"),
    [
        ("```\n", "some code\n"),
        ("- a\n  ```\n", "  some code\n"),
        ("> ~~~\n", "> some code\n"),
        ("    code\n", "    some code\n"),
        ("", "- item\n"),
        ("1. one\n", "   - item\n"),
        ("", "> - item\n"),
        ("> text\n", ">\n> more text\n"),
        ("", "a paragraph\n\n"),
        ("", "[a]: /url\n"),
        ("", "# heading\n"),
    ],
)
def test_a_line_is_final_with_the_next_one_at_the_latest(begin, line):
    splitter = MarkdownSplitter()
    splitter.feed(begin)
    for _ in range(60):
        splitter.feed(line)
        assert held(splitter) <= len(line)


@pytest.mark.parametrize(
    ("begin", "line"),
    [
        ("", WORDS),
        ("", WORDS + "\n"),
        ("", "word" * 7),
        ("", "漢字" * 11),
        ("", "**bold** and `code` "),
        ("", "*a **b "),
        ("", "`not closed\n"),
        ("", "["),
        ("- ", WORDS),
        ("> ", WORDS + "\n> "),
        ("# ", WORDS),
        ("| a | b |\n|---|---|\n", "| cell | cell |\n"),
        ("```\n", "one line of code"),
        ("[a]: /x '", "title\n"),
    ],
)
def test_of_what_goes_on_no_more_is_kept_than_a_screen_has(begin, line):
    splitter = MarkdownSplitter(width=80, rows=20)
    splitter.feed(begin)
    for _ in range(1500):
        splitter.feed(line)
        wide = not line.isascii()
        assert held(splitter) * (1 + wide) <= 22 * 80


def test_the_last_rows_of_a_long_paragraph_are_few():
    """What can't become anything else any more need not be kept; so a frame of a long paragraph is cheap."""
    splitter = MarkdownSplitter(width=80, rows=20)
    splitter.feed(WORDS * 100)
    for at in range(200):
        splitter.feed("snake_case " if at % 30 == 0 else WORDS)
        assert held(splitter) <= 8 * 80


# What can't be taken back


def test_a_paragraph_of_20_rows_can_still_become_a_heading():
    text = "\n".join(["row"] * 20)
    assert kinds(split(f"{text}\n===\n", [1])) == ["heading"]
    assert kinds(split(f"{text}\nrow\n===\n", [1])) == ["paragraph"]
    assert kinds(split(f"{text}\nrow\n---\n", [1])) == ["paragraph", "rule"]


def test_the_header_of_a_table_may_stand_under_a_long_paragraph():
    text = "row\n" * 50 + "| a | b |\n|---|---|\n| c | d |\n"
    assert normal(split(text, [1])) == whole(text)
    assert kinds(split(WORDS * 100 + "a | b\n--|--\n", [1])) == ["paragraph"]


def test_a_paragraph_is_cut_where_nothing_is_open():
    """So its parts read as they do in the whole, however long it is."""
    sentence = (
        '**bold and *it* of `co de` _x y_ ~~a b~~ [li nk](http://u.v "t t") \\* 3 * 4 snake_case** end. '
    )
    pieces = split(sentence * 200, [7])
    assert len(pieces) > 20
    for piece in pieces[:-1]:
        assert re.search(r"(?:snake_case\*\*|end\.) $", piece.text)


def test_what_stays_open_for_20_rows_is_literal():
    pieces = split("*open " + WORDS * 100 + "closed*", [7])
    assert "".join(piece.text for piece in pieces) == "*open " + WORDS * 100 + "closed*"
    assert len(pieces) > 1


# Nothing is too much


NASTY = {
    "paragraph": WORDS,
    "no space": "word",
    "lines": "line of text\n",
    "fence": "```\nline\n",
    "list": "- item\n",
    "nested items": "- ",
    "nested quotes": "> ",
    "quotes": "> text\n>> text\n",
    "table": "| a | b |\n|---|---|\n| c | d |\n",
    "emphasis": "*a **b ",
    "brackets": "[a](",
    "backticks": "`a ``b ",
    "definitions": "[a]: /x\n",
    "open definitions": "[a\n",
    "tabs": "\t- a\n\t\t",
    "escapes": "\\",
    "dashes": "-",
    "crlf": "a\r\n\r\n",
    "control": "\x00a\x1b[1m",
}


def calls(text: str) -> int:
    """How many function calls it takes to split `text` and to look at its tail now and then."""
    count = 0

    def counting(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    splitter = MarkdownSplitter()
    sys.setprofile(counting)
    try:
        for at, part in enumerate(parts(text, [12])):
            splitter.feed(part)
            if at % 12 == 0:
                splitter.peek()
        splitter.close()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", NASTY)
def test_f19_the_cost_is_linear(name):
    calls("warm *up*\n\n[a]: /x\n")
    text = NASTY[name] * (12000 // len(NASTY[name]))
    assert calls(text * 2) < 2.3 * calls(text) + 2000


def test_signs_of_nesting_without_end_are_text():
    for sign in "> ", "- ", "1. ", ">":
        pieces = split(sign * 5000 + "end", [100])
        assert max(len(piece.boxes) for piece in pieces) == 16
        assert "".join(piece.text for piece in pieces) == sign * (5000 - 16) + "end"
