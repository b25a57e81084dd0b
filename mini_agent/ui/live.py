"""The terminal while a turn runs: paces the frames of its region (`region.py`) and writes them."""

import asyncio
import io
import os
import select
import sys
from collections.abc import Callable, Sequence

from mini_agent.ui.region import Lines, Mark, Painter, Region
from mini_agent.ui.text import SGR, neutralise

if sys.platform == "win32":
    import ctypes

FRAME_S = 1 / 20
"""At most one frame in this time."""

HURRY_S = 1 / 4
HURRIED_FRAME_S = 1 / 100
"""An answer's first pieces wait for no frame, and for so long those behind them hardly do."""

TICK_S = 1 / 4
"""How often clocks on the screen move on."""

# One cell for one cell, where the output can't take ours.
_ASCII = str.maketrans("●└·✗…→↻⏎↵⠋⠙⠸⠴─│┼", "*`-x~>@|>\\|/--|+")


class Live:
    """The terminal, while a turn runs: frames at most every `frame_s`, a tick every `TICK_S`, nothing in between.

    It writes to a duplicate of `fd`, which it closes. colour, moving: what the terminal can do; without moving there is no
    region. lost: called once when the terminal is gone; from then on nothing is written.
    """

    def __init__(
        self,
        fd: int,
        *,
        encoding: str,
        colour: bool,
        moving: bool,
        clock: Callable[[], float],
        lost: Callable[[], None],
        frame_s: float = FRAME_S,
    ) -> None:
        self._frame_s = frame_s
        self._fd = os.dup(fd)
        self._encoding = encoding
        self._ascii = not _can_encode(encoding)
        self._colour = colour
        self._moving = moving
        self._clock = clock
        self._lost = lost
        self._gone = False
        self._painter: Painter = Lines()
        self._rows: Callable[[], Sequence[str]] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._last_s = self._hurried_until = float("-inf")
        self._columns, self._lines = self._size()

    @property
    def width(self) -> int:
        """Cells of a row. The last column stays free: terminals differ in what a full row does at a resize."""
        return max(1, self._columns - 1)

    @property
    def height(self) -> int:
        return self._lines

    @property
    def moving(self) -> bool:
        return self._moving

    def start(self, rows: Callable[[], Sequence[str]]) -> None:
        """Takes the terminal; `rows` gives the region at each frame."""
        self._columns, self._lines = self._size()
        self._painter = Region(self._columns, self._lines) if self._moving else Lines()
        self._rows = rows
        self._write(self._painter.open())
        self.changed()

    def pause(self) -> None:
        """Gives the terminal to somebody else, in a state they can use; `resume` takes it back."""
        if self._rows is not None:
            self._write(self._painter.close())

    def resume(self) -> None:
        if self._rows is not None:
            self._look()
            self._painter.forget()
            self._write(self._painter.open())
            self.paint()

    def stop(self) -> None:
        """Writes what is still to be written, clears the region, gives the terminal back. Safe to call again."""
        if self._rows is None:
            return
        self._rows = None
        if self._timer:
            self._timer.cancel()
            self._timer = None
        self._look()
        self._write(self._painter.close())
        self._painter = Lines()

    def close(self) -> None:
        """Stops and lets go of the terminal for good."""
        self.stop()
        self._gone = True
        os.close(self._fd)

    def clear_row(self) -> None:
        """Clears the cursor's row: keys that were typed before anyone read them were echoed there."""
        if self._moving:
            self._write("\r\x1b[K")

    def send(self, sequence: str) -> None:
        """A sequence of our own for the terminal, which shows nothing; not where it can't move its cursor."""
        if self._moving:
            self._write(sequence)

    def commit(self, rows: Sequence[str]) -> None:
        """Finished rows: above the region, or, where there is none, at the cursor."""
        self._painter.commit(rows)
        if self._rows is None:
            self._write(self._painter.frame([]))
        else:
            self.changed()

    def mark(self) -> Mark:
        return self._painter.mark()

    def erase_since(self, mark: Mark) -> bool:
        """Takes the rows committed since `mark` off the screen, if they are all still on it as they were written."""
        self._look()
        if not self._painter.erase_since(mark):
            return False
        self.paint()  # at once: a resize in between would make it wrong
        return True

    def changed(self) -> None:
        """There is something new to show: in the next frame."""
        if self._rows is None:
            return
        loop = asyncio.get_running_loop()
        frame_s = HURRIED_FRAME_S if self._clock() < self._hurried_until else self._frame_s
        due = loop.time() + max(0.0, self._last_s + frame_s - self._clock())
        if self._timer is None or self._timer.when() > due:
            self._schedule(due)

    def hurry(self) -> None:
        """Something that was waited for is there: it is shown at once, and what follows it soon."""
        self._hurried_until = self._clock() + HURRY_S
        self.paint()

    def paint(self) -> None:
        """Writes one frame, and sees to the next tick."""
        if self._rows is None:
            return
        if self._timer:
            self._timer.cancel()
            self._timer = None  # an error below must not be taken for a frame that is still to come
        self._look()
        self._last_s = self._clock()
        self._write(self._painter.frame(self._rows()))
        self._schedule(asyncio.get_running_loop().time() + TICK_S)

    def _schedule(self, due: float) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(due, self.paint)

    def _look(self) -> None:
        """Notices a resize."""
        self._columns, self._lines = self._size()
        self._painter.resize(self._columns, self._lines)

    def _size(self) -> tuple[int, int]:
        try:
            columns, lines = os.get_terminal_size(self._fd)
        except OSError:
            return 80, 24
        return columns or 80, lines or 24

    def _write(self, text: str) -> None:
        """Writes all of `text`; a terminal that is gone ends it quietly."""
        if not self._colour:
            text = SGR.sub("", text)
        if self._ascii:
            text = text.translate(_ASCII)
        data = memoryview(text.encode(self._encoding, "replace"))
        while data and not self._gone:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:  # someone made the terminal non-blocking: its flags are shared with us
                select.select([], [self._fd], [], 1)
            except OSError:
                self._gone = True
                self._lost()


def _can_encode(encoding: str) -> bool:
    try:
        "●└✗⠋".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class Stray(io.TextIOBase):
    """Stands in for stdout and stderr while the region lives: what others print is handed over line by line."""

    def __init__(self, take: Callable[[str], object]) -> None:
        self._take = take
        self._line = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            if line.strip():
                self._take(neutralise(line))
        return len(text)

    def rest(self) -> str:
        """A last line that has no end, which is then no longer here."""
        rest, self._line = neutralise(self._line), ""
        return rest


def can_move(term: str) -> bool:
    """Whether the terminal understands cursor movements; on Windows this switches them on."""
    if sys.platform == "win32":
        kernel = ctypes.windll.kernel32
        handle, mode = kernel.GetStdHandle(-11), ctypes.c_ulong()
        known = kernel.GetConsoleMode(handle, ctypes.byref(mode))
        return bool(known and kernel.SetConsoleMode(handle, mode.value | 4))
    else:  # noqa: RET505  mypy checks one branch for each platform
        return term.lower() not in ("dumb", "unknown")
