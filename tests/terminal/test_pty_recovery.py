"""What is seen of a recovery, in a narrow terminal: each line once and in its place (R5-R10, S1, S2)."""

import os
import re
import signal
from pathlib import Path

import pytest
from chat import calls, outline, text, whole
from interruptions import LONG, LOOPING, TOO_LONG
from terminal import CTRL_C, CTRL_D

from mini_agent.core.answers import Answer, TextPiece
from mini_agent.lab.replies import Hold, Pause, error, event_stream
from mini_agent.lab.server import Faulty, LabThread
from mini_agent.record.rebuild import STARTED

COLUMNS = 60
FINE = whole(text("fine again"))
BUSY = error(503, "busy")
INVITATION = "↵ Enter on an empty line, or /retry, goes on from here"


@pytest.fixture
def narrow(start):
    """narrow(lab, *arguments): the program at its first prompt. In the end every screen was tidy, every request valid."""
    opened = []

    def run(lab, *arguments, rows=40, **options):
        terminal = start(*arguments, lab=lab, rows=rows, columns=COLUMNS, **options)
        terminal.wait_for_prompt()
        opened.append((terminal, lab))
        return terminal

    yield run
    for terminal, lab in opened:
        if terminal.exit_code != -signal.SIGKILL:  # whoever is killed leaves its region behind
            tidy(terminal)
        assert lab.violations == []


def tidy(terminal):
    """No row reaches the last column, no blank row stands beside another, nothing of the region is left."""
    rows = terminal.everything
    assert max(map(len, rows)) < COLUMNS
    blank = [at for at, row in enumerate(rows) if not row]
    assert not any(at + 1 in blank for at in blank), terminal.dump()
    assert not any(sign in terminal.text for sign in "⠋⠙⠸⠴"), terminal.dump()


def ask(terminal, message="", seen=""):
    """Sends a message and waits for `seen`, then for the prompt; returns what was printed below it, as one line."""
    before = len(terminal.everything)
    terminal.enter(message)
    terminal.wait_for_prompt()
    said = " ".join(" ".join(terminal.everything[before:]).split()).removesuffix(">").strip()
    assert seen in said, terminal.dump()
    return said


# Retries


def test_r7_each_kind_of_retry_has_its_line(narrow):
    reason = "too many requests: your plan allows three in a minute"
    full = error(429, reason, {"retry-after": "1"})
    cut = Faulty(Answer((TextPiece("half "), TextPiece("of it"))), "cut@2")
    with LabThread([BUSY, full, cut, error(500, "oops"), whole(text("there you are"))]) as lab:
        terminal = narrow(lab)
        terminal.enter("hello")
        terminal.wait_for("↻ retry 2/4 in 1 s, Ctrl+C stops · HTTP 429: too many")
        assert terminal.cell("retry 2/4").fg == "brown"  # what pyte calls the terminal's yellow
        (waiting,) = (row for row in terminal.lines if "retry 2/4" in row)
        assert waiting.endswith("…")  # in one row while it waits, whole afterwards
        terminal.wait_for_prompt()
        fresh = lab.requests[1].connection
        assert [request.connection == fresh for request in lab.requests] == [False, True, *[False] * 3]
    waited = r"(?: · waited \d\.\d s)?"
    assert re.search(
        rf"> hello ↻ retry 1/4 after HTTP 503: busy{waited} ↻ retry 2/4 after HTTP 429: {reason} · waited 1\.\d s"
        rf" ↻ retry 3/4 after 127\.0\.0\.1 ended its answer too early{waited}"
        rf" ↻ retry 4/4 after HTTP 500: oops{waited} there you are first token .* 4 failed attempts",
        terminal.flat,
    )
    assert "half" not in terminal.text


def test_r5_an_answer_that_repeats_itself_is_asked_for_anew_and_then_given_up(narrow):
    with LabThread([LOOPING, FINE, LOOPING, LOOPING, LOOPING, whole(text("at last"))]) as lab:
        terminal = narrow(lab, rows=120)
        said = ask(terminal, "hello", "fine again")
        assert re.match(r"↻ retry 1/2 after the model repeats itself.* fine again", said)
        assert terminal.cell("the model repeats itself").fg == "brown"
        said = ask(terminal, "and now", "✗ the model repeats itself")
        assert said.count("↻ retry 1/2") == said.count("↻ retry 2/2") == 1
        assert said.endswith(INVITATION)
        assert terminal.cell("✗").fg == "red"
        assert "Let me do it. Let me do it." not in terminal.text  # taken off: the screen was large enough
        assert ask(terminal).startswith("at last")
        assert outline(lab.requests[-1]) == ["user: hello", "assistant: fine again", "user: and now"]


def test_r8_one_that_has_left_the_screen_is_closed_off(narrow):
    looping = event_stream(text("Let me do it. " * 200), Pause(0.2), text("Let me do it. " * 100), Hold())
    with LabThread([looping, FINE]) as lab:
        terminal = narrow(lab, rows=10)
        said = ask(terminal, "hello", "fine again")
        assert said.count("the text above broke off; it is no part of the answer") == 1


