from itertools import accumulate

import pytest
from documents import disputed, documents, only_signs, parts, sentence, sizes, soup, split, whole
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pygments.lexers import get_all_lexers
from rich.color import ColorSystem

from mini_agent.ui.highlight import Highlighter
from mini_agent.ui.markdown import MarkdownSplitter
from mini_agent.ui.pieces import Piece
from mini_agent.ui.render import Renderer
from mini_agent.ui.spans import ROOT, plain
from mini_agent.ui.text import SGR, cells

many = settings(max_examples=200, deadline=None)
widths = st.integers(1, 100)


def rows(text: str, width: int = 60, *, styled: bool = False) -> list[str]:
    shown = Renderer().feed(split(text, [len(text) or 1], width=width), width)
    return shown if styled else [SGR.sub("", row) for row in shown]


# The same as the whole


@many
@given(documents, sizes, widths)
def test_a_stream_shows_what_the_whole_shows(text, sizes, width):
    assert Renderer().feed(split(text, sizes), width) == Renderer().feed(whole(text), width)


@many
@given(soup, sizes, widths)
def test_a_stream_of_signs_shows_what_the_whole_shows(text, sizes, width):
    assume(not disputed(text))
    assert Renderer().feed(split(text, sizes), width) == Renderer().feed(whole(text), width)


@settings(max_examples=60, deadline=None)
@given(st.lists(sentence, min_size=30, max_size=60), st.sampled_from([" ", "\n"]), sizes, widths)
def test_a_long_paragraph_in_parts_shows_what_the_whole_shows(sentences, between, sizes, width):
    text = between.join(sentences)
    pieces = split(text, sizes)
    assume(len(pieces) > 1)
    assert Renderer().feed(pieces, width) == Renderer().feed([Piece("paragraph", text)], width)


@settings(max_examples=100, deadline=None)
@given(st.one_of(documents, soup), sizes)
def test_at_any_moment_the_screen_shows_what_the_end_would_show(text, sizes):
    width = 1000  # so that the tail need not break a line of code
    splitter, renderer, shown = MarkdownSplitter(), Renderer(), []
    for part, length in zip(parts(text, sizes), accumulate(map(len, parts(text, sizes))), strict=True):
        shown += renderer.feed(splitter.feed(part), width)
        tail = renderer.tail(splitter.peek(), width, 1000)
        if not only_signs(text[:length].rpartition("\n")[2]):
            assert shown + tail == Renderer().feed(split(text[:length], [length]), width)
    shown += renderer.feed(splitter.close(), width)
    assert shown == Renderer().feed(split(text, [1]), width)


# What can't be taken back


def test_a_reference_that_is_defined_later_stays_literal_and_its_definition_is_shown():
    text = "See [it].\n\n[it]: http://a.b\n\nSee [it].\n"
    assert rows(text) == ["See [it].", "", "[it]: http://a.b", "", "See it (http://a.b)."]


def test_the_first_20_rows_of_a_table_fix_its_widths_with_some_room_to_spare():
    head = "| a | b |\n|---|---|\n"
    assert rows(head + "| 1 | 2 |\n" * 10 + "| 1234567 | 2 |\n")[0] == "a       │ b"
    shown = rows(head + "| 1 | 2 |\n" * 30 + "| 1234567 | 2 |\n")
    assert shown[:3] == ["a   │ b", "────┼────", "1   │ 2"]
    assert shown[-3:] == ["123 │ 2", "456 │", "7   │"]


def test_blank_lines_in_a_list_are_where_they_were_written():
    """So that a list need not be kept back until it is known whether it is loose."""
    assert rows("- a\n- b\n\n- c\n  - d\n\n    e\n") == ["- a", "- b", "", "- c", "  - d", "", "    e"]


