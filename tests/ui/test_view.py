"""Events in, screen out: read through a terminal emulator."""

import re
from collections.abc import Iterable

import fake_session as fake
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stage import Clock, Stage, Terminal

from mini_agent.core.errors import ErrorInfo
from mini_agent.core.events import (
    AgentEvent,
    AttemptProgress,
    Failed,
    Notice,
    ToolCallDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnReason,
    TurnStarted,
)
from mini_agent.ui.flow import Flow
from mini_agent.ui.view import View

BROKE_OFF = "─ the text above broke off; it is no part of the answer ─"


class Play:
    """A view on a terminal in memory, painted after every event."""

    def __init__(
        self,
        width: int = 80,
        height: int = 24,
        *,
        moving: bool = True,
        streamed: bool = True,
        thinks_aloud: bool = False,
    ) -> None:
        self.clock = Clock()
        self.terminal = Terminal(width, height)
        self.stage = Stage(self.terminal, moving=moving)
        self.view = View(
            self.stage,
            new_text=lambda width, height: Flow(),
            streamed=streamed,
            thinks_aloud=thinks_aloud,
            clock=self.clock,
        )
        self.stage.rows = self.view.rows

    def feed(self, *events: AgentEvent) -> "Play":
        for event in events:
            self.view.feed(event)
            self.stage.paint()
        return self

    def wait(self, seconds: float) -> "Play":
        self.clock.now += seconds
        self.stage.paint()
        return self

    @property
    def lines(self) -> list[str]:
        return self.terminal.lines

    @property
    def status(self) -> str:
        return self.lines[-1]


def turn_started() -> TurnStarted:
    return TurnStarted(t=0, prompt="x")


def finished(reason: TurnReason = "done") -> TurnFinished:
    return TurnFinished(t=0, reason=reason, text="", usage=fake.USAGE)


def tool_started(call_id: str = "c1", name: str = "run_bash", **arguments: object) -> ToolStarted:
    return ToolStarted(t=0, call_id=call_id, name=name, arguments=arguments)


def tool_finished(call_id: str = "c1", name: str = "run_bash", **more: object) -> ToolFinished:
    fields = {"is_error": False, "content": "fine", "elapsed_s": 0.0} | more
    return ToolFinished(t=0, call_id=call_id, name=name, **fields)


# Random turns

pieces = st.lists(st.sampled_from([" ", "  ", "\n", "\n\n", "x" * 30, "漢字漢字", "word", "@"]), max_size=25)


@st.composite
def attempts(draw: st.DrawFn) -> list[tuple[str, list[str]]]:
    """The attempts of one request: how each ended, and its pieces, in which `@` stands for a token of its own."""
    last = draw(st.sampled_from(["completed", "cancelled", "cut"]))
    outcomes = [*draw(st.lists(st.just("cut"), max_size=3)), last]
    return [(outcome, draw(pieces)) for outcome in outcomes]


@settings(max_examples=200, deadline=None)
@given(attempts(), st.integers(8, 60), st.integers(3, 12), st.lists(st.booleans(), min_size=1, max_size=9))
def test_f01_f04_every_final_line_once_and_nothing_of_an_abandoned_attempt(
    script: list[tuple[str, list[str]]], width: int, height: int, paints: list[bool]
) -> None:
    play = Play(width, height)
    number = 0
    tokens: list[list[str]] = []
    for attempt, (outcome, said) in enumerate(script, 1):
        tokens.append([])
        play.view.feed(fake.started(attempt))
        for place, piece in enumerate(said):
            if piece == "@":
                number += 1
                piece = f"<{number}>"
                tokens[-1].append(piece)
            play.view.feed(fake.text(piece, attempt=attempt))
            if paints[place % len(paints)]:
                play.stage.paint()
                assert len(play.stage.rows()) < 12
        last = attempt == len(script)
        if outcome == "completed":
            play.feed(fake.completed(attempt=attempt), finished())
        elif outcome == "cancelled":
            play.feed(finished("cancelled"))
        elif last:
            play.feed(Failed(t=0, error=fake.ERROR), finished("failed"))
        else:
            play.feed(fake.retrying(attempt, 1.0)).wait(1.0)
    play.stage.close()

    text = "".join("".join(play.lines).split())
    closing = BROKE_OFF.replace(" ", "")[:4]
    kept = script[-1][0] != "cut"
    if kept:
        answer = re.sub(r"\s", "", "".join(said_with(script[-1][1], tokens[-1])))
        assert text.count(answer) >= 1
        assert all(text.count(token) == 1 for token in tokens[-1])
    gone = tokens[:-1] if kept else tokens
    still_there = [tokens_of for tokens_of in gone if any(token in text for token in tokens_of)]
    assert len(still_there) <= text.count(closing) <= len(gone)
    for tokens_of in still_there:
        assert all(text.count(token) <= 1 for token in tokens_of)
        shown = [token for token in tokens_of if token in text]
        assert text.index(closing, text.index(shown[-1])) > 0


