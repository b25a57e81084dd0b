"""What the end of a long answer costs, beside its beginning; and what waiting at the prompt costs.

    python bench/long_answer.py

An answer of 100,000 pieces of four characters goes through `View`, `MarkdownText` and `Region` in process, with a frame for
every 12 pieces, as many as come in a frame's time at 240 pieces a second. Each tenth's processor time is the least of three
runs. Memory is what Python holds at the end, without what it held before, and the most it held, in multiples of the text.
The mixed answer is what models write; the others are one block each, which never ends.

The real program then waits at its prompt in a pseudo-terminal for five seconds (Linux only).
"""

import contextlib
import gc
import os
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from peers import Program
from terminal import Terminal, workplace

from mini_agent.core.events import ChannelToken, FirstToken, StreamStarted
from mini_agent.ui.answer import MarkdownText
from mini_agent.ui.region import Mark, Region
from mini_agent.ui.view import View

WIDTH, HEIGHT = 100, 40
PIECES, SIZE, A_FRAME = 100_000, 4, 12
RUNS = 3
DUE_RATIO = 1.2

SECTION = """\
## Step {n}: the mill

The **old mill** by the river turned `slowly`, and nobody knew *who* had set it going that year; see
[the record](https://example.org/mills/{n}) for what was written down, and what was not.

- bread and butter, number {n}
- a lamp with oil
    - of the first press
    - and a wick
- two letters

1. open the sluice
2. wait for the wheel

> It goes, and goes on going.

| part | weight | state |
| --- | ---: | --- |
| wheel {n} | 120 | worn |
| axle | 45 | good |

```python
def turns(water: float, load: float = {n}.5) -> float:
    \"\"\"How fast it goes.\"\"\"
    if load <= 0:
        raise ValueError(f"no load: {{load}}")
    return water / load  # a second
```

"""


def repeated(unit: str, opening: str = "") -> str:
    """As much of it as the answer is long, numbered."""
    parts, length, number = [opening], len(opening), 0
    while length < PIECES * SIZE:
        parts.append(unit.format(n=number))
        length += len(parts[-1])
        number += 1
    return "".join(parts)[: PIECES * SIZE]


ANSWERS: dict[str, Callable[[], str]] = {
    "mixed": lambda: repeated(SECTION),
    "one block of code": lambda: repeated("value_{n} = compute({n}, 'text')  # a note\n", "```python\n"),
    "one list": lambda: repeated("- item {n} with **bold** and `code`\n"),
    "one table": lambda: repeated("| {n} | a word | *more* |\n", "| n | one | two |\n| --- | --- | --- |\n"),
    "one paragraph": lambda: repeated("word {n} of **many** on one `line` "),
}


class Screen:
    """What `Live` is to a view; frames are made when they are due, and their bytes counted."""

    width, height, moving = WIDTH - 1, HEIGHT, True

    def __init__(self) -> None:
        self._region = Region(WIDTH, HEIGHT)
        self.rows: Callable[[], Sequence[str]] = list
        self.written = 0

    def commit(self, rows: Sequence[str]) -> None:
        self._region.commit(rows)

    def mark(self) -> Mark:
        return self._region.mark()

    def erase_since(self, mark: Mark) -> bool:
        return self._region.erase_since(mark)

    def changed(self) -> None:
        """Frames are made by count."""

    def hurry(self) -> None:
        self.paint()

    def paint(self) -> None:
        self.written += len(self._region.frame(self.rows()).encode())


class Clock:
    """Seconds of the answer, not of this process."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def played(pieces: Sequence[str]) -> Iterator[float]:
    """Shows an answer; gives this process's processor time at the beginning and after each tenth."""
    screen, clock = Screen(), Clock()
    view = View(screen, new_text=MarkdownText, streamed=True, clock=clock)
    screen.rows = view.rows
    view.feed(StreamStarted(t=0, request_id="r", attempt=1, model="m", api="chat"))
    view.feed(FirstToken(t=0, request_id="r", attempt=1, ttft_s=0.1))
    yield time.process_time()
    tenth = len(pieces) // 10
    for number, piece in enumerate(pieces, 1):
        view.feed(ChannelToken(t=0, request_id="r", attempt=1, channel="text", text=piece))
        if number % A_FRAME == 0:
            clock.now += 0.05
            screen.paint()
        if number % tenth == 0:
            yield time.process_time()


def tenths(pieces: Sequence[str]) -> list[float]:
    """Processor seconds of each tenth."""
    gc.collect()
    times = list(played(pieces))
    return [after - before for before, after in pairwise(times)]


def grown(pieces: Sequence[str]) -> tuple[int, int]:
    """Bytes held at the end, while the answer is still on the screen, and the most that were."""
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    playing = played(pieces)
    for _ in range(11):
        next(playing)
    now, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return now - before, most - before


def idle() -> None:
    """The real program at its prompt."""
    command = [str(Path(sys.executable).with_name("mini-agent"))]
    with workplace() as folder:
        program = Program("mini-agent", command, {"MINI_AGENT_HOME": str(folder), "MINI_AGENT_MODEL": "demo"})
        with contextlib.closing(Terminal(program, folder)) as terminal:
            assert terminal.wait_for(lambda: terminal.shows(program.prompt), 30), terminal.text
            terminal.rest(3)  # until the warm-up is over
            ticks, written = terminal.processor_ticks(), terminal.written
            terminal.rest(5)
            ticks, written = terminal.processor_ticks() - ticks, terminal.written - written
    print(f"\n5 s at the prompt: {ticks} ticks of {1000 / os.sysconf('SC_CLK_TCK'):.0f} ms, {written} bytes")


def main() -> None:
    print(f"{PIECES:,} pieces of {SIZE} characters; due: at most {DUE_RATIO}\n")
    print(f"{'answer':18} {'s':>6} {'first tenth':>12} {'last':>6} {'ratio':>6} {'memory':>7} {'most':>6}")
    for name, made in ANSWERS.items():
        text = made()
        pieces = [text[at : at + SIZE] for at in range(0, len(text), SIZE)]
        tenths(pieces[: PIECES // 20])  # a regular expression or a lexer is made only once
        least = [min(times) for times in zip(*(tenths(pieces) for _ in range(RUNS)), strict=True)]
        held, most = (size / len(text) for size in grown(pieces))
        print(
            f"{name:18} {sum(least):6.2f} {least[0]:12.3f} {least[-1]:6.3f} {least[-1] / least[0]:6.2f}"
            f" {held:6.1f}x {most:5.1f}x",
            flush=True,
        )
    if sys.platform == "linux":
        idle()


if __name__ == "__main__":
    main()