# How it looks


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# One *two*\ntext\n## Three", ["One two", "", "text", "", "Three"]),
        ("a **b** `c` ~~d~~ *e*", ["a b c d e"]),
        ("line\nnext  \nlast\\\nend", ["line", "next", "last", "end"]),
        ("[a](http://x) <http://y> [http://z](http://z)", ["a (http://x) http://y", "http://z"]),
        ("[](http://x) ![alt](y.png) ![](z.png)", ["http://x alt (y.png)", "z.png"]),
        ("<b>x</b> &lt;i&gt; &amp;", ["<b>x</b> <i> &"]),
        ("<div>\n  <p>x</p>\n</div>", ["<div>", "<p>x</p>", "</div>"]),
        ("3. a\n7. b\n\n   c", ["3. a", "4. b", "", "   c"]),
        ("- a\n  b\n  - c\n- [ ] d\n- [x] e", ["- a", "  b", "  - c", "- [ ] d", "- [x] e"]),
        ("* a\n+ b", ["- a", "", "- b"]),
        ("-\n- a\n- ```\n  ```", ["-", "- a", "-"]),
        ("- - a\n\n  b", ["- - a", "", "  b"]),
        ("> a\n>\n> - b\n> > c", ["│ a", "│", "│ - b", "│", "│ │ c"]),
        ("- a\n\n  > b\n- c", ["- a", "", "  │ b", "- c"]),
        ("a\n\n***\n\nb", ["a", "", "─" * 24, "", "b"]),
        ("```py\nx = 1\n\n\ty\n\n```\n", ["x = 1", "", "    y"]),
        ("    a\n\n      b", ["a", "", "  b"]),
        ("- a\n  ```\n  b\n  ```", ["- a", "  b"]),
        ("words that are wrapped at the edge", ["words that are wrapped", "at the edge"]),
        ("- words that are wrapped at the edge", ["- words that are wrapped", "  at the edge"]),
        ("> " * 7 + "some words", ["│ │ │ │ │ │ some words"]),
        ("", []),
        ("#", []),
        ("```\n```", []),
    ],
)
def test_samples(text, shown):
    assert rows(text, 24) == shown


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        (
            "|a|b|c|\n|-|:-:|-:|\n|long|long|long|\n|x|x|x|",
            30,
            ["a    │  b   │    c", "─────┼──────┼─────", "long │ long │ long", "x    │  x   │    x"],
        ),
        (
            "|a|b|\n|-|-|\n|1|some words that are wrapped|",
            18,
            ["a │ b", "──┼───────────────", "1 │ some words", "  │ that are", "  │ wrapped"],
        ),
        (
            "|a|b|\n|-|-|\n|漢字|x|\n|x||\n|1|2|3|",
            30,
            ["a    │ b", "─────┼──", "漢字 │ x", "x    │", "1    │ 2"],
        ),
        ("|`a`|b|\n|-|-|\n|`x\\|y`|**z**|", 30, ["a   │ b", "────┼──", "x|y │ z"]),
        (
            "|one|two|three|\n|-|-|-|\n|aaaa|bbbb|cccc|\n|d|e|f|",
            12,
            ["one: aaaa", "two: bbbb", "three: cccc", "", "one: d", "two: e", "three: f"],
        ),
        ("|one|two|three|\n|-|-|-|", 8, ["one", "two", "three"]),
    ],
)
def test_tables(text, width, shown):
    assert rows(text, width) == shown


def test_a_line_of_code_is_one_row_however_long():
    """The terminal breaks it, so that it is copied as one; only in the region, where rows are counted, we do."""
    line = "x = " + "1 + " * 200 + "1"
    assert rows(f"```py\n{line}\n```", 40) == [line]
    splitter, renderer = MarkdownSplitter(), Renderer()
    assert renderer.feed(splitter.feed(f"```py\n{line}"), 40) == []
    tail = [SGR.sub("", row) for row in renderer.tail(splitter.peek(), 40, 5)]
    assert tail == [line[at : at + 40].rstrip() for at in range(0, len(line), 40)][-5:]
    assert renderer.feed(splitter.feed("\n"), 40) == Renderer().feed(split(f"```py\n{line}\n", [9]), 40)


def test_looking_at_the_tail_changes_nothing():
    splitter, renderer = MarkdownSplitter(), Renderer()
    assert renderer.feed(splitter.feed("[z]: /z\n\n[a]: /x"), 40) == ["\x1b[2m[z]: /z\x1b[0m"]
    assert renderer.tail(splitter.peek(), 40, 5) == ["", "\x1b[2m[a]: /x\x1b[0m"]
    renderer.feed(splitter.feed("y\n\n"), 40)
    assert renderer.feed(splitter.feed("[a]\n\n"), 40) == ["", "\x1b[4ma\x1b[0m\x1b[2m (/xy)\x1b[0m"]


def test_styles():
    shown = rows("# a *b*\n\n**c `d`** [e](f)\n\n> g\n\n- [ ] h\n- [x] i\n\n```py\nif j:\n```", styled=True)
    assert shown[::2][:4] == [
        "\x1b[1;4ma \x1b[0m\x1b[1;4;3mb\x1b[0m",
        "\x1b[1mc \x1b[0m\x1b[1;36md\x1b[0m \x1b[4me\x1b[0m\x1b[2m (f)\x1b[0m",
        "\x1b[2m│ \x1b[0mg",
        "- \x1b[2m[ ]\x1b[0m h",
    ]
    assert shown[7:] == ["- \x1b[32m[x]\x1b[0m i", "", "\x1b[94mif\x1b[0m j:"]


