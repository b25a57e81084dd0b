"""Resizes at any moment of an answer, in a terminal that reflows its rows (F04): 30 cases of chance, each with its seed.

One tmux server, a few windows side by side, several answers in each: every line that came stands once, in order, in what
`capture-pane` reads of scrollback and screen.
"""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from chat import text, whole
from programs import CONSOLE_SCRIPT

from mini_agent.lab.replies import Cut, Pause, Reply, event_stream
from mini_agent.lab.requests import LabRequest
from mini_agent.lab.server import LabThread
from mini_agent.ui.answer import MarkdownText
from mini_agent.ui.text import SGR

LINES = 24
CASES = 30
WINDOWS = 3
BROKE_OFF = "the text above broke off"

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or not shutil.which("tmux"), reason="tmux is not installed"
)


class Case(NamedTuple):
    """An answer. sizes: (columns, rows) that its window gets as soon as a line is seen. breaks_at: the line in which it
    breaks off when it is first asked for."""

    number: int
    lines: list[str]
    between: str
    sizes: dict[int, tuple[int, int]]
    breaks_at: int | None

    @staticmethod
    def of(number: int) -> "Case":
        chance = Random(number)
        # Each line is final with the one behind it: one row, and a few of them only where the window is narrow.
        begin, between = chance.choice(
            [("- ", "\n"), ("1. ", "\n"), ("", "\n\n"), ("> ", "\n>\n"), ("    ", "\n")]
        )
        most = chance.choice([8, 60]) if begin != "> " else 8
        lines = [f"{begin}{_name(number, line)} {_words(chance, most)}".rstrip() for line in range(LINES)]
        sizes = {
            line: (chance.randint(24, 120), chance.randint(4, 40))
            for line in chance.sample(range(2, LINES - 5), chance.randint(1, 3))
        }
        return Case(number, lines, between, sizes, max(sizes) + 2 if number % 5 == 4 else None)

    @property
    def rows(self) -> str:
        """What is shown of it, in one line: that is the same at any width."""
        answer = MarkdownText(100, 24)
        rows = answer.feed(self.between.join(self.lines), 100) + answer.close(100)
        return _flat(SGR.sub("", "\n".join(rows)))

    def reply(self, *, again: bool) -> Reply:
        chance = Random(self.number + again)
        said = self.between.join(self.lines)
        cut = None if again or self.breaks_at is None else said.index(self.lines[self.breaks_at]) + 9
        parts, at = [], 0
        while at < len(said[:cut]):
            size = chance.randint(1, 30)
            parts += [text(said[at : at + size][: None if cut is None else cut - at]), Pause(0.008)]
            at += size
        return whole(*parts) if cut is None else event_stream(*parts, Pause(0.05), Cut())


