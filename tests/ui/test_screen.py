"""Whole turns on a screen of any size: the real view, Markdown and region, read through a terminal emulator.

Random Markdown in random pieces, reasoning and notices in between, attempts that break off anywhere, frames at any moment.
What must stand above the region is told by a model that knows nothing of screens but how high they are.
"""

import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from random import Random

import fake_session as fake
import msgspec
import pyte
from documents import documents, only_signs, parts, soup
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from stage import Clock, Stage, Terminal

from mini_agent.core.events import AgentEvent, Failed, FirstToken, Notice, ToolCallDelta, TurnFinished
from mini_agent.ui.answer import MarkdownText
from mini_agent.ui.region import Region
from mini_agent.ui.text import SGR, height, wrap
from mini_agent.ui.view import View

BROKE_OFF = "─ the text above broke off; it is no part of the answer ─"

# pyte stops at a joiner, and puts marks that stand alone on the row above.
_NOT_IN_PYTE = re.compile("[\u200d\u0301\ufe0f]")


class Part(msgspec.Struct, frozen=True):
    """What an attempt says next: what it thought, and Markdown."""

    thought: str
    text: str
    sizes: tuple[int, ...]


class Attempt(msgspec.Struct, frozen=True):
    """keep: the share of its pieces that come before it breaks off; 1 for all. calls: that begin behind the text."""

    parts: tuple[Part, ...]
    keep: float = 1.0
    calls: int = 0


class _Screen(pyte.HistoryScreen):
    """Without pages: pyte's own looks at each of its attributes twice for them."""

    __getattribute__ = object.__getattribute__


class QuickTerminal(Terminal):
    """The same in a tenth of the time."""

    def __init__(self, width: int, height: int) -> None:
        super().__init__(width, height)
        self.screen = _Screen(width, height, history=100_000, ratio=0.5)
        self.stream = pyte.Stream(self.screen)


def above(terminal: Terminal) -> list[str]:
    """All rows before the cursor's."""
    return terminal.scrollback + terminal.shown[: terminal.screen.cursor.y]


def whole(text: str, width: int, height: int) -> list[str]:
    """The rows of an answer that is there at once."""
    answer = MarkdownText(width, height)
    return answer.feed(text, width) + answer.close(width)


class Told:
    """What must stand above the region: rows for good, as the terminal breaks them."""

    def __init__(self, columns: int, height: int) -> None:
        self._columns, self._height = columns, height
        self.rows: list[str] = []
        self.lines: list[str] = []
        self._block = ""
        self._begin = (0, 0, "")
        self._kept: list[list[str]] = []  # notices: true whatever becomes of the attempt
        self._answered = False  # rows of the attempt's own are among them
        self._said = ""  # of the text that is open
        self._shown: list[str] = []  # its final rows
        self._text = self._new()
        self.thought = ""

    def _new(self) -> MarkdownText:
        return MarkdownText(self._width, self._height)

    @property
    def _width(self) -> int:
        return self._columns - 1

    def add(self, block: str, rows: Sequence[str]) -> None:
        if rows:
            rows = [*[""] * (self._block not in ("", block)), *rows]
            self._block = block
            terminal = QuickTerminal(self._columns, 2)
            terminal.feed("".join(f"{row}\r\n" for row in rows))
            self.rows += rows
            self.lines += above(terminal)

    def begin(self) -> None:
        self._begin = len(self.rows), len(self.lines), self._block
        self._kept, self._answered, self.thought = [], False, ""
        self._said, self._shown, self._text = "", [], self._new()

    def think(self, piece: str) -> None:
        if not self.thought:
            self._end_text()
        self.thought += piece

    def say(self, piece: str) -> None:
        self._end_thought()
        self._said += piece
        self._answer(self._text.feed(piece, self._width))

    def call(self) -> None:
        self._end_thought()

    def note(self, rows: list[str]) -> None:
        self._kept.append(rows)
        self.add("notes", rows)

    def end(self) -> None:
        """The attempt's answer is whole, or all there will be."""
        self._end_thought()
        self._end_text()

    def _answer(self, rows: list[str]) -> None:
        self._answered = self._answered or bool(rows)
        self._shown += rows
        self.add("answer", rows)

    def _end_text(self) -> None:
        """Each of its rows was final once, in order, and together they are what the whole text gives."""
        self._answer(self._text.close(self._width))
        assert self._shown == whole(self._said, self._width, self._height)
        self._said, self._shown, self._text = "", [], self._new()

    def _end_thought(self) -> None:
        if self.thought:
            lines = self.thought.count("\n") + 1
            self._answered = True
            self.add("answer", [f"thought for 0.0 s · {lines} line{'s' * (lines > 1)}"])
            self.thought = ""

    def break_off(self, scrolled: int) -> bool:
        """The attempt gave no answer. scrolled: the rows that have left the screen. Whether some are the attempt's."""
        rows, lines, block = self._begin
        if not self._answered:
            return False
        if lines < scrolled:
            self.add("notes", wrap(BROKE_OFF, self._width))
            return True
        del self.rows[rows:], self.lines[lines:]
        self._block = block
        for kept in self._kept:
            self.add("notes", kept)
        return False

    @property
    def unsure(self) -> bool:
        """Whether terminals differ in how many rows the attempt takes."""
        return any(
            not row.isascii() and height(row, self._columns) > 1 for row in self.rows[self._begin[0] :]
        )

    @property
    def newest(self) -> str:
        """The end of what came last."""
        if self.thought:
            return wrap(self.thought.rstrip().rpartition("\n")[2], self._width)[-1]
        if only_signs(self._said.rpartition("\n")[2]):
            return ""
        rows = whole(self._said, self._width, self._height)
        return SGR.sub("", rows[-1]) if rows else ""


