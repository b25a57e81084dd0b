"""Text for a terminal: made safe, measured in cells, cut into rows, styled.

The one place that neutralises what models, tools and files say (product U7), and the one place that knows styles.
"""

import re
from enum import Enum, auto
from functools import lru_cache

from wcwidth import wcwidth  # type: ignore[import-untyped]  # this version has no types

from mini_agent.core.surrogates import join_surrogates

TAB = 4
"""Columns between tab stops."""

STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
    "error": "1;31",
}
"""Our styles as SGR parameters: the terminal's own colours, so that every theme stays readable."""

SGR = re.compile(r"\x1b\[[0-9;]*m")
"""A style code as `paint` makes it."""

# C0 but tab and newline, DEL, C1, line separators, bidirectional controls, halves of surrogate pairs.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


class _State(Enum):
    """Where in an escape sequence a stream is."""

    PLAIN = auto()
    ESCAPE = auto()
    INTERMEDIATE = auto()
    CSI = auto()
    STRING = auto()
    STRING_ESCAPE = auto()
    AFTER_CR = auto()


# What a sequence may go on with, without end.
_BODIES = {
    _State.INTERMEDIATE: re.compile(r"[ -/]+"),
    _State.CSI: re.compile(r"[ -?]+"),
    _State.STRING: re.compile("[^\n\r\x07\x18\x1a\x1b\x9c]+"),
}

_JOINER = "\u200d"
_EMOJI_SIGN = "\ufe0f"


def neutralise(text: str) -> str:
    """`text` without anything that could drive a terminal; see `Neutraliser`."""
    return Neutraliser().feed(text)


class Neutraliser:
    """Takes out of a stream of pieces what a terminal would obey, wherever the pieces were split.

    Control characters but newline and tab go, escape sequences go whole, also when they never end; a carriage return
    becomes a newline, because what it would overwrite shall be seen; a lone surrogate becomes U+FFFD. An unfinished
    string (OSC, DCS, ...) ends with its line at the latest, so that it can't swallow an answer. What is stored or sent is
    not touched by this.
    """

    def __init__(self) -> None:
        self._state = _State.PLAIN
        self._half = ""  # the first half of a surrogate pair that the next piece may complete

    def feed(self, text: str) -> str:
        if self._half:
            text, self._half = self._half + text, ""
        if self._state is _State.PLAIN and not _UNSAFE.search(text):
            return text
        out: list[str] = []
        at = 0
        while at < len(text):
            at = self._plain(text, at, out) if self._state is _State.PLAIN else self._sequence(text, at)
        return "".join(out)

    def _plain(self, text: str, at: int, out: list[str]) -> int:
        """Copies up to the next character that can't be shown, and deals with that one."""
        found = _UNSAFE.search(text, at)
        if found is None:
            out.append(text[at:])
            return len(text)
        out.append(text[at : found.start()])
        char = found[0]
        if char == "\x1b":
            self._state = _State.ESCAPE
        elif char == "\r":
            out.append("\n")
            self._state = _State.AFTER_CR
        elif char in "\u2028\u2029":
            out.append("\n")
        elif "\ud800" <= char <= "\udfff":
            return self._surrogate(text, found.start(), out)
        return found.end()

    def _surrogate(self, text: str, at: int, out: list[str]) -> int:
        pair = text[at : at + 2]
        if len(pair) == 2 and pair[0] < "\udc00" <= pair[1] <= "\udfff":
            out.append(join_surrogates(pair))
            return at + 2
        if len(pair) == 1 and pair < "\udc00":
            self._half = pair
        else:
            out.append("\ufffd")
        return at + 1

    def _sequence(self, text: str, at: int) -> int:
        """Skips one step of an escape sequence (ECMA-48); a character that can't belong to it is plain again."""
        body = _BODIES.get(self._state)
        if body and (found := body.match(text, at)):
            return found.end()
        char, state = text[at], self._state
        self._state = _State.PLAIN
        match state:
            case _State.ESCAPE:
                self._state = _after_escape(char)
                return at + (" " <= char <= "~")
            case _State.STRING if char == "\x1b":
                self._state = _State.STRING_ESCAPE
                return at + 1
            case _State.STRING:
                return at + (char not in "\r\n")
            case _State.STRING_ESCAPE if char != "\\":
                self._state = _State.ESCAPE
                return at
            case _State.AFTER_CR:
                return at + (char == "\n")
            case _:
                return at + ("0" <= char <= "~")


def _after_escape(char: str) -> _State:
    """What the character behind an ESC begins."""
    if char == "[":
        return _State.CSI
    if char in "]PX^_":
        return _State.STRING
    return _State.INTERMEDIATE if " " <= char <= "/" else _State.PLAIN


