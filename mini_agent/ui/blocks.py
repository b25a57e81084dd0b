"""The block structure of Markdown, line by line: CommonMark's algorithm, with GFM's tables.

markdown-it reads whole documents only. This reads each line once and keeps nothing but the blocks that are open, so that a
stream costs linear time; what it finds is what markdown-it finds in the whole, and tests compare the two. Where markdown-it
departs from CommonMark and GFM, this does not: signs indented by four columns and more don't end a paragraph, and a line
that begins another block is no table's header.
"""

import re
from copy import copy

from mini_agent.ui.dialect import columns
from mini_agent.ui.leaves import Code, Leaf, Table, Text
from mini_agent.ui.pieces import Box, Kind, Piece

NESTING = 16
"""Block quotes and list items in each other, at most; more of their signs are text."""

_ITEM = re.compile(r"(?:[-+*]|([0-9]{1,9})[.)])(?=[ \t]|$)")
_HEADING = re.compile(r"(#{1,6})(?=[ \t]|$)")
_FENCE = re.compile(r"(`{3,})([^`]*)$|(~{3,})(.*)$")
_RULE = re.compile(r"([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_UNDERLINE = re.compile(r"(?:(=)=*|-+)[ \t]*$")
_DELIMITERS = re.compile(r"(?:-[-:|]|[:|][-:|\s])[-:|\s]*$")
_DELIMITER = re.compile(r":?-+:?")


class Cursor:
    """A line that is read from the left, in columns: a tab reaches to the next multiple of 4.

    indent: the columns of white space ahead. next: where the first other character is.
    """

    def __init__(self, line: str) -> None:
        self.line = line
        self._at = 0
        self._column = 0
        self._spare = 0  # columns left of a tab of which some were taken
        self._look()

    @property
    def blank(self) -> bool:
        return self.next == len(self.line)

    @property
    def ahead(self) -> str:
        """What follows the white space."""
        return self.line[self.next :]

    @property
    def rest(self) -> str:
        """What follows, with the white space."""
        return " " * self._spare + self.line[self._at :]

    def take(self, columns: int) -> None:
        """Takes so much of the white space, at most."""
        columns = min(columns, self.indent)
        self.indent -= columns
        while columns:
            if not self._spare:
                self._spare = 4 - self._column % 4 if self.line[self._at] == "\t" else 1
                self._at += 1
            step = min(self._spare, columns)
            self._spare -= step
            self._column += step
            columns -= step

    def skip(self, characters: int) -> None:
        """Takes the white space, and so many characters behind it."""
        self._column += self.indent + characters
        self._at = self.next + characters
        self._spare = 0
        self._look()

    def _look(self) -> None:
        column = self._column + self._spare
        at = self._at
        while self.line.startswith((" ", "\t"), at):
            column += 4 - column % 4 if self.line[at] == "\t" else 1
            at += 1
        self.next = at
        self.indent = column - self._column


class _Open:
    """A container that is open. indent: columns that its item's content is indented by; 0 for a quote."""

    def __init__(self, box: Box, indent: int, mark: str, *, spaced: bool) -> None:
        self.box = box
        self.indent = indent
        self.mark = mark
        self.spaced = spaced
        self.bare = True  # nothing is in it
        self.over = False  # nothing will be in it
        self.shown = False  # a piece has told of it


class Blocks:
    """Takes lines, and puts pieces in `out`. width, limit: see `Text` and `Table`."""

    def __init__(self, *, width: int, limit: int) -> None:
        self.out: list[Piece] = []
        self._width, self._limit = width, limit
        self._open: list[_Open] = []
        self._leaf: Leaf | None = None
        self._keys = 0
        self._gap = False  # the line before was blank
        self._spaced = False
        self._item_begun = False  # in this line

    def part(self) -> None:
        """Makes a shallow copy go its own way, with nothing in `out`."""
        self.out = []
        self._open = [copy(container) for container in self._open]
        if self._leaf:
            self._leaf = copy(self._leaf)
            self._leaf.part(self.out)

    @property
    def room(self) -> int:
        """From so many cells on the next line counts as long: what is kept back shall not be more than `limit` rows. But
        what only whole lines can be gets some room in any case, and the rows of tables, which can't be cut, get more."""
        if isinstance(self._leaf, Table):
            return 2 * self._limit * self._width
        kept = self._leaf.rows if isinstance(self._leaf, Text) else 0
        return max(self._limit // 4, self._limit - kept) * self._width

    def line(self, line: str, *, whole: bool) -> None:
        """whole: whether this is a whole line. If not, it is the beginning of a long one, which is text or code, and
        `more` goes on with it."""
        cursor = Cursor(line)
        self._spaced, self._gap = self._gap, False
        self._item_begun = False
        depth = self._match(cursor)
        matched = depth == len(self._open)
        if isinstance(self._leaf, Code) and matched and self._code(self._leaf, cursor, whole=whole):
            return
        if isinstance(self._leaf, Text):
            if whole and matched and cursor.indent < 4 and self._underlined(self._leaf, cursor.ahead):
                return
            # What only defines is no paragraph that could go on; but its title may still come.
            if not (matched and cursor.ahead.startswith(('"', "'", "("))) and self._leaf.only_defines():
                self._close_leaf()
        depth = self._containers(cursor, depth, whole=whole)
        if whole and cursor.blank:
            self._close_to(depth)
            self._gap = not self._item_begun
        elif not self._begin(cursor, depth, whole=whole):
            self._text(cursor, depth, whole=whole)

    def more(self, text: str, *, ends: bool) -> None:
        """Goes on with a long line. ends: whether this is its end."""
        if isinstance(self._leaf, Code):
            self._leaf.more(text, ends=ends)
        elif isinstance(self._leaf, Text):
            self._leaf.more(text)
            if ends and self._leaf.kind == "heading":
                self._close_leaf()

    def close(self) -> None:
        """The end of the document."""
        self._close_to(0)

    # Containers

    def _match(self, cursor: Cursor) -> int:
        """Takes the signs of the open containers that go on in this line; how many do."""
        for depth, container in enumerate(self._open):
            if not container.indent:
                if cursor.indent > 3 or not cursor.ahead.startswith(">"):
                    return depth
                self._quote(cursor)
            elif container.over or (cursor.indent < container.indent and not cursor.blank):
                return depth
            elif cursor.blank:
                container.over = container.bare
            else:
                cursor.take(container.indent)
        return len(self._open)

    def _containers(self, cursor: Cursor, depth: int, *, whole: bool) -> int:
        """Opens the containers that begin in this line, which stands in `depth` open ones; in how many it stands then."""
        while cursor.indent < 4 and depth < NESTING:
            ahead = cursor.ahead
            if ahead.startswith(">"):
                self._close_to(depth)
                self._quote(cursor)
                self._push(0, "")
            elif (found := _ITEM.match(ahead)) and not (whole and _RULE.match(ahead)):
                bare = found[0] == ahead.rstrip(" \t")
                if (bare or found[1] not in (None, "1")) and self._interrupts(depth):
                    break
                self._item(cursor, found[0], depth)
            else:
                break
            depth += 1
        return depth

    def _interrupts(self, depth: int) -> bool:
        """Whether what begins here would end a paragraph it could be part of."""
        return isinstance(self._leaf, Text) and depth == len(self._open)

    def _quote(self, cursor: Cursor) -> None:
        cursor.skip(1)
        cursor.take(1)

    def _item(self, cursor: Cursor, sign: str, depth: int) -> None:
        before = self._open[depth] if depth < len(self._open) else None
        self._close_to(depth)
        indent = cursor.indent + len(sign)
        cursor.skip(len(sign))
        padding = 1 if cursor.blank or cursor.indent > 4 else cursor.indent
        cursor.take(padding)
        mark = sign[-1]
        number = int(sign[:-1]) if len(sign) > 1 else None
        if before and before.mark == mark:
            number = None if before.box.number is None else before.box.number + 1
            self._push(indent + padding, mark, before.box.series, number)
        else:
            self._push(indent + padding, mark, self._keys + 1, number)
        self._item_begun = True

    def _push(self, indent: int, mark: str, series: int = 0, number: int | None = None) -> None:
        self._keys += 1
        for container in self._open:
            container.bare = False
        box = Box(self._keys, series, number, "" if number is None else mark)
        self._open.append(_Open(box, indent, mark, spaced=self._spaced))

    def _close_to(self, depth: int) -> None:
        """Closes the leaf, and all containers but the first `depth`."""
        self._close_leaf()
        while len(self._open) > depth:
            if self._open[-1].indent and not self._open[-1].shown:
                boxes, spaced = self._place()
                self.out.append(Piece("item", "", boxes=boxes, spaced=spaced))
            self._open.pop()

    # Leaves

    def _place(self) -> tuple[tuple[Box, ...], bool]:
        """Where a leaf that begins now stands, and whether a blank line is before it or the containers it begins."""
        new = [container for container in self._open if not container.shown]
        for container in self._open:
            container.bare, container.shown = False, True
        return tuple(container.box for container in self._open), new[0].spaced if new else self._spaced

    def _close_leaf(self) -> None:
        leaf, self._leaf = self._leaf, None
        if leaf:
            leaf.close()

    def _code(self, leaf: Code, cursor: Cursor, *, whole: bool) -> bool:
        """Gives the line to open code, if it is part of it."""
        if leaf.fence and whole and cursor.indent < 4 and leaf.closed_by(cursor.ahead):
            self._close_leaf()
            return True
        if not leaf.fence and cursor.indent < 4 and not cursor.blank:
            return False
        cursor.take(leaf.indent)
        leaf.add(cursor.rest, ends=whole)
        self._gap = cursor.blank
        return True

    def _underlined(self, leaf: Text, ahead: str) -> bool:
        """Makes the open paragraph, or its last line, what the line under it says: a heading, or a table's header."""
        if leaf.headable and _delimits(leaf.lines[-1], ahead):
            header = leaf.take_header()
            spaced = leaf.spaced and leaf.first and not leaf.lines
            self._close_leaf()
            self._leaf = Table(
                self.out, leaf.boxes, spaced, header=[header, ahead], width=self._width, limit=self._limit
            )
            return True
        if leaf.first and (found := _UNDERLINE.match(ahead)) and not leaf.only_defines():
            leaf.become_heading(1 if found[1] else 2)
            self._close_leaf()
            return True
        return False

    def _begin(self, cursor: Cursor, depth: int, *, whole: bool) -> bool:
        """Begins a leaf that is no paragraph, if the line does."""
        ahead = cursor.ahead
        if cursor.indent >= 4:
            if isinstance(self._leaf, Text):
                return False
            self._close_to(depth)
            cursor.take(4)
            code = self._leaf = Code(self.out, *self._place(), indent=4)
            code.add(cursor.rest, ends=whole)
        elif whole and _RULE.match(ahead):
            self._close_to(depth)
            boxes, spaced = self._place()
            self.out.append(Piece("rule", "", boxes=boxes, spaced=spaced))
        elif found := _HEADING.match(ahead):
            self._close_to(depth)
            heading = self._leaf = self._new_text("heading", len(found[1]))
            heading.add(ahead[found.end() :].lstrip(" \t"), headable=False)
            if whole:
                self._close_leaf()
        elif whole and (found := _FENCE.match(ahead)):
            self._close_to(depth)
            language = (found[2] or found[4] or "").split()
            self._leaf = Code(
                self.out,
                *self._place(),
                fence=found[1] or found[3],
                indent=cursor.indent,
                language=language[0] if language else "",
            )
        else:
            return False
        return True

    def _text(self, cursor: Cursor, depth: int, *, whole: bool) -> None:
        """A line of text, which goes on with a paragraph also where it lacks the signs of its containers."""
        matched = depth == len(self._open)
        if isinstance(self._leaf, Text):
            self._leaf.add(cursor.ahead, headable=matched and cursor.indent < 4)
        elif isinstance(self._leaf, Table) and matched and whole:
            self._leaf.add(cursor.ahead.rstrip(" \t"))
        else:
            self._close_to(depth)
            text = self._leaf = self._new_text("paragraph")
            text.add(cursor.ahead, headable=True)

    def _new_text(self, kind: Kind, level: int = 0) -> Text:
        return Text(self.out, kind, *self._place(), width=self._width, limit=self._limit, level=level)


def _delimits(header: str, line: str) -> bool:
    """Whether `line` is a table's delimiter row, and has as many columns as `header`."""
    if "|" not in header or not _DELIMITERS.match(line):
        return False
    cells = [cell.strip(" \t") for cell in line.split("|")]
    cells = cells[not cells[0] : len(cells) - (not cells[-1])]
    return 0 < len(cells) == len(columns(header)) and all(map(_DELIMITER.fullmatch, cells))
