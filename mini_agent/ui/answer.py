"""An answer on its way to the screen: Markdown in pieces of any size, rows out.

Loads the renderer and what it needs: for the warm-up, not for the start.
"""

from mini_agent.ui.markdown import MarkdownSplitter
from mini_agent.ui.render import Renderer

KEPT_BACK = 4
"""Rows of a paragraph that may still change, at most: they are painted again with each frame. And a terminal that becomes
narrower breaks them, pushing as many rows into its scrollback; where there is little above them they are among those, and
stand there twice.
"""


class MarkdownText:
    """Implements `flow.AnswerText`. width, lines: of the screen as the answer begins. theme: of code."""

    def __init__(self, width: int, lines: int, theme: str = "ansi_dark") -> None:
        self._splitter = MarkdownSplitter(width=width, rows=min(KEPT_BACK, lines // 2))
        self._renderer = Renderer(theme=theme)

    def feed(self, piece: str, width: int) -> list[str]:
        """The rows that are final with `piece`."""
        return self._renderer.feed(self._splitter.feed(piece), width)

    def tail(self, width: int, limit: int) -> list[str]:
        """The last `limit` rows of what may still change."""
        return self._renderer.tail(self._splitter.peek(), width, limit)

    def close(self, width: int) -> list[str]:
        """The rest, now final."""
        return self._renderer.feed(self._splitter.close(), width)
