"""What models, tools and files say can't drive the terminal; a terminal that can do less gets less (U7, U8; F07, F14)."""

import re

from chat import calls, sent, text, thought, whole
from terminal import CTRL_C, CTRL_D, paste

from mini_agent.lab.replies import Hold, error, event_stream
from mini_agent.lab.server import LabThread

EVIL = [
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1b[2J\x1b[31;7H",
    "\x1bc",
    "\x9b6n",
    "\x9d0;title\x9c",
    "\x1b]8;;http://evil\x1b\\link",
    "\x1bP$q\x1b\\",
    "ok\rover",
    "x\x08\x08",
    "\u202e",
    "\x1b]0;never ended",
]
OURS = re.compile(rb"\x1b\[\??[0-9;]*[hlmKJABCDH]|\x1b[78]")
"""Every sequence the program itself has a use for."""


def foreign(terminal):
    """What is in the output that only somebody else can have put there."""
    rest = OURS.sub(b"", bytes(terminal.output))
    sequences = re.findall(rb"\x1b.{0,12}", rest, re.DOTALL)
    controls = re.findall(
        r"[\x00-\x06\x0b-\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", rest.decode()
    )
    jumps = re.findall(rb"\x1b\[(?:2J|31;7H|6n)", terminal.output)
    return [*sequences, *controls, *jumps]


def test_f07_nothing_a_model_says_reaches_the_terminal_raw(start):
    said = "begin " + " ".join(EVIL) + "\nthe end"
    cut = [said[at : at + 5] for at in range(0, len(said), 5)]
    script = [
        event_stream(thought("".join(EVIL)), Hold()),
        whole(*(thought(part) for part in cut), *(text(part) for part in cut)),
        error(400, "bad " + "".join(EVIL)),
        whole(text("fine")),
    ]
    with LabThread(script) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("think")
        terminal.wait_for("over")
        terminal.send(CTRL_C)
        terminal.wait_for_prompt()
        terminal.enter("say")
        terminal.wait_for("the end")
        terminal.wait_for_prompt()
        terminal.enter("fail")
        terminal.wait_for("400: bad")
        terminal.wait_for_prompt()
        terminal.send(paste("pasted" + "".join(EVIL[:4])))
        terminal.wait_for(lambda shown: "pasted" in (shown.prompt or ""))
        terminal.send(CTRL_C)
        terminal.wait_for_prompt()
        assert foreign(terminal) == []
        terminal.enter("last")
        terminal.wait_for("fine")
        kept = next(message for message in sent(lab.requests[-1]) if message["role"] == "assistant")
    assert kept["content"] == said  # what is stored and sent is as it was


def test_f07_nor_does_what_a_tool_is_asked_or_says(start, folder):
    evil = "".join(EVIL[:6])
    (folder / "plain\x1b[2J.txt").write_text("x")
    (folder / "a.txt").write_text(f"first {evil}\n{evil}")
    script = [
        calls(f"no_such{evil}", {f"k{evil}": evil}),
        calls("list_dir", {"path": "."}),
        calls("read_file", {"path": "a.txt"}),
        calls("read_file", {"path": f"none{evil}"}),
        calls("write_file", {"path": "b.txt", "content": f"{evil}\nrest\n"}),
        calls("run_bash", {"command": f"cat a.txt; : '{evil}'"}),
        whole(text("fine")),
    ]
    with LabThread(script) as lab:
        terminal = start(lab=lab, rows=60)
        terminal.wait_for_prompt()
        terminal.enter("go")
        for question in (1, 2):
            terminal.wait_for(lambda shown, question=question: shown.text.count("Allow?") == question)
            terminal.rest(0.55)
            assert foreign(terminal) == []
            terminal.send("y")
        terminal.wait_for("fine")
        terminal.wait_for_prompt()
        sent(lab.requests[-1])
    assert r"\x1b" in terminal.text  # what is asked about is shown, not hidden
    assert foreign(terminal) == []
    assert (folder / "b.txt").read_bytes() == f"{evil}\nrest\n".encode()


def test_f16_ascii_only_output_gets_ascii(start):
    with LabThread([whole(thought("hm"), text("na\u00efve \U0001f600 end"))]) as lab:
        terminal = start(lab=lab, env={"PYTHONIOENCODING": "ascii"})
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for("na?ve ? end")
        terminal.wait_for_prompt()
    assert bytes(terminal.output).isascii()


def test_f14_no_color_has_no_colour_but_everything_else(start):
    terminal = start(env={"NO_COLOR": "1", "DEMO_FAIL_RATE": "1", "DEMO_SEED": "11"})
    terminal.wait_for_prompt()
    terminal.enter("hello")
    terminal.wait_for("gave up after 4 retries")
    terminal.wait_for_prompt()
    terminal.send(CTRL_D)
    assert terminal.wait_for_exit() == 0
    colours = re.findall(rb"\x1b\[[0-9;]*m", terminal.output)
    assert {code for code in colours if not re.fullmatch(rb"\x1b\[(0|1|0;1|0;2)?m", code)} == set()


def test_f14_a_dumb_terminal_gets_plain_lines(start, folder):
    (folder / "a.txt").write_text("alpha\n")
    terminal = start(env={"TERM": "dumb"}, rows=60)
    terminal.wait_for(lambda shown: shown.lines[1].startswith(">"))
    terminal.send("hello\r")
    terminal.wait_for("first token")
    terminal.wait_for(lambda shown: shown.lines[shown.screen.cursor.y].rstrip() == ">")
    terminal.send("edit a.txt\r")
    terminal.wait_for("Allow?")
    terminal.rest(0.55)
    terminal.send("n")
    terminal.wait_for("so I stop here")
    terminal.wait_for(lambda shown: shown.text.count("first token") == 2)
    terminal.wait_for(lambda shown: shown.lines[shown.screen.cursor.y].rstrip() == ">")
    terminal.send("half a line")
    terminal.send(CTRL_C)
    terminal.send(CTRL_D)
    assert terminal.wait_for_exit() == 0
    assert b"\x1b" not in terminal.output
    assert terminal.text.count("demo model:") == 1
