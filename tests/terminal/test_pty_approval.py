"""Changes are made only after a question that is seen and answered (product U4, T5; F22)."""

import re
import threading

import pytest
from chat import calls, script, sent, text, whole

from mini_agent.lab.server import LabThread

FRESH_S = 0.55
"""Keys closer together than half a second belong to one thought: none of it answers a question that came up meanwhile."""


def test_the_demo_edits_a_file_after_a_diff_and_a_yes(start, folder):
    (folder / "notes.txt").write_text("alpha\nbeta\n")
    terminal = start()
    terminal.wait_for_prompt()
    terminal.enter("edit notes.txt")
    terminal.wait_for("Allow?")
    assert "--- a/notes.txt" in terminal.text
    (added,) = re.findall(r"^ +\d+ (\+.*)$", terminal.text, re.MULTILINE)
    assert terminal.cell(added).fg == "green"
    assert (folder / "notes.txt").read_text() == "alpha\nbeta\n"
    terminal.rest(FRESH_S)
    terminal.send("y")
    terminal.wait_for("is changed in one place")
    terminal.wait_for_prompt()
    assert added.removeprefix("+") in (folder / "notes.txt").read_text().splitlines()
    assert terminal.text.count("Allow? [y]es / [n]o yes") == 1


def test_no_leaves_the_file_alone_and_the_model_is_told(start, folder):
    (folder / "notes.txt").write_text("alpha\nbeta\n")
    terminal = start()
    terminal.wait_for_prompt()
    terminal.enter("edit notes.txt")
    terminal.wait_for("Allow?")
    terminal.rest(FRESH_S)
    terminal.send("n")
    terminal.wait_for("did not work, so I stop here")
    terminal.wait_for_prompt()
    assert (folder / "notes.txt").read_text() == "alpha\nbeta\n"


@pytest.mark.parametrize(
    ("keys", "answer", "messages"),
    [("y", "n", ["hello"]), ("y\r", "y", ["hello", "y"])],
    ids=["y, then no", "y and Enter, then yes"],
)
def test_keys_typed_before_the_question_never_answer_it(start, folder, keys, answer, messages):
    typed = threading.Event()
    write = calls("write_file", {"path": "new.txt", "content": "x"})
    end = whole(text("so be it"))
    with LabThread(script(calls("list_dir", {"path": "."}), typed, write, end)) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for("● list_dir .")
        terminal.send(keys)
        terminal.wait_for("> y")
        typed.set()
        terminal.wait_for("Allow?")
        terminal.rest(FRESH_S)
        assert terminal.text.count("Allow?") == 1
        assert not (folder / "new.txt").exists()
        terminal.send(answer)
        terminal.wait_for("so be it")
        terminal.wait_for_prompt("y" if keys == "y" else "")  # with Enter it went out with the last step
        said = [message["content"] for message in sent(lab.requests[-1]) if message["role"] == "user"]
        assert said == messages
    assert (folder / "new.txt").exists() == (answer == "y")


def test_nor_do_keys_of_the_same_breath_that_come_after_it(start, folder):
    typed = threading.Event()
    write = calls("write_file", {"path": "new.txt", "content": "x"})
    with LabThread(script(calls("list_dir", {"path": "."}), typed, write, whole(text("so be it")))) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for("● list_dir .")
        terminal.send("y")
        typed.set()
        keys = 1
        while "Allow?" not in terminal.text or keys < 5:
            terminal.rest(0.05)
            terminal.send("y")
            keys += 1
        terminal.rest(FRESH_S)
        assert "Allow? [y]es / [n]o yes" not in terminal.text
        terminal.send("n")
        terminal.wait_for_prompt("y" * keys)
    assert not (folder / "new.txt").exists()


def test_f22_the_question_stays_on_the_screen_until_it_is_answered(start):
    terminal = start(rows=10)
    terminal.wait_for_prompt()
    terminal.enter("run true")
    terminal.wait_for("Allow?")
    row = next(line for line in terminal.lines if "Allow?" in line)
    terminal.rest(1.0)
    assert row in terminal.lines
    assert "run true" in terminal.flat
    assert not any("waiting" in line for line in terminal.lines)
