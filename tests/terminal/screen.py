"""What a terminal shows: pyte's emulation, with dim text, a scrollback that survives a resize, and answers to questions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pyte

SCROLLBACK = 20_000
"""Lines."""


class Cell(NamedTuple):
    """One cell; pyte's own has no `dim`."""

    data: str
    fg: str = "default"
    bg: str = "default"
    bold: bool = False
    italics: bool = False
    underscore: bool = False
    strikethrough: bool = False
    reverse: bool = False
    blink: bool = False
    dim: bool = False


class Screen(pyte.HistoryScreen):
    """answer: gets what a terminal would type for the program that asked it something."""

    def __init__(self, columns: int, lines: int, answer: Callable[[str], object]) -> None:
        self._answer = answer
        super().__init__(columns, lines, history=SCROLLBACK)

    @property
    def default_char(self) -> Cell:
        return Cell(" ")

    def reset(self) -> None:
        super().reset()
        self.cursor.attrs = self.default_char

    def select_graphic_rendition(self, *attrs: int) -> None:
        """Dim (2) is ours, and 22 ends it together with bold; a colour's arguments are none of it."""
        rest, dim, codes = [], self.cursor.attrs.dim, list(attrs or (0,))
        while codes:
            code = codes.pop(0)
            if code in (38, 48):
                count = 2 if codes[:1] == [5] else 4
                rest += [code, *codes[:count]]
                del codes[:count]
                continue
            dim = code == 2 or (dim and code not in (0, 22))
            if code != 2:
                rest.append(code)
        if rest:
            super().select_graphic_rendition(*rest)
        self.cursor.attrs = self.cursor.attrs._replace(dim=dim)

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """As xterm does it: what has no place above the cursor goes into the scrollback; rows are clipped, not reflowed."""
        lines, columns = lines or self.lines, columns or self.columns
        over = max(0, self.cursor.y + 1 - lines)
        self.history.top.extend(self.buffer[y] for y in range(over))
        kept = {y - over: row for y, row in self.buffer.items() if over <= y < over + lines}
        self.buffer.clear()
        self.buffer.update(kept)
        self.lines, self.columns = lines, columns
        for row in self.buffer.values():
            for x in [x for x in row if x >= columns]:
                del row[x]
        self.cursor.y -= over
        self.cursor.x = min(self.cursor.x, columns - 1)
        self.set_margins()

    def report_device_status(self, mode: int = 0, **_: Any) -> None:
        super().report_device_status(mode)

    def write_process_input(self, data: str) -> None:
        self._answer(data)

    def rows(self) -> list[list[Cell]]:
        """The visible cells, row by row, without the empty second halves of wide characters."""
        return [self._cells(self.buffer[y]) for y in range(self.lines)]

    def scrollback(self) -> list[list[Cell]]:
        return [self._cells(row) for row in self.history.top]

    def _cells(self, row: Any) -> list[Cell]:
        last = max(row, default=-1)
        return [cell for x in range(last + 1) if (cell := row[x]).data]