def said_with(said: Iterable[str], tokens: list[str]) -> Iterable[str]:
    names = iter(tokens)
    return (next(names) if piece == "@" else piece for piece in said)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["run", "edit", "think", "cut", "fail", "notice"]), max_size=3),
    st.integers(1, 9),
)
def test_f01_the_region_is_never_taller_than_the_screen(scenes: list[str], height: int) -> None:
    play = Play(30, height)
    for scene in scenes:
        for step in fake.SCENES[scene]():
            if isinstance(step, float):
                play.clock.now += step
            elif not isinstance(step, fake.ApprovalRequest):
                play.feed(step)
        before = len(play.terminal.scrollback)
        for _ in range(5):
            play.wait(0.3)
        assert len(play.terminal.scrollback) == before  # repainting pushes nothing into the scrollback
    play.stage.close()
    assert not play.terminal.cursor_hidden


# Text


def test_text_appears_as_it_comes_and_is_committed_line_by_line() -> None:
    play = Play().feed(turn_started(), fake.started(), fake.text("\n\nHello"))
    assert play.lines[0] == "Hello"
    play.feed(fake.text(" world\nsecond"), fake.text(" line"), fake.completed(), finished())
    play.stage.close()
    assert play.lines[:2] == ["Hello world", "second line"]


def test_blank_lines_stay_between_lines_and_go_at_the_ends() -> None:
    play = Play().feed(fake.started(), fake.text("\n\na\n\n"), fake.text("\nb\n"), fake.text("\n\n"))
    play.feed(fake.completed(), finished())
    play.stage.close()
    assert play.lines == ["a", "", "", "b"]


def test_a_long_line_is_wrapped_by_words_and_not_held_back() -> None:
    play = Play(20).feed(fake.started(), fake.text("one two three four five six seven"))
    assert play.lines[:2] == ["one two three four", "five six seven"]


def test_f07_model_text_tool_output_and_names_are_neutralised() -> None:
    play = Play().feed(
        fake.started(),
        fake.text("a\x1b]52;c;ZXZpbA==\x07b\x1b"),
        fake.text("[2Jc\n"),
        fake.completed(),
        tool_started(name="evil\x1b[2J", path="x\x1b[31m\u202e"),
        ToolOutput(t=0, call_id="c1", text="out\x1b[2J\x9b6n"),
        tool_finished(name="evil\x1b[2J", content="done\x1b[2J", detail="+x\x1b[2J"),
        Notice(t=0, level="warning", text="n\x1b[2J"),
        Failed(t=0, error=ErrorInfo(kind="provider", message="m\x1b[2J\nn", hint="h\x1b[2J")),
    )
    written = "".join(play.terminal.written)
    assert "\x1b[2J" not in written
    assert "\x1b]" not in written
    assert "\x9b" not in written
    assert play.lines[0] == "abc"
    assert "● evil x\\x1b[31m\\u202e" in play.lines
    assert "✗ m n" in play.lines


