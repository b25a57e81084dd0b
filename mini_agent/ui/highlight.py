"""Syntax colours by pygments, a line at a time, so that code that streams costs linear time."""

import re
from functools import lru_cache
from typing import Any

# pygments has no types of its own
from pygments.lexer import (  # type: ignore[import-untyped]
    ExtendedRegexLexer,
    Lexer,
    LexerContext,
    RegexLexer,
)
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.styles import get_all_styles, get_style_by_name  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]
from rich.color import ColorSystem
from rich.style import Style
from rich.syntax import RICH_SYNTAX_THEMES, ANSISyntaxTheme

from mini_agent.ui.inline import CODE
from mini_agent.ui.spans import ROOT, Span, Stack, joined

_LONGEST = 1000
"""Longer lines are not coloured: some of pygments' expressions take more than linear time."""

_DEEPEST = 100
"""Nested states that are kept."""

_NAME = re.compile(r"[{.]*([\w+#.-]+)")


class Highlighter:
    """theme: `ansi_dark` or `ansi_light` (the terminal's own colours), or one of pygments' styles; an unknown one is the
    first. colours: what the terminal can show."""

    def __init__(self, theme: str, colours: ColorSystem) -> None:
        known = theme in RICH_SYNTAX_THEMES or theme in get_all_styles()
        self._theme = theme if known else "ansi_dark"
        self._colours = colours
        self._styles: dict[Any, str] = {}

    def line(self, language: str, line: str, stack: Stack) -> tuple[list[Span], Stack]:
        """`line` in colours, and the stack for the next. The characters stay what they are, whatever a lexer does."""
        lexer = _lexer(language)
        if lexer is None or len(line) > _LONGEST:
            return [(line, CODE)], stack
        tokens, stack = _tokens(lexer, line + "\n", stack)
        if "".join(text for _, text in tokens) != line + "\n":
            return [(line, CODE)], ROOT
        spans = ((text.rstrip("\n"), "" if text.isspace() else self._style(kind)) for kind, text in tokens)
        return joined(spans), stack

    def _style(self, kind: Any) -> str:
        """A kind of token's SGR parameters."""
        if kind not in self._styles:
            sample = _style(self._theme, kind).render("x", color_system=self._colours)
            self._styles[kind] = sample.partition("x")[0][2:-1]
        return self._styles[kind]


def _style(theme: str, kind: Any) -> Style:
    if ansi := RICH_SYNTAX_THEMES.get(theme):
        return ANSISyntaxTheme(ansi).get_style_for_token(kind)
    try:
        found = get_style_by_name(theme).style_for_token(kind)
    except KeyError:  # a kind of a lexer's own
        return _style(theme, kind.parent)
    colour = f"#{found['color']}" if found["color"] else None
    return Style(color=colour, bold=found["bold"], italic=found["italic"], underline=found["underline"])


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    """What reads a fence's language; None where it is unknown, or plain text."""
    name = _NAME.match(language)
    try:
        lexer = get_lexer_by_name(name[1].lower()) if name else None
    except ClassNotFound:
        return None
    return lexer if isinstance(lexer, Lexer) and lexer.name != "Text only" else None


def _tokens(lexer: Lexer, line: str, stack: Stack) -> tuple[list[tuple[Any, str]], Stack]:
    """A line's tokens. Most lexers keep their state in a stack, which `ExtendedRegexLexer` gives access to."""
    try:
        if stack and isinstance(lexer, RegexLexer) and not isinstance(lexer, ExtendedRegexLexer):
            context = LexerContext(line, 0, list(stack))
            tokens = list(ExtendedRegexLexer.get_tokens_unprocessed(lexer, context=context))
            return [(kind, text) for _, kind, text in tokens], tuple(context.stack[-_DEEPEST:])
    except Exception:  # noqa: BLE001  some lexers' own functions can't be called so; they read each line by itself
        return _tokens(lexer, line, ())
    try:
        return [(kind, text) for _, kind, text in lexer.get_tokens_unprocessed(line)], ()
    except Exception:  # noqa: BLE001  hundreds of lexers by hundreds of people: none of them ends an answer
        return [], ()
