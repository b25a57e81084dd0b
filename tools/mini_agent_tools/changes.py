"""What writing and editing have in common: text made into bytes, the diff, and the question before it."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from mini_agent.core.errors import ToolError
from mini_agent.core.permission import Preview
from mini_agent.core.surrogates import join_surrogates
from mini_agent.workspace.files import Files

_CONTEXT = 3
_MOST_COMPARED = 2000
"""Lines on one side up to which the best diff is looked for: its cost grows with their square."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a file is and what it would become. before: None where there is no file yet. summary: for the model."""

    path: Path
    before: bytes | None
    after: bytes
    summary: str


def propose(verb: str, path: Path, files: Files, plan: Callable[[], Change]) -> Preview:
    """The preview of a change that `plan` makes.

    What can't be done is refused before anybody is asked; outside the workspace only afterwards, because a refusal
    tells the model something of what the file holds, and that needs the user's word.
    """
    shown = files.workspace.relative(path)
    try:
        diff = diff_of(plan(), files)
    except ToolError:
        if files.workspace.is_inside(path):
            raise
        diff = ""
    return Preview((str(path),), shown, f"{verb} {shown}", diff)


def carry_out(change: Change, files: Files) -> None:
    """Writes it. The model knows the file afterwards if it knew it before, or made it."""
    files.write(change.path, change.after)
    if change.before is None or files.is_known(change.path):
        files.remember(change.path, sha256(change.after).digest())


def encode(text: str, parameter: str) -> bytes:
    """A parameter's text as UTF-8. Raises ToolError where it holds half a character: nothing is written in its place."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        whole = join_surrogates(text)
        if whole.count("\ufffd") != text.count("\ufffd"):
            raise ToolError(
                f"{parameter} has half of a \\u escape pair in it. Send the character itself."
            ) from error
        return whole.encode()


def has_crlf(data: bytes) -> bool:
    """Whether every line of `data` ends in CRLF; False where there are no line ends."""
    return 0 < data.count(b"\n") == data.count(b"\r\n")


def diff_of(change: Change, files: Files) -> str:
    """A unified diff of the change, for the screen; "" where nothing changes.

    Bytes that are not UTF-8 are shown as U+FFFD. Line ends are shown only where they are part of the change.
    """
    if change.before == change.after:
        return ""
    before, after = change.before or b"", change.after
    if has_crlf(after) and (not before or has_crlf(before)):
        before, after = before.replace(b"\r\n", b"\n"), after.replace(b"\r\n", b"\n")
    old, new = _lines(before), _lines(after)
    shown = files.workspace.relative(change.path)
    names = (f"--- {'/dev/null' if change.before is None else f'a/{shown}'}", f"+++ b/{shown}")
    return "".join(_marked([f"{name}\n" for name in names]) + _marked(_hunks(old, new)))


def _lines(data: bytes) -> list[str]:
    """The lines with their ends. Only LF ends one: what else Python would split at is part of the text."""
    lines = data.decode(errors="replace").split("\n")
    return [f"{line}\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])


def _marked(lines: Iterable[str]) -> list[str]:
    """A line without an end gets the mark that diff and patch use for it."""
    return [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]


def _hunks(old: list[str], new: list[str]) -> list[str]:
    """The hunks. What both sides begin and end with is set aside first, so that the cost is that of the change."""
    head = common_head(old, new)
    tail = common_head(old[head:][::-1], new[head:][::-1])
    start, spare = max(0, head - _CONTEXT), max(0, tail - _CONTEXT)
    a, b = old[start : len(old) - spare], new[start : len(new) - spare]
    lines: list[str] = []
    for group in _groups(a, b, head - start, tail - spare):
        (_, a1, _, b1, _), (_, _, a2, _, b2) = group[0], group[-1]
        lines.append(f"@@ -{_range(start + a1, start + a2)} +{_range(start + b1, start + b2)} @@\n")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [f" {line}" for line in a[i1:i2]]
            else:
                lines += [f"-{line}" for line in a[i1:i2]] + [f"+{line}" for line in b[j1:j2]]
    return lines


def _groups(
    a: list[str], b: list[str], lead: int, trail: int
) -> Iterable[list[tuple[str, int, int, int, int]]]:
    """What each hunk is made of, as difflib has it; one hunk where both sides are too long to compare.

    lead, trail: how many lines at the beginning and the end are known to be equal.
    """
    if len(a) * len(b) <= _MOST_COMPARED**2:
        return difflib.SequenceMatcher(None, a, b).get_grouped_opcodes(_CONTEXT)
    i, j = len(a) - trail, len(b) - trail
    return [
        [
            ("equal", 0, lead, 0, lead),
            ("replace", lead, i, lead, j),
            ("equal", i, len(a), j, len(b)),
        ]
    ]


def _range(start: int, stop: int) -> str:
    """A range of lines as a hunk's head has it: the first line and how many; an empty one names the line before it."""
    if stop - start == 1:
        return f"{stop}"
    return f"{start + (stop > start)},{stop - start}"


def common_head(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines, or characters, both begin with."""
    for count, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return count
    return min(len(one), len(other))
