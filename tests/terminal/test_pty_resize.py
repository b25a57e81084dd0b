"""Other sizes: changed while an answer streams, and very small ones (F04)."""

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from chat import text, whole
from programs import CONSOLE_SCRIPT
from terminal import CTRL_C, CTRL_D

from mini_agent.lab.replies import Cut, Pause, event_stream
from mini_agent.lab.server import LabThread

LINES = [
    f"{number:02d} and a line of seventy-five columns, as long as the screen is wide" for number in range(24)
]


def slowly(*, pause_s=0.03):
    """An answer of those lines, and then some that says that it is over."""
    parts = []
    for line in LINES:
        parts += [text(line[:40]), Pause(pause_s), text(f"{line[40:]}\n")]
    return whole(*parts, text("the end"))


def numbers(shown):
    return re.findall(r"^(\d\d) and a", shown, re.MULTILINE)


def test_f04_narrower_and_wider_while_it_streams(start):
    with LabThread([slowly()]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for("05 and")
        terminal.resize(columns=40)
        terminal.wait_for("11 and")
        terminal.resize(columns=100, rows=12)
        terminal.wait_for("17 and")
        terminal.resize(rows=30)
        terminal.wait_for("the end")
        terminal.wait_for_prompt()
        terminal.enter("/help")
        terminal.wait_for("/quit")
    assert numbers(terminal.text) == [line[:2] for line in LINES]
    assert "streaming" not in terminal.text


def test_f04_at_the_prompt_and_at_a_question(start):
    terminal = start()
    terminal.wait_for_prompt()
    terminal.send("a line that is typed " * 3)
    terminal.wait_for_prompt(("a line that is typed " * 3).strip())
    terminal.resize(columns=40)
    terminal.wait_for(lambda shown: "line that is typed" in shown.lines[shown.screen.cursor.y - 1])
    terminal.send(CTRL_C)
    terminal.resize(columns=80)
    terminal.wait_for_prompt()
    terminal.enter("run true")
    terminal.wait_for("Allow?")
    terminal.resize(columns=50, rows=10)
    terminal.rest(0.55)
    assert any("Allow?" in line for line in terminal.lines)
    terminal.send("n")
    terminal.wait_for("so I stop here")
    terminal.wait_for_prompt()


@pytest.mark.parametrize(("rows", "columns"), [(5, 20), (2, 6), (1, 1)])
def test_f04_tiny(start, folder, rows, columns):
    (folder / "a.txt").write_text("alpha\n")
    terminal = start(rows=rows, columns=columns)
    terminal.wait_for(lambda shown: shown.bracketed_paste, what="a prompt")
    terminal.enter("edit a.txt")
    terminal.wait_for(lambda shown: "it changes a file".replace(" ", "") in re.sub(r"\s", "", shown.text))
    terminal.rest(0.55)
    terminal.send("y")
    terminal.wait_for(lambda _: (folder / "a.txt").read_text() != "alpha\n")
    terminal.wait_for(lambda shown: shown.cursor_visible and shown.bracketed_paste)
    terminal.send(CTRL_D)
    assert terminal.wait_for_exit() == 0
    assert terminal.restored
    assert "Traceback" not in terminal.text
    assert "defect" not in terminal.text


class Tmux:
    """A terminal that reflows its rows when it is resized, which the emulated screen does not."""

    def __init__(self, folder: Path, command: list[str], environment: dict[str, str]) -> None:
        self._socket = str(folder / "tmux")
        given = [argument for pair in environment.items() for argument in ("-e", "=".join(pair))]
        self._run(
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
            "-c",
            str(folder),
            *given,
            *command,
        )

    def _run(self, *arguments: str) -> str:
        ran = subprocess.run(
            ["tmux", "-S", self._socket, *arguments], capture_output=True, text=True, check=True
        )
        return ran.stdout

    def type(self, keys: str) -> None:
        self._run("send-keys", "-l", keys)

    def press(self, key: str) -> None:
        self._run("send-keys", key)

    def resize(self, columns: int, rows: int) -> None:
        self._run("resize-window", "-x", str(columns), "-y", str(rows))

    def text(self) -> str:
        """Scrollback and screen, with the rows that were wrapped joined again."""
        return self._run("capture-pane", "-p", "-J", "-S", "-")

    def wait_for(self, wanted: str, timeout_s: float = 10) -> None:
        deadline = time.monotonic() + timeout_s
        while wanted not in self.text():
            assert time.monotonic() < deadline, f"waited for {wanted!r}\n{self.text()}"
            time.sleep(0.02)

    def close(self) -> None:
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True, check=False)


@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("tmux"), reason="tmux is not installed")
def test_f04_in_tmux_which_reflows(folder, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    half = event_stream(text("\n".join((*LINES[:8], "half a l"))), Pause(0.6), Cut())
    filler = whole(text("\n\n".join(f"filler {number}" for number in range(5))))
    with LabThread([filler, slowly(), half, whole(text("at last"))]) as lab:
        environment = {"MINI_AGENT_BASE_URL": lab.base_url, "MINI_AGENT_MODEL": "m"}
        tmux = Tmux(folder, CONSOLE_SCRIPT, environment)
        try:
            tmux.wait_for("\n>")
            # Something above the answer: tmux pushes as many rows off the screen as it breaks, even from an empty one.
            tmux.type("fill")
            tmux.press("Enter")
            tmux.wait_for("filler 4")
            tmux.wait_for("first token")
            tmux.type("hello")
            tmux.press("Enter")
            tmux.wait_for("05 and")
            tmux.resize(40, 24)
            tmux.wait_for("11 and")
            tmux.resize(100, 12)
            tmux.wait_for("17 and")
            tmux.resize(80, 30)
            tmux.wait_for("the end\n\nfirst token")
            assert numbers(tmux.text()) == [line[:2] for line in LINES]
            assert "streaming" not in tmux.text()
            # Rows that are broken anew can't be taken off any more: none of them is, and what stood above stays.
            before = tmux.text().rpartition("\n>")[0]
            tmux.type("again")
            tmux.press("Enter")
            tmux.wait_for("half a l")
            tmux.resize(40, 30)
            tmux.wait_for("at last")
            tmux.wait_for("wasted")
            assert tmux.text().startswith(before)
            again = tmux.text().removeprefix(before)
            assert "> again" in again
            broken = numbers(again)  # but for the end, which had not left the region
            assert broken == [line[:2] for line in LINES[: len(broken)]]
            assert len(broken) >= 4
            assert again.count("the text above broke off") == 1
        finally:
            tmux.close()
