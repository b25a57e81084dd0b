"""The REPL in this process, on a pseudo-terminal, with a scripted session."""

import asyncio
import os
import select
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple, TextIO

import fake_session as fake
import msgspec
import pytest
from stage import Clock, Terminal

from mini_agent.core.errors import ConfigError, ProtocolError
from mini_agent.ui.answer import MarkdownText
from mini_agent.ui.ports import Approve, Facts, Queued, Resumed
from mini_agent.ui.repl import repl

termios = pytest.importorskip("termios", reason="no pseudo-terminals there")


def quick() -> Iterator[fake.Step]:
    yield from fake.answer(3, 0.0)


def endless() -> Iterator[fake.Step]:
    yield fake.started()
    yield fake.text("beginning")
    yield 3600.0


def printing() -> Iterator[fake.Step]:
    print("stray line")
    yield 0.01
    yield from quick()


def broken() -> Iterator[fake.Step]:
    yield fake.started()
    raise ZeroDivisionError("oops")


def edit() -> Iterator[fake.Step]:
    yield from (step for step in fake.edit() if not isinstance(step, float))


def failing() -> Iterator[fake.Step]:
    yield from (step for step in fake.fail() if not isinstance(step, float))


def thinking() -> Iterator[fake.Step]:
    yield fake.started()
    for number in range(3):
        yield fake.text(f"{number} whole thoughts\n", "reasoning")
    yield fake.text("so", "text")
    yield fake.completed()


SCENES = {
    "think": thinking,
    "endless": endless,
    "edit": edit,
    "print": printing,
    "broken": broken,
    "down": failing,
    "": quick,
}


class Desk:
    """A user in front of the REPL."""

    def __init__(self, master: int, problems: Sequence[Exception], *, prompted: bool) -> None:
        self.prompted = prompted  # whether it has a first message, so that no prompt comes before it
        self.master = master
        self.terminal = Terminal()
        self.sessions: list[fake.FakeSession] = []
        self.ready: list[str] = []  # what the screen's last line was each time
        self.gate = asyncio.Event()
        self.gate.set()
        self.problems = list(problems)
        self.task: asyncio.Task[int] | None = None

    async def open(self, approve: Approve, queued: Queued) -> fake.FakeSession:
        self.queued = queued
        await self.gate.wait()
        if self.problems:
            raise self.problems.pop(0)
        self.sessions.append(fake.FakeSession(approve, SCENES))
        return self.sessions[-1]

    def on_ready(self) -> None:
        """Whatever is to be on the screen by now has been written: reads until the prompt is there."""
        while not self.prompted and not self.has_prompt() and select.select([self.master], [], [], 5)[0]:
            self.read()
        self.ready.append(self.terminal.at_cursor)

    def has_prompt(self) -> bool:
        return any(line.startswith(">") for line in self.terminal.lines)

    def read(self) -> None:
        with suppress(BlockingIOError):
            self.terminal.feed(os.read(self.master, 65536).decode())

    @property
    def text(self) -> str:
        return "\n".join(self.terminal.lines)

    @property
    def prompts(self) -> list[str]:
        return self.sessions[0].prompts if self.sessions else []

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    async def until(self, condition: Callable[[], object]) -> None:
        try:
            async with asyncio.timeout(10):
                while not condition():
                    await asyncio.sleep(0.002)
        except TimeoutError:
            pytest.fail(f"never came true; the screen:\n{self.text}")

    async def see(self, text: str) -> None:
        await self.until(lambda: text in self.text)

    async def prompt(self, line: str = "") -> None:
        """Until the prompt is there, with `line` on it."""
        await self.until(
            lambda: self.terminal.at_cursor == f"> {line}".rstrip() and not self.terminal.cursor_hidden
        )

    async def leave(self) -> int:
        self.type("\x04")
        return await self.code()

    async def code(self) -> int:
        assert self.task is not None
        return await asyncio.wait_for(self.task, 10)


class Pty(NamedTuple):
    master: int
    stdin: TextIO
    stdout: TextIO


