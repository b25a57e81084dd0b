"""Large results: the model gets the beginning and the end, and a file that it can read holds the whole (product A7)."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

LIMIT = 65_000
"""Bytes of one result that enter a conversation: some 16,000 tokens, an eighth of a window of 128,000.

Not less than what read_file shows at a time, 64,000 and a note: a page that was cut again could never be read whole.
"""
MOST_KEPT = 50_000_000
"""Bytes of one output that are kept at most. A command that prints without end must not fill the disk."""
KEPT_S = 7 * 24 * 3600.0
"""Seconds for which a file is kept: a conversation that is taken up again within a week still has them."""

_CREATING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class Spill:
    """Where the whole of what was cut is kept: a file each, for this user only, in a folder of this run's own.

    root: holds the folders of all runs, and nothing else. run: the name of this one's. now: unix seconds. Nothing is made
    before the first file; then what is older than KEPT_S is removed, whichever run it was.
    """

    def __init__(self, root: Path, run: str, *, now: Callable[[], float] = time.time) -> None:
        # What the model is told must hold wherever it is read.
        self._root = Path(os.path.realpath(root))
        self.folder = self._root / run
        self._now = now
        self._number = 0

    def create(self) -> tuple[Path, BinaryIO]:
        """A new file, open for writing. Raises OSError."""
        if self._number == 0:
            self._sweep()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            self._number += 1
            # A name is not used again when its file is gone: the conversation may still speak of it.
            path = self.folder / f"{int(self._now())}-{self._number}.txt"
            with suppress(FileExistsError):
                return path, os.fdopen(os.open(path, _CREATING, 0o600), "wb")

    def _sweep(self) -> None:
        """Removes old files, and folders that are empty for it. What can't be removed stays: it harms nobody."""
        before = self._now() - KEPT_S
        with suppress(OSError):
            for folder in list(self._root.iterdir()):
                if folder.is_dir() and not folder.is_symlink():
                    _remove_older(folder, before)


def _remove_older(folder: Path, before: float) -> None:
    for file in list(folder.glob("*.txt")):
        with suppress(OSError):
            if file.lstat().st_mtime < before:
                file.unlink()
                folder.rmdir()  # which the system refuses while there is anything in it


class Kept:
    """A text of any length, taken piece by piece: its two ends in memory, and once that is not all, the whole in a file.

    most_head, most_tail: bytes kept of each end, at least 1. spill: None where nothing is kept aside. Whoever has it calls
    `close` in the end, whatever happened. It does not raise over the file: that the whole could not be kept is said where
    something is left out. The file is written on the caller's thread: that is a copy into the system's cache.
    """

    def __init__(self, spill: Spill | None, most_head: int, most_tail: int) -> None:
        self._spill = spill
        self._most_head = most_head
        self._most_tail = most_tail
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._problem = ""

    def feed(self, text: str) -> None:
        """Takes the next piece; it must be encodable."""
        data = text.encode()
        if self._total + len(data) > self._most_head + self._most_tail:
            self._put_aside(data)
        self._total += len(data)
        room = self._most_head - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, len(data) - self._most_tail) :]
        if len(self._tail) > 2 * self._most_tail:
            del self._tail[: -self._most_tail]

    def text(self) -> str:
        """The whole where it fits, else both ends and between them a line in square brackets that says what is missing.

        Ends are of whole characters, and of whole lines where that costs no more than half of them.
        """
        if self._total <= self._most_head + self._most_tail:
            return (self._head + self._tail).decode()
        self._seal()
        head, tail = _beginning(bytes(self._head)), _end(bytes(self._tail[-self._most_tail :]))
        left_out = self._total - len(head.encode()) - len(tail.encode())
        line_end = "" if head.endswith("\n") or not head else "\n"
        return f"{head}{line_end}[{left_out:,} bytes left out here{self._whereabouts()}]\n{tail}"

    def close(self) -> None:
        """Lets go of the file. Where `text` has not told of it, it is removed."""
        if self._file is not None:
            self._give_up()

    def _whereabouts(self) -> str:
        if self._path is None:
            return f"; the whole could not be kept: {self._problem}" if self._problem else ""
        what = "the whole is" if self._total <= MOST_KEPT else f"the first {MOST_KEPT:,} bytes are"
        return f"; {what} in {os.fsencode(self._path).decode(errors='replace')}, which read_file shows"

    def _put_aside(self, data: bytes) -> None:
        """Writes what comes now; first of all, what came before."""
        if self._spill is None or self._problem:
            return
        try:
            if self._file is None:
                self._path, self._file = self._spill.create()
                self._file.write(self._head + self._tail)
            self._file.write(data[: max(0, MOST_KEPT - self._total)])
        except OSError as error:
            self._fail(error)

    def _seal(self) -> None:
        """The file is complete and stays."""
        if self._file is None:
            return
        try:
            self._file.close()  # what is still buffered may be what the disk has no room for
            self._file = None
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        """A file is whole or not there."""
        self._problem = error.strerror or type(error).__name__
        self._give_up()

    def _give_up(self) -> None:
        with suppress(OSError):
            if self._file is not None:
                self._file.close()
        with suppress(OSError):
            if self._path is not None:
                self._path.unlink()
        self._file = self._path = None


def cut(text: str, spill: Spill | None, limit: int = LIMIT) -> str:
    """`text`, which must be encodable, with its middle left out where it has more than `limit` bytes (at least 2)."""
    kept = Kept(spill, limit - limit // 2, limit // 2)
    kept.feed(text)
    return kept.text()


def _beginning(data: bytes) -> str:
    end = data.rfind(b"\n") + 1
    return (data[:end] if end > len(data) // 2 else data).decode(errors="ignore")


def _end(data: bytes) -> str:
    start = data.find(b"\n") + 1
    return (data[start:] if start <= len(data) // 2 else data).decode(errors="ignore")