class Scene:
    """A turn on a terminal, with the model beside it.

    cut_off: now and then the terminal loses what is below the cursor. tmux does where its window becomes lower, and tells
    only some time later; what a frame writes until then stays.
    """

    def __init__(
        self, columns: int, height: int, before: int, random: Random, *, cut_off: bool = False
    ) -> None:
        self._cut_off = cut_off
        self.clock = Clock()
        self.terminal = QuickTerminal(columns, height)
        self.terminal.feed("".join(f"before {number}\r\n" for number in range(before)))
        self.stage = Stage(self.terminal)
        self.view = View(self.stage, new_text=MarkdownText, streamed=True, clock=self.clock)
        self.stage.rows = self.view.rows
        self.before = above(self.terminal)
        self.told = Told(columns, height)
        self._height = height
        self._random = random
        self._notices = 0
        self._attempt = 0

    def play(self, attempt: Attempt) -> None:
        """The events of an attempt up to its end, which is not among them."""
        self._attempt += 1
        self.feed(fake.started(self._attempt))
        self.told.begin()
        said = [*self._pieces(attempt)]
        said = said[: round(len(said) * attempt.keep)]
        if said:
            self.feed(FirstToken(**fake.at(self._attempt), ttft_s=0.1))
        for channel, piece in said:
            if channel == "text":
                self.told.say(piece)
            else:
                self.told.think(piece)
            self.feed(fake.text(piece, channel, self._attempt))
            self.clock.now += 0.02 * (channel == "text")
            if self._random.random() < 0.04:
                self._notice()
            if self._random.random() < 0.35:
                self.look()
        if attempt.calls and attempt.keep == 1:
            self.told.call()
            for index in range(attempt.calls):
                called = ToolCallDelta(
                    **fake.at(self._attempt), index=index, id=f"{index}", name="run", arguments=""
                )
                self.feed(called)
                self.look(newest=False)

    def _pieces(self, attempt: Attempt) -> Iterator[tuple[str, str]]:
        for part in attempt.parts:
            yield from (("reasoning", piece) for piece in parts(part.thought, part.sizes) if piece)
            yield from (("text", piece) for piece in parts(part.text, part.sizes) if piece)

    def _notice(self) -> None:
        self._notices += 1
        text = f"notice <{self._notices}>"
        self.told.note(wrap(text, self.stage.width))
        self.feed(Notice(t=0, level="info", text=text))

    def feed(self, event: AgentEvent) -> None:
        self.view.feed(event)

    def break_off(self, event: AgentEvent) -> bool:
        """The attempt ends with an event that says it gave nothing. Whether it left something for good."""
        unsure = self.told.unsure
        scrolled = len(self.terminal.screen.history.top) - len(self.before)
        closings = self._closings()
        self.feed(event)
        self.stage.paint()
        if unsure and self._closings() > closings:
            scrolled = len(self.told.lines)
        return self.told.break_off(scrolled)

    def _closings(self) -> int:
        return "".join("".join(self.terminal.lines).split()).count(BROKE_OFF.replace(" ", ""))

    def retry(self) -> bool:
        stays = self.break_off(fake.retrying(self._attempt, 1.0))
        self.look(newest=False)
        self.clock.now += 1.0
        said = f"↻ retry {self._attempt}/4 after 429: too many requests · waited 1.0 s"
        self.told.add("notes", wrap(said, self.stage.width))
        return stays

    def finish(self, how: str) -> None:
        if how == "failed":
            self.break_off(Failed(t=0, error=fake.ERROR))
            for row in "✗ 429: too many requests", "→ wait a little":
                self.told.add("notes", wrap(row, self.stage.width))
            return
        self.told.end()
        if how == "cancelled":
            self.told.add("notes", ["✗ interrupted"])
            self.feed(TurnFinished(t=0, reason="cancelled", text="", usage=fake.USAGE))
        else:
            self.feed(fake.completed(attempt=self._attempt))

    def look(self, *, newest: bool = True) -> None:
        """Paints a frame, and holds the screen against what it must show."""
        if self._cut_off and self._random.random() < 0.5:
            for y in range(self.terminal.screen.cursor.y + 1, self._height):
                self.terminal.screen.buffer.pop(y, None)
        self.stage.paint()
        shown, at = self.terminal.shown, self.terminal.screen.cursor.y
        expected = self.before + self.told.lines
        scrolled = len(self.terminal.screen.history.top)
        assert scrolled == len(expected) - at
        assert shown[:at] == expected[scrolled:]
        region = [unicodedata.normalize("NFC", SGR.sub("", row)).rstrip() for row in self.view.rows()]
        region = region[-(self._height - 1) :]
        assert at + len(region) <= self._height
        if self._cut_off:
            return
        assert shown[at:] == region + [""] * (self._height - at - len(region))
        if newest and self._height > 2:
            # A row of code is broken in the region: of a long one, the last part is seen on a small screen.
            wanted = _squeezed(self.told.newest)[-8 if self._height > 9 else -1 :]
            seen = _squeezed("".join(shown[: at + len(region) - 1]))
            assert seen.endswith(wanted) or re.search(r"notice<\d+>$", seen)

    def close(self) -> None:
        self.stage.close()
        assert _stripped(self.terminal.lines) == _stripped(self.before + self.told.lines)
        assert not self.terminal.cursor_hidden