@pytest.fixture
def pty(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pty]:
    master, slave = os.openpty()
    os.set_blocking(master, False)
    termios.tcsetwinsize(slave, (24, 80))
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "PROMPT_TOOLKIT_NO_CPR"):
        monkeypatch.delenv(name, raising=False)
    with os.fdopen(slave, "r") as stdin, os.fdopen(os.dup(slave), "w", encoding="utf-8") as stdout:
        before = termios.tcgetattr(slave)
        yield Pty(master, stdin, stdout)
        assert termios.tcgetattr(slave) == before  # echo and line mode as they were
    os.close(master)


@asynccontextmanager
async def desk(
    pty: Pty,
    *,
    facts: Facts = fake.FACTS,
    problems: Sequence[Exception] = (),
    first_prompt: str | None = None,
    clock: Callable[[], float] = time.monotonic,
    list_paths: Callable[[], list[list[str]]] = list,
) -> AsyncIterator[Desk]:
    it = Desk(pty.master, problems, prompted=first_prompt is not None)
    loop = asyncio.get_running_loop()
    loop.add_reader(pty.master, it.read)
    with pytest.MonkeyPatch.context() as patch:
        # Here and not in the fixture: pytest puts its own in place between the two.
        patch.setattr(sys, "stdin", pty.stdin)
        patch.setattr(sys, "stdout", pty.stdout)
        it.task = asyncio.ensure_future(
            repl(
                facts,
                it.open,
                MarkdownText,
                list_paths,
                first_prompt=first_prompt,
                on_ready=it.on_ready,
                clock=clock,
            )
        )
        try:
            yield it
        finally:
            it.task.cancel()
            await asyncio.wait({it.task})
            await it.until(lambda: not it.terminal.cursor_hidden)
            loop.remove_reader(pty.master)
    assert "\x1b[6n" not in "".join(it.terminal.written)  # no question whose answer could be read as typed


async def test_a_turn_and_the_way_out(pty: Pty) -> None:
    async with desk(pty) as it:
        await it.prompt()
        assert it.text.startswith("mini-agent 0.1.0 · demo model (set DEEPSEEK_API_KEY to use deepseek)")
        assert it.ready == [">"]
        it.type("hello\r")
        await it.see("first token")
        await it.prompt()
        assert it.prompts == ["hello"]
        assert "> hello\nword0 word1 word2\n\nfirst token" in it.text
        assert await it.leave() == 0
        assert it.ready == [">"]
        assert it.sessions[0].closed


async def test_the_first_message_may_come_from_the_command_line(pty: Pty) -> None:
    async with desk(pty, first_prompt="from the shell") as it:
        await it.see("first token")
        await it.prompt()
        assert it.prompts == ["from the shell"]
        assert "> from the shell\nword0" in it.text
        it.type("\x1b[A")
        await it.prompt("from the shell")
        assert len(it.ready) == 1


@pytest.mark.parametrize(
    ("early", "sent"), [("hello\r", ["hello"]), ("a\nb\n", []), ("\x1b[200~a\nb\n\x1b[201~", [])]
)
async def test_f17_what_was_typed_before_the_start_is_kept(pty: Pty, early: str, sent: list[str]) -> None:
    os.write(pty.master, early.encode())
    while not select.select([pty.stdin], [], [], 0.01)[0]:
        pass
    async with desk(pty) as it:
        if sent:
            await it.see("first token")
        else:
            await it.see("> a\n  b")
        assert it.prompts == sent


async def test_commands_are_not_sent_and_paths_are(pty: Pty) -> None:
    async with desk(pty) as it:
        await it.prompt()
        it.type("/hlep\r")
        await it.see("did you mean /help?")
        it.type("/help\r")
        await it.see("leave (also Ctrl+D)")
        it.type("/usr/bin/x fails\r")
        await it.see("first token")
        assert it.prompts == ["/usr/bin/x fails"]
        await it.prompt()
        it.type("/quit\r")
        assert await it.code() == 0


