"""However the program ends, the terminal is as it was: cursor, echo, bracketed paste (F13, F21)."""

import signal
import sys

import pytest
from chat import text, whole
from terminal import CTRL_D, CTRL_Z

from mini_agent.lab.replies import Hold, Pause, event_stream
from mini_agent.lab.server import LabThread

STREAMING = event_stream(text("first line\nsecond l"), Hold())
FINE = whole(text("fine"))

DEFECT = """
from {module} import {name} as owner
def broken(*arguments, **named):
    raise ZeroDivisionError("planted")
owner.{method} = broken
from mini_agent.cli import main
main()
"""


def defect(module, name, method):
    """The program with one method that raises."""
    return [sys.executable, "-c", DEFECT.format(module=module, name=name, method=method)]


def test_ctrl_d_after_a_turn(start):
    terminal = start()
    terminal.wait_for_prompt()
    assert not terminal.cooked
    assert terminal.bracketed_paste
    terminal.enter("hello")
    terminal.wait_for("demo model:")
    terminal.wait_for_prompt()
    terminal.send(CTRL_D)
    assert terminal.wait_for_exit() == 0
    assert terminal.restored
    assert terminal.lines[terminal.screen.cursor.y] == ""


@pytest.mark.parametrize(
    ("name", "streaming"),
    [("SIGTERM", True), ("SIGHUP", True), ("SIGTERM", False)],
    ids=["SIGTERM while it streams", "SIGHUP while it streams", "SIGTERM at the prompt"],
)
def test_f21_a_signal_that_ends_it(start, name, streaming):
    number = signal.Signals[name]
    with LabThread([STREAMING]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        if streaming:
            terminal.enter("hello")
            terminal.wait_for("second l")
            assert not terminal.cursor_visible
        terminal.send_signal(number)
        assert terminal.wait_for_exit(2) == 128 + number
        assert terminal.restored
        assert "Traceback" not in terminal.text
        if streaming:
            assert "first line" in terminal.text
            lab.until(lambda server: server.disconnects)


def test_f21_a_defect_in_the_turn_costs_the_turn_only(start):
    terminal = start(command=defect("mini_agent.agent.loop", "Agent", "_settle"))
    terminal.wait_for_prompt()
    terminal.enter("hello")
    terminal.wait_for("a defect of mini-agent: ZeroDivisionError: planted")
    terminal.wait_for_prompt()
    terminal.send(CTRL_D)
    assert terminal.wait_for_exit() == 0
    assert terminal.restored


@pytest.mark.parametrize(
    ("module", "name", "method"),
    [
        ("mini_agent.ui.view", "View", "rows"),
        ("mini_agent.ui.prompt", "Prompt", "ask"),
        ("mini_agent.ui.view", "View", "feed"),
    ],
    ids=["painting", "the prompt", "events"],
)
def test_f21_a_defect_of_the_screens_own(start, module, name, method):
    terminal = start(command=defect(module, name, method), rows=60)
    terminal.wait_for(lambda shown: shown.prompt is not None or shown.exit_code is not None)
    if terminal.exit_code is None:
        terminal.enter("hello")
        terminal.wait_for("planted")
        terminal.send_signal(signal.SIGTERM)
    terminal.wait_for_exit()
    assert "planted" in terminal.text
    assert terminal.restored


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "prompt"])
def test_f13_a_closed_terminal_ends_it_once(start, streaming):
    with LabThread([STREAMING]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        if streaming:
            terminal.enter("hello")
            terminal.wait_for("second l")
        terminal.hang_up()
        # By what it read, by the signal that came with it, or by that signal when it had all but ended.
        assert terminal.wait_for_exit(2) in (0, 128 + signal.SIGHUP, -signal.SIGHUP)
        if streaming:
            lab.until(lambda server: server.disconnects)


def test_ctrl_z_at_the_prompt_and_back(start):
    terminal = start()
    terminal.wait_for_prompt()
    terminal.send("half a line")
    terminal.wait_for_prompt("half a line")
    terminal.send(CTRL_Z)
    terminal.wait_for(lambda shown: shown.is_stopped)
    assert terminal.restored
    terminal.to_foreground()
    terminal.wait_for_prompt("half a line")
    terminal.wait_for(lambda shown: not shown.cooked)
    terminal.send("s")
    terminal.wait_for_prompt("half a lines")
    assert not terminal.cooked
    terminal.enter()
    terminal.wait_for("demo model:")
    terminal.wait_for_prompt()
    terminal.send(CTRL_D)
    assert terminal.wait_for_exit() == 0
    assert terminal.restored


def test_ctrl_z_in_the_middle_of_an_answer_and_back(start):
    lines = [f"- line {number}" for number in range(8)]
    parts = [part for line in lines for part in (text(f"{line}\n"), Pause(0.05))]
    with LabThread([whole(*parts)]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for("line 2")
        terminal.send(CTRL_Z)
        terminal.wait_for(lambda shown: shown.is_stopped)
        assert terminal.restored
        terminal.to_foreground()
        terminal.wait_for("line 7")
        terminal.wait_for_prompt()
        assert [line for line in terminal.lines if line.startswith("- line")] == lines
        terminal.send(CTRL_D)
        assert terminal.wait_for_exit() == 0
        assert terminal.restored
