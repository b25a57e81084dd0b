"""What a person waits for and what the machine pays, in a pseudo-terminal: mini-agent, the least there can be, and peers.

    python bench/terminal.py [--runs 5] [--codex PATH] [--llm PATH]

Needs pyte (the test extra) and Linux's /proc. The programs take turns: one whole and one interrupted answer each round, by
`provider.py`. A first round, in which they fill their caches, is not counted. The screen is read through a terminal
emulator. "floor" is a raw socket whose pieces are printed as they come, without Markdown: what that takes is the
instrument's own, and the others are judged by their distance from it. codex and llm are taken from PATH where it has them,
and get homes of their own.
"""

import argparse
import contextlib
import fcntl
import math
import os
import pty
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

import pyte
from peers import Program, programs
from provider import FIRST, PIECES

ROWS, COLUMNS = 40, 100

# The terminal

ANSWERS = {
    b"\x1b[6n": b"\x1b[1;1R",
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b]11;?": b"\x1b]11;rgb:0000/0000/0000\x1b\\",
    b"\x1b[?u": b"\x1b[?0u",
}
"""What a terminal types when it is asked where its cursor is, what it can do, its colour, its keyboard's protocol."""


def environment(folder: Path) -> dict[str, str]:
    """What all programs get: nothing of this process but where programs are."""
    plain = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "HOME": str(folder)}
    return plain | {"PATH": os.environ["PATH"]}


class Terminal:
    """A program in a pseudo-terminal, its screen, and beside it what the provider says."""

    def __init__(self, program: Program, folder: Path, says: IO[bytes] | None = None) -> None:
        self._says = says
        self._said = b""
        self._is_over = False
        self.at: dict[str, float] = {}
        self.written = 0
        self.wrote_at = self.began = time.monotonic()
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._emulator = pyte.ByteStream(self._screen)
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.chdir(folder / "work")
            os.execve(program.command[0], program.command, environment(folder) | program.environment)

    @property
    def text(self) -> str:
        return "\n".join(self._screen.display)

    def shows(self, beginning: str) -> bool:
        return any(row.startswith(beginning) for row in self._screen.display)

    def send(self, keys: bytes) -> float:
        """When they were typed."""
        now = time.monotonic()
        os.write(self._master, keys)
        return now

    def pump(self, timeout_s: float) -> None:
        """Waits so long at most for the program's output or the provider's word, and takes it in."""
        there = [] if self._is_over else [self._master]
        there += [self._says.fileno()] if self._says else []
        ready, _, _ = select.select(there, [], [], timeout_s)
        if self._master in ready:
            try:
                self._take(os.read(self._master, 65536))
            except OSError:
                self._is_over = True
        if self._says and self._says.fileno() in ready:
            *lines, self._said = (self._said + os.read(self._says.fileno(), 65536)).split(b"\n")
            for line in lines:
                word, when = line.decode().split()
                self.at.setdefault(word, float(when))

    def wait_for(self, there: Callable[[], bool], timeout_s: float) -> bool:
        """Until `there`; False where the time is up before."""
        end = time.monotonic() + timeout_s
        while not there():
            if time.monotonic() > end:
                return False
            self.pump(0.02)
        return True

    def rest(self, seconds: float) -> None:
        self.wait_for(lambda: False, seconds)

    def _take(self, data: bytes) -> None:
        self.wrote_at = time.monotonic()
        self.written += len(data)
        for question, answer in ANSWERS.items():
            if question in data:
                self.send(answer)
        with contextlib.suppress(Exception):  # a sequence the emulator does not know changes no text
            self._emulator.feed(data)

    def processes(self) -> list[int]:
        found, ahead = [], [self.pid]
        while ahead:
            found.append(ahead.pop())
            with contextlib.suppress(OSError):
                listed = Path(f"/proc/{found[-1]}/task/{found[-1]}/children").read_text()
                ahead += map(int, listed.split())
        return found

    def processor_ticks(self) -> int:
        """Of the program and all it has started, ended ones included."""
        return sum(sum(map(int, fields[11:15])) for fields in self._stat())

    def resident_mb(self) -> float:
        return sum(int(fields[21]) for fields in self._stat()) * os.sysconf("SC_PAGE_SIZE") / 1_048_576

    def _stat(self) -> Iterator[list[str]]:
        for pid in self.processes():
            with contextlib.suppress(OSError):
                yield Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()

    def close(self) -> None:
        for pid in reversed(self.processes()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._master)


# What is measured

Figures = dict[str, float]
"""By name; what could not be measured is not in it."""

NAMES = {
    "ready": "ready to type, s",
    "memory": "idle memory, MB",
    "request": "Enter to request, s",
    "first": "first piece to screen, s",
    "processor": "processor time of an answer, s",
    "bytes": "bytes to the terminal per byte of text",
    "cancel": "Ctrl+C (codex: Esc) to closed connection, s",
}