def test_nothing_is_taken_for_markup() -> None:
    play = Play().feed(fake.started(), fake.text("[red]x[/red] **b**\n"))
    assert play.lines[0] == "[red]x[/red] **b**"


# Reasoning


def test_reasoning_shows_its_last_rows_and_leaves_one_line() -> None:
    play = Play().feed(fake.started())
    for number in range(10):
        play.feed(fake.text(f"thought {number}\n", "reasoning"))
    assert [line for line in play.lines if "thought" in line] == [
        f"thought {number}" for number in range(4, 10)
    ]
    play.wait(3.2).feed(fake.text("Answer"))
    assert play.lines[:3] == ["thought for 3.2 s · 11 lines", "Answer", play.status]


# Tools


def test_a_call_is_announced_when_its_name_arrives_and_its_arguments_grow() -> None:
    play = Play(40).feed(
        fake.started(), ToolCallDelta(**fake.at(), index=0, id="c1", name="write_file", arguments="")
    )
    assert play.lines[0] == "● write_file"
    for _ in range(30):
        play.feed(ToolCallDelta(**fake.at(), index=0, id="", name="", arguments="content, "))
    assert play.lines[0] == "● write_file 270 characters …, content,"


def test_a_tool_shows_its_last_output_and_leaves_its_result() -> None:
    play = Play().feed(tool_started(command="make"))
    for number in range(9):
        play.feed(ToolOutput(t=0, call_id="c1", text=f"line {number}\r\n"))
    assert play.lines[:5] == ["● run_bash make", *(f"  line {number}" for number in range(5, 9))]
    play.wait(2).feed(tool_finished(content="exit 1\nmore\nmore", is_error=True))
    assert play.lines[1] == "  └ exit 1 · 2 more lines · 2.0 s"
    assert "\x1b[31mexit 1" in "".join(play.terminal.written)


def test_a_command_that_failed_says_how_and_one_that_did_not_says_nothing_of_it() -> None:
    play = Play().feed(
        tool_started("a", command="make"),
        tool_finished("a", content="one\ntwo\n[exit code 3]", is_error=True),
        tool_started("b", command="true"),
        tool_finished("b", content="fine\n[exit code 0]"),
    )
    assert "  └ one · 1 more line · exit code 3" in play.lines
    assert "  └ fine" in play.lines


@pytest.mark.parametrize("reason", ["cancelled", None])
def test_a_tool_that_was_stopped_leaves_the_end_of_its_output(reason: TurnReason | None) -> None:
    """Cancelled, or ended with the program before the turn had its end."""
    play = Play().feed(tool_started(command="make"))
    for number in range(9):
        play.feed(ToolOutput(t=0, call_id="c1", text=f"line {number}\n"))
    play.wait(2)
    if reason is None:
        play.view.cut_short()
    else:
        play.feed(finished(reason))
    play.stage.close()
    assert play.lines[1:5] == [f"  line {number}" for number in range(5, 9)]
    assert "  └ stopped after 2.0 s" in play.lines
    assert "✗ interrupted" in play.lines


def test_results_of_parallel_calls_name_their_tool() -> None:
    play = Play().feed(
        tool_started("a", "read_file", path="a"),
        tool_started("b", "list_dir", path="b"),
        tool_finished("b", "list_dir", content="two"),
        tool_finished("a", "read_file", content="one"),
    )
    assert play.lines[:4] == ["● read_file a", "● list_dir b", "  └ two", "  └ read_file: one"]


def test_a_call_that_was_refused_has_its_name_and_its_reason() -> None:
    said = "Not run: the output was cut at max_tokens, so the call may be incomplete. Split it into smaller edits."
    play = Play(60).feed(
        fake.started(), fake.completed(), tool_finished(name="write_file", content=said, is_error=True)
    )
    assert play.lines[:3] == [
        "● write_file",
        "  └ Not run: the output was cut at max_tokens, so the call",
        "    may be incomplete. Split it into smaller edits.",
    ]


