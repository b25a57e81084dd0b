"""Retries on screen: the wait counts down, nothing is shown twice, half an answer is never left as one (R3, R4, R7, R8)."""

import re

import pytest
from chat import sent, text, whole

from mini_agent.lab.replies import Cut, Pause, error, event_stream
from mini_agent.lab.server import LabThread

FAILS_ONCE = (
    "59"  # seeds: the first request is refused with 503 and waits 0.51 of the base, the second answers
)
REFUSED_ONLY = "11"  # five requests are refused with 503
BROKE_OFF = "the text above broke off"
PARTS = [f"part {number} of it" for number in range(30)]


def test_a_refused_request_counts_down_in_yellow_and_is_answered(start):
    env = {"DEMO_FAIL_RATE": "0.5", "DEMO_SEED": FAILS_ONCE, "MINI_AGENT_RETRY_BASE_S": "3.2"}
    terminal = start(env=env)
    terminal.wait_for_prompt()
    terminal.enter("hello")
    terminal.wait_for("retry 1/4 in 2 s")
    assert terminal.cell("retry 1/4").fg == "brown"  # what pyte calls the terminal's yellow
    assert "503" in terminal.text
    terminal.wait_for("retry 1/4 in 1 s")
    terminal.wait_for("demo model:")
    terminal.wait_for_prompt()
    assert terminal.flat.count("retry 1/4") == 1
    assert re.search(r"retry 1/4 after 503.*waited 1\.\d s", terminal.flat)
    assert terminal.flat.count("demo model:") == 1
    assert "1 failed attempt" in terminal.flat


def test_always_refused_it_gives_up_after_four_retries_with_one_clear_message(start):
    terminal = start(env={"DEMO_FAIL_RATE": "1", "DEMO_SEED": REFUSED_ONLY}, rows=30)
    terminal.wait_for_prompt()
    terminal.enter("hello")
    terminal.wait_for_prompt()
    for retry in range(1, 5):
        assert terminal.flat.count(f"retry {retry}/4") == 1
    assert terminal.flat.count("✗") == 1
    assert terminal.flat.count("gave up after 4 retries") == 1
    terminal.enter("/help")
    terminal.wait_for("Ctrl+D")


def test_after_giving_up_the_next_message_goes_on(start):
    with LabThread([error(503, "busy")] * 5 + [whole(text("at last"))]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for("gave up after 4 retries")
        terminal.wait_for_prompt()
        terminal.enter("and now")
        terminal.wait_for("at last")
        assert [message["role"] for message in sent(lab.requests[-1])][-1] == "user"


def test_503_then_429_then_the_answer(start):
    script = [error(503, "busy"), error(429, "slow down", {"retry-after": "1"}), whole(text("there you are"))]
    with LabThread(script) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for("retry 2/4 in 1 s, Ctrl+C stops · HTTP 429: slow down")
        terminal.wait_for("there you are")
        terminal.wait_for_prompt()
        assert lab.requests[2].arrived - lab.requests[1].arrived >= 1
    assert terminal.flat.count("retry 1/4 after HTTP 503: busy") == 1
    assert terminal.flat.count("retry 2/4 after HTTP 429: slow down") == 1


def test_what_is_not_worth_a_retry_is_said_at_once(start):
    refusals = [
        (error(400, "no such parameter"), "HTTP 400: no such parameter"),
        (error(401, "who are you"), "HTTP 401: who are you"),
        (error(429, "later", {"retry-after": "500"}), "come back in 9 min"),
    ]
    with LabThread([*(reply for reply, _ in refusals), whole(text("fine"))]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        for asked, (_, said) in enumerate(refusals, 1):
            terminal.enter("hello")
            terminal.wait_for(said)
            terminal.wait_for_prompt()
            assert len(lab.requests) == asked
        assert "retry 1" not in terminal.text
        terminal.enter("again")
        terminal.wait_for("fine")


def test_a_stream_that_broke_off_is_taken_off_the_screen(start):
    half = event_stream(*(text(f"{part}\n") for part in PARTS[:6]), text("half a l"), Pause(0.6), Cut())
    with LabThread([half, whole(*(text(f"{part}\n") for part in PARTS[:8]))]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for(PARTS[7])
        terminal.wait_for_prompt()
    assert re.findall(r"part \d+ of it", terminal.text) == PARTS[:8]
    assert b"half a l" in terminal.output
    assert "half a l" not in terminal.text
    assert BROKE_OFF not in terminal.text


def test_one_that_has_left_the_screen_is_closed_off_with_one_line(start):
    half = event_stream(*(text(f"{part}\n") for part in PARTS), Pause(0.2), Cut())
    with LabThread([half, whole(*(text(f"{part}\n") for part in PARTS))]) as lab:
        terminal = start(lab=lab, rows=10)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for(BROKE_OFF)
        terminal.wait_for_prompt()
    assert terminal.flat.count(BROKE_OFF) == 1
    broken, answer = terminal.text.split(BROKE_OFF)
    seen = re.findall(r"part \d+ of it", broken)
    assert seen == PARTS[: len(seen)]  # but for the end, which had not left the region
    assert len(seen) > 10
    assert re.findall(r"part \d+ of it", answer) == PARTS


@pytest.mark.parametrize("rows", [80, 10], ids=["tall", "small"])
def test_half_an_answer_is_never_left_as_an_answer(start, rows):
    terminal = start(
        env={"DEMO_CUT_RATE": "1", "MINI_AGENT_MAX_RETRIES": "1", "DEMO_DELAY_MS": "1"}, rows=rows
    )
    terminal.wait_for_prompt()
    terminal.enter("long")
    terminal.wait_for("gave up after 1 retry")
    terminal.wait_for_prompt()
    shown, closed = terminal.flat.count("A long answer"), terminal.flat.count(BROKE_OFF)
    assert shown == closed
    assert closed == (0 if rows == 80 else 2)
