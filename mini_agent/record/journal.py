"""The journal of a session: everything that happens, written as it happens, one JSON object a line (product S1).

Each event is written before it is shown. A line that the system has taken survives the program's end, `kill -9` included;
to survive the machine's, `sync` is called at the end of each turn.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol, Self

from mini_agent.core.errors import ConfigError
from mini_agent.core.events import AttemptProgress, ChannelToken, ToolCallDelta, ToolOutput
from mini_agent.core.redact import begun_key, without_keys
from mini_agent.record.joining import Joiner
from mini_agent.record.lines import encode, mend
from mini_agent.record.locking import lock
from mini_agent.record.records import Header, Record, Resumed

JOIN_S = 0.2
"""How long a piece of text may wait for others. It is due within 250 ms; a timer may be a little late."""

BACKLOG = 8_000_000
"""Bytes kept while they can't be written. With more than that the journal is given up."""

_APPENDING = os.O_APPEND | getattr(os, "O_BINARY", 0)


class Timer(Protocol):
    """What `later` returns."""

    def cancel(self) -> None: ...


Later = Callable[[float, Callable[[], None]], Timer]
"""Calls something after so many seconds: `loop.call_later`."""


class Journal:
    """The writer of one journal; it belongs to one thread, but for `sync`.

    The file and its folders are made with the first record, `header` before it: a session in which nothing was said leaves
    nothing. secrets: what must not be in it, whoever said it; more may be added to them. later: None where pieces of text
    may wait for the next other event. problem: why something could not be written, None while all is well; a journal that
    can't be written ends nothing else, and what could not be written is tried again with the next record.
    """

    def __init__(
        self, path: Path, header: Header, *, secrets: Sequence[str] = (), later: Later | None = None
    ) -> None:
        self.path = path
        self.problem: str | None = None
        self._header = header
        self._secrets = secrets
        self._later = later
        self._timer: Timer | None = None
        self._joiner = Joiner(lambda text: begun_key(text, self._secrets))
        self._begun = False
        self._over = False
        self._unwritten = bytearray()
        self._unsynced = False
        self._fd: int | None = None
        self._guard = threading.Lock()  # for the descriptor, which `sync` uses in another thread

    @classmethod
    def resume(
        cls, path: Path, header: Resumed, *, secrets: Sequence[str] = (), later: Later | None = None
    ) -> Self:
        """Opens a journal that is there, and mends its end; nothing is added before the first record.

        Raises ConfigError where another process has it open.
        """
        journal = cls(path, header, secrets=secrets, later=later)
        try:
            fd = os.open(path, os.O_RDWR | _APPENDING)
        except OSError as error:
            journal._give_up(error)
            return journal
        try:
            if not lock(fd):
                raise ConfigError(
                    f"the session {path.stem} is open in another mini-agent: leave that one first"
                )
            with open(fd, "rb+", buffering=0, closefd=False) as file:
                mend(file)
            journal._fd = fd
        except OSError as error:
            journal._give_up(error)
        finally:
            if journal._fd is None:
                os.close(fd)
        return journal

    @property
    def id(self) -> str:
        """The session's."""
        return self.path.stem

    @property
    def is_begun(self) -> bool:
        """Whether there is something in it."""
        return self._begun or isinstance(self._header, Resumed)

    def write(self, record: Record) -> None:
        """Takes one record. Pieces of text wait for others, everything else is with the system when this returns."""
        if self._over:
            return
        match record:
            case AttemptProgress():
                pass  # a sign of life says nothing later; how the time was spent is in AttemptEnded
            case ChannelToken() | ToolCallDelta() | ToolOutput():
                self._joiner.add(record)
                if self._timer is None and self._later is not None:
                    self._timer = self._later(JOIN_S, self._waited)
            case _:
                self._stop_waiting()
                self._put((*self._joiner.take(), record))

    def sync(self) -> None:
        """Returns when the disk has everything that was written before. For a thread: a disk may take its time."""
        with self._guard:
            if self._fd is None or not self._unsynced:
                return
            self._unsynced = False
            try:
                fd = os.dup(self._fd)  # so that a close meanwhile does not give its number to another file
            except OSError as error:
                self._say(error)
                return
        try:
            os.fsync(fd)
        except OSError as error:
            self._unsynced = True
            self._say(error)
        finally:
            os.close(fd)

    def close(self) -> None:
        """Writes what is left, and lets others open it."""
        self._stop_waiting()
        waiting = self._joiner.take()
        if not self._over and (waiting or self._unwritten):
            self._put(waiting)
        self._over = True
        with self._guard:
            fd, self._fd = self._fd, None
        if fd is not None:
            try:
                os.close(fd)
            except OSError as error:
                self._say(error)

    def _waited(self) -> None:
        self._timer = None
        self._put(self._joiner.take_finished())

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _put(self, records: Iterable[Record]) -> None:
        """Gives records to the system as whole lines, in one go where it takes them so.

        Where it does not, the rest waits, and the next write goes on at the very byte where this one stopped.
        """
        lines = b"".join(encode(record, self._clean) for record in records)
        if lines and not self._begun:
            self._begun = True
            self._unwritten += encode(self._header, self._clean)
        self._unwritten += lines
        try:
            while self._unwritten:
                written = os.write(self._opened(), self._unwritten)
                del self._unwritten[:written]
                self._unsynced = True
        except OSError as error:
            self._say(error)
            if len(self._unwritten) > BACKLOG:
                self._give_up(error)

    def _clean(self, text: str) -> str:
        return without_keys(text, self._secrets)

    def _opened(self) -> int:
        """The file, made where it is not open yet. Raises OSError."""
        if self._fd is None:
            _make_private(self.path.parent)
            fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _APPENDING, 0o600)
            lock(fd)
            self._fd = fd
        return self._fd

    def _say(self, error: OSError) -> None:
        self.problem = self.problem or f"the session's journal can't be written: {error}"

    def _give_up(self, error: OSError) -> None:
        self._say(error)
        self._stop_waiting()
        self._over = True
        self._unwritten.clear()


def _make_private(folder: Path) -> None:
    """Makes a folder and those above it that are missing, for nobody but the user."""
    if not folder.is_dir():
        if folder != folder.parent:
            _make_private(folder.parent)
        with contextlib.suppress(FileExistsError):  # made by another session meanwhile
            folder.mkdir(mode=0o700)