def _words(chance: Random, most: int) -> str:
    """Up to so many characters."""
    return " ".join(["=" * chance.randrange(1, 8) for _ in range(most // 8)])[
        : chance.randrange(most + 1)
    ].rstrip()


def _flat(shown: str) -> str:
    return " ".join(shown.split())


def _name(number: int, line: int) -> str:
    return f"case{number:02d}line{line:02d}"


class Asked:
    """What the lab says: the answer of the case that the last message names."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: set[str] = set()

    def __call__(self, request: LabRequest) -> Reply:
        said = str(request.json["messages"][-1]["content"])
        with self._lock:
            again = said in self._asked
            self._asked.add(said)
        if "fill" in said:
            return whole(text("\n\n".join(f"filler {number}" for number in range(30))))
        return Case.of(int(said.split()[-1])).reply(again=again)


class Tmux:
    """A server of its own, whose windows have sizes of their own."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._socket = str(folder / "tmux")
        (folder / "conf").write_text("set -g history-limit 50000\n")

    def run(self, *arguments: str) -> str:
        command = ["tmux", "-f", str(self._folder / "conf"), "-S", self._socket, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8").stdout

    def window(self, name: str) -> "Window":
        given = [part for pair in self._environment.items() for part in ("-e", "=".join(pair))]
        size = ("-x", "80", "-y", "24")
        self.run("new-session", "-d", "-s", name, *size, "-c", str(self._folder), *given, *CONSOLE_SCRIPT)
        return Window(self, name)

    def close(self) -> None:
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True, check=False)


class Window:
    """One of its windows, with the program in it."""

    def __init__(self, tmux: Tmux, name: str) -> None:
        self._tmux = tmux
        self._name = name
        self._answers = 0

    def resize(self, columns: int, rows: int) -> None:
        self._tmux.run("resize-window", "-t", self._name, "-x", str(columns), "-y", str(rows))

    @property
    def shown(self) -> str:
        """Scrollback and screen, with the rows that the terminal broke joined again."""
        return self._tmux.run("capture-pane", "-t", self._name, "-p", "-J", "-S", "-")

    def wait_for(self, wanted: str, *, count: int = 1) -> str:
        deadline = time.monotonic() + 15
        while len(re.findall(wanted, shown := self.shown)) < count:
            assert time.monotonic() < deadline, f"waited for {wanted!r}\n{shown}"
            time.sleep(0.01)
        return shown

    def ask(self, message: str) -> None:
        self._tmux.run("send-keys", "-t", self._name, "-l", message)
        self._tmux.run("send-keys", "-t", self._name, "Enter")
        self._answers += 1

    def wait_for_receipt(self) -> str:
        """Until the answer's receipt and the next prompt are there."""
        self.wait_for(r"total\s+\d", count=self._answers)
        return self.wait_for(r"\n>[^>]*\Z")

    def play(self, case: Case) -> str:
        """What is shown when the case's answer is over."""
        self.ask(f"case {case.number}")
        for line, size in sorted(case.sizes.items()):
            self.wait_for(_name(case.number, line))
            self.resize(*size)
        return self.wait_for_receipt()


@pytest.fixture
def tmux(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tmux]:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.delenv("TMUX", raising=False)
    with LabThread(Asked()) as lab:
        environment = {
            "MINI_AGENT_BASE_URL": lab.base_url,
            "MINI_AGENT_MODEL": "m",
            "MINI_AGENT_RETRY_BASE_S": "0.01",
            "PATH": os.environ["PATH"],
        }
        server = Tmux(folder, environment)
        try:
            yield server
        finally:
            server.close()


def check(shown: str, cases: list[Case]) -> None:
    """Each line of the last answer stands once, with nothing in between; and so do, still, those of the ones before it."""
    for case, answer in zip(cases, _split(shown, cases), strict=True):
        said = f"seed {case.number}: {case}\n{answer}\n{shown}"
        broken, closing, kept = answer.rpartition(BROKE_OFF)
        if closing:
            assert case.breaks_at is not None, said
            assert case.rows.startswith(broken.rstrip("─ ")), said
            assert broken.count("line") <= case.breaks_at + 1, said
        assert _above_receipt(kept) == case.rows, said


def _above_receipt(answer: str) -> str:
    """What stands above the receipt, without the lines that belong to a retry."""
    before, receipt, _ = answer.rpartition(" first token ")
    assert receipt, answer
    return re.sub(r"^.*waited [\d.]+ s ", "", before)


def _split(shown: str, cases: list[Case]) -> list[str]:
    """What stands under each of the messages, in the order in which they were sent."""
    parts = re.split(r"^> case \d+$", shown, flags=re.MULTILINE)[1:]
    assert len(parts) == len(cases), f"{len(parts)} messages for {len(cases)}\n{shown}"
    return [_flat(part) for part in parts]


def test_f04_30_answers_with_resizes_at_any_moment(tmux: Tmux) -> None:
    windows = [tmux.window(f"w{first}") for first in range(WINDOWS)]

    def play(window: Window, first: int) -> None:
        window.wait_for(r"\n>")
        # Something above the answers: tmux pushes as many rows off the screen as it breaks, even from an empty one.
        window.ask("fill")
        window.wait_for_receipt()
        played: list[Case] = []
        for number in range(first, CASES, WINDOWS):
            played.append(Case.of(number))
            check(window.play(played[-1]), played)

    with ThreadPoolExecutor(WINDOWS) as pool:
        list(pool.map(play, windows, range(WINDOWS)))