async def test_f08_f11_cancel_and_go_on(pty: Pty) -> None:
    async with desk(pty) as it:
        await it.prompt()
        for key in ("\x03", "\x03\x03", "\x1b"):
            it.type("endless\r")
            await it.until(lambda: it.terminal.at_cursor != ">" and it.terminal.cursor_hidden)
            it.type(key)
            await it.prompt()
        assert it.text.count("✗ interrupted") == 3
        assert it.text.count("beginning") <= 3
        it.type("hello\r")
        await it.see("first token")
        assert it.prompts == ["endless", "endless", "endless", "hello"]
        await it.prompt()
        assert await it.leave() == 0


async def test_u4_lines_typed_ahead_are_the_next_messages(pty: Pty) -> None:
    async with desk(pty) as it:
        it.gate.clear()
        await it.prompt()
        it.type("first\r")
        await it.see("starting")
        it.type("second\rthi")
        await it.see("> second\n> thi")
        it.gate.set()
        await it.until(lambda: it.prompts == ["first", "second"])
        await it.prompt("thi")
        it.type("rd\r")
        await it.until(lambda: len(it.prompts) == 3)
        assert it.prompts[2] == "third"


async def test_u4_after_a_cancel_they_come_back_to_be_looked_at(pty: Pty) -> None:
    async with desk(pty) as it:
        await it.prompt()
        it.type("endless\r")
        await it.see("beginning")
        it.type("second\r/quit\rthi")
        await it.see("> thi")
        it.type("\x03")
        await it.see("  /quit\n  thi")
        assert it.prompts == ["endless"]
        it.type("\r")
        await it.until(lambda: len(it.prompts) == 2)
        assert it.prompts[1] == "second\n/quit\nthi"


async def test_f22_u4_an_approval_takes_one_fresh_key(pty: Pty) -> None:
    async with desk(pty) as it:
        await it.prompt()
        it.type("edit\r")
        await it.see("Allow? [y]es / [n]o")
        assert "  2 +print('hello')" in it.text
        it.type("y")
        await it.see("Allow? [y]es / [n]o yes")
        await it.prompt()
        assert it.sessions[0].decisions == [True]
        it.type("edit\rn")  # typed before there was a question
        await it.until(lambda: it.text.count("Allow?") == 2)
        await it.see("> n")
        assert it.sessions[0].decisions == [True]
        it.type("\x03")
        await it.see("✗ interrupted")
        await it.prompt("n")
        assert it.sessions[0].decisions == [True]


async def test_a_cancel_while_the_session_opens_gives_the_message_back(pty: Pty) -> None:
    async with desk(pty) as it:
        it.gate.clear()
        await it.prompt()
        it.type("hello\r")
        await it.see("starting")
        it.type("\x03")
        await it.prompt("hello")
        assert "✗" not in it.text
        it.gate.set()
        it.type("\r")
        await it.see("first token")
        assert it.prompts == ["hello"]


async def test_a_session_that_can_not_be_opened_keeps_the_prompt(pty: Pty) -> None:
    async with desk(pty, problems=[ConfigError("no such thing")]) as it:
        await it.prompt()
        it.type("hello\r")
        await it.see("✗ no such thing")
        await it.prompt("hello")
        it.type("\r")
        await it.see("first token")


async def test_a_defect_does_not_take_the_conversation_along(pty: Pty) -> None:
    async with desk(pty) as it:
        await it.prompt()
        it.type("broken\r")
        await it.see("✗ a defect of mini-agent: ZeroDivisionError: oops")
        await it.prompt()
        it.type("hello\r")
        await it.see("first token")


async def test_what_else_prints_becomes_a_notice(pty: Pty) -> None:
    async with desk(pty) as it:
        await it.prompt()
        it.type("print\r")
        await it.see("\nstray line\n\nword0")


async def test_ctrl_c_at_the_prompt_clears_the_line_and_leaves_when_pressed_twice(pty: Pty) -> None:
    async with desk(pty) as it:
        await it.prompt()
        it.type("abc\x1b")
        await it.prompt("abc")
        it.type("\x03")
        await it.prompt()
        it.type("\x1b[A")  # it is recalled with Up
        await it.prompt("abc")
        it.type("\x03")
        await it.prompt()
        it.type("\x03")
        await it.see("Ctrl+C again, or Ctrl+D, leaves")
        it.type("x\x7f")
        await it.prompt()
        it.type("\x03")
        await it.see("Ctrl+C again, or Ctrl+D, leaves")
        it.type("\x03")
        assert await it.code() == 0
        assert it.prompts == []


