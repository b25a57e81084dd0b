"""Keys while a turn runs: what cancels it, what answers its question, what is typed ahead for the next prompt.

On prompt_toolkit's input layer, so that a key is the same here and at the prompt, and what is half read by one is not
lost to the other.
"""

import asyncio
import select
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager

from prompt_toolkit.input import Input, create_input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys as Key

from mini_agent.ui.text import cells, fit_end, neutralise

if sys.platform != "win32":
    from prompt_toolkit.input.vt100 import Vt100Input
    from prompt_toolkit.input.vt100_parser import Vt100Parser

FLUSH_S = 0.05
"""An Esc that nothing follows for so long is the key, not the start of a sequence."""

SHOWN = 3
"""How many of the lines typed ahead are shown."""

BURST_S = 0.5
"""Keys closer together than this belong to one thought: its later ones don't answer a question that came up in it."""

HOLD_S = 0.3
"""A letter answers when nothing else has followed it for so long: it may be the first of a word that is no answer."""

BOUNCE_S = 0.05
"""A key held down, or one that bounced, repeats within this time: it answers no second question."""


if sys.platform != "win32":

    class _Parser(Vt100Parser):
        """Lets Ctrl+C through a paste whose end never comes."""

        def feed(self, data: str) -> None:
            if self._in_bracketed_paste and data == "\x03":
                super().feed("\x1b[201~")
            super().feed(data)

    class TerminalInput(Vt100Input):
        """The terminal's keys; it also notices that the terminal has hung up, which reads as nothing at all."""

        def __init__(self) -> None:
            super().__init__(sys.stdin)
            self.vt100_parser = _Parser(self._buffer_key)

        def _buffer_key(self, key: KeyPress) -> None:
            self._buffer.append(key)

        @property
        def closed(self) -> bool:
            return super().closed or self._hung_up()

        def _hung_up(self) -> bool:
            poll = select.poll()
            poll.register(self.fileno(), select.POLLIN)
            return any(event & select.POLLHUP for _, event in poll.poll(0))


def open_input() -> Input:
    """The keyboard of this process."""
    if sys.platform == "win32":
        return create_input()
    else:  # noqa: RET505  mypy checks one branch for each platform
        return TerminalInput()


def keep_early(source: Input) -> None:
    """Keeps what was typed before the terminal was in raw mode for the first prompt; call it as soon as it is.

    Until then the system has turned Enter into a newline. Where one ends what was typed, it was Enter, and sends it;
    several lines at once are rather a paste, which nobody wants to send line by line.
    """
    if sys.platform == "win32":
        return
    early: list[KeyPress] = []
    while keys := source.read_keys():
        early += keys
    newlines = [place for place, key in enumerate(early) if key.key == Key.ControlJ]
    if newlines == [len(early) - 1]:
        early[-1] = KeyPress(Key.ControlM)
    store_typeahead(source, early)


class Typed:
    """What was typed ahead: finished lines, and the one that is being typed."""

    def __init__(self) -> None:
        self.finished: list[str] = []
        self.line = ""

    def insert(self, text: str) -> None:
        self.line += text

    def backspace(self) -> None:
        """Takes the last character away, with the marks on it."""
        line = self.line
        while line and not cells(line[-1]):
            line = line[:-1]
        self.line = line[:-1]

    def enter(self) -> None:
        if self.line.strip():
            self.finished.append(self.line)
        self.line = ""

    def take_back(self) -> None:
        """The last finished line is being typed again, in front of what is."""
        if self.finished:
            self.line = "\n".join(filter(None, (self.finished.pop(), self.line)))

    def take_messages(self, is_other: Callable[[str], bool]) -> list[str]:
        """The finished lines up to the first that is something else than a message; they are then no longer here."""
        count = next(
            (place for place, line in enumerate(self.finished) if is_other(line)), len(self.finished)
        )
        taken, self.finished = self.finished[:count], self.finished[count:]
        return taken

    def take_all(self) -> str:
        """Everything as one text, which is then no longer here."""
        text = "\n".join([*self.finished, self.line] if self.line else self.finished)
        self.finished, self.line = [], ""
        return text

    def rows(self, width: int) -> list[str]:
        """Finished lines and the end of the current one."""
        lines = [*self.finished, self.line] if self.line else self.finished
        shown = [line.replace("\n", " ⏎ ").replace("\t", " ") for line in lines[-SHOWN:]]
        return [f"> {fit_end(line, max(1, width - 2))}" for line in shown]