def test_a_diff_is_coloured_and_not_shown_twice() -> None:
    play = Play().feed(tool_started(name="edit_file"), tool_finished(name="edit_file", detail=fake.DIFF))
    assert "    2 +print('hello')" in play.lines
    assert "\x1b[32m+print('hello')" in "".join(play.terminal.written)
    play = Play()
    play.view.introduce("c1", ["the diff"], "Allow? ")
    play.feed(tool_started(name="edit_file"), tool_finished(name="edit_file", detail=fake.DIFF))
    assert play.lines[:2] == ["the diff", "  └ fine"]


# Retries


def test_r7_the_wait_counts_down_and_leaves_one_line() -> None:
    play = Play().feed(fake.started(), fake.retrying(1, 8.0))
    assert play.status == "↻ retry 1/4 in 8 s, Ctrl+C stops · 429: too many requests"
    assert play.wait(3.5).status.startswith("↻ retry 1/4 in 5 s")
    assert "\x1b[33m↻" in "".join(play.terminal.written)
    play.wait(4.5).feed(fake.started(2), fake.text("Answer\n"))
    assert play.lines[:3] == ["↻ retry 1/4 after 429: too many requests · waited 8.0 s", "", "Answer"]


def test_r8_what_broke_off_goes_off_the_screen_but_notices_stay() -> None:
    play = Play().feed(
        fake.started(),
        fake.text("half an\nanswer"),
        Notice(t=0, level="warning", text="odd"),
        fake.text(" goes on\nand"),
        fake.retrying(1, 1.0),
    )
    assert play.lines[0] == "odd"  # what broke off is gone as soon as it is known
    play.feed(fake.started(2), fake.text("whole\n"), fake.completed(), finished())
    play.stage.close()
    assert [line for line in play.lines if line] == [
        "odd",
        "↻ retry 1/4 after 429: too many requests · waited 0.0 s",
        "whole",
    ]


def test_r8_what_has_scrolled_off_is_closed_off_with_one_line() -> None:
    play = Play(height=5).feed(
        fake.started(), fake.text("a\nb\nc\nd\ne\nf\n"), fake.retrying(1, 1.0), fake.started(2)
    )
    assert play.lines[:8] == ["a", "b", "c", "d", "e", "f", "", BROKE_OFF]


def test_r8_after_a_resize_it_is_closed_off_too() -> None:
    play = Play().feed(fake.started(), fake.text("half\n"))
    play.stage.resize(70, 24)
    play.feed(fake.retrying(1, 1.0), fake.started(2))
    assert play.lines[:3] == ["half", "", BROKE_OFF]


def test_f04_after_a_resize_the_tail_is_one_row_again() -> None:
    play = Play(60).feed(fake.started(), fake.text("one two three four five six seven eight nine ten"))
    assert len(play.view.rows()) == 2
    play.stage.resize(20, 24)
    play.wait(0)
    assert len(play.view.rows()) == 2
    assert play.lines[:3] == ["one two three four", "five six seven", "eight nine ten"]


def test_half_an_answer_never_stands_as_an_answer() -> None:
    play = Play().feed(
        fake.started(), fake.text("half an answer\n"), Failed(t=0, error=fake.ERROR), finished("failed")
    )
    play.stage.close()
    assert play.lines == ["✗ 429: too many requests", "→ wait a little"]


def test_f09_a_wait_that_was_cut_short_says_so() -> None:
    play = Play().feed(fake.started(), fake.text("half\n"), fake.retrying(2, 30.0), finished("cancelled"))
    play.stage.close()
    assert play.lines == ["↻ retry 2/4 not made · 429: too many requests", "✗ interrupted"]


def test_u3_a_cancel_keeps_what_was_said() -> None:
    play = Play().feed(fake.started(), fake.text("said\nand half"), finished("cancelled"))
    play.stage.close()
    assert play.lines == ["said", "and half", "", "✗ interrupted"]


# The status


