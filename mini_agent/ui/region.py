"""What to write to a terminal so that a few rows stay under its scrollback. Pure: rows in, characters out.

A row is text without control characters but styles (`text.paint`), narrower than the screen. A committed one may be wider:
the terminal breaks it, so that it is copied as one line, and it counts as the rows that it then takes.
"""

from collections.abc import Sequence
from typing import NewType, Protocol

from mini_agent.ui.text import SGR, cells, height

_SYNC, _UNSYNC = "\x1b[?2026h", "\x1b[?2026l"  # a terminal that knows it shows the frame in one piece
_WRAP, _NO_WRAP = "\x1b[?7h", "\x1b[?7l"
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_PASTE, _NO_PASTE = "\x1b[?2004h", "\x1b[?2004l"
_BLANK = "\x1b[K"

# Clears from the cursor, in column 0, to the end of the screen. Not with one ED, which some terminals take for a cleared
# screen when the cursor is in the first cell: they move what was there into the scrollback.
_CLEAR = f"\x1b7{_BLANK}\x1b[B\x1b[J\x1b8"


Mark = NewType("Mark", int)
"""A place in the committed rows."""


class Painter(Protocol):
    """Turns rows into what to write to a terminal."""

    def resize(self, width: int, height: int) -> None: ...

    def commit(self, rows: Sequence[str]) -> None:
        """Queues finished rows; the next frame writes them above the region, once."""
        ...

    def mark(self) -> Mark: ...

    def erase_since(self, mark: Mark) -> bool:
        """Takes the rows committed since `mark` off the screen with the next frame; False where it can't be done."""
        ...

    def frame(self, rows: Sequence[str]) -> str:
        """What makes the screen show the queued rows, and `rows` as the region under them."""
        ...

    def forget(self) -> None:
        """Somebody else has written meanwhile: what is on the screen above the cursor is not known."""
        ...

    def open(self) -> str: ...

    def close(self) -> str:
        """What leaves the terminal as it was, the cursor under the last committed row."""
        ...


class Region:
    """The region on a terminal that can move its cursor.

    Between frames the cursor is parked at the region's first cell. So a resize can't separate the two, whether the
    terminal reflows its rows or not, and all that a frame does lies at or below it: committed rows can't be hit. The
    region's rows are written without automatic wrapping, so that they are as many as they were counted even where the
    terminal has become narrower and nobody knows yet.
    """

    def __init__(self, width: int, height: int) -> None:
        self._width, self._height = width, height
        self._painted: list[str] = []  # the region's rows on the screen
        self._queue: list[str] = []  # committed, not yet written
        self._committed = 0
        self._above = 0  # rows above the cursor that surely are on the screen as they were written
        self._erase = 0
        self._unknown = False  # after a resize nobody knows what the rows look like

    def resize(self, width: int, height: int) -> None:
        if (width, height) != (self._width, self._height):
            self._width, self._height = width, height
            self._above = 0
            self._unknown = True

    def commit(self, rows: Sequence[str]) -> None:
        self._queue += rows
        self._committed += self._heights(rows)

    def mark(self) -> Mark:
        return Mark(self._committed)

    def erase_since(self, mark: Mark) -> bool:
        rows = self._committed - mark
        written = max(0, rows - self._heights(self._queue))
        if written > self._above:
            return False
        queued = rows - written
        while queued > 0:
            queued -= height(self._queue.pop(), self._width)
        self._committed -= rows
        self._above -= written
        self._erase += written
        return True

    def _heights(self, rows: Sequence[str]) -> int:
        return sum(height(row, self._width) for row in rows)

    def frame(self, rows: Sequence[str]) -> str:
        rows = list(rows[-(self._height - 1) :]) if self._height > 1 else []
        out: list[str] = []
        queue = [f"{row}\r\n" for row in self._queue]
        if not self._erase and not self._unknown:
            # What is final as it stands at the top of the region needs no new region under it. It is written all the same:
            # a terminal that was resized may have moved or lost it before it says so.
            kept = _same(self._queue, self._painted)
            queue[:kept] = [f"{_BLANK}{row}{_BLANK}\r\n" for row in self._queue[:kept]]
            self._painted = self._painted[kept:]
            is_moved = kept == len(queue)
        else:
            is_moved = False
        if self._erase and not self._unknown:
            gone = self._erase + len(self._painted)
            out.append(f"\x1b[{self._erase}A" + f"{_BLANK}\r\n" * (gone - 1) + _BLANK + _up(gone - 1))
            self._painted = []
        elif self._unknown or (queue and self._painted and not is_moved):
            # Where the terminal has become narrower, there are more rows than were painted.
            out.append(_CLEAR)
            self._painted = []
        self._erase, self._unknown = 0, False
        if queue:
            out += _WRAP, *queue, _NO_WRAP
        out.append(_difference(self._painted, rows))
        for row in self._queue:
            rows_taken = height(row, self._width)
            # Terminals differ in how wide some characters are, and so in where they break a row of them.
            self._above = 0 if rows_taken > 1 and not row.isascii() else self._above + rows_taken
        self._above = min(self._above, self._height - max(1, len(rows)))
        self._queue.clear()
        self._painted = rows
        written = "".join(out)
        return f"{_SYNC}{written}{_UNSYNC}" if written else ""

    def forget(self) -> None:
        self._above = 0

    def open(self) -> str:
        return _HIDE + _PASTE + _NO_WRAP

    def close(self) -> str:
        return self.frame([]) + _WRAP + _NO_PASTE + _SHOW


