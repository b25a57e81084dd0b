"""read_file: the lines of a text file, as much of it as is good for a model at once."""

import asyncio
import codecs
import hashlib
import os
from pathlib import Path
from typing import Annotated

import msgspec

from mini_agent.agent.tools import Tool, ToolContext
from mini_agent.core.errors import ToolError
from mini_agent.core.messages import ToolResult
from mini_agent.core.permission import Preview
from mini_agent.workspace.files import MOST_BYTES, Files

LINES = 2000
"""How many lines are shown where no limit is given."""
LINE_CHARACTERS = 2000
"""Characters shown of a line."""
PART = 20_000
"""Bytes shown of a line that is read on: three times as many where none is UTF-8, which fits into SIZE."""
SIZE = 64_000
"""Bytes shown at most, whatever the limit."""

_EMPTY = "[The file is empty.]"
_LINE_BYTES = 4 * LINE_CHARACTERS + len(codecs.BOM_UTF8)
_CHUNK = 1 << 18
_SNIFFED = 8192


class ReadArguments(msgspec.Struct, frozen=True):
    path: Annotated[str, msgspec.Meta(description="The file, from the workspace or absolute.")]
    offset: (
        Annotated[
            int,
            msgspec.Meta(
                description="The first line to show, from 1; or what a note at the end of a cut line names for its rest."
            ),
        ]
        | None
    ) = None
    limit: (
        Annotated[int, msgspec.Meta(ge=1, description=f"How many lines to show; {LINES} by default.")] | None
    ) = None


class ReadFile(Tool[ReadArguments]):
    """Shows a file's text as it is, without line numbers, so that every line can be copied into edit_file's `old`.

    Not shown are a byte order mark and the CR of a CRLF: edit_file and write_file put them where they belong. What is
    not the file's own stands in square brackets, in a last line of its own or at the end of a line that was cut. There it
    names an offset for the rest, below 0: bytes from the beginning of the file. So lines keep their numbers, also in files
    that have a few enormous ones.
    """

    name = "read_file"
    description = (
        "Shows a text file. The text is the file's own, without line numbers; a note in square brackets at the end "
        "says where a long file goes on."
    )
    effect = "reads"
    parameters = ReadArguments

    def preview(self, arguments: ReadArguments, context: ToolContext) -> Preview:
        path = context.files.workspace.resolve(arguments.path)
        shown = context.files.workspace.relative(path)
        return Preview((str(path),), shown, f"read {shown}")

    async def run(self, arguments: ReadArguments, context: ToolContext) -> ToolResult:
        offset = 1 if arguments.offset is None else arguments.offset
        if -LINE_CHARACTERS < offset < 1:  # the rest of no line begins so early; it may be meant from the end
            raise ToolError(
                "offset is the number of a line, from 1; the last ones can't be asked for from the end."
            )
        path = context.files.workspace.resolve(arguments.path)
        window = Window(offset, arguments.limit or LINES)
        size = await _read(path, window, context.files)
        return ToolResult(window.text(context.files.workspace.relative(path), size))


async def _read(path: Path, window: "Window", files: Files) -> int:
    """Fills the window; returns the size in bytes. The file is remembered as seen if it was read to its end.

    Off the loop, a chunk at a time: a slow disk must not hold up the terminal, and a cancel waits for one chunk at most.
    """
    digest = hashlib.sha256()
    with files.open(path) as file:
        size = os.fstat(file.fileno()).st_size
        first = True
        try:
            while chunk := await asyncio.to_thread(file.read, _CHUNK):
                if first:
                    _require_text(chunk, files.workspace.relative(path), size)
                    first = False
                window.feed(chunk)
                digest.update(chunk)
                if window.more and size > MOST_BYTES:
                    return size
        except OSError as error:
            raise ToolError(f"{files.workspace.relative(path)}: {error.strerror or error}.") from error
    window.close()
    files.remember(path, digest.digest())
    return window.size


def _require_text(start: bytes, shown: str, size: int) -> None:
    if b"\0" in start[:_SNIFFED]:
        utf16 = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        kind = "UTF-16 text, which is not shown" if utf16 else "a binary file"
        raise ToolError(f"{shown} is {kind}: {size:,} bytes.")


