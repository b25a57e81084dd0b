"""Markdown that comes in pieces of any size: the blocks that are final come out, and only once."""

import re
from copy import copy

from mini_agent.ui.blocks import Blocks
from mini_agent.ui.pieces import Piece
from mini_agent.ui.text import Neutraliser

__all__ = ["MarkdownSplitter", "Piece"]

_SIGNS = re.compile(r"[ \t>]*(?:[-=*+_~`#|:]+|[0-9]+[.)]?)?[ \t]*")


class MarkdownSplitter:
    """Takes Markdown in, gives out `Piece`s that nothing to come can change. Their text has no control characters.

    The same text gives the same pieces however it was cut. They are what markdown-it finds in the whole document, but
    for what can't be taken back once it is on the screen: a reference that is defined later stays literal; a paragraph of
    more than 20 rows can't become a heading, a table or a definition any more, and what has stayed open in it so long
    (emphasis, code, a link) is literal; a line of more than 20 rows is text, or code, and nothing else.

    width: cells of a row. rows: how many are kept back; not more than the screen has. At least 40 and 4 are assumed.
    """

    def __init__(self, *, width: int = 80, rows: int = 20) -> None:
        self._width = max(width, 40)
        self._safe = Neutraliser()
        self._blocks = Blocks(width=self._width, limit=max(rows, 4))
        self._parts: list[str] = []  # of the line that has not ended
        self._length = 0
        self._begun = False  # the beginning of that line was given already
        self._room = self._blocks.room  # cells that the line, or the rest of it, may have before it is given

    def feed(self, text: str) -> list[Piece]:
        """The pieces that are final with `text`."""
        text = self._safe.feed(text)
        self._parts.append(text)
        self._length += len(text)
        if "\n" not in text and self._length < self._room // 2:
            return []
        *lines, last = "".join(self._parts).split("\n")
        for line in lines:
            self._line(line, ends=True)
        self._line(last, ends=False)
        return self._taken()

    def close(self) -> list[Piece]:
        """The rest."""
        if self._length or self._begun:
            self._line("".join(self._parts), ends=True)
        self._blocks.close()
        self._parts, self._length = [], 0
        return self._taken()

    def peek(self) -> list[Piece]:
        """What `close` would give now, for showing it in the meantime: nothing is closed. A last line that is but a sign
        so far is left out: what it says may be the opposite with the next character."""
        blocks = copy(self._blocks)
        blocks.part()
        line = "".join(self._parts)
        if self._begun:
            blocks.more(line, ends=True)
        elif not _SIGNS.fullmatch(line):
            blocks.line(line, whole=True)
        blocks.close()
        return blocks.out

    @property
    def tail(self) -> str:
        """The text of what is not final, as `peek` has it."""
        return "".join(piece.text for piece in self.peek())

    def _taken(self) -> list[Piece]:
        pieces = self._blocks.out[:]
        self._blocks.out.clear()
        return pieces

    def _line(self, line: str, *, ends: bool) -> None:
        """Takes the last line as far as it is known. A long one is given in parts, cut where its beginning alone says."""
        at = 0
        while len(line) - at >= (size := self._size(line, at)):
            self._give(line[at : at + size], ends=False)
            at += size
        rest = line[at:]
        if ends:
            self._give(rest, ends=True)
            rest = ""
        self._parts, self._length = [rest], len(rest)

    def _size(self, line: str, at: int) -> int:
        """The characters that fill the room: half as many where they may be wide."""
        half = self._room // 2
        return 2 * half if line[at : at + half].isascii() else half

    def _give(self, text: str, *, ends: bool) -> None:
        if self._begun:
            self._blocks.more(text, ends=ends)
        else:
            self._blocks.line(text, whole=ends)
        self._begun = not ends
        self._room = self._blocks.room if ends else 2 * self._width