def visible(text: str) -> str:
    """`text` on one line with everything that can't be seen written as an escape, for questions that must not lie."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    """`text` neutralised, its white space folded into single spaces."""
    return " ".join(neutralise(text).split())


def paint(text: str, style: str) -> str:
    """`text` in one of `STYLES`."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if text else ""


@lru_cache(maxsize=4096)
def _cell(char: str) -> int:
    # A narrow character followed by the emoji sign is wide on new terminals: the wider guess never overflows a row.
    return 1 if char == _EMOJI_SIGN else max(0, wcwidth(char))


def cells(text: str) -> int:
    """Columns `text` (neutralised, without tabs) takes at most. Joined emoji count singly, as old terminals show them."""
    return len(text) if text.isascii() else sum(map(_cell, text))


def height(row: str, columns: int) -> int:
    """How many rows of a screen of `columns` a row (with its styles) takes, where the terminal breaks it. At least 1."""
    if 2 * len(row) <= columns:
        return 1
    plain = SGR.sub("", row)
    size = cells(plain)
    if size <= columns or plain.isascii():
        return max(1, -(-size // max(1, columns)))
    rows, used = 1, 0
    for char in plain:
        size = _cell(char)
        if used + size > columns:  # a wide character is not cut in two
            rows, used = rows + 1, 0
        used += size
    return rows


def expand_tabs(text: str) -> str:
    """`text` (one line) with tabs as spaces up to the next stop."""
    if "\t" not in text:
        return text
    head, *rest = text.split("\t")
    parts, column = [head], cells(head)
    for part in rest:
        gap = TAB - column % TAB
        parts += " " * gap, part
        column += gap + cells(part)
    return "".join(parts)


def fit(text: str, width: int) -> str:
    """`text` cut to `width` cells, with an ellipsis where something is left out."""
    if cells(text) <= width:
        return text
    used = 0
    for at, char in enumerate(text):
        used += _cell(char)
        if used > width - 1:
            return text[:at] + "…" if width > 0 else ""
    return text


def fit_end(text: str, width: int) -> str:
    """The last `width` cells of `text`, with an ellipsis where something is left out."""
    if cells(text) <= width:
        return text
    used = 0
    for at in range(len(text) - 1, -1, -1):
        used += _cell(text[at])
        if used > width - 1:
            return "…" + text[at + 1 :] if width > 0 else ""
    return text


def wrap(text: str, width: int) -> list[str]:
    """`text` as rows of at most `width` cells, broken at words; at least one row. Each newline ends a row."""
    rows: list[str] = []
    for line in text.split("\n"):
        full, rest = wrap_open(expand_tabs(line), width)
        rows += full
        rows.append(rest.rstrip(" "))
    return rows


def wrap_open(text: str, width: int) -> tuple[list[str], str]:
    """The rows of one line that are full, and the rest, which text to come may still join.

    Broken at spaces and beside wide characters, inside a word only where it is longer than a row; spaces at a break hang
    over the edge and go. More text never changes a full row, and the rest stays short, so that a stream costs linear time.
    """
    if cells(text) <= width and len(text) <= 8 * width:
        return [], text
    rows: list[str] = []
    start = used = 0
    soft = soft_used = 0  # where the row may end at a word, and the cells up to there
    cluster = cluster_used = 0  # the same for the current character with its marks
    words = wide = False
    previous = ""
    for at, char in enumerate(text):
        size = _cell(char)
        if char == " ":
            used += 1
            if words:
                soft, soft_used = at + 1, used
            wide, previous = False, char
            continue
        if size and char != _EMOJI_SIGN and previous != _JOINER:
            cluster, cluster_used = at, used
            if words and (size == 2 or wide):
                soft, soft_used = at, used
            wide = size == 2
        words, previous = True, char
        used += size
        while used > width and at > start:
            if soft > start:
                cut, cut_used = soft, soft_used
            elif cluster > start:
                cut, cut_used = cluster, cluster_used
            else:
                cut, cut_used = at, used - size
            if row := text[start:cut].rstrip(" "):
                rows.append(row)
            start, used, cluster_used = cut, used - cut_used, cluster_used - cut_used
    return _bounded(rows, text[start:], width)


def _bounded(rows: list[str], rest: str, width: int) -> tuple[list[str], str]:
    """Keeps the rest short where a text has spaces, or marks on one character, without end."""
    if cells(rest) > width:
        rest = rest.rstrip(" ") + " " if rest.strip(" ") else rest[:width]
    if len(rest) > 8 * width:
        return [*rows, rest], ""
    return rows, rest
