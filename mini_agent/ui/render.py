"""Pieces of Markdown as rows for a terminal.

Loads markdown-it: for the warm-up, not for the start.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, Protocol, assert_never

from rich.color import ColorSystem

from mini_agent.ui.dialect import parser
from mini_agent.ui.inline import BOLD, CODE, DIM, inline, safe
from mini_agent.ui.pieces import Box, Piece
from mini_agent.ui.spans import ROOT, Span, Stack, chop, clip, lines, plain, row, wrap_all, wrap_line
from mini_agent.ui.tables import Table
from mini_agent.ui.text import expand_tabs

_BAR = "│ "
_UNDERLINED = "1;4"
_TASKS = {"[ ]": DIM, "[x]": "32", "[X]": "32"}

_Row = list[Span]


class _Place:
    """Where in a document its rendering is."""

    def __init__(self) -> None:
        self.env: dict[str, Any] = {}  # the definitions, as markdown-it keeps them
        self.boxes: tuple[Box, ...] | None = None  # what the last row stands in
        self.begun = False  # the block has rows
        self.rest: _Row = []  # of text: the row that is not full
        self.line: list[str] = []  # of code: the line that is not complete
        self.stack = ROOT
        self.table: Table | None = None
        self.last = 0  # other than 0: the rows are for the moment, and only so many last ones are needed


class Renderer:
    """One document's pieces, in order, as rows: text and its styles (SGR), no other control characters, and no white space
    at the end. They are at most as wide as asked for, but for code: a line of it is a row, however long, so that the
    terminal breaks it and it is copied as one.

    theme, colours: see `Highlighter`. Without its styles a row says the same.
    """

    def __init__(self, *, theme: str = "ansi_dark", colours: ColorSystem = ColorSystem.STANDARD) -> None:
        self._theme = theme
        self._colours = colours
        self._highlighter: Colouring | None = None
        self._place = _Place()

    def feed(self, pieces: Iterable[Piece], width: int) -> list[str]:
        """The rows that are final with `pieces`."""
        return [shown for piece in pieces for shown in self._piece(self._place, piece, width)]

    def tail(self, pieces: Iterable[Piece], width: int, limit: int) -> list[str]:
        """The last `limit` rows of what is not final: of `pieces`, as the splitter's `peek` gives them, and of what was
        fed but fills no row. No row of these is wider than `width`. Changes nothing."""
        place = copy(self._place)
        place.last = limit
        return [shown for piece in pieces for shown in self._piece(place, piece, width)][-limit:]

    def _piece(self, place: _Place, piece: Piece, width: int) -> list[str]:
        if piece.first:
            place.begun = False
            place.stack = ROOT
        hang = _prefix(piece.boxes, width)
        new = [box for box in piece.boxes if box.series and not place.begun and not _shown(place, box)]
        inner = width - len(plain(hang))
        rows = self._body(place, piece, inner)
        if new and piece.last and not rows:
            rows = [[]]  # an item with nothing to show has its sign all the same
        if not rows:
            return []
        if place.last:
            # Without the space that hangs over the edge: it would make a row of its own.
            ends = [clip(body, 0, len(plain(body).rstrip())) for body in rows]
            rows = [part for body in ends for part in chop(body, inner)]
        before = [] if place.begun else _separator(place.boxes, piece, width)
        place.begun, place.boxes = True, piece.boxes
        first = _prefix(piece.boxes, width, new) if new else hang
        return [*before, row([*first, *rows[0]]), *(row([*hang, *body]) for body in rows[1:])]

    def _body(self, place: _Place, piece: Piece, width: int) -> list[_Row]:
        """A piece's rows, without what its boxes put before them."""
        match piece.kind:
            case "paragraph":
                return _text(place, piece, _task(place, piece) or inline(piece.text, place.env), width)
            case "heading":
                style = _UNDERLINED if piece.level == 1 else BOLD
                return _text(place, piece, inline(piece.text, place.env, style), width)
            case "code":
                return self._code(place, piece, width)
            case "table":
                if piece.first or place.table is None:
                    place.table = Table(piece.text, place.env, width, whole=piece.last)
                    return place.table.begin(width)
                return place.table.more(piece.text, place.env, width)
            case "rule":
                return [[("─" * width, DIM)]]
            case "definition":
                return _definition(place, piece, width)
            case "item":
                return []
            case _:
                assert_never(piece.kind)

    def _code(self, place: _Place, piece: Piece, width: int) -> list[_Row]:
        *complete, rest = piece.text.split("\n")
        if complete:
            complete[0] = "".join((*place.line, complete[0]))
            place.line = []
        if rest:
            place.line.append(rest)
        if piece.last and place.line:
            complete.append("".join(place.line))
        rows: list[_Row] = []
        for line in complete:
            line = expand_tabs(line.rstrip())
            if place.last:
                line = line[max(0, len(line) // width - place.last) * width :]
            spans, place.stack = self._coloured(piece.language, line, place.stack)
            rows.append(spans)
        return rows

    def _coloured(self, language: str, line: str, stack: Stack) -> tuple[list[Span], Stack]:
        if not language.strip():
            return [(line, CODE)], stack
        if self._highlighter is None:
            # Here and not above: pygments and rich's themes are large, and many answers have no code.
            from mini_agent.ui.highlight import Highlighter  # noqa: PLC0415

            self._highlighter = Highlighter(self._theme, self._colours)
        return self._highlighter.line(language, line, stack)


class Colouring(Protocol):
    """What a `Highlighter` does."""

    def line(self, language: str, line: str, stack: Stack) -> tuple[list[Span], Stack]: ...


def _text(place: _Place, piece: Piece, spans: Sequence[Span], width: int) -> list[_Row]:
    """The rows of text that are full; all of them with its last piece."""
    *complete, last = lines([*place.rest, *spans])
    rows = [part for line in complete for part in wrap_all(line, width)]
    full, place.rest = wrap_line(last, width)
    rows += full
    if piece.last:
        rows += [place.rest] if plain(place.rest).strip() else []
        place.rest = []
    return rows


def _task(place: _Place, piece: Piece) -> list[Span]:
    """The text of an item that is a task; nothing if it is none."""
    new = piece.first and bool(piece.boxes) and not _shown(place, piece.boxes[-1])
    style = _TASKS.get(piece.text[:3]) if new and piece.boxes[-1].series else None
    if style is None or not piece.text[3:4].isspace():
        return []
    return [(piece.text[:3], style), *inline(piece.text[3:], place.env)]


def _definition(place: _Place, piece: Piece, width: int) -> list[_Row]:
    """Definitions are shown: what came before them could not make use of them."""
    if place.last:
        place.env = {"references": dict(place.env.get("references", {}))}
    parser().parse(piece.text, place.env)
    return wrap_all([("\n".join(map(safe, piece.text.split("\n"))), DIM)], width)


def _shown(place: _Place, box: Box) -> bool:
    return place.boxes is not None and box in place.boxes


def _prefix(boxes: Sequence[Box], width: int, new: Sequence[Box] = ()) -> _Row:
    """What stands before a row: the bars of quotes, the signs of items that are `new`, and white space for other items. It
    takes half of the width at most; of more, the end."""
    out: _Row = []
    for box in boxes:
        if not box.series:
            out.append((_BAR, DIM))
            continue
        sign = "- " if box.number is None else f"{box.number}{box.delimiter} "
        out.append((sign if box in new else " " * len(sign), ""))
    over = max(0, sum(len(text) for text, _ in out) - max(0, min(width // 2, width - 2)))
    return clip(out, over, over + width) if over else out


def _separator(before: tuple[Box, ...] | None, piece: Piece, width: int) -> list[str]:
    """The blank row before a block: between all blocks, but in a list only where one was written."""
    if before is None:
        return []
    shared = 0
    for old, new in zip(before, piece.boxes, strict=False):
        if old != new:
            break
        shared += 1
    common = piece.boxes[:shared]
    series = {boxes[shared].series if len(boxes) > shared else 0 for boxes in (before, piece.boxes)}
    in_list = any(box.series for box in common) or (len(series) == 1 and series != {0})
    return [] if in_list and not piece.spaced else [row(_prefix(common, width))]