class Window:
    """Some lines of a file, gathered from its chunks: memory is bounded by what is shown.

    offset: the first line, from 1; below 0, the bytes to pass over, which may end within a line. more: whether the file
    goes on behind the lines. size: bytes fed so far.
    """

    def __init__(self, offset: int, limit: int) -> None:
        self.more = False
        self.size = 0
        self._offset = offset
        self._limit = limit
        self._skip = max(0, -offset)  # bytes still to be passed over
        self._from = self._skip
        self._number = 1  # of the line that `_line` belongs to
        self._line = bytearray()
        self._line_at = self._skip  # where that line, or what is taken of it, begins
        self._left_out = 0  # bytes of this line that are not in `_line`
        self._cut = False  # whether the last line is not shown to its end
        self._ended = True
        self._full = False
        self._lines: list[str] = []
        self._shown = 0
        self._damaged = False

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes of the file, never empty."""
        at, self.size = self.size, self.size + len(chunk)
        self._ended = chunk.endswith(b"\n")
        start = self._pass_over(chunk)
        while start < len(chunk) and not self._full:
            stop = chunk.find(b"\n", start)
            self._take(chunk[start:] if stop < 0 else chunk[start:stop])
            if stop < 0:
                return
            self._end_line(ended=True)
            start = stop + 1
            self._line_at = at + start
        self.more = self.more or start < len(chunk)

    def _pass_over(self, chunk: bytes) -> int:
        """How much of the chunk need not be looked at, because it lies before what is shown."""
        if self._offset < 1:
            passed = min(self._skip, len(chunk))
            self._skip -= passed
            self._number += chunk.count(b"\n", 0, passed)
            if passed < len(chunk):
                self._offset = self._number
            return passed
        ends = chunk.count(b"\n") if self._number < self._offset else 0
        if self._number + ends < self._offset:
            self._number += ends
            return len(chunk)
        return 0

    def close(self) -> None:
        """The file has ended, perhaps within a line."""
        if self._offset > 0 and not self._full and not self._ended:
            self._end_line(ended=False)

    def text(self, shown: str, size: int) -> str:
        """What the model gets of the file `shown` of `size` bytes. Raises ToolError where there is nothing."""
        if size == 0:
            return _EMPTY
        count = len(self._lines)
        if count == 0 and self._from:
            raise ToolError(f"{shown} has only {size:,} bytes.")
        if count == 0:
            total = self._number - 1
            raise ToolError(f"{shown} has only {total:,} line{'s' * (total != 1)}.")
        begins = f", from byte {self._from:,}" if self._from else ""
        lines = f"Lines {self._offset}-{self._offset + count - 1}{begins}"
        notes = []
        if self.more:
            notes.append(
                f"{lines}; the file goes on, {size:,} bytes in all. Read on with offset {self._offset + count}."
            )
        elif (self._offset > 1 or begins) and not self._cut:
            notes.append(f"{lines}: the end of the file.")
        if self._damaged:
            notes.append("\ufffd stands for bytes that are not UTF-8 text.")
        text = "".join(self._lines)
        if not notes:
            return text or _EMPTY  # a byte order mark may be all there is
        return f"{text}{'' if text.endswith(chr(10)) else chr(10)}[{' '.join(notes)}]"

    def _take(self, piece: bytes) -> None:
        """A piece of the current line; of a long one only the beginning is kept."""
        if self._number >= self._offset:
            room = (PART + 1 if self._is_part else _LINE_BYTES) - len(self._line)
            self._line += piece[:room]
            self._left_out += max(0, len(piece) - room)

    @property
    def _is_part(self) -> bool:
        """Whether the current line was asked for from a byte within it."""
        return bool(self._from) and not self._lines

    def _end_line(self, *, ended: bool) -> None:
        """The current line is complete. ended: by a line feed, not by the end of the file."""
        if self._number >= self._offset:
            line = self._shown_line(ended=ended)
            if self._shown + len(line.encode()) > SIZE:
                self._full = self.more = True
                return
            self._lines.append(line)
            self._shown += len(line.encode())
            self._full = len(self._lines) == self._limit
        self._line.clear()
        self._left_out = 0
        self._number += 1

    def _shown_line(self, *, ended: bool) -> str:
        marked = self._line_at == 0 and self._line.startswith(codecs.BOM_UTF8)
        begin = len(codecs.BOM_UTF8) if marked else 0
        raw = bytes(self._line[begin:])
        if ended and not self._left_out:
            raw = raw.removesuffix(b"\r")
        kept = raw[: _border(raw, PART)] if self._is_part else _beginning(raw)
        text = kept.decode(errors="replace").replace("\0", "\ufffd")
        self._damaged = self._damaged or text.encode() != kept
        left_out = self._left_out + len(raw) - len(kept)
        self._cut = left_out > 0
        rest = self._line_at + begin + len(kept)
        note = f" [{left_out:,} more bytes of this line: read on with offset -{rest}]" if left_out else ""
        return text + note + "\n" * ended


def _beginning(raw: bytes) -> bytes:
    """As many characters as are shown of a line, what is not UTF-8 counted by bytes."""
    whole = raw.decode(errors="surrogateescape")
    return whole[:LINE_CHARACTERS].encode(errors="surrogateescape")


def _border(raw: bytes, size: int) -> int:
    """Where the last character ends that begins and ends within `size` bytes; `size` where they are no UTF-8."""
    ends = range(size, max(0, size - 4), -1)
    return next((end for end in ends if end >= len(raw) or raw[end] & 0xC0 != 0x80), size)
