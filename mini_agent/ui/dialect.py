"""Which Markdown: CommonMark with GFM's tables and strikethrough, HTML as text. markdown-it is set up here alone."""

import re
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, reference

_PIPE = re.compile(r"(?<!\\)\|")
_DEFINITION = re.compile(r"\[(?:[^\[\]\\]|\\.)+\]:", re.DOTALL)


@lru_cache(maxsize=1)
def parser() -> MarkdownIt:
    """It has no state of its own: what a document defines is in the `env` that is passed to it."""
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def definitions(text: str) -> int:
    """How many lines at the beginning of a paragraph are link reference definitions."""
    line = 0
    if _DEFINITION.match(text):
        state = StateBlock(text, parser(), {}, [])
        while line < state.lineMax and reference(state, line, state.lineMax, False):
            line = state.line
    return line


def columns(row: str) -> list[str]:
    """The cells of a table's row; pipes at its ends are no more than decoration."""
    parts = _PIPE.split(row.strip(" \t"))
    if parts[0] == "":
        del parts[0]
    if parts and parts[-1] == "":
        del parts[-1]
    return [part.replace("\\|", "|").strip(" \t") for part in parts]