# Clean and safe


def clean(row: str) -> bool:
    return row == row.rstrip() and all(char.isprintable() or char in "\u200d\u3000\xa0" for char in row)


@settings(max_examples=100, deadline=None)
@given(st.one_of(documents, soup), st.lists(st.integers(5, 50), min_size=1), widths)
def test_rows_are_clean_and_fit(text, sizes, width):
    splitter, renderer = MarkdownSplitter(width=width), Renderer()
    shown: list[str] = []
    for part in parts(text, sizes):
        shown += renderer.feed(splitter.feed(part), width)
        tail = renderer.tail(splitter.peek(), width, 10)
        assert len(tail) <= 10
        assert all(cells(SGR.sub("", row)) <= max(width, 2) for row in tail)
        shown += tail
    assert all(clean(SGR.sub("", row)) for row in shown)


@given(st.text(st.sampled_from("a *`_[](\n|>-#<:&;x\x1b]\x9b\x07\x00\r\u202e\u2028\ud800~")), sizes)
def test_f07_nothing_that_drives_a_terminal_survives(text, sizes):
    assert all(clean(SGR.sub("", row)) for row in Renderer().feed(split(text, sizes), 20))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a&#x202e;b&#27;c", "ab\ufffdc"),
        ("a&NewLine;b&Tab;c", "a b c"),
        ("<http://a/%1b[31mx%0ab>", "http://a/x b (http://a/%1b%5B31mx%0ab)"),
        ("[x](<a\tb>)", "x (a%09b)"),
        ("`a\x1b[2Jb`", "ab"),
    ],
)
def test_f07_what_entities_and_addresses_bring_in_is_neutralised(text, shown):
    assert rows(text, 80) == [shown]


@given(
    documents,
    st.sampled_from(["ansi_light", "monokai", "default", "no such theme"]),
    st.sampled_from(ColorSystem),
)
def test_f14_without_styles_the_characters_are_the_same(text, theme, colours):
    styled = Renderer(theme=theme, colours=colours).feed(split(text, [9]), 60)
    assert [SGR.sub("", row) for row in styled] == rows(text)


def test_f16_the_signs_of_our_own_have_one_cell():
    own = set("".join(rows("- a\n\n> b\n\n1. c\n\n***\n\n|a|b|\n|-|-|\n|c|d|\n")))
    assert {char for char in own if not char.isascii()} == set("│─┼")


# Syntax colours


def coloured(language: str, lines: list[str], theme: str = "ansi_dark") -> list[str]:
    highlighter, stack, out = Highlighter(theme, ColorSystem.TRUECOLOR), ROOT, []
    for line in lines:
        spans, stack = highlighter.line(language, line, stack)
        assert plain(spans) == line
        out.append(" ".join(style for _, style in spans))
    return out


def test_a_string_of_several_lines_is_coloured_as_one():
    first, second, third, last = coloured("python", ["x = '''a", "if b", "'''", "if c:"])
    assert (first, second, third) == (" 33", "33", "33")
    assert last.startswith("94")


@pytest.mark.parametrize("language", ["", "nope", "text", "../x", "\x00", "{", "🙂", "py" * 500, "None", "0"])
def test_a_language_nobody_knows_is_plain(language):
    assert coloured(language, ["if x:", ""]) == ["36", "36"]


@pytest.mark.parametrize("language", ["{.python}", "Python", "py3", "python:main.py", "python,linenos"])
def test_names_of_languages_are_found_in_what_models_write(language):
    assert coloured(language, ["if x:"])[0].startswith("94")


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(aliases[0] for _, aliases, _, _ in get_all_lexers() if aliases)),
    st.lists(st.text(st.sampled_from("if x(){}<>'\"`/*#$%=:\\-[]|&;漢\t 0"), max_size=20), max_size=8),
    st.sampled_from(["ansi_dark", "monokai"]),
)
def test_no_lexer_breaks_a_line(language, lines, theme):
    coloured(language, lines, theme)


def test_a_kind_that_only_its_lexer_knows_is_coloured_as_the_kind_above_it():
    """pygments' gdscript has Name.Builtin.Type, which no style knows."""
    assert coloured("gdscript", ["int"], "monokai") == coloured("gdscript", ["print"], "monokai")


def test_a_very_long_line_is_not_lexed():
    assert coloured("python", ["if " * 1000]) == ["36"]
