"""A stream of text as rows, and the state of what is shown of one attempt and of one running tool.

All of it is pure: pieces in, rows out. A new attempt gets a new `AttemptShown`, so nothing can outlive its attempt.
"""

import json
import math
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from mini_agent.core.errors import ErrorInfo
from mini_agent.core.estimates import CHARACTERS_PER_TOKEN
from mini_agent.core.events import AttemptProgress, Retrying, ToolCallDelta, ToolFinished
from mini_agent.ui.region import Mark
from mini_agent.ui.text import (
    Neutraliser,
    cells,
    expand_tabs,
    fit,
    fit_end,
    neutralise,
    one_line,
    paint,
    visible,
    wrap,
    wrap_open,
)

THOUGHT_ROWS = 6
OUTPUT_ROWS = 4
ERROR_ROWS = 3
WHOLE_ROWS = 400
AROUND = 6
"""Rows of the screen that are not the answer's: the status, what is typed, and the line it began on."""
SLOW_S = 2.0
"""Without anything new for so long, the status says so."""


class AnswerText(Protocol):
    """A stream of text as rows: those that are final come out once, the rest can be looked at."""

    def feed(self, piece: str, width: int) -> list[str]: ...

    def tail(self, width: int, limit: int) -> list[str]: ...

    def close(self, width: int) -> list[str]: ...


NewText = Callable[[int, int], AnswerText]
"""Begins an answer on a screen of that width and height."""


class Flow:
    """Text that comes in pieces: rows that are finished come out, the row that may still grow is the tail.

    Blank lines at either end are left out.
    """

    def __init__(self) -> None:
        self._safe = Neutraliser()
        self._rest = ""
        self._blank = 0  # blank rows seen since the last other one
        self._begun = False

    def feed(self, piece: str, width: int) -> list[str]:
        """The rows that are finished with `piece`."""
        *lines, last = (self._rest + self._safe.feed(piece)).split("\n")
        rows: list[str] = []
        for line in lines:
            full, rest = wrap_open(expand_tabs(line), width)
            rows += *full, rest.rstrip(" ")
        full, self._rest = wrap_open(expand_tabs(last), width)
        return self._trimmed(rows + full)

    def tail(self, width: int, limit: int = OUTPUT_ROWS) -> list[str]:
        """The unfinished row; more of them where the screen has become narrower since the last piece."""
        if not self._rest.strip(" "):
            return []
        return ([""] * (self._blank * self._begun) + wrap(self._rest, width))[-limit:]

    def close(self, width: int) -> list[str]:
        """The tail, now finished."""
        rows, self._rest = self._trimmed(wrap(self._rest, width)), ""
        return rows

    def _trimmed(self, rows: list[str]) -> list[str]:
        out: list[str] = []
        for row in rows:
            if not row:
                self._blank += 1
                continue
            if self._begun:
                out += [""] * self._blank
            self._blank, self._begun = 0, True
            out.append(row)
        return out


class Thought:
    """Reasoning: its last rows, and one line when it is over; or all of its rows, as they are finished."""

    def __init__(self, now: float) -> None:
        self._began = now
        self._flow = Flow()
        self._rows: deque[str] = deque(maxlen=THOUGHT_ROWS)
        self._lines = 1
        self._pieces: list[str] = []

    def feed(self, piece: str, width: int) -> list[str]:
        """The rows that are finished with `piece`."""
        self._lines += piece.count("\n")
        self._pieces.append(piece)
        rows = self._flow.feed(piece, width)
        self._rows.extend(rows)
        return [paint(row, "dim") for row in rows]

    def tail(self, width: int) -> list[str]:
        """The row that is not finished."""
        return [paint(row, "dim") for row in self._flow.tail(width)]

    def close(self, width: int) -> list[str]:
        """The rest, now finished."""
        return [paint(row, "dim") for row in self._flow.close(width)]

    def rows(self, width: int, limit: int) -> list[str]:
        """The last rows of all there is so far."""
        rows = [fit(row, width) for row in (*self._rows, *self._flow.tail(width))]
        return [paint(row, "dim") for row in rows[-limit:]]

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def summary(self, now: float) -> str:
        lines = f"{self._lines} line{'s' * (self._lines > 1)}"
        return paint(f"thought for {now - self._began:.1f} s · {lines}", "dim")


class CallShown:
    """A tool call whose arguments are still coming."""

    def __init__(self) -> None:
        self._name = ""
        self._arguments = Neutraliser()
        self._end = ""
        self._characters = 0

    def feed(self, delta: ToolCallDelta, width: int) -> None:
        self._name = delta.name or self._name
        self._characters += len(delta.arguments)
        self._end = (self._end + self._arguments.feed(delta.arguments))[-4 * width :]

    def row(self, width: int) -> str:
        name = one_line(self._name) or "…"
        size = f" {self._characters} characters" if self._characters > width else ""
        head = fit(f"● {name}{size} ", width)
        return paint(head, "cyan") + paint(fit_end(" ".join(self._end.split()), width - cells(head)), "dim")


class ToolShown:
    """A tool that runs: the last rows of what it says."""

    def __init__(self, name: str, now: float) -> None:
        self.name = name
        self.began = now
        self._flow = Flow()
        self._rows: deque[str] = deque(maxlen=OUTPUT_ROWS)

    def feed(self, text: str, width: int) -> None:
        self._rows.extend(self._flow.feed(text, width))

    def rows(self, width: int) -> list[str]:
        rows = [*self._rows, *self._flow.tail(width)][-OUTPUT_ROWS:]
        return [paint("  " + fit(row, width - 2), "dim") for row in rows]