# What takes another request


def test_r9_what_is_too_long_is_shortened_then_summed_up(narrow, folder):
    (folder / "big.txt").write_text("".join(f"line {number} of it\n" for number in range(600)))
    read = calls("read_file", {"path": "big.txt"})
    script = [
        read,
        TOO_LONG,
        FINE,
        whole(text(LONG)),
        TOO_LONG,
        whole(text("They talked.")),
        whole(text("on")),
    ]
    with LabThread(script) as lab:
        terminal = narrow(lab)
        said = ask(terminal, "read it", "fine again")
        before, after = re.search(r"599 more lines compacted: (\d+) to (\d+) tokens fine", said).groups()
        assert int(after) < int(before)
        assert "bytes left out" in outline(lab.requests[2])[2]
        ask(terminal, "talk")
        said = ask(terminal, "go on")
        assert re.match(
            r"the conversation no longer fits the model's context window: it is summed up"
            r" compacted: \d+ to \d+ tokens on ",
            said,
        )
        assert "They talked." not in terminal.text  # for the model, not for the user
        assert terminal.cell("the conversation no longer").fg == "brown"
        assert terminal.cell("compacted").dim
        ask(terminal, "still there?")
    assert "They talked." in outline(lab.requests[-1])[0] + outline(lab.requests[-1])[1]
    assert outline(lab.requests[-1])[-2:] == ["assistant: on", "user: still there?"]


def test_r9_what_can_not_be_made_to_fit_is_said(narrow):
    with LabThread([TOO_LONG]) as lab:
        said = ask(narrow(lab), "hello")
        assert re.match(
            r"✗ .*maximum context length is 1000 tokens.* → The message itself may be too long", said
        )
        assert len(lab.requests) == 1


def test_r9_a_refused_parameter_is_left_out_and_said_once(narrow):
    refused = {"message": "Unsupported parameter: 'stream_options'", "param": "stream_options"}
    body = {"error": {**refused, "type": "invalid_request_error", "code": "unsupported_parameter"}}
    with LabThread([error(400, body), whole(text("without it")), FINE]) as lab:
        terminal = narrow(lab)
        said = ask(terminal, "hello")
        assert re.match(r"the provider refuses stream_options: asked again without it without it ", said)
        said = ask(terminal, "and now")
        assert said.startswith("fine again")
        assert ["stream_options" in request.json for request in lab.requests] == [True, False, False]


# A turn that failed


def test_r10_enter_or_retry_goes_on_with_a_turn_that_failed(narrow):
    with LabThread([BUSY] * 5 + [BUSY] * 5 + [whole(text("at last")), FINE]) as lab:
        terminal = narrow(lab)
        said = ask(terminal, "hello", "✗ HTTP 503: busy (gave up after 4 retries)")
        assert re.search(rf"5 failed attempts {INVITATION}$", said)
        assert terminal.cell("Enter on an empty line").dim
        assert ask(terminal).endswith(INVITATION)
        assert ask(terminal, "/retry").startswith("at last")
        assert terminal.flat.count(INVITATION) == 2
        assert {tuple(outline(request)) for request in lab.requests} == {("user: hello",)}
        assert ask(terminal) == ""  # there is nothing left to go on with
        assert ask(terminal, "/retry").startswith("there is nothing to go on with")
        assert len(lab.requests) == 11
        ask(terminal, "and now", "fine again")
        assert outline(lab.requests[-1]) == ["user: hello", "assistant: at last", "user: and now"]


def test_r10_a_step_that_failed_goes_on_behind_its_tools(narrow, folder):
    run = calls("write_file", {"path": "new.txt", "content": "x"})
    with LabThread([run, *[BUSY] * 5, whole(text("written"))]) as lab:
        terminal = narrow(lab, "--mode", "auto")
        ask(terminal, "write it", INVITATION)
        assert ask(terminal).startswith("written")
        assert outline(lab.requests[-1])[-1] == "result: Created new.txt: 1 bytes."
        assert terminal.text.count("● write_file") == 1
    assert (folder / "new.txt").read_text() == "x"


def test_what_was_stopped_does_not_go_on_by_an_empty_line_but_by_retry(narrow):
    with LabThread([event_stream(Hold()), whole(text("at last"))]) as lab:
        terminal = narrow(lab)
        terminal.enter("hello")
        terminal.wait_for("waiting for the first token")
        terminal.send(CTRL_C)
        terminal.wait_for_prompt()
        assert INVITATION not in terminal.flat
        assert ask(terminal) == ""
        assert ask(terminal, "/retry").startswith("at last")
        assert outline(lab.requests[-1]) == ["user: hello"]


# Another process


