import asyncio
import difflib
import re
from collections.abc import Mapping, Sequence

import fake_session as fake
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_agent.core.permission import ApprovalRequest, Preview
from mini_agent.ui.approval import ask, question_rows
from mini_agent.ui.diff import diff_rows
from mini_agent.ui.text import SGR, cells


class Stage:
    def __init__(self) -> None:
        self.said: list[str] = []

    def introduce(self, call_id: str, rows: Sequence[str], question: str) -> None:
        self.said += [call_id, question]

    def answered(self, answer: str) -> None:
        self.said.append(answer)


class Keyboard:
    def __init__(self, key: str) -> None:
        self.key = key

    async def ask(self, answers: Mapping[str, str]) -> str:
        if not self.key:
            await asyncio.Event().wait()
        return answers[self.key]


def request(**preview: object) -> ApprovalRequest:
    return ApprovalRequest("c1", "run_bash", "runs", Preview(**preview), "it runs a command")


@pytest.mark.parametrize(
    ("key", "allowed"), [("y", True), ("Y", True), ("n", False), ("N", False), ("escape", False)]
)
async def test_one_key_decides(key: str, allowed: bool) -> None:
    stage = Stage()
    decision = await ask(request(), stage, Keyboard(key), 80)
    assert decision.allowed is allowed
    assert decision.why is None
    assert stage.said == ["c1", "Allow? [y]es / [n]o ", "yes" if allowed else "no"]


async def test_a_cancel_takes_the_question_away() -> None:
    stage = Stage()
    task = asyncio.ensure_future(ask(request(), stage, Keyboard(""), 80))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stage.said[-1] == ""


def shown(rows: Sequence[str]) -> list[str]:
    return [SGR.sub("", row) for row in rows]


def test_f07_a_command_is_shown_with_visible_escapes() -> None:
    rows = question_rows(
        request(subject="echo ok\x1b[2K\rrm -rf ~\nsecond\u202e", summary="run a command"), 80
    )
    assert shown(rows) == [
        "● run_bash a command",
        "  echo ok\\x1b[2K\\rrm -rf ~",
        "  second\\u202e",
        "  it runs a command",
    ]


def test_a_command_that_is_in_the_summary_is_shown_once() -> None:
    assert shown(question_rows(request(subject="make", summary="run make"), 80))[:2] == [
        "● run_bash make",
        "  it runs a command",
    ]


def test_a_long_command_is_shown_whole() -> None:
    command = " ".join(f"word{number}" for number in range(100))
    rows = question_rows(request(subject=command, summary=f"run {command}"), 40)
    assert " ".join(" ".join(shown(rows)).split()).count("word99") == 1
    assert all(cells(row) <= 40 for row in shown(rows))


def test_a_diff_is_coloured_and_whole() -> None:
    rows = diff_rows(fake.DIFF, 40, 100)
    assert shown(rows) == [
        "  --- a/hello.py",
        "  +++ b/hello.py",
        "  @@ -1,2 +1,2 @@",
        "1  import sys",
        "2 -print('hi')",
        "2 +print('hello')",
    ]
    assert rows[4].endswith("\x1b[31m-print('hi')\x1b[0m")
    assert rows[5].endswith("\x1b[32m+print('hello')\x1b[0m")
    assert shown(diff_rows(fake.DIFF, 20, 100)) == fake.DIFF.splitlines()  # no room for numbers


@given(
    st.lists(st.sampled_from(["a", "b", "--- c", "+++ d", "@@ e", ""]), max_size=12),
    st.lists(st.sampled_from(["a", "b", "--- c", "+++ d", "@@ e", ""]), max_size=12),
)
def test_every_line_has_the_number_it_has_in_its_file(old: list[str], new: list[str]) -> None:
    diff = "\n".join(difflib.unified_diff(old, new, "a", "b", lineterm=""))
    for row in shown(diff_rows(diff, 80, 10_000))[2:] if diff else []:
        if numbered := re.fullmatch(r" *(\d+) ([ +-]?)(.*)", row):
            number, kind, line = int(numbered[1]), numbered[2], numbered[3]
            assert (old if kind == "-" else new)[number - 1].rstrip() == line.rstrip()
        else:
            assert row.strip().startswith("@@ -")


def test_f07_a_diff_can_not_hide_anything() -> None:
    rows = diff_rows("+a\x1b[1A\x1b[2K\r\n+\tb\u202e\n", 40, 100)
    assert shown(rows) == ["+a\\x1b[1A\\x1b[2K\\r", "+   b\\u202e"]


def test_a_huge_diff_says_what_it_leaves_out() -> None:
    rows = shown(diff_rows("\n".join(f"+{number}" for number in range(50)), 40, 10))
    assert rows[:10] == [f"+{number}" for number in range(10)]
    assert rows[10:] == ["… 40 more lines"]