class AttemptShown:
    """What is known and shown of one attempt. `mark`: where its rows begin; `block`: what stood above them."""

    def __init__(self, mark: Mark, block: str, text: AnswerText, now: float) -> None:
        self.mark = mark
        self.block = block
        self.began = now
        self.text = text
        self.has_text = False  # since the last thought or tool
        self.thought: Thought | None = None
        self.thoughts: list[str] = []  # those that are over, whole
        self.calls: dict[int, CallShown] = {}
        self.committed = False  # whether rows of its own are above the region
        self.kept: list[list[str]] = []  # committed in between, and true whatever becomes of the attempt
        self._phase: str = ""
        self._characters = 0
        self._first: float | None = None
        self._content = now
        self._sign = now

    def came(self, text: str, now: float) -> None:
        """Something of the answer arrived."""
        if self._first is None:
            self._first = now
        self._characters += len(text)
        self._content = self._sign = now

    def progress(self, event: AttemptProgress, now: float) -> None:
        self._phase = event.phase
        self._sign = now - event.silent_s if event.phase == "silent" else now

    def status(self, now: float, *, streamed: bool) -> tuple[str, str]:
        """What it is doing, and the style to say it in: slow and dead look different."""
        if self._first is None:
            what = "first token" if streamed else "whole answer"
            doing = f"waiting for the {what}" if self._phase else "connecting"
            said = f"{doing} {now - self.began:.0f} s"
            if self._phase == "silent" and now - self._sign >= SLOW_S:
                return f"{said} · silent since {now - self._sign:.0f} s", "yellow"
            return said, "dim"
        tokens = self._characters // CHARACTERS_PER_TOKEN
        if now - self._content >= SLOW_S:
            if self._sign - self._content >= SLOW_S / 2:
                return (
                    f"stalled since {now - self._content:.0f} s, still connected · ~{tokens} tokens",
                    "yellow",
                )
            return f"silent since {now - self._content:.0f} s · ~{tokens} tokens", "yellow"
        spent = now - self._first
        rate = f" · ~{tokens / spent:.0f} tok/s" if spent >= 1 else ""
        return f"streaming · ~{tokens} tokens{rate}", "dim"


class Waiting:
    """A wait before a retry."""

    def __init__(self, event: Retrying, now: float) -> None:
        self._event = event
        self._began = now
        self._retry = f"↻ retry {event.retry}/{event.max_retries}"

    def row(self, now: float) -> str:
        """While it lasts: how long still."""
        left = max(0, math.ceil(self._event.wait_s - (now - self._began)))
        return f"{self._retry} in {left} s, Ctrl+C stops · {describe(self._event.error)}"

    def line(self, now: float, *, made: bool) -> str:
        """When it is over: how long it was, or that the retry was not made."""
        if made:
            waited = f" · waited {now - self._began:.1f} s" if self._event.wait_s else ""
            return f"{self._retry} after {describe(self._event.error)}{waited}"
        return f"{self._retry} not made · {describe(self._event.error)}"


def call_row(name: str, arguments: dict[str, Any], width: int) -> str:
    """A call on one row: its name, and its arguments as far as they fit."""
    shown = " ".join(
        visible(value) if len(arguments) == 1 else f"{visible(key)}={visible(value)}"
        for key, value in ((key, _shown(value, width)) for key, value in arguments.items())
    )
    head = fit(f"● {one_line(name)} ", width)
    return paint(head, "cyan") + fit(shown, max(0, width - cells(head)))


def result_rows(event: ToolFinished, whose: str, spent_s: float, width: int) -> list[str]:
    """What a tool gave, in short: its first line, and how much more there is. An error may take a few rows.

    whose: the tool's name, where that is not clear from the row above.
    """
    first, *more = event.content.strip().split("\n")
    verdict = ""
    if more and more[-1].startswith("[") and more[-1].endswith("]"):  # a tool's own word on how it went
        verdict = one_line(more.pop()[1:-1])
    said = f"{one_line(whose)}: " * bool(whose) + (one_line(first) or "(no output)")
    notes = [f"{len(more)} more line{'s' * (len(more) > 1)}"] if more else []
    if verdict and (event.is_error or not verdict.startswith("exit code 0")):
        notes.append(verdict)
    if spent_s >= 1:
        notes.append(f"{spent_s:.1f} s")
    note = "".join(f" · {note}" for note in notes)
    if not event.is_error:
        return ["  └ " + fit(said, max(1, width - 4 - len(note))) + paint(note, "dim")]
    rows = [paint(row, "red") for row in wrap(said, max(1, width - 4 - len(note)))[:ERROR_ROWS]]
    rows[-1] += paint(note, "dim")
    return ["  └ " + rows[0], *("    " + row for row in rows[1:])]


def whole_rows(event: ToolFinished, width: int) -> list[str]:
    """All that a tool gave; of very much, the beginning and the end."""
    rows = [f"  {row}".rstrip() for row in wrap(neutralise(event.content.strip("\n")), max(1, width - 2))]
    if len(rows) > WHOLE_ROWS:
        half = WHOLE_ROWS // 2
        rows[half:-half] = [paint(f"  … {len(rows) - 2 * half} rows more", "yellow")]
    return rows


def _shown(value: Any, width: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text[: 2 * width]


def describe(error: ErrorInfo) -> str:
    """An error as one readable line."""
    said = one_line(error.message)
    return said if error.status is None or str(error.status) in said else f"{error.status}: {said}"


def user_rows(text: str, width: int) -> list[str]:
    """A message of the user as the prompt shows it."""
    first, *more = wrap(neutralise(text), max(1, width - 2))
    return [f"> {first}", *(f"  {row}".rstrip() for row in more)]