class Keys:
    """The keyboard while `reading()`.

    cancel: Ctrl+C or Esc was pressed. changed: the typed text changed. closed: the terminal is gone. suspend: Ctrl+Z was
    pressed. clock: seconds.
    """

    def __init__(
        self,
        source: Input,
        typed: Typed,
        *,
        cancel: Callable[[], object],
        changed: Callable[[], None],
        closed: Callable[[], None],
        suspend: Callable[[], None] = lambda: None,
        clock: Callable[[], float],
    ) -> None:
        self._input = source
        self._suspend = suspend
        self._typed = typed
        self._cancel = cancel
        self._changed = changed
        self._closed = closed
        self._clock = clock
        self._sequences = _Sequences()
        self._flush: asyncio.TimerHandle | None = None
        self._answer: asyncio.Future[str] | None = None
        self._answers: Mapping[str, str] = {}
        self._held = ""  # what was typed of an answer that does not count yet
        self._hold: asyncio.TimerHandle | None = None
        self._rest = ""  # of the word a one-key answer began: "yes" typed out is one answer
        self._last_s = float("-inf")

    @contextmanager
    def reading(self) -> Generator[None]:
        """Takes the keyboard; the terminal is in raw mode already. What is left unread at the end is read into `typed`."""
        with self._input.attach(self._ready):
            try:
                self._take(get_typeahead(self._input))  # read together with the Enter that ended the prompt
                yield
            finally:
                self._drain()
                self._release()
                if self._flush:
                    self._flush.cancel()

    async def ask(self, answers: Mapping[str, str]) -> str:
        """The answer of one fresh key out of `answers`, or of the word it begins; what was typed before does not count."""
        self._drain()
        self._answers = answers
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return await self._answer
        finally:
            self._answer = None
            self._release()

    def _ready(self) -> None:
        self._take(self._input.read_keys())
        if self._flush:
            self._flush.cancel()
            self._flush = None
        if self._input.closed:
            self._closed()
        else:
            self._flush = asyncio.get_running_loop().call_later(FLUSH_S, self._flush_keys)

    def _flush_keys(self) -> None:
        self._take(self._input.flush_keys())
        if self._sequences.flush():
            self._press(Key.Escape)

    def _drain(self) -> None:
        """Reads what has been typed up to now."""
        while keys := self._input.read_keys():
            self._take(keys)

    def _take(self, keys: Iterable[KeyPress]) -> None:
        for key in self._sequences.feed(keys):
            self._press(key.key, key.data)

    def _press(self, key: Key | str, data: str = "") -> None:
        now = self._clock()
        gap, self._last_s = now - self._last_s, now
        fresh = gap >= (BOUNCE_S if self._rest else BURST_S)
        if self._held and gap >= HOLD_S:
            self._settle()
        if key == Key.ControlC:
            self._cancel()
        elif key == Key.ControlZ:
            self._suspend()
        elif self._held:
            self._go_on(key, data)
        elif self._answer is not None and not self._answer.done() and fresh and key in self._answers:
            self._begin_answer(key)
        elif key == Key.Escape:
            if self._answer is None:
                self._cancel()
        elif not (gap < BURST_S and self._belongs_to_answer(key)):
            self._type(key, data)

    def _begin_answer(self, key: Key | str) -> None:
        if key == Key.Escape:
            self._reply(self._answers[key])
        else:
            self._keep(str(key))

    def _keep(self, held: str) -> None:
        """Part of an answer; it counts when nothing else follows for a while."""
        if self._hold:
            self._hold.cancel()
        self._held = held
        self._hold = asyncio.get_running_loop().call_later(HOLD_S, self._settle)

    def _go_on(self, key: Key | str, data: str) -> None:
        """A key right behind the beginning of an answer: more of it, its end, or the sign that it was none."""
        word = self._answers[self._held[0]]
        if key == Key.ControlM:
            self._settle()
            self._rest = ""
        elif key == Key.Escape and key in self._answers:
            self._held = ""
            self._reply(self._answers[key])
        elif word.startswith((self._held + str(key)).lower()):
            self._keep(self._held + str(key))
        else:
            self._release()
            self._type(key, data)

    def _settle(self) -> None:
        """What is held is the answer."""
        held, self._held = self._held, ""
        if held:
            word = self._answers[held[0]]
            self._rest = word[len(held) :] + "\r"
            self._reply(word)

    def _reply(self, word: str) -> None:
        if self._hold:
            self._hold.cancel()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(word)

    def _release(self) -> None:
        """What is held is typing after all."""
        held, self._held = self._held, ""
        if self._hold:
            self._hold.cancel()
        if held:
            self._typed.insert(held)
            self._changed()

    def _belongs_to_answer(self, key: Key | str) -> bool:
        """Whether this only goes on with the answer just given: the rest of its word, and Enter."""
        rest, self._rest = self._rest, ""
        if not rest or key not in (rest[0], Key.ControlM):
            return False
        self._rest = "" if key == Key.ControlM else rest[1:]
        return True

    def _type(self, key: Key | str, data: str) -> None:
        if key == Key.ControlM:
            self._typed.enter()
        elif key == Key.ControlJ:
            self._typed.insert("\n")
        elif key == Key.ControlH:
            self._typed.backspace()
        elif key == Key.Up:
            self._typed.take_back()
        elif key == Key.BracketedPaste:
            self._typed.insert(neutralise(data))
        elif len(key) == 1 and key.isprintable():
            self._typed.insert(key)
        else:
            return
        self._changed()


