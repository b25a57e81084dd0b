"""Markdown documents for tests, and what markdown-it finds in the whole of one, as the pieces a splitter should give."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from mini_agent.ui.markdown import MarkdownSplitter
from mini_agent.ui.pieces import Box, Kind, Piece
from mini_agent.ui.text import neutralise

_PARSER = MarkdownIt("commonmark", {"html": False, "maxNesting": 200, "inline_definitions": True}).enable(
    ["table", "strikethrough"]
)
_SIGNS = re.compile(r"[> \t]*$")


# What markdown-it finds


class _Reader:
    """Walks over block tokens and notes the leaves."""

    def __init__(self, lines: list[str], tokens: list[Token]) -> None:
        self._lines = lines
        self._tokens = tokens
        self._boxes: list[Box] = []
        self._lists: list[Box] = []  # the item to come of each open list
        self._begins: dict[int, int] = {}  # a box's first line
        self._shown: set[int] = set()
        self._keys = 0
        self._written = {line for token in tokens for line in _written(token)}
        self.pieces: list[Piece] = []

    def read(self) -> list[Piece]:
        for at, token in enumerate(self._tokens):
            begin, end = token.map or (0, 0)
            inner = self._tokens[min(at + 1, len(self._tokens) - 1)].content
            match token.type:
                case "blockquote_open":
                    self._enter(Box(self._key()), begin)
                case "bullet_list_open" | "ordered_list_open":
                    number = int(token.attrs.get("start", 1)) if token.type[0] == "o" else None
                    delimiter = "" if number is None else token.markup
                    self._lists.append(Box(0, self._keys + 1, number, delimiter))
                case "list_item_open":
                    item = self._lists.pop()
                    following = None if item.number is None else item.number + 1
                    self._lists.append(Box(0, item.series, following, item.delimiter))
                    self._enter(Box(self._key(), item.series, item.number, item.delimiter), begin)
                case "list_item_close":
                    if self._boxes[-1].key not in self._shown:
                        self._leaf("item", "", -1)
                    self._boxes.pop()
                case "blockquote_close":
                    self._boxes.pop()
                case "bullet_list_close" | "ordered_list_close":
                    self._lists.pop()
                case "paragraph_open":
                    self._leaf("paragraph", inner, begin)
                case "heading_open":
                    self._leaf("heading", inner, begin, level=int(token.tag[1]))
                case "hr":
                    self._leaf("rule", "", begin)
                case "fence" | "code_block":
                    self._leaf("code", token.content, begin, language=(token.info.split() or [""])[0])
                case "table_open":
                    self._leaf("table", "".join(f"{line}\n" for line in self._lines[begin:end]), begin)
                case "definition":
                    self._leaf("definition", "\n".join(self._lines[begin:end]), begin)
        return self.pieces

    def _key(self) -> int:
        self._keys += 1
        return self._keys

    def _enter(self, box: Box, line: int) -> None:
        self._boxes.append(box)
        self._begins[box.key] = line

    def _leaf(self, kind: Kind, text: str, line: int, *, language: str = "", level: int = 0) -> None:
        new = [box.key for box in self._boxes if box.key not in self._shown]
        before = (self._begins[new[0]] if new else line) - 1
        spaced = before >= 0 and before not in self._written and bool(_SIGNS.match(self._lines[before]))
        self._shown.update(box.key for box in self._boxes)
        self.pieces.append(Piece(kind, text, True, True, tuple(self._boxes), spaced, language, level))


def _written(token: Token) -> Iterator[int]:
    """The lines of a block that are not blank, whatever they look like."""
    begin, end = token.map or (0, 0)
    if token.type == "inline":
        yield from range(begin, end)
    elif token.type in ("fence", "code_block"):
        for line, text in enumerate(token.content.split("\n"), begin + (token.type == "fence")):
            if text.strip():
                yield line


def whole(text: str) -> list[Piece]:
    """The blocks of a document as markdown-it reads it at once."""
    text = neutralise(text)
    tokens: list[Token] = []
    _PARSER.block.parse(text, _PARSER, {}, tokens)
    return normal(_Reader(text.split("\n"), tokens).read())


def normal(pieces: Iterable[Piece]) -> list[Piece]:
    """One piece for each block, without what is not shown: white space at the ends of lines, and before the lines of a
    paragraph (which CommonMark strips and markdown-it keeps in code spans)."""
    out: list[Piece] = []
    for piece in pieces:
        text = piece.text if piece.first else out.pop().text + piece.text
        out.append(
            Piece(piece.kind, text, True, True, piece.boxes, piece.spaced, piece.language, piece.level)
        )
    return [_stripped(piece) for piece in out]


_MARKERS = re.compile(r"(?:[> \t]|(?:[-+*]|[0-9]{1,9}[.)])(?=[ \t]))*")


def _stripped(piece: Piece) -> Piece:
    lines = piece.text.split("\n")
    match piece.kind:
        case "paragraph" | "heading":
            text = "\n".join(line.lstrip(" \t") for line in lines).strip(" \t\n")
        case "code":
            text = "\n".join(line.expandtabs(4).rstrip() for line in lines).rstrip("\n")
            text += "\n" * bool(text)
        case _:
            text = "\n".join(_MARKERS.sub("", line, count=1).rstrip() for line in lines)
    return Piece(piece.kind, text, True, True, piece.boxes, piece.spaced, piece.language, piece.level)


def split(text: str, sizes: Iterable[int], *, width: int = 80) -> list[Piece]:
    """What a splitter gives for `text` in pieces of these sizes; the last one is repeated."""
    splitter = MarkdownSplitter(width=width)
    return [piece for part in parts(text, sizes) for piece in splitter.feed(part)] + splitter.close()


def parts(text: str, sizes: Iterable[int]) -> Iterator[str]:
    at, size = 0, 1
    for size in sizes:
        yield text[at : at + size]
        at += size
    while at < len(text):
        yield text[at : at + size]
        at += size


# Where we follow CommonMark and markdown-it does not

_DEEP = re.compile(r"[> ]*(?: {4}|\t)[ \t]*(?:[-#`~>*_+|:\"'(=]|[0-9])")
_DELIMITERS = re.compile(r"[> \t]*(?:-[-:|]|[:|][-:|\s])[-:|\s]*$")
_BEGINNING = re.compile(r"[ \t]*(?:[-+*>#`~]|[0-9])")


def disputed(text: str) -> bool:
    """Whether there is a line that markdown-it reads in a way of its own: a sign deep inside what is no item's content,
    which ends a paragraph for it; or a delimiter row under the beginning of another block, which it takes for a header."""
    lines = neutralise(text).split("\n")
    return any(map(_DEEP.match, lines)) or any(
        _DELIMITERS.match(below) and _BEGINNING.match(line) for line, below in pairwise(lines)
    )


def only_signs(line: str) -> bool:
    """Whether the beginning of a line says nothing yet of what it will be."""
    return not line.strip("->=*+_~`#|: \t.)0123456789")


# Documents

sizes = st.lists(st.integers(1, 40), min_size=1, max_size=12)

_ATOMS = [
    *(
        "a",
        "b c",
        "text",
        "- ",
        "* ",
        "+ ",
        "1. ",
        "2. ",
        "10) ",
        "> ",
        ">",
        " ",
        "  ",
        "   ",
        "    ",
        "\t",
        "     ",
    ),
    *(
        "# ",
        "## ",
        "# h #",
        "```",
        "```py",
        "~~~",
        "---",
        "===",
        "***",
        "- - -",
        "| a | b |",
        "|---|---|",
        "a|b",
    ),
    *("--|--", "|", "-", "=", "*", "`x`", "**b**", "1.", "\\", "`", "[a]", "<b>", "&amp;", "漢字", "\u0301"),
]
soup = st.lists(
    st.one_of(st.just(""), st.lists(st.sampled_from(_ATOMS), min_size=1, max_size=4).map("".join)), max_size=9
).map("\n".join)
"""Lines of signs in any order."""

_WORDS = [
    "some",
    "plain",
    "words",
    "of",
    "text",
    "漢字",
    "e\u0301",
    "👩‍💻",
    "naïve",
    "3 * 4",
    "snake_case",
    "x<y",
]
_SNIPPETS = [
    *(
        "**bold**",
        "*it*",
        "***both***",
        "`code`",
        "``a ` b``",
        "~~gone~~",
        "[link](http://x.y/z)",
        "<http://a.b>",
    ),
    *(
        "![pic](p.png)",
        "**bold *it* `c`**",
        "\\*no\\*",
        "&copy;",
        "&#x202e;",
        '[see](u "t")',
        "[known]",
        "[x y](<a b>)",
    ),
]
sentence = st.lists(st.sampled_from(_WORDS + _SNIPPETS), min_size=1, max_size=12).map(" ".join)
_nasty = st.text(st.sampled_from("ab *_`[]()<>!~\\&;:#-"), min_size=1, max_size=20).map(
    lambda text: f"x{text}x"
)
_paragraph = st.lists(st.one_of(sentence, _nasty), min_size=1, max_size=3)
_code = st.lists(
    st.sampled_from(["x = 1", "", "def f(x):", "    return x  # no", "\ttab", "'''", "/* c", "<b>"]),
    max_size=5,
)
_row = st.lists(st.one_of(sentence, st.sampled_from(["", "1", "a\\|b", "`c`"])), min_size=3, max_size=3)


def _table(rows: list[list[str]]) -> list[str]:
    header, *body = [f"| {' | '.join(cells)} |" for cells in rows]
    return [header, "|:--|---|--:|", *body]


def _fence(sign: str, language: str, code: list[str], closed: bool) -> list[str]:
    return [sign + language, *code, *[sign] * closed]


_leaf = st.one_of(
    _paragraph,
    st.builds(lambda level, text: ["#" * level + " " + text], st.integers(1, 6), sentence),
    st.builds(lambda lines, sign: [*lines, sign], _paragraph, st.sampled_from(["===", "---"])),
    st.builds(
        _fence,
        st.sampled_from(["```", "~~~~"]),
        st.sampled_from(["", "py", "js x", "nope"]),
        _code,
        st.booleans(),
    ),
    st.just(["***"]),
    st.builds(_table, st.lists(_row, min_size=1, max_size=4)),
    st.lists(st.sampled_from(["    code", "    more", "      in", ""]), min_size=1, max_size=3).map(
        lambda c: ["    code", *c]
    ),
    st.just(["[known]: http://known.example", ""]),
)


def _joined(blocks: list[tuple[list[str], int]]) -> list[str]:
    return [line for lines, blanks in blocks for line in (*lines, *[""] * blanks)]


def _quote(lines: list[str]) -> list[str]:
    return [f"> {line}".rstrip() for line in lines]


def _items(signs: list[str], bodies: list[list[str]], gap: int) -> list[str]:
    out: list[str] = []
    for sign, (first, *others) in zip(signs, bodies, strict=False):
        out += [sign + first, *(" " * len(sign) * bool(line) + line for line in others), *[""] * gap]
    return out


def _blocks(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    blocks = st.lists(st.tuples(inner, st.sampled_from([0, 1, 1, 1, 2])), min_size=1, max_size=3).map(_joined)
    bodies = st.lists(blocks, min_size=1, max_size=3)
    return st.one_of(
        blocks,
        blocks.map(_quote),
        st.builds(
            lambda bodies, gap, sign: _items([sign] * 3, bodies, gap),
            bodies,
            st.integers(0, 1),
            st.sampled_from(["- ", "* ", "-  ", "- [ ] "]),
        ),
        st.builds(
            lambda bodies, gap, n: _items([f"{n + at}. " for at in range(3)], bodies, gap),
            bodies,
            st.integers(0, 1),
            st.integers(0, 99),
        ),
    )


documents = st.recursive(_leaf, _blocks, max_leaves=12).map("\n".join)
"""Well-formed ones: blocks in blocks."""
