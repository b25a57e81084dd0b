"""The line on which the user types (product U3, U4, U9; T7)."""

import re

import pytest
from chat import sent, text, whole
from terminal import BACKSPACE, CTRL_C, CTRL_D, ENTER, ESC, UP, paste

from mini_agent.lab.replies import Pause, event_stream
from mini_agent.lab.server import LabThread

FINE = whole(text("fine"))


def test_the_first_line_names_the_demo_and_how_to_set_a_key(start):
    terminal = start()
    terminal.wait_for_prompt()
    assert re.fullmatch(
        r"mini-agent [\d.]+ · demo model \(set DEEPSEEK_API_KEY .*\) · /help", terminal.lines[0]
    )
    assert terminal.lines[1] == ">"


def test_a_planted_dotenv_is_not_obeyed_and_one_line_says_so(start, folder):
    (folder / ".env").write_text("MINI_AGENT_BASE_URL=http://127.0.0.1:9/v1\nOTHER=x\nexport \x1b[2J=1\n")
    terminal = start(columns=200)
    terminal.wait_for_prompt()
    assert "demo model" in terminal.lines[0]
    (said,) = (line for line in terminal.lines if ".env" in line and "not obeyed" in line)
    assert "MINI_AGENT_BASE_URL" in said
    assert "OTHER" not in said


def test_ctrl_c_clears_the_line_which_up_recalls_and_twice_on_an_empty_one_leaves(start):
    terminal = start()
    terminal.wait_for_prompt()
    terminal.send("half a thought")
    terminal.wait_for_prompt("half a thought")
    terminal.send(CTRL_C)
    terminal.wait_for_prompt()
    terminal.send(UP)
    terminal.wait_for_prompt("half a thought")
    terminal.send(ESC)
    terminal.send("s")
    terminal.wait_for_prompt("half a thoughts")
    terminal.send(CTRL_C)
    terminal.wait_for_prompt()
    terminal.send(CTRL_C)
    terminal.wait_for("again, or Ctrl+D, leaves")
    terminal.send("x" + BACKSPACE)  # whoever types on does not leave
    terminal.wait_for_prompt()
    terminal.send(CTRL_C)
    terminal.wait_for("again, or Ctrl+D, leaves")
    terminal.send(CTRL_C)
    assert terminal.wait_for_exit() in (0, 130)


def test_ctrl_d_and_quit_leave(start):
    for keys in (CTRL_D, "/quit" + ENTER):
        terminal = start()
        terminal.wait_for_prompt()
        terminal.send(keys)
        assert terminal.wait_for_exit() == 0
        assert terminal.text.count("mini-agent") == 1