async def test_f11_more_pushes_of_the_ctrl_c_that_cancelled_do_not_leave(pty: Pty) -> None:
    clock = Clock()
    async with desk(pty, clock=clock) as it:
        await it.prompt()
        it.type("endless\r")
        await it.see("beginning")
        it.type("\x03\x03\x03")
        await it.prompt()
        it.type("\x03\x03abc")
        await it.prompt("abc")
        it.type("\x03")
        await it.prompt()
        clock.now += 1
        it.type("\x03")
        await it.see("Ctrl+C again")
        it.type("\x03")
        assert await it.code() == 0


async def test_f17_a_paste_is_one_message(pty: Pty) -> None:
    async with desk(pty) as it:
        await it.prompt()
        it.type("\x1b[200~a\r\nb\rc\x1b[2J\n\x1b[201~")
        await it.see("> a\n  b\n  c")
        assert it.prompts == []
        it.type("d\x1b\re\nf\r")
        await it.until(lambda: it.prompts)
        assert it.prompts == ["a\nb\nc\nd\ne\nf"]


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
@pytest.mark.parametrize("where", ["prompt", "turn"])
async def test_f21_a_signal_ends_it_with_the_terminal_restored(
    pty: Pty, name: str, code: int, where: str
) -> None:
    async with desk(pty) as it:
        await it.prompt()
        if where == "turn":
            it.type("endless\r")
            await it.see("beginning")
        os.kill(os.getpid(), getattr(signal, name))
        assert await it.code() == code
        await it.until(lambda: pastes_off("".join(it.terminal.written)))


def pastes_off(written: str) -> bool:
    """Whether bracketed paste was switched off last."""
    return written.rfind("\x1b[?2004l") > written.rfind("\x1b[?2004h")


async def test_sigint_from_outside_is_ctrl_c(pty: Pty) -> None:
    async with desk(pty) as it:
        await it.prompt()
        it.type("endless\r")
        await it.see("beginning")
        os.kill(os.getpid(), signal.SIGINT)
        await it.see("✗ interrupted")
        await it.prompt()
        it.type("abc")
        await it.prompt("abc")
        os.kill(os.getpid(), signal.SIGINT)
        await it.prompt()
        assert await it.leave() == 0


