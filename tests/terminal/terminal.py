"""The real program in a real terminal: a pseudo-terminal on one side, an emulated screen on the other. POSIX only.

    with Terminal(["mini-agent"], cwd=folder) as terminal:
        terminal.wait_for_prompt()
        terminal.send("hello" + ENTER)
        terminal.wait_for("demo model")

Nothing here sleeps: whoever waits names what for, and what comes out meanwhile is read, shown and kept.
"""

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte
from screen import Cell, Screen

if sys.platform != "win32":
    import fcntl
    import pty
    import struct
    import termios

ENTER, ESC, BACKSPACE, UP = "\r", "\x1b", "\x7f", "\x1b[A"
_BOTTOM = re.compile(r"\S+ · (ask|auto)\b")

CTRL_C, CTRL_D, CTRL_Z = "\x03", "\x04", "\x1a"

GUARDIAN = Path(__file__).with_name("guardian.py")
MARK = "\x1b]7770;over\x07"
"""What the guardian prints after the program's last output."""

PROMPT = ">"
_BRACKETED_PASTE = 2004 << 5  # pyte's number for it
_LEFT = b"\x1b[?2004l"  # what is written when a prompt is left
_CLEARED = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "COLORTERM", "PROMPT_TOOLKIT_NO_CPR")


def paste(text: str) -> str:
    """What a terminal types when `text` is pasted into it."""
    return f"\x1b[200~{text}\x1b[201~"