def test_commands_are_not_sent(start):
    with LabThread([FINE]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("/help")
        terminal.wait_for("/quit leave")
        terminal.wait_for_prompt()
        terminal.enter("/hepl me")
        terminal.wait_for("did you mean /help?")
        terminal.wait_for_prompt()
        terminal.enter("/zzz")
        terminal.wait_for("there is no command /zzz")
        terminal.wait_for_prompt()
        terminal.enter("   ")
        terminal.wait_for_prompt()
        assert lab.requests == []
        terminal.enter("/usr/bin/env fails")
        terminal.wait_for("fine")
        assert [message["content"] for message in sent(lab.requests[0])] == ["/usr/bin/env fails"]


def test_f17_a_paste_of_several_lines_is_one_message(start):
    with LabThread([FINE]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.send(paste("first\rsecond\n\x1b[31mthird\x1b[0m\n"))
        terminal.wait_for("third")
        assert lab.requests == []
        terminal.enter()
        terminal.wait_for("fine")
        assert [message["content"].rstrip("\n") for message in sent(lab.requests[0])] == [
            "first\nsecond\nthird"
        ]


def test_f17_50_kb_arrive_whole(start):
    big = "".join(f"{number:07d}\n" for number in range(6400))
    with LabThread([FINE]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.send(paste(big))
        terminal.wait_for("0006399", 20)
        terminal.enter()
        terminal.wait_for("fine", 20)
        assert sent(lab.requests[0])[0]["content"].rstrip("\n") == big.rstrip("\n")


def test_f17_a_paste_while_it_works_is_one_message_too(start):
    with LabThread([event_stream(text("working"), Pause(0.5), *FINE.body), FINE]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for("working")
        terminal.send(paste("one\rtwo\n") + "three")
        terminal.wait_for_prompt("one\ntwo\nthree")
        assert len(lab.requests) == 1
        terminal.enter()
        lab.until(lambda server: len(server.requests) == 2)
        assert sent(lab.requests[1])[-1]["content"] == "one\ntwo\nthree"


def test_f17_a_paste_without_an_end_can_be_left(start):
    terminal = start()
    terminal.wait_for_prompt()
    terminal.send("\x1b[200~lost")
    while "again, or Ctrl+D, leaves" not in terminal.text:
        terminal.rest(0.2)  # only a Ctrl+C by itself ends a paste: one within it may be part of it
        terminal.send(CTRL_C)
        terminal.pump(0.2)
    terminal.send("after")
    terminal.wait_for_prompt("after")


def test_what_is_typed_during_the_warm_up_is_there(start):
    words = "the quick brown fox jumps over the lazy dog " * 3
    with LabThread([FINE]) as lab:
        terminal = start(lab=lab, columns=200)
        terminal.wait_for_prompt()
        for letter in words:
            terminal.send(letter)
            terminal.pump(0.005)
        terminal.enter()
        terminal.wait_for("fine")
        assert sent(lab.requests[0])[0]["content"].strip() == words.strip()


def test_what_is_typed_while_it_works_is_shown_and_kept(start):
    with LabThread([event_stream(text("working"), Pause(0.6), *FINE.body), whole(text("done"))]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for("working")
        terminal.send("half a lime" + BACKSPACE * 2 + "ne")
        terminal.wait_for("> half a line")
        terminal.wait_for_prompt("half a line")
        assert "half" not in terminal.text.split("working")[1].split("fine")[0]
        terminal.enter(" more")
        terminal.wait_for("done")
        assert sent(lab.requests[1])[-1]["content"] == "half a line more"


def test_a_line_finished_while_it_works_is_sent_next(start):
    with LabThread([event_stream(text("working"), Pause(0.6), *FINE.body), whole(text("done"))]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for("working")
        terminal.send("and then" + ENTER + "later")
        terminal.wait_for("done")
        terminal.wait_for_prompt("later")
        assert sent(lab.requests[1])[-1]["content"] == "and then"
        assert terminal.lines.count("> and then") == 1


def test_what_is_typed_right_behind_enter_stays_in_order(start):
    with LabThread([event_stream(text("working"), Pause(0.5), *FINE.body)]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("hello", then="next")
        terminal.wait_for("working")
        terminal.send(" words")
        terminal.wait_for_prompt("next words")


def test_f03_answers_of_the_terminal_are_not_typed(start):
    with LabThread([event_stream(text("working"), Pause(0.5), *FINE.body), FINE]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for("working")
        terminal.send("\x1b[24;1R\x1b[?62;22c\x1b]11;rgb:0000/0000/0000\x1b\\")
        terminal.wait_for("fine")
        terminal.wait_for_prompt()
        terminal.send("\x1b[24;1R")
        terminal.send("x")
        terminal.wait_for_prompt("x")


def test_a_first_message_on_the_command_line_is_sent(start):
    with LabThread([FINE]) as lab:
        terminal = start("from outside", lab=lab)
        terminal.wait_for("fine")
        terminal.wait_for_prompt()
        assert "> from outside" in terminal.lines
        assert [message["content"] for message in sent(lab.requests[0])] == ["from outside"]


def test_u9_the_line_under_the_prompt_says_model_mode_and_effort_and_goes_with_it(start):
    terminal = start(env={"DEMO_DELAY_MS": "0"})
    terminal.wait_for_prompt()
    terminal.wait_for(lambda shown: shown.bottom == "demo · ask")
    terminal.enter("/mode auto")
    terminal.wait_for(lambda shown: shown.bottom == "demo · auto")
    terminal.enter("/effort high")
    terminal.wait_for(lambda shown: shown.bottom == "demo · auto · effort high")
    terminal.enter("hello")
    terminal.wait_for("first token")
    terminal.wait_for_prompt()
    assert terminal.flat.count("effort high") == 1  # what was typed; the line itself is never left behind


@pytest.mark.parametrize("keys", ["/mo\t", "/mod"])
def test_u9_commands_and_paths_are_completed(start, folder, keys):
    (folder / "src").mkdir()
    (folder / "src" / "a module.py").write_text("", encoding="utf-8")
    terminal = start()
    terminal.wait_for_prompt()
    terminal.send(keys)
    terminal.wait_for("what is done without a question")
    terminal.send(CTRL_C)
    terminal.wait_for_prompt()
    terminal.send("look at @amod")
    terminal.wait_for("a module.py")
    terminal.send("\t")
    terminal.wait_for_prompt('look at @"src/a module.py"')


def test_u9_what_was_sent_before_is_found_again_in_another_session(start):
    terminal = start()
    terminal.wait_for_prompt()
    terminal.enter("an unforgettable question")
    terminal.wait_for("first token")
    terminal.wait_for_prompt()
    terminal.send(CTRL_D)
    assert terminal.wait_for_exit() == 0
    terminal = start()
    terminal.wait_for_prompt()
    terminal.send("\x12unforg")
    terminal.wait_for("an unforgettable question")
    terminal.send("\r")
    terminal.wait_for(lambda shown: shown.flat.count("unforgettable") == 1)


def test_u9_the_users_editor_takes_the_line_and_gives_it_back(start, folder):
    editor = folder / "editor"
    editor.write_text('#!/bin/sh\nprintf " and more\\nof it" >> "$1"\n', encoding="utf-8")
    editor.chmod(0o755)
    terminal = start(env={"EDITOR": str(editor), "VISUAL": str(editor)})
    terminal.wait_for_prompt()
    terminal.send("half a line\x18\x05")
    terminal.wait_for_prompt("half a line and more\nof it")
    assert not terminal.cooked


def test_u9_a_picture_that_is_mentioned_goes_out_with_its_message(start, folder):
    (folder / "cat.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with LabThread([FINE]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("what is @cat.png and @missing.png?")
        terminal.wait_for("fine")
        terminal.wait_for_prompt()
        assert "with 1 image" in terminal.text
        assert "missing.png is not sent: there is no such file" in terminal.text
        (message,) = (one for one in lab.requests[0].json["messages"] if one["role"] == "user")
        assert [part["type"] for part in message["content"]] == ["text", "image_url"]


def test_u9_a_command_of_ones_own_is_shown_whole_and_the_model_told(start, folder):
    for number in range(12):
        (folder / f"file{number:02}").write_text("", encoding="utf-8")
    with LabThread([FINE]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("!ls")
        terminal.wait_for("file11")
        terminal.wait_for_prompt()
        assert re.findall(r"^  (file\d\d)$", terminal.text, re.MULTILINE) == [
            f"file{n:02}" for n in range(12)
        ]
        terminal.enter("what was that?")
        terminal.wait_for("fine")
        said = sent(lab.requests[0])[-1]["content"]
        assert "file11" in said
        assert said.endswith("what was that?")
