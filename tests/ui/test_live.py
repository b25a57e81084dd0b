"""The owner of the terminal, on pipes and pseudo-terminals."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from stage import Clock, Terminal

from mini_agent.ui.live import FRAME_S, TICK_S, Live, Stray, can_move
from mini_agent.ui.text import paint

termios = pytest.importorskip("termios", reason="no pseudo-terminals there")


class Pty:
    """A pseudo-terminal whose screen is read through pyte."""

    def __init__(self, width: int = 80, height: int = 24) -> None:
        self.master, self.slave = os.openpty()
        os.set_blocking(self.master, False)
        self.resize(width, height)
        self.terminal = Terminal(width, height)
        self.raw = b""

    def resize(self, width: int, height: int) -> None:
        termios.tcsetwinsize(self.slave, (height, width))

    def read(self) -> "Pty":
        while True:
            try:
                data = os.read(self.master, 65536)
            except BlockingIOError:
                return self
            self.raw += data
            self.terminal.feed(data.decode())

    @property
    def lines(self) -> list[str]:
        return self.read().terminal.lines


@contextmanager
def on_pty(**more: object) -> Iterator[tuple[Pty, Live, Clock]]:
    pty, clock = Pty(), Clock()
    live = make(pty.slave, clock=clock, **more)
    try:
        yield pty, live, clock
    finally:
        live.close()
        os.close(pty.slave)
        os.close(pty.master)


def make(fd: int, **more: object) -> Live:
    given = {
        "encoding": "utf-8",
        "colour": True,
        "moving": True,
        "clock": Clock(),
        "lost": lambda: None,
    } | more
    return Live(fd, **given)


async def test_it_hides_the_cursor_and_gives_it_back() -> None:
    with on_pty() as (pty, live, _):
        live.start(lambda: ["status"])
        live.commit(["done"])
        live.paint()
        assert pty.lines == ["done", "status"]
        assert pty.terminal.cursor_hidden
        live.stop()
        live.stop()
        assert pty.lines == ["done"]
        assert not pty.terminal.cursor_hidden
        assert pty.raw.rstrip().endswith(b"\x1b[?2004l\x1b[?25h")


async def test_r8_what_is_erased_goes_at_once_unless_the_size_has_changed() -> None:
    with on_pty() as (pty, live, _):
        live.start(lambda: ["status"])
        mark = live.mark()
        live.commit(["abandoned"])
        live.paint()
        assert pty.lines == ["abandoned", "status"]
        assert live.erase_since(mark)
        assert pty.lines == ["status"]
        live.commit(["abandoned"])
        live.paint()
        pty.resize(40, 24)
        assert not live.erase_since(mark)


async def test_outside_of_a_turn_rows_are_just_printed() -> None:
    with on_pty() as (pty, live, _):
        live.commit(["hello"])
        assert pty.lines == ["hello"]
        assert b"\x1b" not in pty.raw


async def test_f04_it_notices_a_resize_at_the_next_frame() -> None:
    with on_pty() as (pty, live, _):
        live.start(lambda: ["x" * live.width])
        live.paint()
        pty.resize(40, 12)
        live.paint()
        assert (live.width, live.height) == (39, 12)
        assert pty.read().raw.endswith(b"\x1b[?2026l")
        assert b"\x1b[J" in pty.raw


async def test_f14_no_colour_and_no_movement() -> None:
    with on_pty(colour=False, moving=False) as (pty, live, _):
        live.start(lambda: ["status"])
        live.commit([paint("red", "red")])
        live.stop()
        assert pty.read().raw == b"red\r\r\n"


async def test_f16_own_symbols_have_an_ascii_form_and_the_rest_is_replaced() -> None:
    with on_pty(encoding="ascii") as (pty, live, _):
        live.commit(["● └ · ✗ … → ↻ ⠋ 漢 \ud800"])
        assert pty.lines == ["* ` - x ~ > @ \\ ? ?"]


@contextmanager
def fake_loop(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> Iterator[list[tuple[float, Callable[[], None]]]]:
    """A loop whose timers a test runs by hand."""
    timers: list[tuple[float, Callable[[], None]]] = []

    def call_at(when: float, callback: Callable[[], None]) -> SimpleNamespace:
        entry = (when, callback)
        timers.append(entry)
        return SimpleNamespace(when=lambda: when, cancel=lambda: entry in timers and timers.remove(entry))

    monkeypatch.setattr(asyncio, "get_running_loop", lambda: SimpleNamespace(time=clock, call_at=call_at))
    yield timers


def test_frames_are_paced_and_nothing_ticks_when_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    frames: list[float] = []
    with on_pty() as (_, live, clock), fake_loop(monkeypatch, clock) as timers:
        live.start(lambda: frames.append(clock.now) or ["x"])
        start = clock.now
        until = start + 1
        while clock.now < until:  # something changes every millisecond for a second
            live.changed()
            due = [entry for entry in timers if entry[0] <= clock.now]
            for entry in due:
                timers.remove(entry)
                entry[1]()
            clock.now += 0.001
        assert frames[0] == start  # the first change is shown at once
        assert 1 / FRAME_S - 2 <= len(frames) <= 1 / FRAME_S + 1
        live.changed()
        assert len(timers) == 1
        timers.pop()[1]()
        assert [round(when - clock.now, 3) for when, _ in timers] == [TICK_S]
        live.stop()
        assert timers == []


def test_a_slow_reader_gets_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    got = b""

    def drain(*_: object) -> tuple[list[int], list[int], list[int]]:
        nonlocal got
        got += os.read(reader, 70_000)
        return [], [], []

    monkeypatch.setattr("mini_agent.ui.live.select.select", drain)
    live = make(writer)
    rows = [f"{number:099}" for number in range(5000)]
    live.commit(rows)
    live.close()
    os.close(writer)
    while piece := os.read(reader, 70_000):
        got += piece
    os.close(reader)
    assert got.decode().split() == rows


def test_a_terminal_that_is_gone_ends_it_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    lost: list[bool] = []
    live = make(writer, lost=lambda: lost.append(True))
    live.commit(["a"])
    live.commit(["b"])
    live.close()
    os.close(writer)
    assert lost == [True]


def test_it_owns_a_duplicate() -> None:
    reader, writer = os.pipe()
    live = make(writer)
    os.close(writer)
    live.commit(["still there"])
    live.close()
    assert os.read(reader, 100) == b"still there\r\n"
    os.close(reader)


def test_what_others_print_is_handed_over_line_by_line_and_neutralised() -> None:
    lines: list[str] = []
    stray = Stray(lines.append)
    print("warn\x1b[2Jing: ", end="", file=stray)
    print("odd\n\nnext", file=stray)
    assert lines == ["warning: odd", "next"]


def test_which_terminals_can_move() -> None:
    assert can_move("xterm-256color")
    assert not can_move("dumb")
    assert not can_move("DUMB")
