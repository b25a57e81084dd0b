"""The blocks that lines gather in: what is final of them is given out, the rest is kept. See `blocks.py`."""

import re
from collections.abc import Sequence

from mini_agent.ui.dialect import definitions
from mini_agent.ui.pieces import Box, Kind, Piece
from mini_agent.ui.text import cells

_BLANK = " \t\n"
_CLOSING = re.compile(r"(?:^|[ \t])#+$")

# What can open or close something inside a paragraph, and where it might be cut: white space, and inside a run of CJK.
_MARK = re.compile(r"\\.|`+|\*+|_+|~~+|\[|\]|<[^\s<>]*>|\s+|[\u2e80-\u9fff\uac00-\ud7ff]{2,}", re.DOTALL)
_TARGET = re.compile(r"\((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\)", re.DOTALL)


class Leaf:
    """A block that is open. out: where its pieces go; the other parameters are those of `Piece`."""

    def __init__(
        self,
        out: list[Piece],
        kind: Kind,
        boxes: tuple[Box, ...],
        spaced: bool,
        *,
        language: str = "",
        level: int = 0,
    ) -> None:
        self.out = out
        self.kind = kind
        self.boxes = boxes
        self.spaced = spaced
        self.first = True
        self._language = language
        self._level = level

    def part(self, out: list[Piece]) -> None:
        """Makes a shallow copy go its own way."""
        self.out = out

    def close(self) -> None:
        """Gives out what was kept. Nothing comes after it."""
        self.give("", last=True)

    def give(self, text: str, *, last: bool, kind: Kind | None = None) -> None:
        self.out.append(
            Piece(
                kind or self.kind,
                text,
                self.first,
                last,
                self.boxes,
                self.spaced,
                self._language,
                self._level,
            )
        )
        self.first = False


