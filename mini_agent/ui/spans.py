"""Styled text before it becomes a row: cut, wrapped and painted."""

from collections.abc import Iterable, Sequence

from mini_agent.ui.text import cells, wrap_open

Span = tuple[str, str]
"""Text without control characters but newline, and its style as SGR parameters; empty: none."""

Stack = tuple[str, ...]
"""The states that what colours code was in at the end of a line; empty where it has none that could be kept."""

ROOT: Stack = ("root",)


def plain(spans: Iterable[Span]) -> str:
    """The text alone."""
    return "".join(text for text, _ in spans)


def joined(spans: Iterable[Span]) -> list[Span]:
    """The same with neighbours of one style made one."""
    out: list[Span] = []
    for text, style in spans:
        if out and out[-1][1] == style:
            out[-1] = (out[-1][0] + text, style)
        elif text:
            out.append((text, style))
    return out


def row(spans: Sequence[Span]) -> str:
    """What to write to show `spans` as a row: without white space at its end."""
    length = len(plain(spans).rstrip())
    shown = joined(clip(spans, 0, length))
    return "".join(f"\x1b[{style}m{text}\x1b[0m" if style else text for text, style in shown)


def clip(spans: Iterable[Span], begin: int, end: int) -> list[Span]:
    """The characters from `begin` up to `end`."""
    out: list[Span] = []
    at = 0
    for text, style in spans:
        if part := text[max(0, begin - at) : max(0, end - at)]:
            out.append((part, style))
        at += len(text)
    return out


def lines(spans: Iterable[Span]) -> list[list[Span]]:
    """Cut at the newlines; at least one."""
    out: list[list[Span]] = [[]]
    for text, style in spans:
        first, *others = text.split("\n")
        out[-1].append((first, style))
        out += [[(other, style)] for other in others]
    return out


def wrap_line(spans: Sequence[Span], width: int) -> tuple[list[list[Span]], list[Span]]:
    """The rows of one line that are full, and the rest; see `text.wrap_open`."""
    text = plain(spans)
    full, rest = wrap_open(text, width)
    if not full:
        return [], clip(spans, 0, len(rest)) if len(rest) < len(text) else list(spans)
    rows: list[list[Span]] = []
    at = 0
    for part in full:
        at = text.index(part, at)
        rows.append(clip(spans, at, at + len(part)))
        at += len(part)
    at += len(text) - at - len(text[at:].lstrip(" "))
    return rows, clip(spans, at, at + len(rest))


def wrap_all(spans: Iterable[Span], width: int) -> list[list[Span]]:
    """All rows of it, at least one; each newline ends one."""
    rows: list[list[Span]] = []
    for line in lines(spans):
        full, rest = wrap_line(line, width)
        rows += [*full, rest]
    return rows


def chop(spans: Iterable[Span], width: int) -> list[list[Span]]:
    """Rows of `width` cells, as a terminal would break a line that is too long; at least one."""
    rows: list[list[Span]] = [[]]
    left = width
    for text, style in spans:
        if cells(text) <= left:
            rows[-1].append((text, style))
            left -= cells(text)
            continue
        for char in text:
            size = cells(char)
            if size > left and left < width:
                rows.append([])
                left = width
            rows[-1].append((char, style))
            left -= size
    return [joined(part) for part in rows]
