"""Notices a text that repeats itself without end while it is still coming (product R5, R6, A5).

What counts is the end of the text: 4,000 characters that are one unit of at most 250, over and over, whole and adjacent.
Rulers and tables repeat themselves too, but not for that long.
"""

from mini_agent.core.surrogates import join_surrogates

WINDOW = 4000
"""Characters that must be nothing but repetition."""

LONGEST_UNIT = 250
"""Characters of what is repeated."""

_STRIDE = 500
"""Characters between two looks, counted from the beginning, so that the pieces a text comes in make no difference."""

_TAIL = 500
"""Characters whose last earlier place gives the period; two of the longest units, so that no shorter one is missed."""

_LABEL = 60
"""Characters of a unit that are told."""


class TextGuard:
    """Is fed one text, piece by piece, in time linear in its length."""

    def __init__(self) -> None:
        self._window = ""
        self._new: list[str] = []
        self._missing = _STRIDE

    def feed(self, text: str) -> str | None:
        """The unit that is repeated, as soon as one is; else None. After a unit it is of no more use."""
        at = 0
        while len(text) - at >= self._missing:
            self._new.append(text[at : at + self._missing])
            at += self._missing
            self._window = "".join((self._window, *self._new))[-WINDOW:]
            self._new.clear()
            self._missing = _STRIDE
            unit = _repeated(self._window)
            if unit is not None:
                return unit
        if at < len(text):
            self._new.append(text[at:] if at else text)
            self._missing -= len(text) - at
        return None


def label(unit: str) -> str:
    """What is repeated, as one short line."""
    line = " ".join(join_surrogates(unit).split())
    if not line:
        return "blank lines" if "\n" in unit else "spaces"
    return line if len(line) <= _LABEL else f"{line[: _LABEL - 1]}…"


def _repeated(window: str) -> str | None:
    """The shortest unit that all of a full window consists of."""
    if len(window) < WINDOW:
        return None
    tail = window[-_TAIL:]
    place = window.rfind(tail, WINDOW - _TAIL - LONGEST_UNIT, WINDOW - 1)
    if place < 0:
        return None
    period = WINDOW - _TAIL - place
    return window[:period] if window[period:] == window[:-period] else None