async def test_f14_a_dumb_terminal_gets_lines(pty: Pty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    async with desk(pty) as it:
        await it.see("\n>")
        it.type("edit\r")
        await it.see("Allow? [y]es / [n]o")
        it.type("y")
        await it.see("first token")
        it.type("abc\x03")
        it.type("\x03\x03")
        assert await it.code() == 0
        assert it.prompts == ["edit"]
        assert "\x1b" not in "".join(it.terminal.written)


async def test_f14_no_color(pty: Pty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with desk(pty) as it:
        await it.prompt()
        it.type("edit\r")
        await it.see("Allow? [y]es / [n]o")
        written = "".join(it.terminal.written)
        assert "\x1b[3" not in written.replace("\x1b[39m", "")


async def test_notices_are_said_first(pty: Pty) -> None:
    facts = Facts(
        version="1",
        profile="deepseek",
        model="deepseek-chat",
        mode="auto",
        folder="",
        key_env="",
        notices=("odd",),
    )
    async with desk(pty, facts=facts) as it:
        await it.prompt()
        assert it.terminal.lines[:2] == ["mini-agent 1 · deepseek · deepseek-chat · auto · /help", "odd"]


@pytest.mark.parametrize("how", ["\r", "/retry\r"])
async def test_r10_a_turn_that_failed_goes_on_with_enter_or_retry(pty: Pty, how: str) -> None:
    async with desk(pty) as it:
        await it.prompt()
        it.type("\r")
        it.type("down\r")
        await it.see("or /retry, goes on from here")
        await it.prompt()
        it.type(how)
        await it.see("word0")
        await it.prompt()
        assert it.prompts == ["down", None]
        it.type("\r/retry\r")
        await it.see("nothing to go on with")
        assert it.prompts == ["down", None]
        assert it.text.count("goes on from here") == 1


async def test_after_a_cancel_enter_asks_for_nothing(pty: Pty) -> None:
    async with desk(pty) as it:
        await it.prompt()
        it.type("endless\r")
        await it.see("beginning")
        it.type("\x03")
        await it.prompt()
        it.type("\rhello\r")
        await it.see("word0")
        assert it.prompts == ["endless", "hello"]


@pytest.mark.parametrize("is_open", [True, False])
async def test_s2_a_session_that_goes_on_shows_where_it_was(pty: Pty, is_open: bool) -> None:
    answer = "\n".join(f"row {number}" for number in range(30)) + "\x1b[2J"
    resumed = Resumed(id="2026-x", turns=3, prompt="mend it", answer=answer, is_open=is_open)
    async with desk(pty, facts=msgspec.structs.replace(fake.FACTS, resumed=resumed)) as it:
        await it.prompt()
        assert (
            "session 2026-x goes on: 3 turns; the last one:\n> mend it\n… 18 rows more\nrow 18\n" in it.text
        )
        assert ("goes on from here" in it.text) is is_open
        it.type("\r")
        if is_open:
            await it.see("word0")
            assert it.prompts == [None]


async def test_u4_queued_lines_can_be_taken_back_and_go_out_up_to_the_first_command(pty: Pty) -> None:
    async with desk(pty) as it:
        await it.prompt()
        it.type("endless\r")
        await it.see("beginning")
        it.type("one\rtwo\r")
        await it.see("> two")
        it.type("\x1b[A!\r/help\rthree\r")
        await it.see("> three")
        assert it.queued() == ["one", "two!"]
        assert it.queued() == []
        it.type("\x03")
        await it.see("> /help\n  three")


async def test_model_lists_what_there_is_and_takes_another_one(pty: Pty) -> None:
    async with desk(pty) as it:
        await it.prompt()
        it.type("/model\r")
        await it.see("* demo\n  other\n/model NAME")
        await it.prompt()
        it.type("/model other\r/mode auto\r/effort high\r/mode yolo\r")
        await it.see("there is no mode yolo: ask or auto")
        status = it.sessions[0].status
        assert (status.model, status.mode, status.effort) == ("other", "auto", "high")
        it.sessions[0].offered = ProtocolError("the endpoint sent no list", retryable=False)
        it.type("/model\r")
        await it.see("✗ the endpoint sent no list")
        await it.see("* other\n/model NAME")


async def test_a_list_that_does_not_come_can_be_stopped(pty: Pty) -> None:
    async with desk(pty) as it:
        await it.prompt()
        it.type("/tools\r")
        await it.see("read_file  Reads a file")
        await it.prompt()

        async def never() -> list[str]:
            await asyncio.Event().wait()
            return []

        it.sessions[0].models = never
        it.type("/model\r")
        await it.until(lambda: it.terminal.cursor_hidden)
        it.type("\x03")
        await it.see("/model NAME")
        await it.prompt()


async def test_what_a_session_can_be_asked(pty: Pty) -> None:
    async with desk(pty) as it:
        await it.prompt()
        it.type("/cost\r")
        await it.see("cost:    not known: no price is known of demo")
        it.type("/copy\r")
        await it.see("there is no answer to copy")
        it.sessions[0].answer = "an answer"
        it.type("/copy\r")
        await it.see("9 characters")
        assert "\x1b]52;c;YW4gYW5zd2Vy\x07" in "".join(it.terminal.written)
        it.type("think\r")
        await it.see("thought for")
        await it.prompt()
        it.type("/reasoning\r")
        await it.see("\n2 whole thoughts")
        it.type("/clear\r")
        await it.see("begins anew")
        assert it.sessions[0].cleared == 1
        it.type("/compact\r")
        await it.until(lambda: it.prompts[-1] == "compact")
