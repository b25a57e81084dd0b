"""Answers as they stream (product U1, U2, U5, U6, W6)."""

import re

from chat import call, text, thought, whole
from terminal import CTRL_C

from mini_agent.core.answers import Answer, TextPiece
from mini_agent.lab.replies import Hold, event_stream
from mini_agent.lab.server import LabThread

LINES = [f"line {number} of the answer" for number in range(60)]


def once(terminal, lines):
    """Each of these lines stands exactly once in scrollback and screen, in this order."""
    assert [line for line in terminal.everything if line in set(lines)] == list(lines), terminal.dump()


def test_text_is_there_before_the_answer_ends(start):
    with LabThread([event_stream(text("the first line\nthe second l"), Hold())]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for("the second l")
        terminal.wait_for(lambda shown: re.search(r"streaming · ~\d+ tokens", shown.text))
        assert not terminal.cell("the first line").dim
        assert terminal.cell("streaming").dim
        assert not terminal.cursor_visible


def test_thinking_is_dim_in_six_rows_and_leaves_one_line(start):
    thoughts = [thought(f"thought number {number}\n") for number in range(20)]
    with LabThread([event_stream(*thoughts, Hold()), whole(*thoughts, text("the answer"))]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for("thought number 19")
        shown = [line for line in terminal.lines if line.startswith("thought number")]
        assert shown == [f"thought number {number}" for number in range(14, 20)]
        assert terminal.cell("thought number 19").dim
        terminal.send(CTRL_C)
        terminal.wait_for_prompt()
        terminal.enter("again")
        terminal.wait_for("the answer")
        terminal.wait_for_prompt()
        assert "thought number" not in terminal.text
        assert terminal.text.count("thought for ") == 2
        assert terminal.cell("thought for ").dim


def test_f01_an_answer_longer_than_the_screen_is_there_once_and_its_newest_lines_are_seen(start):
    pieces = [text(f"{line}\n") for line in LINES]
    with LabThread([event_stream(*pieces, text("and so on"), Hold()), whole(*pieces[::-1])]) as lab:
        terminal = start(lab=lab, rows=12)
        terminal.wait_for_prompt()
        terminal.enter("many lines")
        terminal.wait_for("and so on")
        assert LINES[-5:] == [line for line in terminal.lines if line in LINES][-5:]
        terminal.send(CTRL_C)
        terminal.wait_for_prompt()
        once(terminal, LINES)
        before = terminal.everything
        terminal.enter("backwards")
        terminal.wait_for(LINES[0] + " first token")
        terminal.wait_for_prompt()
        assert [line for line in terminal.everything[len(before) :] if line in LINES] == LINES[::-1]


def test_f01_a_line_longer_than_the_screen_is_broken_but_whole(start):
    words = " ".join(f"word{number}" for number in range(300))
    with LabThread([whole(*(text(part) for part in re.findall(".{1,7}", words)))]) as lab:
        terminal = start(lab=lab, rows=10, columns=40)
        terminal.wait_for_prompt()
        terminal.enter("one line")
        terminal.wait_for("word299")
        terminal.wait_for_prompt()
        assert re.findall(r"word\d+", terminal.text) == words.split()


def test_the_demo_answers_at_length(start):
    terminal = start(rows=20, env={"DEMO_DELAY_MS": "1"})
    terminal.wait_for_prompt()
    terminal.enter("long")
    terminal.wait_for_prompt()
    once(terminal, ["A long answer", *(f"Part {number}" for number in range(1, 6))])
    assert re.search(r"first token \d.*total \d.*tok/s.*in \d+ · out \d+", terminal.text)


def test_the_status_says_what_is_waited_for(start):
    with LabThread([event_stream(b": keep-alive\n\n", Hold())]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for("waiting for the first token 1 s")
        terminal.send(CTRL_C)
        terminal.wait_for_prompt()
        assert "waiting for" not in terminal.text


def test_a_tool_call_is_announced_when_its_name_arrives(start):
    begun = call("write_file", {"path": "a.txt", "content": "x" * 40}).replace(rb"\"}", b"")
    with LabThread([event_stream(begun, Hold())]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for("● write_file")
        terminal.send(CTRL_C)
        terminal.wait_for_prompt()


def test_unstreamed_the_two_times_are_the_same(start):
    with LabThread([Answer((TextPiece("all at once"),))]) as lab:
        terminal = start("--no-stream", lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for("all at once")
        terminal.wait_for_prompt()
        assert lab.requests[0].json.get("stream") is not True
    first, total = re.search(r"first token ([\d.]+) s · total ([\d.]+) s", terminal.text).groups()
    assert abs(float(first) - float(total)) < 0.05