def _squeezed(text: str) -> str:
    return re.sub(r"[\s│]", "", unicodedata.normalize("NFC", text))


def _stripped(lines: list[str]) -> list[str]:
    """Without blank rows at the end."""
    end = max((at for at, line in enumerate(lines, 1) if line), default=0)
    return lines[:end]


# Random turns

_markdown = (
    st.one_of(documents, documents, soup)
    .map(lambda text: _NOT_IN_PYTE.sub("", text))
    .filter(lambda text: text != "")
)
_thought = (
    st.lists(st.sampled_from(["why", "so", "漢字", "\n", "not that ", "x" * 30]), min_size=1, max_size=12)
    .map("".join)
    .filter(str.strip)
)
_sizes = st.lists(st.integers(1, 40), min_size=1, max_size=8).map(tuple)


@st.composite
def attempts(draw: st.DrawFn, keep: st.SearchStrategy[float]) -> Attempt:
    said = [
        Part(draw(_thought) if at or draw(st.booleans()) else "", draw(_markdown), draw(_sizes))
        for at in range(draw(st.integers(1, 3)))
    ]
    return Attempt(tuple(said), draw(keep), draw(st.sampled_from([0, 0, 0, 1, 9])))


cut = attempts(st.floats(0, 1))
full = attempts(st.just(1.0))
columns = st.sampled_from([12, 21, 41, 80, 130])
heights = st.integers(2, 30)


turns = settings(
    max_examples=80, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink]
)


