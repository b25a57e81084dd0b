import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.input import PipeInput, create_pipe_input
from stage import Clock

from mini_agent.ui.keys import Keys, TerminalInput, Typed

ANSWERS = {"y": "yes", "n": "no", "escape": "no"}


class Board:
    """A keyboard on a pipe."""

    def __init__(self, pipe: PipeInput) -> None:
        self.pipe = pipe
        self.clock = Clock()
        self.typed = Typed()
        self.cancels = 0
        self.changes = 0
        self.closings = 0
        self.keys = Keys(
            pipe,
            self.typed,
            cancel=lambda: self.count("cancels"),
            changed=lambda: self.count("changes"),
            closed=lambda: self.count("closings"),
            clock=self.clock,
        )

    def count(self, name: str) -> None:
        setattr(self, name, getattr(self, name) + 1)

    async def type(self, text: str, *, after_s: float = 1.0) -> None:
        """Types `text` in one burst, `after_s` seconds after whatever was before."""
        self.clock.now += after_s
        self.pipe.send_text(text)
        for _ in range(3 + len(text.encode()) // 1024):
            await asyncio.sleep(0)

    def quiet(self) -> None:
        """Long enough for an Esc to be one."""
        self.keys._flush_keys()


@contextmanager
def board() -> Iterator[Board]:
    with create_pipe_input() as pipe:
        it = Board(pipe)
        with it.keys.reading():
            yield it


async def test_typing_goes_to_the_line_and_enter_finishes_it() -> None:
    with board() as it:
        await it.type("hellx\x7fo 漢é")
        assert (it.typed.finished, it.typed.line) == ([], "hello 漢é")
        await it.type("\rnext")
        assert (it.typed.finished, it.typed.line) == (["hello 漢é"], "next")
        assert it.typed.rows(40) == ["> hello 漢é", "> next"]
        assert it.cancels == 0
        assert it.changes
    assert it.typed.take_all() == "hello 漢é\nnext"
    assert it.typed.take_all() == ""


async def test_backspace_takes_a_whole_character_and_an_empty_line_is_none() -> None:
    with board() as it:
        await it.type("ae\u0301\x7f\r \r\x7f")
        assert it.typed.finished == ["a"]


@pytest.mark.parametrize("keys", ["\x03", "abc\x03"])
async def test_ctrl_c_cancels_at_once(keys: str) -> None:
    with board() as it:
        await it.type(keys)
        assert it.cancels == 1


async def test_escape_cancels_when_nothing_follows() -> None:
    with board() as it:
        await it.type("\x1b")
        assert it.cancels == 0
        it.quiet()
        assert it.cancels == 1
        await it.type("\x1b\x1b\x1b")  # held down
        assert it.cancels >= 2


async def test_the_flush_comes_by_itself() -> None:
    with create_pipe_input() as pipe:
        cancelled = asyncio.Event()
        nothing = lambda: None  # noqa: E731
        keys = Keys(pipe, Typed(), cancel=cancelled.set, changed=nothing, closed=nothing, clock=Clock())
        with keys.reading():
            pipe.send_text("\x1b")
            await asyncio.wait_for(cancelled.wait(), 5)


@pytest.mark.parametrize("keys", ["\x1b[A", "\x1bOP", "\x1b[1;5C", "\x1bx", "\x1b[3~", "\x1b[<0;3;4M", "\t"])
async def test_other_keys_do_nothing(keys: str) -> None:
    with board() as it:
        await it.type(keys)
        it.quiet()
        assert (it.typed.line, it.cancels) == ("", 0)


REPLIES = [
    "\x1b[57;1R",
    "\x1b[?62;22c",
    "\x1b[>0;10;1c",
    "\x1b]11;rgb:0000/0000/0000\x1b\\",
    "\x1b]10;rgb:ffff/ffff/ffff\x07",
    "\x1bP1$r0m\x1b\\",
    "\x1b[?2026;2$y",
    "\x1b[?0u",
]


@given(st.lists(st.sampled_from([*REPLIES, "ab", "c"]), max_size=6), st.lists(st.integers(0, 60), max_size=4))
def test_f03_answers_of_the_terminal_are_dropped_wherever_they_are_split(
    parts: list[str], cuts: list[int]
) -> None:
    async def play() -> None:
        text, at = "".join(parts), 0
        with board() as it:
            for cut in [*sorted(cuts), len(text)]:
                await it.type(text[at:cut])
                at = max(at, cut)
            it.quiet()
            assert it.typed.line == "".join(part for part in parts if part[0] != "\x1b")
            assert it.cancels == 0

    asyncio.run(play())


async def test_f03_ctrl_c_gets_through_an_answer_that_never_ends() -> None:
    with board() as it:
        await it.type("\x1b]11;rgb:")
        await it.type("\x03")
        assert it.cancels == 1


async def test_f17_a_paste_stays_whole_and_sends_nothing() -> None:
    with board() as it:
        await it.type("\x1b[200~a\r\nb\rc\x1b[31m\n\x1b[201~d")
        assert it.typed.finished == []
        assert it.typed.line == "a\nb\nc\nd"
        assert it.typed.rows(40) == ["> a ⏎ b ⏎ c ⏎ d"]


async def test_f17_a_big_paste() -> None:
    text = "0123456789" * 20_000
    with board() as it:
        it.pipe.send_text("")
        sender = asyncio.get_running_loop().run_in_executor(
            None, it.pipe.send_text, f"\x1b[200~{text}\x1b[201~"
        )
        while len(it.typed.line) < len(text):
            await asyncio.sleep(0)
        await sender
        assert it.typed.line == text


async def test_alt_enter_and_ctrl_j_begin_a_new_line() -> None:
    with board() as it:
        await it.type("a\x1b\rb\nc")
        assert it.typed.line == "a\nb\nc"


# Questions


async def asked(it: Board) -> asyncio.Task[str]:
    task = asyncio.ensure_future(it.keys.ask(ANSWERS))
    await asyncio.sleep(0)
    return task


@pytest.mark.parametrize(("key", "answer"), [("y", "yes"), ("n", "no")])
async def test_one_key_answers(key: str, answer: str) -> None:
    with board() as it:
        task = await asked(it)
        await it.type(key)
        assert await task == answer
        assert it.typed.line == ""


async def test_escape_answers_no_and_cancels_nothing() -> None:
    with board() as it:
        task = await asked(it)
        await it.type("\x1b")
        it.quiet()
        assert await task == "no"
        assert it.cancels == 0


async def test_u4_what_was_typed_before_does_not_answer() -> None:
    with board() as it:
        it.pipe.send_text("yes\ry")  # not even read when the question comes
        task = await asked(it)
        await it.type("", after_s=0)
        assert not task.done()
        assert (it.typed.finished, it.typed.line) == (["yes"], "y")
        task.cancel()


async def test_u4_a_word_that_is_being_typed_does_not_answer() -> None:
    with board() as it:
        await it.type("hone")
        task = await asked(it)
        await it.type("y", after_s=0.2)
        await it.type(" n", after_s=0.2)
        assert not task.done()
        assert it.typed.line == "honey n"
        await it.type("n")
        assert await task == "no"


async def test_other_keys_and_enter_and_pastes_do_not_answer() -> None:
    with board() as it:
        task = await asked(it)
        for keys in ("\r", " ", "\x1b[200~y\x1b[201~", "\x1b[1;1R"):
            await it.type(keys)
        assert not task.done()
        assert it.typed.line == " y"
        task.cancel()


async def test_an_answer_typed_out_is_one_answer() -> None:
    with board() as it:
        task = await asked(it)
        await it.type("yes\rrest")
        assert await task == "yes"
        assert (it.typed.finished, it.typed.line) == ([], "rest")


@pytest.mark.parametrize("words", ["you stop", "next thing", "yesterday", "nope", "y y"])
async def test_a_word_that_begins_like_an_answer_is_typing(words: str) -> None:
    with board() as it:
        task = await asked(it)
        await it.type(words)
        assert not task.done()
        assert it.typed.line == words
        task.cancel()


async def test_a_word_that_begins_like_an_answer_is_typing_key_by_key() -> None:
    with board() as it:
        task = await asked(it)
        await it.type("y")
        for key in "ou":
            await it.type(key, after_s=0.12)
        assert not task.done()
        assert it.typed.line == "you"
        task.cancel()


async def test_ctrl_c_behind_the_beginning_of_an_answer_does_not_let_it_count() -> None:
    with board() as it:
        task = await asked(it)
        await it.type("y\x03")
        assert it.cancels == 1
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert it.typed.line == "y"


async def test_what_follows_an_answer_later_is_typing() -> None:
    with board() as it:
        task = await asked(it)
        await it.type("y")
        await it.type("e")
        assert await task == "yes"
        assert it.typed.line == "e"


async def test_a_key_held_down_does_not_answer_the_next_question() -> None:
    with board() as it:
        first = await asked(it)
        await it.type("y")
        assert await first == "yes"
        second = await asked(it)
        await it.type("y", after_s=0.03)
        assert not second.done()
        await it.type("n", after_s=0.6)
        assert await second == "no"


async def test_ctrl_c_in_a_question_cancels_and_does_not_answer() -> None:
    with board() as it:
        task = await asked(it)
        await it.type("\x03")
        assert it.cancels == 1
        assert not task.done()
        task.cancel()


async def test_what_is_unread_at_the_end_is_kept() -> None:
    with board() as it:
        it.pipe.send_text("late")
    assert it.typed.line == "late"


async def test_f13_a_closed_keyboard_is_told() -> None:
    with create_pipe_input() as pipe:
        it = Board(pipe)
        with it.keys.reading():
            pipe.close()
            for _ in range(5):
                await asyncio.sleep(0)
            assert it.closings


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals there")
class TestTerminal:
    @pytest.fixture
    def terminal(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, TerminalInput]]:
        master, slave = os.openpty()
        with os.fdopen(slave, "r") as keyboard:
            monkeypatch.setattr(sys, "stdin", keyboard)
            yield master, TerminalInput()
        with suppress(OSError):
            os.close(master)

    def test_f13_a_hung_up_terminal_is_closed(self, terminal: tuple[int, TerminalInput]) -> None:
        master, source = terminal
        assert not source.closed
        os.close(master)
        assert source.closed

    def test_f17_ctrl_c_ends_a_paste_whose_end_was_lost(self, terminal: tuple[int, TerminalInput]) -> None:
        master, source = terminal
        with source.raw_mode():
            os.write(master, b"\x1b[200~lost")
            assert source.read_keys() == []
            os.write(master, b"\x03")
            assert [key.data for key in source.read_keys()] == ["lost", "\x03"]
