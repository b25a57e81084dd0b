"""edit_file: one passage of a file, replaced exactly; every other byte stays as it is."""

import re
from typing import Annotated

import msgspec

from mini_agent.agent.tools import Tool, ToolContext
from mini_agent.core.errors import ToolError
from mini_agent.core.messages import ToolResult
from mini_agent.core.permission import Preview
from mini_agent.workspace.files import Files
from mini_agent_tools.changes import Change, carry_out, common_head, diff_of, encode, propose

_NEWLINE = rb"(?:\r\n|(?<!\r)\n)"
_LISTED = 10
"""How many places an ambiguous match names."""


class EditArguments(msgspec.Struct, frozen=True):
    path: Annotated[str, msgspec.Meta(description="The file, from the workspace or absolute.")]
    old: Annotated[
        str,
        msgspec.Meta(
            description="The text to replace, copied exactly, with as much around it as makes it unique in the file."
        ),
    ]
    new: Annotated[str, msgspec.Meta(description="The text to put in its place.")]
    replace_all: Annotated[
        bool | None,
        msgspec.Meta(description="Replace every occurrence, not just a unique one. Default false."),
    ] = None


class EditFile(Tool[EditArguments]):
    """Replaces `old` by `new`. A line end in either stands for the line end the file has at that place."""

    name = "edit_file"
    description = (
        "Replaces one passage of a file by another. `old` must be in the file exactly once, "
        "white space included, unless replace_all is set."
    )
    effect = "writes"
    parameters = EditArguments

    def preview(self, arguments: EditArguments, context: ToolContext) -> Preview:
        path = context.files.workspace.resolve(arguments.path)
        return propose("edit", path, context.files, lambda: _plan(arguments, context.files))

    async def run(self, arguments: EditArguments, context: ToolContext) -> ToolResult:
        change = _plan(arguments, context.files)
        carry_out(change, context.files)
        return ToolResult(change.summary, detail=diff_of(change, context.files))


def _plan(arguments: EditArguments, files: Files) -> Change:
    """The change. Raises ToolError where it is not clear what it would be.

    A file that was never read may be edited: that `old` is in it once shows that the model knows what it replaces.
    """
    path = files.workspace.resolve(arguments.path)
    shown = files.workspace.relative(path)
    old, new = (text.replace("\r\n", "\n") for text in (arguments.old, arguments.new))
    if not old:
        raise ToolError("old is empty. Give the text to replace; write_file makes a new file.")
    if old == new:
        raise ToolError("old and new are the same: there is nothing to change.")
    before = files.read(path)
    files.require_fresh(path, before)
    pattern, put = _parts(old, new)
    found = _matches(pattern, before, replace_all=bool(arguments.replace_all))
    if not found:
        raise ToolError(f"old was not found in {shown}.{_hint(before, old)}")
    lines = [before.count(b"\n", 0, match.start()) + 1 for match in found[:_LISTED]]
    where = f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}{', ...' * (len(found) > _LISTED)}"
    if len(found) > 1 and not arguments.replace_all:
        times = f"{len(found)}" if len(found) <= _LISTED else f"more than {_LISTED}"
        raise ToolError(
            f"old was found {times} times in {shown} ({where}). "
            "Add more of what is around the right one, or set replace_all."
        )
    _require_encoding(before, put, shown)
    count = f"{len(found)} replacement{'s' * (len(found) > 1)}"
    return Change(path, before, _replaced(before, found, put), f"Edited {shown}: {count} ({where}).")


def _parts(old: str, new: str) -> tuple[re.Pattern[bytes], bytes]:
    """A pattern whose group 1 is what really changes of `old`, and what is put there.

    What the two have in common at either end is matched and left alone, so that the line ends there, which may be of
    both kinds in one file, stay as they are.
    """
    head = common_head(old, new)
    tail = common_head(old[head:][::-1], new[head:][::-1])
    pieces = old[:head], old[head : len(old) - tail], old[len(old) - tail :]
    before, changed, after = (
        _NEWLINE.join(re.escape(encode(line, "old")) for line in piece.split("\n")) for piece in pieces
    )
    return re.compile(before + b"(" + changed + b")" + after), encode(new[head : len(new) - tail], "new")


def _matches(pattern: re.Pattern[bytes], data: bytes, *, replace_all: bool) -> list[re.Match[bytes]]:
    """All that don't overlap, from the left; else, overlapping ones too, as many as it takes to call them ambiguous."""
    if replace_all:
        return list(pattern.finditer(data))
    found: list[re.Match[bytes]] = []
    position = 0
    while len(found) <= _LISTED and (match := pattern.search(data, position)):
        found.append(match)
        position = match.start() + 1
    return found


def _replaced(data: bytes, found: list[re.Match[bytes]], put: bytes) -> bytes:
    pieces: list[bytes] = []
    position = 0
    for match in found:
        pieces += data[position : match.start(1)], put.replace(b"\n", _line_end(data, match.end(1)))
        position = match.end(1)
    return b"".join([*pieces, data[position:]])


def _line_end(data: bytes, stop: int) -> bytes:
    """The line end in use before `stop`: that of the line it is in, else that of the line before."""
    at = data.find(b"\n", stop)
    if at < 0:
        at = data.rfind(b"\n", 0, stop)
    return b"\r\n" if at > 0 and data[at - 1 : at] == b"\r" else b"\n"


def _require_encoding(before: bytes, put: bytes, shown: str) -> None:
    """UTF-8 must not get into a file of another encoding."""
    if put.isascii():
        return
    try:
        before.decode()
    except UnicodeDecodeError as error:
        raise ToolError(
            f"{shown} is not UTF-8 text, and new has characters beyond ASCII: put in, they would be garbled. "
            "Use a command that knows the file's encoding."
        ) from error


def _hint(data: bytes, old: str) -> str:
    """Where `old` would be but for white space, or why it can't be found, or what to do."""
    if "\ufffd" in old:
        return " \ufffd stands for bytes that are not UTF-8: choose a passage without it."
    wanted = [" ".join(line.split()) for line in old.strip().split("\n")]
    lines = [" ".join(line.split()) for line in data.decode(errors="replace").split("\n")]
    first, last = wanted[0], wanted[-1]
    for index in range(len(lines) - len(wanted) + 1):
        there = lines[index : index + len(wanted)]
        if (
            there[0].endswith(first) and there[1:-1] == wanted[1:-1] and there[-1].startswith(last)
            if len(wanted) > 1
            else first and first in there[0]
        ):
            return f" At line {index + 1} there is one that differs only in white space: read it again and copy it exactly."
    return " Read the file again and copy the text exactly."