def play(scene: Scene, broken: list[Attempt], last: Attempt, random: Random) -> None:
    for attempt in broken:
        scene.play(attempt)
        scene.retry()
    scene.play(last)
    scene.finish(random.choice(["done", "done", "cancelled", "failed"]))
    scene.close()


@turns
@given(st.lists(cut, max_size=3), full, columns, heights, st.integers(0, 40), st.integers(0, 999))
def test_f01_each_final_line_stands_once_and_what_broke_off_is_gone_or_closed_off(
    broken: list[Attempt], last: Attempt, columns: int, height: int, before: int, seed: int
) -> None:
    random = Random(seed)
    play(Scene(columns, height, before, random), broken, last, random)


@turns
@given(st.lists(cut, max_size=1), full, columns, heights, st.integers(0, 40), st.integers(0, 999))
def test_f04_each_final_line_stands_once_also_where_the_terminal_lost_the_region(
    broken: list[Attempt], last: Attempt, columns: int, height: int, before: int, seed: int
) -> None:
    random = Random(seed)
    play(Scene(columns, height, before, random, cut_off=True), broken, last, random)


def test_f04_a_row_that_became_final_is_whole_where_its_beginning_was_lost() -> None:
    terminal, region = QuickTerminal(40, 10), Region(40, 10)
    terminal.feed(region.frame(["one", "two", "status"]))
    terminal.feed("\x1b7\r\n\x1b[J\x1b8")  # what is below the cursor is gone
    region.commit(["one"])
    terminal.feed(region.frame(["two and more", "status"]))
    region.commit(["two and more"])
    terminal.feed(region.frame(["status"]))
    assert terminal.lines[:2] == ["one", "two and more"]


def test_f04_nothing_above_is_written_over_where_the_rows_below_the_cursor_are_gone() -> None:
    """The screen became lower and ends with the region's first row; the program does not know yet."""
    terminal, region = QuickTerminal(40, 4), Region(40, 10)
    region.frame(["one", "two", "three", "status"])
    terminal.feed("kept 1\r\nkept 2\r\nkept 3\r\none\r")
    terminal.feed(region.frame(["one", "two", "three", "status 2"]))
    region.commit(["one"])
    terminal.feed(region.frame(["two", "three", "status 3"]))
    assert terminal.lines[:4] == ["kept 1", "kept 2", "kept 3", "one"]


def test_the_tail_has_no_row_for_a_space_that_hangs_over_the_edge() -> None:
    answer = MarkdownText(9, 24)
    answer.feed("aaaa `bbbb `", 9)
    assert [SGR.sub("", row) for row in answer.tail(9, 5)] == ["aaaa bbbb"]


# What it costs

ANSWER = """\
## Part {n}

Some **bold** words of part {n}, with `code` and [a link](http://example.org/{n}) in them, and so on.

- one of {n}
- two of {n}

| a | b |
|---|---|
| {n} | 2 |

```python
def part{n}(x): return x + {n}
```

"""


def cost(sections: int) -> tuple[int, int]:
    """The function calls and the characters to the terminal that an answer takes, with a frame for every 12 pieces."""
    count = 0

    def counting(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    stage = Stage(Unread(80, 24))
    view = View(stage, new_text=MarkdownText, streamed=True, clock=Clock())
    stage.rows = view.rows
    view.feed(fake.started())
    text = "".join(ANSWER.format(n=number) for number in range(100, 100 + sections))
    events = [fake.text(piece) for piece in parts(text, [5])]
    sys.setprofile(counting)
    try:
        for at, event in enumerate(events):
            view.feed(event)
            if at % 12 == 0:
                stage.paint()
        view.feed(fake.completed())
        stage.close()
    finally:
        sys.setprofile(None)
    return count, sum(map(len, stage.terminal.written))


class Unread(Terminal):
    """Keeps what is written and shows nothing."""

    def feed(self, text: str) -> None:
        self.written.append(text)


def test_f19_the_cost_is_linear_in_the_length_of_the_answer() -> None:
    cost(1)  # what is made once
    calls, written = cost(20)
    more_calls, more_written = cost(60)
    assert more_calls < 3.1 * calls
    assert more_written < 3.1 * written
    assert more_written < 4 * 60 * len(ANSWER)
