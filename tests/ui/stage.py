"""A terminal in memory, and a screen for `View` that paints on it when a test says so."""

from collections.abc import Callable, Sequence

import pyte

from mini_agent.ui.region import Mark, Region


class Terminal:
    """A pyte screen that keeps what scrolls off."""

    def __init__(self, width: int = 80, height: int = 24) -> None:
        self.screen = pyte.HistoryScreen(width, height, history=100_000, ratio=0.5)
        self.stream = pyte.Stream(self.screen)
        self.written: list[str] = []

    def feed(self, text: str) -> None:
        self.written.append(text)
        self.stream.feed(text)

    @property
    def scrollback(self) -> list[str]:
        return [
            "".join(row[at].data for at in range(self.screen.columns)).rstrip()
            for row in self.screen.history.top
        ]

    @property
    def shown(self) -> list[str]:
        return [row.rstrip() for row in self.screen.display]

    @property
    def lines(self) -> list[str]:
        """All there is, without the blank rows at the end."""
        lines = self.scrollback + self.shown
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def at_cursor(self) -> str:
        """The row that the cursor is in."""
        return self.shown[self.screen.cursor.y]

    @property
    def cursor_hidden(self) -> bool:
        return self.screen.cursor.hidden


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Stage:
    """What `Live` is to a view, painted on a `Terminal` by hand."""

    def __init__(self, terminal: Terminal, *, moving: bool = True) -> None:
        self.terminal = terminal
        self.region = Region(terminal.screen.columns, terminal.screen.lines)
        self.rows: Callable[[], Sequence[str]] = list
        self.moving = moving

    @property
    def width(self) -> int:
        return self.terminal.screen.columns - 1

    @property
    def height(self) -> int:
        return self.terminal.screen.lines

    def commit(self, rows: Sequence[str]) -> None:
        self.region.commit(rows)

    def mark(self) -> Mark:
        return self.region.mark()

    def erase_since(self, mark: Mark) -> bool:
        if not self.region.erase_since(mark):
            return False
        self.paint()
        return True

    def changed(self) -> None:
        """Painting is up to the test."""

    def hurry(self) -> None:
        self.paint()

    def paint(self) -> None:
        self.terminal.feed(self.region.frame(self.rows()))

    def close(self) -> None:
        self.terminal.feed(self.region.close())

    def resize(self, width: int, height: int) -> None:
        self.terminal.screen.resize(height, width)
        self.region.resize(width, height)