def _up(rows: int) -> str:
    return f"\x1b[{rows}A\r" if rows else "\r"


def _difference(old: Sequence[str], new: Sequence[str]) -> str:
    """What turns the rows `old` below the cursor into `new` and comes back to where it began: column 0."""
    out: list[str] = []
    at = 0
    for place in range(max(len(old), len(new))):
        row = new[place] if place < len(new) else ""
        before = old[place] if place < len(old) else None
        if row == before:
            continue
        out.append("\r\n" * (place - at) or "\r" * bool(out))
        at = place
        out.append(_rewritten(before or "", row))
    return "".join(out) + _up(at) if out else ""


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many rows at the beginning are the same."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _rewritten(before: str, row: str) -> str:
    """What turns a row into another from column 0: of one that has the same beginning, only the rest is written."""
    length = _same(before, row)
    escape = before.rfind("\x1b", 0, length)
    if escape >= 0 and "m" not in before[escape:length]:
        length = escape  # not in the middle of a style
    kept = row[:length]
    plain = SGR.sub("", kept)
    if not plain or not plain.isascii():  # how far wide characters reach is not the same everywhere
        return _BLANK + row
    styles = SGR.findall(kept)
    while "\x1b[0m" in styles:
        styles = styles[styles.index("\x1b[0m") + 1 :]
    rest = f"\x1b[{len(plain)}C{''.join(styles)}{row[length:]}"
    if cells(SGR.sub("", row)) < cells(SGR.sub("", before)):
        rest = f"\x1b[{len(plain)}C{_BLANK}{''.join(styles)}{row[length:]}"
    return min(rest, _BLANK + row, key=len)


class Lines:
    """The same for a terminal that can't move its cursor (TERM=dumb): committed rows as lines, no region."""

    def __init__(self) -> None:
        self._queue: list[str] = []
        self._committed = 0

    def resize(self, width: int, height: int) -> None:
        """Lines are written once."""

    def commit(self, rows: Sequence[str]) -> None:
        self._queue += rows
        self._committed += len(rows)

    def mark(self) -> Mark:
        return Mark(self._committed)

    def erase_since(self, mark: Mark) -> bool:
        rows = self._committed - mark
        if rows > len(self._queue):
            return False
        del self._queue[len(self._queue) - rows :]
        self._committed -= rows
        return True

    def frame(self, rows: Sequence[str]) -> str:
        text = "".join(f"{row}\r\n" for row in self._queue)
        self._queue.clear()
        return text

    def forget(self) -> None:
        """What was written is out of reach anyway."""

    def open(self) -> str:
        return ""

    def close(self) -> str:
        return self.frame([])
