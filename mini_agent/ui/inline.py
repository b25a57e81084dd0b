"""The inline Markdown of a block as styled text, by markdown-it's tokens."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from markdown_it.token import Token

from mini_agent.ui.dialect import parser
from mini_agent.ui.spans import Span, joined, plain
from mini_agent.ui.text import STYLES, neutralise

BOLD, DIM, CODE = STYLES["bold"], STYLES["dim"], STYLES["cyan"]
_STYLES = {"strong_open": BOLD, "em_open": "3", "s_open": "9", "link_open": "4"}

_MARKUP = re.compile(r"[\\`*_~\[!<&\n]")
_BLANKS = str.maketrans("\n\t", "  ")


def inline(text: str, env: dict[str, Any], base: str = "") -> list[Span]:
    """`text` styled, with its line breaks. env: what markdown-it keeps definitions in. base: a style for all of it."""
    if not _MARKUP.search(text):
        return [(safe(text), base)]
    tokens: list[Token] = []
    md = parser()
    md.inline.parse(text, md, env, tokens)
    return styled(tokens, base)


def styled(tokens: Iterable[Token], base: str = "") -> list[Span]:
    """Inline tokens as styled text."""
    styles = [base] if base else []
    links: list[tuple[int, str]] = []  # where its text begins, and its address
    out: list[Span] = []
    for token in tokens:
        match token.type:
            case "softbreak" | "hardbreak":
                out.append(("\n", ""))
            case "code_inline":
                out.append((safe(token.content), _sgr(styles, CODE)))
            case "image":
                address = safe(str(token.attrs.get("src", "")))
                text = styled(token.children or [], base)
                out += [*text, *_address(text, address, styles)]
            case "link_open":
                links.append((len(out), safe(str(token.attrs.get("href", "")))))
                styles.append(_STYLES["link_open"])
            case "link_close":
                styles.pop()
                begin, address = links.pop()
                out += _address(out[begin:], address, styles)
            case "strong_open" | "em_open" | "s_open":
                styles.append(_STYLES[token.type])
            case "strong_close" | "em_close" | "s_close":
                styles.pop()
            case _:
                out.append((safe(token.content), _sgr(styles)))
    return joined(out)


def safe(text: str) -> str:
    """`text` on one line and without control characters: entities and addresses can bring them in."""
    return text if text.isprintable() else neutralise(text).translate(_BLANKS)


def _sgr(styles: Sequence[str], *more: str) -> str:
    return ";".join((*styles, *more))


def _address(text: Sequence[Span], address: str, styles: Sequence[str]) -> list[Span]:
    """An address behind its text, where the text is not the address already."""
    shown = plain(text)
    if not address or address in (shown, f"mailto:{shown}"):
        return []
    return [(f" ({address})" if shown else address, _sgr(styles, DIM))]
