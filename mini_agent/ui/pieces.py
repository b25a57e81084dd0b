"""What a Markdown splitter gives and a renderer takes: the blocks of a document, in the order they became final."""

from typing import Literal

import msgspec

Kind = Literal["paragraph", "heading", "code", "table", "rule", "definition", "item"]
"""definition: link reference definitions. item: a list item with nothing in it."""


class Box(msgspec.Struct, frozen=True):
    """A block quote, or an item of a list, that pieces stand in.

    key: unique in its document. series: for an item, the key of its list's first item; 0 for a quote. number: of an item
    in an ordered list, counted from the list's first; delimiter: what stands behind it.
    """

    key: int
    series: int = 0
    number: int | None = None
    delimiter: str = ""


class Piece(msgspec.Struct, frozen=True):
    """A block of a document, or a part of a long one.

    text: inline Markdown still, but for code. In code and tables a newline stands behind each line that is complete; a
    table begins with its header and its delimiter row. first, last: of its block; the parts of a block come in order, with
    nothing in between. boxes: what it stands in, outermost first. spaced: whether a blank line stands before it. language:
    a fence's, as written. level: of a heading.
    """

    kind: Kind
    text: str
    first: bool = True
    last: bool = True
    boxes: tuple[Box, ...] = ()
    spaced: bool = False
    language: str = ""
    level: int = 0

    @property
    def number(self) -> int | None:
        """The number of the list item it stands in."""
        return self.boxes[-1].number if self.boxes else None
