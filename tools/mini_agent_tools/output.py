"""What a command prints, made fit to be read: whole characters, no terminal codes, bounded memory, linear time."""

import codecs
import re
from collections.abc import Awaitable, Callable

from mini_agent.workspace.spill import Kept, Spill

HEAD = 16_000
TAIL = 16_000
"""Bytes kept of the beginning and of the end; the end is where the error is."""

_LINE = 64_000
"""Characters up to which a line is held back, because a carriage return may yet replace it."""
_SEQUENCE = 4096
"""Characters in which every escape sequence ends that is known as one; a longer one is text without its escape."""
_FRAME_S = 1 / 20
_BURST = 16_000
"""Characters of live output that go out at once at most, and per second where it goes on: nobody reads more."""

_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\x07\x1b")) + b"\x7f"
_ESCAPES = re.compile(
    r"""\x1b(?:
        \[ [0-?]{0,200} [\ -/]{0,20} [@-~]                   # CSI: colours, cursor
      | [\]PX^_] [^\x07\x1b]{0,4000} (?: \x07 | \x1b\\ )     # OSC and its like: titles, links
      | [\ -/]{1,20} [0-~]                                   # character sets
      | [0-OQ-WYZ\\`-~]                                 # the short ones
    )""",
    re.VERBOSE,
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)\Z")


class Cleaner:
    """Bytes to text, in pieces: any split of the same bytes gives the same text.

    Bytes that are not UTF-8 become U+FFFD; escape sequences and control characters go, but for tab, LF and CR; CRLF
    becomes LF.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._sequence = ""  # the beginning of an escape sequence
        self._return = ""  # a CR that may be half of a CRLF

    def feed(self, data: bytes, *, last: bool = False) -> str:
        text = self._sequence + self._decoder.decode(data.translate(None, _CONTROLS), final=last)
        self._sequence = ""
        unfinished = None if last else _UNFINISHED.search(text, max(0, len(text) - _SEQUENCE))
        if unfinished is not None:
            text, self._sequence = text[: unfinished.start()], unfinished[0]
        if "\x1b" in text:
            text = _ESCAPES.sub("", text).replace("\x1b", "")
        text = self._return + text.replace("\x07", "")
        self._return = "\r" if text.endswith("\r") and not last else ""
        return text.removesuffix(self._return).replace("\r\n", "\n")


class Printed:
    """The beginning and the end of what was printed. A line that was printed over and over counts as its last state.

    spill: where the whole is kept, if it is more. Whoever has it calls `close` in the end, whatever happened.
    """

    def __init__(self, spill: Spill | None = None) -> None:
        self._line = ""
        self._kept = Kept(spill, HEAD, TAIL)

    def feed(self, text: str) -> None:
        """Takes what a Cleaner gives."""
        lines, newline, self._line = (self._line + text).rpartition("\n")
        if newline:
            self._kept.feed(
                "\n".join(map(_last_state, lines.split("\n"))) + newline if "\r" in lines else lines + newline
            )
        if "\r" in self._line:
            self._line = _last_state(self._line)
        if len(self._line) > _LINE:
            self._kept.feed(self._line)
            self._line = ""

    def text(self) -> str:
        """What is kept, with a line in square brackets that says what is left out between the two."""
        self._kept.feed(_last_state(self._line))
        self._line = ""
        return self._kept.text()

    def close(self) -> None:
        """Removes a file of which `text` has not told."""
        self._kept.close()


class Live:
    """Passes text on as it comes, but no more often than a screen can show and no more than a reader can see.

    due: when the next piece may go out (in the caller's time, seconds), infinite where nothing waits.
    """

    def __init__(self, output: Callable[[str], Awaitable[None]]) -> None:
        self._output = output
        self._waiting = ""
        self._left_out = 0
        self._room = float(_BURST)
        self._sent_at = float("-inf")

    @property
    def due(self) -> float:
        return self._sent_at + _FRAME_S if self._waiting else float("inf")

    async def feed(self, text: str, now: float, *, last: bool = False) -> None:
        """Takes what a Cleaner gives. A carriage return, which only a terminal understands, becomes a line feed."""
        self._hold(self._waiting + text, _BURST)
        if not self._waiting or (now < self.due and not last):
            return
        self._room = min(_BURST, self._room + _BURST * max(_FRAME_S, now - self._sent_at))
        self._hold(self._waiting, int(self._room))
        self._room -= len(self._waiting)
        note = f"\n[{self._left_out:,} characters are not shown live]\n" if self._left_out else ""
        piece, self._waiting, self._left_out = note + self._waiting.replace("\r", "\n"), "", 0
        await self._output(piece)
        self._sent_at = now

    def _hold(self, text: str, most: int) -> None:
        """Keeps the end of it, and count of the rest."""
        self._left_out += max(0, len(text) - most)
        self._waiting = text[-most:]


def _last_state(line: str) -> str:
    """What is left of a line that was printed over, each state taken to cover the one before."""
    return line.rstrip("\r").rpartition("\r")[2]