class Terminal:
    """A program in a terminal of its own. env: what is set besides this process's environment; None takes a name away.

    output: every byte it has written. pid: the program's, once it has been started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str | None] | None = None,
        rows: int = 24,
        columns: int = 80,
    ) -> None:
        self.output = bytearray()
        self.pid = 0
        self.is_stopped = False
        self.screen = Screen(columns, rows, self._to_send)
        self._emulator = pyte.ByteStream(self.screen)
        self._outgoing = b""
        self._said = b""
        self._is_over = False
        self._prompts_left = 0
        self._typed_at = float("-inf")
        self.exit_code: int | None = None
        self._master, self._slave = pty.openpty()
        self._set_size(rows, columns)
        os.set_blocking(self._master, False)
        self._status, status = os.pipe()
        orders, self._orders = os.pipe()
        # Popen, not pty.fork(): it is safe beside the threads that a test may have.
        self._guardian = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARDIAN), str(status), str(orders), MARK, *command],
            cwd=cwd,
            env=_environment(env or {}),
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            pass_fds=(status, orders),
            start_new_session=True,
        )
        os.close(status)
        os.close(orders)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # What is shown

    @property
    def lines(self) -> list[str]:
        """The screen's rows, without spaces at their ends, and without the line under the prompt (see `bottom`)."""
        return [
            "" if self._is_bottom(place, row) else row
            for place, row in enumerate(map(_text, self.screen.rows()))
        ]

    @property
    def bottom(self) -> str:
        """The line under the prompt."""
        rows = enumerate(map(_text, self.screen.rows()))
        return next((row for place, row in rows if self._is_bottom(place, row)), "")

    def _is_bottom(self, place: int, row: str) -> bool:
        return self.cursor_visible and place > self.screen.cursor.y and bool(_BOTTOM.match(row))

    @property
    def scrollback(self) -> list[str]:
        return [_text(row) for row in self.screen.scrollback()]

    @property
    def everything(self) -> list[str]:
        """Scrollback and screen, without the empty rows at the end."""
        rows = [*self.scrollback, *self.lines]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    @property
    def text(self) -> str:
        return "\n".join(self.everything)

    @property
    def flat(self) -> str:
        """The same in one line, so that it does not matter where a message was broken."""
        return " ".join(self.text.split())

    @property
    def prompt(self) -> str | None:
        """What the prompt holds; None where there is none to type at, or still the one that `enter` was typed at."""
        if self.output.count(_LEFT) < self._prompts_left or not self.cursor_visible:
            return None
        rows = self.lines[: self.screen.cursor.y + 1]
        begins = len(rows) - 1
        while begins > 0 and rows[begins].startswith("  "):
            begins -= 1
        if not rows[begins].startswith(PROMPT):
            return None
        return "\n".join(
            [rows[begins].removeprefix(PROMPT).strip(), *(row[2:] for row in rows[begins + 1 :])]
        )

    @property
    def cursor_visible(self) -> bool:
        return not self.screen.cursor.hidden

    @property
    def bracketed_paste(self) -> bool:
        return _BRACKETED_PASTE in self.screen.mode

    @property
    def cooked(self) -> bool:
        """Whether the terminal echoes and edits lines itself, as it does for a shell."""
        local = termios.tcgetattr(self._slave)[3]
        return bool(local & termios.ECHO and local & termios.ICANON and local & termios.ISIG)

    @property
    def restored(self) -> bool:
        """Whether the terminal is as it was before the program."""
        return self.cursor_visible and self.cooked and not self.bracketed_paste

    def cell(self, text: str) -> Cell:
        """The first cell of the last place on the screen where `text` stands."""
        for row in reversed(self.screen.rows()):
            found = "".join(cell.data for cell in row).rfind(text)
            if found >= 0:
                return row[found]
        raise AssertionError(f"{text!r} is not on the screen\n{self.dump()}")

    def resident_kb(self) -> int:
        """The program's resident memory, in kB; Linux only."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        return 0

    # What is done

    def send(self, keys: str | bytes) -> None:
        """Types `keys`, and reads what comes meanwhile."""
        self._typed_at = time.monotonic()
        self._to_send(keys)
        while self._outgoing:
            assert self.pump(5), f"the program does not read what is typed\n{self.dump()}"

    def enter(self, text: str = "", *, then: str = "") -> None:
        """Types a line and Enter, and more in the same breath."""
        self._prompts_left = self.output.count(_LEFT) + 1
        self.send(text + ENTER + then)

    def rest(self, seconds: float) -> None:
        """Reads on until nothing has been typed for so long: some keys only count when they don't follow others at once."""
        while (left := self._typed_at + seconds - time.monotonic()) > 0:
            self.pump(left)

    def resize(self, *, rows: int | None = None, columns: int | None = None) -> None:
        """What the program has written up to now is shown in the old size."""
        while self.pump(0):
            pass
        rows, columns = rows or self.screen.lines, columns or self.screen.columns
        self.screen.resize(rows, columns)
        self._set_size(rows, columns)

    def wait_for(
        self, wanted: str | Callable[["Terminal"], object], timeout_s: float = 10, *, what: str = ""
    ) -> float:
        """Reads until `wanted` (a part of `flat`, or what a function says) is there; returns the seconds that took.

        Fails with what is on the screen.
        """
        began = time.monotonic()
        while not (wanted in self.flat if isinstance(wanted, str) else wanted(self)):
            left = began + timeout_s - time.monotonic()
            if left <= 0 or (not self.pump(min(left, 0.5)) and self._is_over):
                raise AssertionError(f"waited for {what or repr(wanted)}\n{self.dump()}")
        return time.monotonic() - began

    def wait_for_prompt(self, holding: str = "", timeout_s: float = 10) -> float:
        """Until there is a prompt whose line holds exactly that; returns the seconds."""
        return self.wait_for(
            lambda terminal: terminal.prompt == holding, timeout_s, what=f"a prompt holding {holding!r}"
        )

    def wait_for_exit(self, timeout_s: float = 10) -> int:
        """Until the program has ended and all it wrote has been read; returns its exit code (a signal as its negative)."""
        self.wait_for(
            lambda terminal: terminal.exit_code is not None, timeout_s, what="the end of the program"
        )
        if self._master >= 0:
            self.wait_for(lambda terminal: terminal._is_over, timeout_s, what="the program's last output")
        assert self.exit_code is not None
        return self.exit_code

    def send_signal(self, number: signal.Signals) -> None:
        """For the program alone."""
        self.wait_for(lambda terminal: terminal.pid, what="the program's start")
        os.kill(self.pid, number)

    def to_foreground(self) -> None:
        """What a shell's `fg` does with a stopped program."""
        self.is_stopped = False
        os.write(self._orders, b"f")

    def hang_up(self) -> None:
        """The terminal's window is closed."""
        os.close(self._master)
        self._master = -1

    def close(self) -> None:
        """Ends whatever is still there."""
        if self.exit_code is None and self._guardian.poll() is None:
            while not self.pid and self._read_status():
                pass
            if self.pid and self.exit_code is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
        for descriptor in (self._orders, self._master, self._slave):
            if descriptor >= 0:
                os.close(descriptor)
        self._guardian.wait(10)
        os.close(self._status)

    def pump(self, timeout_s: float) -> bool:
        """Waits so long at most for something to happen, and takes it in. False where nothing did."""
        reading = [self._status, *([self._master] if self._master >= 0 else [])]
        writing = [self._master] if self._outgoing and self._master >= 0 else []
        ready, writable, _ = select.select(reading, writing, [], timeout_s)
        if writable:
            written = os.write(self._master, self._outgoing)
            self._outgoing = self._outgoing[written:]
        if self._master in ready:
            self._take(os.read(self._master, 65536))
        elif self._status in ready:  # after all output that came before it
            return self._read_status() or bool(writable)
        return bool(ready or writable)

    def dump(self) -> str:
        """Screen and state, for a failure's message."""
        cursor = self.screen.cursor
        state = [
            f"cursor {cursor.x},{cursor.y} {'visible' if self.cursor_visible else 'hidden'}",
            f"{len(self.screen.history.top)} lines above",
            f"exit code {self.exit_code}",
        ]
        width = self.screen.columns
        rows = [f"|{line:{width}}|" for line in [*self.scrollback[-30:], "·" * width, *self.lines]]
        return "\n".join([", ".join(state), *rows, f"last output: {bytes(self.output[-300:])!r}"])

    def _take(self, data: bytes) -> None:
        self.output += data
        if self.output.endswith(MARK.encode()):
            del self.output[-len(MARK) :]
            self._is_over = True
        self._emulator.feed(data)

    def _read_status(self) -> bool:
        """False where there is nothing to come any more, because the guardian has gone."""
        data = os.read(self._status, 4096)
        self._is_over = self._is_over or not data
        *lines, self._said = (self._said + data).split(b"\n")
        for line in lines:
            match line.decode().split():
                case ["started", pid]:
                    self.pid = int(pid)
                case ["stopped"]:
                    self.is_stopped = True
                case ["exited", code]:
                    self.exit_code = int(code)
                case _:
                    raise AssertionError(f"the guardian said {line!r}")
        return bool(data)

    def _to_send(self, keys: str | bytes) -> None:
        self._outgoing += keys.encode() if isinstance(keys, str) else keys

    def _set_size(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    base = {name: value for name, value in os.environ.items() if name not in _CLEARED}
    base |= {"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    merged = {**base, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def _text(row: Sequence[Cell]) -> str:
    return "".join(cell.data for cell in row).rstrip()
