"""A table as rows that fit the screen. What its first part says fixes its widths."""

from collections.abc import Sequence
from typing import Any

from mini_agent.ui.dialect import columns
from mini_agent.ui.inline import BOLD, DIM, inline
from mini_agent.ui.spans import Span, plain, wrap_all
from mini_agent.ui.text import cells

_NARROW = 6
"""Columns that would get fewer cells than this can't be read."""

_BETWEEN = " │ "

_Cell = list[Span]


class Table:
    """A table that comes in parts, as `Piece` has them. text: the first. whole: whether it is the only one. env: what
    markdown-it keeps definitions in. width: cells it may take."""

    def __init__(self, text: str, env: dict[str, Any], width: int, *, whole: bool) -> None:
        header, delimiters, *body = text.splitlines()
        self._header = [inline(cell, env, BOLD) for cell in columns(header)]
        self._sides = [(cell[0] == ":", cell[-1] == ":") for cell in columns(delimiters)]
        self._body = self._parse(body, env)
        self._natural = [
            max(1, *map(_width, column)) for column in zip(self._header, *self._body, strict=True)
        ]
        # Too many columns for the screen: then each cell gets a row of its own, behind its column's name.
        space = self._space(width)
        self._stacked = sum(self._natural) > space < _NARROW * len(self._natural)
        if not whole:  # rows to come may need more
            self._natural = [wanted + max(2, wanted // 2) for wanted in self._natural]
        self._natural = _shares(self._natural, space)

    def begin(self, width: int) -> list[list[Span]]:
        """The rows of the first part."""
        if self._stacked:
            return self._stack(self._body, width)[1:] or [
                row for cell in self._header for row in wrap_all(cell, width)
            ]
        widths = _shares(self._natural, self._space(width))
        rule = "─┼─".join("─" * column for column in widths)
        return [*self._row(self._header, widths), [(rule, DIM)], *self._rows(self._body, widths)]

    def more(self, text: str, env: dict[str, Any], width: int) -> list[list[Span]]:
        """The rows of a later part."""
        body = self._parse(text.splitlines(), env)
        if self._stacked:
            return self._stack(body, width)
        return self._rows(body, _shares(self._natural, self._space(width)))

    def _parse(self, lines: Sequence[str], env: dict[str, Any]) -> list[list[_Cell]]:
        """The rows, each with as many cells as the header has."""
        count = len(self._header)
        rows = [[inline(cell, env) for cell in columns(line)[:count]] for line in lines]
        return [row + [[]] * (count - len(row)) for row in rows]

    def _space(self, width: int) -> int:
        return width - len(_BETWEEN) * (len(self._header) - 1)

    def _stack(self, body: Sequence[Sequence[_Cell]], width: int) -> list[list[Span]]:
        """A blank row, and the cells that are not empty under each other, for each row of the table."""
        rows: list[list[Span]] = []
        for record in body:
            rows.append([])
            for name, cell in zip(self._header, record, strict=True):
                if plain(cell):
                    rows += wrap_all([*name, (": ", BOLD), *cell], width)
        return rows

    def _rows(self, body: Sequence[Sequence[_Cell]], widths: Sequence[int]) -> list[list[Span]]:
        return [row for record in body for row in self._row(record, widths)]

    def _row(self, record: Sequence[_Cell], widths: Sequence[int]) -> list[list[Span]]:
        """A row of the table: as many rows of the screen as its longest cell takes."""
        wrapped = [wrap_all(cell, width) for cell, width in zip(record, widths, strict=True)]
        rows: list[list[Span]] = []
        for at in range(max(map(len, wrapped))):
            row: list[Span] = []
            for column, width, (left, right) in zip(wrapped, widths, self._sides, strict=True):
                part = column[at] if at < len(column) else []
                room = max(0, width - _width(part))
                before = (room // 2 if left else room) if right else 0
                row += [(" " * before, ""), *part, (" " * (room - before), ""), (_BETWEEN, DIM)]
            rows.append(row[:-1])
        return rows


def _width(cell: Sequence[Span]) -> int:
    return cells(plain(cell))


def _shares(wanted: Sequence[int], space: int) -> list[int]:
    """Widths that add up to `space` at most: narrow columns get what they want, wide ones even shares of the rest."""
    widths = list(wanted)
    if sum(wanted) <= space:
        return widths
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    for left, column in zip(range(len(order), 0, -1), order, strict=True):
        widths[column] = max(1, min(wanted[column], space // left))
        space -= widths[column]
    return widths
