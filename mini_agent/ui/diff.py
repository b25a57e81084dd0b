"""A unified diff as rows: coloured, numbered, wrapped, and with nothing in it that could hide or pretend."""

import re
from collections.abc import Iterator

from mini_agent.ui.text import expand_tabs, paint, visible, wrap

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")

NARROW = 24
"""Cells; on less there are no numbers."""


def diff_rows(diff: str, width: int, limit: int) -> list[str]:
    """At most `limit` rows and one that says how many lines are left out. Numbers are those of the new file, or, of a line
    that goes, of the old one.
    """
    lines = diff.removesuffix("\n").split("\n")
    numbers = list(_numbers(lines))
    gutter = max((len(str(number)) for number in numbers if number is not None), default=-1) + 1
    if width < NARROW:
        gutter = 0
    rows: list[str] = []
    for at, (line, number) in enumerate(zip(lines, numbers, strict=True)):
        style = _style(line, is_numbered=number is not None)
        first = paint(f"{number or '':>{gutter - 1}} ", "dim") if gutter else ""
        for piece in wrap(visible(expand_tabs(line)), max(1, width - gutter)):
            rows.append(first + (paint(piece, style) if style else piece))
            first = " " * gutter
        if len(rows) >= limit and at + 1 < len(lines):
            more = len(lines) - at - 1
            return [*rows[:limit], paint(f"… {more} more line{'s' * (more > 1)}", "yellow")]
    return rows


def _numbers(lines: list[str]) -> Iterator[int | None]:
    """Each line's number in its file; None for what is no line of one."""
    old = new = 0
    begun = False
    for line in lines:
        if hunk := _HUNK.match(line):
            old, new, begun = int(hunk[1]), int(hunk[2]), True
            yield None
        elif not begun or line.startswith("\\"):  # "\ No newline at end of file"
            yield None
        elif line.startswith("-"):
            yield old
            old += 1
        else:
            yield new
            new += 1
            old += not line.startswith("+")


def _style(line: str, *, is_numbered: bool) -> str:
    if not is_numbered and line.startswith(("+++ ", "--- ", "\\")):
        return "dim"
    if line.startswith("@@") and not is_numbered:
        return "cyan"
    return "green" if line.startswith("+") else "red" if line.startswith("-") else ""