class Text(Leaf):
    """A paragraph, or a heading. Kept until it ends, because it may become a heading, a table's header or a definition;
    of one that has more than `limit` rows of `width` cells, the beginning is given out, and then more as it grows."""

    def __init__(
        self,
        out: list[Piece],
        kind: Kind,
        boxes: tuple[Box, ...],
        spaced: bool,
        *,
        width: int,
        limit: int,
        level: int = 0,
    ) -> None:
        super().__init__(out, kind, boxes, spaced, level=level)
        self._marked = kind == "heading"  # with signs before it; there may be some behind it as well
        self._width, self._limit = width, limit
        self.lines: list[str] = []
        self.headable = False
        self.rows = 0

    def part(self, out: list[Piece]) -> None:
        super().part(out)
        self.lines = list(self.lines)

    def add(self, line: str, *, headable: bool) -> None:
        """headable: whether the line could be a table's header."""
        self.lines.append(line)
        self.headable = headable
        self.rows += self._height(line)
        self._release()

    def more(self, text: str) -> None:
        """Goes on with the last line."""
        self.rows -= self._height(self.lines[-1])
        self.lines[-1] += text
        self.rows += self._height(self.lines[-1])
        self._release()

    def only_defines(self) -> bool:
        """Whether there is nothing in it but definitions."""
        return self.first and self._definitions() == len(self.lines)

    def take_header(self) -> str:
        """The last line, which is no longer part of this."""
        header = self.lines.pop()
        self.rows -= self._height(header)
        return header

    def become_heading(self, level: int) -> None:
        self._define()
        self.kind, self._level = "heading", level

    def close(self) -> None:
        self._define()
        text = "\n".join(self.lines).rstrip(_BLANK)
        if self._marked:
            text = _CLOSING.sub("", text).rstrip(_BLANK)
        if text or not self.first or self.kind == "heading":
            self.give(text, last=True)

    def _height(self, line: str) -> int:
        return max(1, -(-cells(line) // self._width))

    def _definitions(self) -> int:
        if self.kind == "paragraph" and self.first and self.lines and self.lines[0].startswith("["):
            return definitions("\n".join(self.lines))
        return 0

    def _define(self) -> None:
        """Gives out the definitions it begins with."""
        if count := self._definitions():
            self.give("\n".join(self.lines[:count]), last=True, kind="definition")
            self.first, self.spaced = True, False
            del self.lines[:count]
            self.rows = sum(map(self._height, self.lines))

    def _release(self) -> None:
        """Gives out the beginning of what has become too long, at best up to a place where nothing is open; of what has
        begun already, which can't become anything else any more, there is no need to keep as much."""
        if self.rows > self._limit:
            self._define()
        while self.rows > (self._limit if self.first else self._limit // 4):
            text = "\n".join(self.lines)
            above = text[: len(text) - len(self.lines[-1])]  # the last line may be a header
            at = _cut(above) or _cut(text)
            if not at and self.rows <= self._limit:
                break
            at = at or _last_gap(above) or _last_gap(text) or len(text)
            self.give(text[:at], last=False)
            self.lines = text[at:].split("\n")
            self.headable = self.headable and (len(self.lines) > 1 or text[at - 1] == "\n")
            self.rows = sum(map(self._height, self.lines))


def _last_gap(text: str) -> int:
    return max(text.rfind(" "), text.rfind("\n")) + 1


def _cut(text: str) -> int:
    """Where a paragraph may be cut so that its parts read as they do in the whole: the last place at which nothing is
    open; 0 if there is none. What is open is found by counting, which is careful rather than exact."""
    neutral = at = depth = 0
    open_: list[str] = []
    while found := _MARK.search(text, at):
        mark, begin, at = found[0], found.start(), found.end()
        match mark[0]:
            case "`":
                closing = re.compile(rf"(?<!`){mark}(?!`)").search(text, at)
                if closing is None:
                    break
                at = closing.end()
            case "*" | "_" | "~":
                _pair(open_, mark, text[max(0, begin - 1) : begin], text[at : at + 1])
            case "[":
                depth += 1
            case "]":
                depth = max(0, depth - 1)
                if text.startswith("(", at):
                    target = _TARGET.match(text, at)
                    if target is None:
                        break
                    at = target.end()
            case "\\" | "<":
                pass
            case _ if not open_ and not depth:
                neutral = at if mark.isspace() else at - 1
    return neutral


def _pair(open_: list[str], mark: str, before: str, after: str) -> None:
    """Takes a run of emphasis marks into account. before, after: the characters beside it, empty at the edge."""
    if mark[0] == "_" and before.isalnum() and after.isalnum():
        return
    if mark in open_ and before and not before.isspace():
        del open_[open_.index(mark) :]
    elif not after.isspace():
        open_.append(mark)


class Code(Leaf):
    """Code, given out by lines. Blank lines wait for one that is not: at its end they are left out.

    fence: the characters that opened it, or nothing where it is indented code. indent: columns of the fence.
    """

    def __init__(
        self,
        out: list[Piece],
        boxes: tuple[Box, ...],
        spaced: bool,
        *,
        fence: str = "",
        indent: int = 0,
        language: str = "",
    ) -> None:
        super().__init__(out, "code", boxes, spaced, language=language)
        self.fence = fence
        self.indent = indent
        self._blank = 0

    def closed_by(self, line: str) -> bool:
        line = line.rstrip(" \t")
        return len(line) >= len(self.fence) and line == self.fence[0] * len(line)

    def add(self, line: str, *, ends: bool) -> None:
        """ends: whether the line is complete; if not, `more` goes on with it."""
        if ends and not line.strip(" \t"):
            self._blank += 1
            return
        text = "\n" * self._blank + line
        self._blank = 0
        self.more(text, ends=ends)

    def more(self, text: str, *, ends: bool) -> None:
        self.give(text + "\n" * ends, last=False)


class Table(Leaf):
    """A table. Kept until it ends or has more than `limit` rows of `width` cells; from then on each row is final."""

    def __init__(
        self,
        out: list[Piece],
        boxes: tuple[Box, ...],
        spaced: bool,
        *,
        header: Sequence[str],
        width: int,
        limit: int,
    ) -> None:
        super().__init__(out, "table", boxes, spaced)
        self._lines = list(header)
        self._width, self._limit = width, limit
        self._rows = len(header)

    def part(self, out: list[Piece]) -> None:
        super().part(out)
        self._lines = list(self._lines)

    def add(self, line: str) -> None:
        self._lines.append(line)
        self._rows += 1 + cells(line) // self._width
        if self._rows > self._limit:
            self._give(last=False)

    def close(self) -> None:
        self._give(last=True)

    def _give(self, *, last: bool) -> None:
        self.give("".join(f"{line}\n" for line in self._lines), last=last)
        self._lines.clear()