def warm_up(terminal: Terminal, program: Program) -> None:
    """Lets a program fill its caches. In its first seconds in a new home, codex takes no Enter."""
    terminal.wait_for(lambda: terminal.shows(program.prompt), 30)
    terminal.rest(2)
    terminal.send(b"hi")
    for _ in range(10):
        terminal.rest(0.5)
        terminal.send(b"\r")
        if terminal.wait_for(lambda: FIRST in terminal.text, 3):
            return


def measured(terminal: Terminal, program: Program, *, stop: bool) -> Figures:
    """One answer, to its end or stopped after a second."""
    figures: Figures = {}
    if not terminal.wait_for(lambda: terminal.shows(program.prompt), 30):
        raise SystemExit(f"{program.name} never came to its prompt:\n{terminal.text}")
    figures["ready"] = terminal.wrote_at - terminal.began
    terminal.rest(0.7)
    figures["memory"] = terminal.resident_mb()
    for key in (b"h", b"i"):
        terminal.send(key)
        terminal.rest(0.05)
    ticks, written = terminal.processor_ticks(), terminal.written
    terminal.at.clear()
    entered = terminal.send(b"\r")
    if not terminal.wait_for(lambda: FIRST in terminal.text and "first" in terminal.at, 30):
        raise SystemExit(f"{program.name} never showed the answer:\n{terminal.text}")
    figures["request"] = terminal.at["request"] - entered
    figures["first"] = terminal.wrote_at - terminal.at["first"]
    if stop:
        terminal.rest(1)
        key_at = terminal.send(program.stop)
        if terminal.wait_for(lambda: "gone" in terminal.at, 5):
            figures["cancel"] = terminal.at["gone"] - key_at
    else:
        if not terminal.wait_for(lambda: "last" in terminal.at, 60):
            raise SystemExit(f"{program.name} did not take the whole answer:\n{terminal.text}")
        terminal.rest(1)
        figures["processor"] = (terminal.processor_ticks() - ticks) / os.sysconf("SC_CLK_TCK")
        figures["bytes"] = (terminal.written - written) / (4 * PIECES)
    return figures


def dues(medians: Mapping[str, Figures]) -> Figures:
    """The most that ours may be; what is due by a peer's measure only where the peer was there."""
    floor = medians["floor"]
    most = {"memory": 50.0, "bytes": 4.0}
    for name, more in (("request", 0.015), ("first", 0.010), ("cancel", 0.005)):
        most[name] = floor[name] + more
    if codex := medians.get("codex"):
        most["ready"] = codex["ready"] / 2
        most["processor"] = codex["processor"] / 4
    if llm := medians.get("llm"):
        most["processor"] = min(most.get("processor", math.inf), llm["processor"])
    return most


def table(runs: Mapping[str, list[Figures]]) -> Iterator[str]:
    """Medians of each program, what is due, and how ours stands to it, as Markdown."""
    values = {
        who: {name: [run[name] for run in each if name in run] for name in NAMES}
        for who, each in runs.items()
    }
    medians = {
        who: {name: statistics.median(figures) for name, figures in named.items() if figures}
        for who, named in values.items()
    }
    most, ours = dues(medians), medians["mini-agent"]
    yield f"| | {' | '.join(runs)} | mini-agent, least to most | due | of it |"
    yield "| --- " * (len(runs) + 4) + "|"
    for name, title in NAMES.items():
        cells = [_rounded(medians[who].get(name)) for who in runs]
        spread = values["mini-agent"][name]
        cells += [f"{_rounded(min(spread))} to {_rounded(max(spread))}", _rounded(most.get(name))]
        cells += [f"{ours[name] / most[name]:.2f}" if name in most else "-"]
        yield f"| {title} | {' | '.join(cells)} |"


def _rounded(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}" if value >= 2 else f"{value:.3f}"


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A folder for a measurement. What programs leave running ends with it: codex keeps a server, which is not counted."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "work").mkdir()
        try:
            yield folder
        finally:
            for process in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    if f"HOME={folder}\0".encode() in (process / "environ").read_bytes():
                        os.kill(int(process.name), signal.SIGKILL)


@contextlib.contextmanager
def provider() -> Iterator[tuple[int, IO[bytes]]]:
    """Its port, and what it says."""
    command = [sys.executable, str(Path(__file__).with_name("provider.py"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline().split()[1]), process.stdout
        finally:
            process.kill()


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--codex", default=shutil.which("codex"), help="its path")
    arguments.add_argument("--llm", default=shutil.which("llm"), help="its path")
    given = arguments.parse_args()
    runs: dict[str, list[Figures]] = {}
    with workplace() as folder, provider() as (port, says):
        there = list(programs(port, folder, given.codex, given.llm))
        for program in there:
            with contextlib.closing(Terminal(program, folder, says)) as terminal:
                warm_up(terminal, program)
        for number in range(given.runs):
            for program in there:
                for stop in (False, True):
                    with contextlib.closing(Terminal(program, folder, says)) as terminal:
                        figures = measured(terminal, program, stop=stop)
                    runs.setdefault(program.name, []).append(figures)
            done = f"round {number + 1} of {given.runs}, load {os.getloadavg()[0]:.1f}"
            print(done, file=sys.stderr, flush=True)
    print("\n".join(table(runs)))


if __name__ == "__main__":
    main()