class _Sequences:
    """Drops what is no key: the terminal's own answers (cursor position, attributes, colours) and Alt combinations.

    prompt_toolkit's parser knows the sequences that keys send; any other one comes apart into an Escape and characters.
    """

    def __init__(self) -> None:
        self._inside = ""  # "": no sequence; "\x1b": an Escape whose meaning is open; "[": CSI; "]": a string

    def feed(self, keys: Iterable[KeyPress]) -> Generator[KeyPress]:
        """The keys among `keys`; an Escape is held until it is known to be one (see `flush`)."""
        for key in keys:
            if key.key == Key.Escape:
                if self._inside == "\x1b":  # held down
                    yield key
                self._inside = "\x1b"
            elif self._inside == "\x1b":
                self._inside = {"[": "[", "O": "", "]": "]", "P": "]", "^": "]", "_": "]", "X": "]"}.get(
                    key.data, ""
                )
                if key.key in (Key.ControlM, Key.ControlC):  # Alt+Enter is a newline; Ctrl+C is always itself
                    yield KeyPress(Key.ControlJ) if key.key == Key.ControlM else key
            elif key.key == Key.ControlC:
                self._inside = ""
                yield key
            elif self._inside == "[":
                if "@" <= key.data <= "~":
                    self._inside = ""
            elif self._inside == "]":
                if key.key == Key.ControlG:
                    self._inside = ""
            elif key.key not in (Key.CPRResponse, Key.Vt100MouseEvent):
                yield key

    def flush(self) -> bool:
        """Nothing more came for a while: ends whatever was open. True if that was a lone Escape."""
        lone, self._inside = self._inside == "\x1b", ""
        return lone
