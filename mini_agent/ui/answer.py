"""An answer on its way to the screen: Markdown in pieces of any size, rows out.

Loads the renderer and what it needs: for the warm-up, not for the start.
"""

from mini_agent.ui.markdown import MarkdownSplitter
from mini_agent.ui.render import Renderer
from mini_agent.ui.text import SGR, height

KEPT_BACK = 4
"""Rows of a paragraph that may still change, at most: they are painted again with each frame. And a terminal that becomes
narrower breaks them, pushing as many rows into its scrollback; where there is little above them they are among those, and
stand there twice.
"""


HELD = 4
"""Rows that are final and yet kept with those that are not: a commit paints the region anew, so it is made for several."""


class MarkdownText:
    """Implements `flow.AnswerText`. width, lines: of the screen as the answer begins. theme: of code."""

    def __init__(self, width: int, lines: int, theme: str = "ansi_dark") -> None:
        self._splitter = MarkdownSplitter(width=width, rows=min(KEPT_BACK, lines // 2))
        self._renderer = Renderer(theme=theme)
        self._most_held = min(HELD, lines // 4)
        self._held: list[str] = []

    def feed(self, piece: str, width: int) -> list[str]:
        """The rows that are final with `piece`, several at a time."""
        self._held += self._renderer.feed(self._splitter.feed(piece), width)
        if len(self._held) > self._most_held or any(height(row, width) > 1 for row in self._held):
            return self._released()
        return []

    def tail(self, width: int, limit: int) -> list[str]:
        """The last `limit` rows of what is held and of what may still change."""
        rows = [*self._held, *self._renderer.tail(self._splitter.peek(), width, limit)]
        while rows and not SGR.sub("", rows[-1]):
            rows.pop()  # what hangs over the edge of a row is not there yet
        return rows[-limit:]

    def close(self, width: int) -> list[str]:
        """The rest, now final."""
        self._held += self._renderer.feed(self._splitter.close(), width)
        return self._released()

    def _released(self) -> list[str]:
        rows, self._held = self._held, []
        return rows