def progress(phase: str, silent_s: float = 0.0) -> AttemptProgress:
    return AttemptProgress(**fake.at(), phase=phase, bytes=0, silent_s=silent_s)


def test_u5_the_status_tells_slow_from_stalled_from_silent() -> None:
    play = Play()
    assert play.wait(0).status == "⠋ starting 0 s"
    assert play.feed(fake.started()).wait(1).status[2:] == "connecting 1 s"
    assert play.feed(progress("headers")).wait(2).status[2:] == "waiting for the first token 3 s"
    assert (
        play.wait(9).feed(progress("silent", 9)).wait(0.3).status[2:]
        == "waiting for the first token 12 s · silent since 9 s"
    )
    for _ in range(10):
        play.wait(0.2).feed(fake.text("x" * 40))
    assert play.wait(0.5).status[2:] == "streaming · ~100 tokens · ~43 tok/s"
    assert play.wait(5).status[2:] == "silent since 6 s · ~100 tokens"
    assert (
        play.feed(progress("streaming")).wait(1).status[2:]
        == "stalled since 6 s, still connected · ~100 tokens"
    )
    assert play.feed(fake.completed(), tool_started()).wait(4).status[2:] == "running run_bash 4 s"


def test_u5_the_status_changes_at_most_four_times_a_second() -> None:
    play = Play().feed(fake.started(), fake.text("x" * 40))
    seen = set()
    for _ in range(40):
        play.clock.now += 0.025
        seen.add(play.feed(fake.text("xxxx")).lines[-1])
    assert len(seen) <= 5


def test_unstreamed_it_waits_for_the_whole_answer() -> None:
    play = Play(streamed=False).feed(fake.started(), progress("headers"))
    assert "waiting for the whole answer" in play.status


@pytest.mark.parametrize("reason", ["done", "cancelled", "failed", "max_steps", "denied"])
def test_the_end_clears_the_region(reason: TurnReason) -> None:
    play = Play().feed(turn_started(), fake.started(), fake.text("x\n"), fake.completed(), tool_started())
    play.feed(finished(reason))
    play.stage.close()
    assert "running" not in "\n".join(play.lines)
    assert play.view.reason == reason


def test_f14_without_cursor_movement_there_are_only_lines() -> None:
    play = Play(moving=False).feed(fake.started(), fake.retrying(1, 8.0), fake.started(2))
    play.view.introduce("c1", ["the diff"], "Allow? ")
    play.stage.paint()
    assert play.lines[:4] == [
        "↻ retry 1/4 in 8 s, Ctrl+C stops · 429: too many requests",
        "",
        "the diff",
        "Allow?",
    ]


def test_u1_reasoning_that_is_to_be_shown_whole_stays_like_text() -> None:
    play = Play(thinks_aloud=True).feed(
        fake.started(),
        *(fake.text(f"thought {number}\n", "reasoning") for number in range(20)),
        fake.text("and half", "reasoning"),
    )
    assert play.lines[:20] == [f"thought {number}" for number in range(20)]
    assert "and half" in play.lines
    play.feed(fake.text("so it is\n"), fake.completed(), finished())
    play.stage.close()
    assert [line for line in play.lines if line] == [
        *(f"thought {number}" for number in range(20)),
        "and half",
        "so it is",
    ]
    assert "\x1b[2mthought 3" in "".join(play.terminal.written)


def test_u9_what_a_command_of_the_users_own_gave_is_shown_whole() -> None:
    content = "\n".join(f"file {number}" for number in range(30)) + "\n[exit code 0]"
    play = Play().feed(tool_started(call_id="user-1"), tool_finished(call_id="user-1", content=content))
    assert [line for line in play.lines if line.startswith("  file")] == [f"  file {n}" for n in range(30)]
    much = "\n".join(f"file {number}" for number in range(3000))
    play = Play().feed(tool_started(call_id="user-1"), tool_finished(call_id="user-1", content=much))
    assert "  … 2600 rows more" in play.lines
    assert "  file 2999" in play.lines