def leave(terminal):
    """Ctrl+D; returns what the program says last, as one line."""
    before = len(terminal.everything)
    terminal.send(CTRL_D)
    assert terminal.wait_for_exit() == 0
    assert terminal.restored
    return " ".join(" ".join(terminal.everything[before:]).split())


def killed(terminal):
    terminal.send_signal(signal.SIGKILL)
    assert terminal.wait_for_exit() == -signal.SIGKILL


def test_s2_the_last_line_names_the_session_and_c_goes_on_with_it(narrow):
    with LabThread([whole(text("one")), whole(text("two\nlines")), FINE]) as lab:
        terminal = narrow(lab)
        ask(terminal, "first")
        ask(terminal, "second")
        said = leave(terminal)
        session = re.fullmatch(r"mini-agent -c goes on with this session \(([\w-]+)\)", said)[1]
        terminal = narrow(lab, "-c")
        assert re.search(rf"session {session} goes on: 2 turns;.* > second two lines >$", terminal.flat)
        assert "> first" not in terminal.text
        assert INVITATION not in terminal.flat
        assert terminal.cell("two").dim
        ask(terminal, "third", "fine again")
        assert outline(lab.requests[-1]) == [
            "user: first",
            "assistant: one",
            "user: second",
            "assistant: two\nlines",
            "user: third",
        ]
        assert session in leave(terminal)


def test_a_session_in_which_nothing_was_said_leaves_without_a_word(narrow):
    with LabThread([FINE]) as lab:
        assert leave(narrow(lab)) == ""
        assert lab.requests == []


def test_r10_a_turn_that_failed_or_was_stopped_goes_on_in_another_process(narrow):
    with LabThread([*[BUSY] * 5, whole(text("at last")), event_stream(Hold()), FINE]) as lab:
        terminal = narrow(lab)
        ask(terminal, "hello", INVITATION)
        leave(terminal)
        terminal = narrow(lab, "-c")
        assert re.search(rf"goes on: 1 turn;.* > hello {INVITATION} >$", terminal.flat)
        assert ask(terminal).startswith("at last")
        assert outline(lab.requests[-1]) == ["user: hello"]
        terminal.enter("and now")
        terminal.wait_for("waiting for the first token")
        terminal.send(CTRL_C)
        terminal.wait_for_prompt()
        leave(terminal)
        terminal = narrow(lab, "-c")
        assert INVITATION not in terminal.flat
        assert ask(terminal, "/retry").startswith("fine again")
        assert outline(lab.requests[-1])[-1] == "user: and now"


def test_s1_killed_three_times_it_goes_on_from_where_it_was(narrow, folder):
    run = calls("run_bash", {"command": "echo $$ >>pids; echo be''gun; exec sleep 60"})
    half = event_stream(text("half an answer\nand m"), Hold())
    with LabThread([event_stream(Hold()), run, half, FINE]) as lab:
        terminal = narrow(lab)
        terminal.enter("run it")
        terminal.wait_for("waiting for the first token")
        killed(terminal)

        terminal = narrow(lab, "-c")
        assert re.search(rf"goes on: 1 turn;.* > run it ✗ interrupted {INVITATION} >$", terminal.flat)
        terminal.enter()
        terminal.wait_for("Allow?")
        terminal.rest(0.55)
        terminal.send("y")
        terminal.wait_for("begun")
        killed(terminal)
        (pid,) = (folder / "pids").read_text().split()
        os.kill(int(pid), signal.SIGKILL)

        terminal = narrow(lab, "-c")
        assert re.search(rf"goes on: 1 turn;.* > run it .*{INVITATION} >$", terminal.flat)
        terminal.enter()
        terminal.wait_for("and m")
        assert outline(lab.requests[-1])[::2] == ["user: run it", f"result: Error: {STARTED}"]
        (journal,) = Path(os.environ["MINI_AGENT_HOME"]).glob("sessions/*/*.jsonl")
        terminal.wait_for(lambda _: "and m" in journal.read_text(), what="the journal to have it")
        killed(terminal)

        terminal = narrow(lab, "-c")
        assert re.search(rf"> run it half an answer and m ✗ interrupted {INVITATION} >$", terminal.flat)
        ask(terminal, "go on", "fine again")
        assert outline(lab.requests[-1])[-2:] == ["assistant: half an answer\nand m", "user: go on"]
    assert (folder / "pids").read_text().split() == [pid]


def test_a_session_that_is_open_elsewhere_is_one_line_and_2(narrow, start):
    with LabThread([FINE, whole(text("undisturbed"))]) as lab:
        first = narrow(lab)
        ask(first, "hello")
        second = start("-c", lab=lab, columns=COLUMNS)
        assert second.wait_for_exit() == 2
        assert second.restored
        said = "".join(second.everything)  # it is wrapped by the terminal
        assert re.fullmatch(r"mini-agent: the session [\w-]+ is open in another mini-agent: .*", said)
        ask(first, "and now", "undisturbed")
        assert outline(lab.requests[-1]) == ["user: hello", "assistant: fine again", "user: and now"]
