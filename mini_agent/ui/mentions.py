"""`@path` in a message: found, written, and the one that is being typed."""

import re
from typing import NamedTuple

LONGEST = 1024
"""A longer path is no mention: nobody types one, and text without blanks can be of any length."""

# Not behind a letter, a digit or what else there is in an address (a.b+c@d.org), a diff (@@), a path (node_modules/@types)
# or a shell ($@). A bare path ends at a blank and at what divides or encloses words, full-width too, since Chinese and
# Japanese set no blanks; a path with such things in it is quoted.
_AT = r"(?<![\w.%+\-/\\@$#`])@"
_ENDS = r"\s\"'`<>|*,;\u2018-\u201f\u3001-\u3003\u3008-\u3011\uff01-\uff0f\uff1a-\uff1f"
_BARE = rf"[^@{_ENDS}][^{_ENDS}]*"
_MENTION = re.compile(rf"{_AT}(?:\"([^\"\n]+)\"|'([^'\n]+)'|({_BARE}))")
_TYPED = re.compile(rf"{_AT}(?:\"([^\"\n]*)|'([^'\n]*)|((?:{_BARE})?))\Z")

_OPENING = {")": "(", "]": "[", "}": "{"}
_AFTER_WORDS = ".:!?…([{"

# Code, in which an @ is something else: fenced (CommonMark 4.5), also where the fence is still open, and within a line.
_CODE = re.compile(
    r"^ {0,3}(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*(?:\n(?! {0,3}(?P=fence)[`~]*[ \t]*$)[^\n]*)*+(?:\n[^\n]*)?"
    r"|(?<!`)(?P<ticks>`+)(?!`)[^\n]*?(?<!`)(?P=ticks)(?!`)",
    re.MULTILINE,
)


class Mention(NamedTuple):
    """raw: as it stands in the text, with the `@`. path: what it names, without quotes; nobody has looked whether it is."""

    raw: str
    path: str


class Typed(NamedTuple):
    """A mention that is not finished. length: the characters it has up to the cursor. path: what there is of the path."""

    length: int
    path: str


def mentions(text: str) -> list[Mention]:
    """The paths that a message mentions, in order, not those in code.

    `@a/b.py`, `@"a b.py"` and `@'a b.py'` at a word's start. What ends a sentence or closes a bracket around a bare path
    does not belong to it; brackets in it do.
    """
    found = []
    for match in _MENTION.finditer(_without_code(text)):
        double, single, bare = match.groups()
        if bare is None:
            path, raw = double or single, match[0]
        else:
            path = _without_punctuation(bare) if len(bare) <= LONGEST else ""
            raw = "@" + path
        if path.strip() and len(path) <= LONGEST:
            found.append(Mention(raw, path))
    return found


def typed(before: str) -> Typed | None:
    """The mention at the end of `before`, the text up to the cursor; None where there is none."""
    tail = -LONGEST - 3
    if "@" not in before[tail:]:
        return None
    match = _TYPED.search(_without_code(before)[tail:])
    return match and Typed(len(match[0]), "".join(filter(None, match.groups())))


def written(path: str) -> str | None:
    """The mention that `mentions` reads as `path`; None where there is no way to write it."""
    if "`" in path or "\n" in path or not path.strip() or len(path) > LONGEST:
        return None
    bare = "@" + path
    if mentions(bare) == [(bare, path)]:
        return bare
    quote = next((quote for quote in "\"'" if quote not in path), None)
    return quote and f"@{quote}{path}{quote}"


def _without_code(text: str) -> str:
    """`text` with backticks in the place of code, so that all else stays where it is."""
    if "`" not in text and "~~~" not in text:
        return text
    return _CODE.sub(lambda match: "`" * len(match[0]), text)


def _without_punctuation(path: str) -> str:
    while path:
        last = path[-1]
        opening = _OPENING.get(last)
        if last not in _AFTER_WORDS and (opening is None or path.count(last) <= path.count(opening)):
            break
        path = path[:-1]
    return path
