"""Histories that are made to fit: shortened results, a cut at a user's message, a summary in place of the rest."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "core"))
from test_history import MESSAGES

from mini_agent.agent.compaction import LEAST_RECORD, SHORT_BYTES, clipped, shortened, split, summary_request
from mini_agent.core import estimates
from mini_agent.core.history import repair
from mini_agent.core.messages import Image, Message, Request, Text, ToolCall, ToolResult
from mini_agent.workspace.spill import cut

REPAIRED = MESSAGES.map(repair)


def user(text):
    return Message("user", (Text(text),))


def said(text):
    return Message("assistant", (Text(text),))


def step(number, result="ok"):
    """A call and its result."""
    call = ToolCall(f"c{number}", "read_file", {"path": f"{number}.py"})
    return [Message("assistant", (call,)), Message("tool", (ToolResult(result, call_id=call.id),))]


def test_e08_a_cut_never_falls_between_a_call_and_its_result():
    history = [user("first"), *step(1), *step(2), said("done")]
    for keep in range(estimates.tokens(history) + 1):
        parts = split(history, keep)
        assert not parts.kept or parts.kept[0].role == "user"
        joined = parts.joined("it was read")
        assert repair(joined) == joined
        assert joined[0].role == "user"
        assert "it was read" in joined[0].text


def test_e08_what_is_kept_begins_at_the_earliest_border_that_fits():
    history = [user("a" * 400), said("b" * 400), user("second"), *step(1), user("third"), said("ok")]
    parts = split(history, 60)
    assert parts.kept == history[2:]
    assert split(history, 4).kept == history[5:]
    assert split(history, 0).kept == []


def test_a_turn_too_large_to_keep_is_summed_up_and_its_question_stays():
    picture = Image("image/png", b"x")
    history = [user("old"), said("yes"), Message("user", (Text("mend it"), picture)), *step(1, "x" * 9000)]
    parts = split(history, 100)
    assert parts.kept == []
    (only,) = parts.joined("half is mended")
    assert "half is mended" in only.text
    assert "mend it" in only.text
    assert picture in only.blocks


@given(REPAIRED, st.integers(0, 200))
def test_any_history_cut_anywhere_and_joined_obeys(messages, keep):
    parts = split(messages, keep)
    assert [*parts.old, *parts.kept] == messages
    assert bool(parts.old) == bool(messages)
    joined = parts.joined("summary")
    assert repair(joined) == joined
    assert joined[0].role == "user"


@given(
    st.lists(st.integers(1, 20_000), max_size=6),
    st.integers(0, 30_000),
)
def test_the_largest_results_are_shortened_first_and_no_more_than_it_takes(sizes, target):
    history = [message for number, size in enumerate(sizes) for message in step(number, "x" * size)]
    shorter = shortened(history, target, lambda text, size: cut(text, None, size))
    assert repair(shorter) == shorter
    before = [message.tool_results[0].content for message in history if message.role == "tool"]
    after = [message.tool_results[0].content for message in shorter if message.role == "tool"]
    short = [len(old) for old, new in zip(before, after, strict=True) if new != old]
    whole = [len(old) for old, new in zip(before, after, strict=True) if new == old]
    if short and whole:
        assert min(short) >= max(size for size in [0, *whole])
    if estimates.tokens(history) <= target:
        assert shorter == history
    elif estimates.tokens(shorter) > target:
        assert all(size <= 2 * SHORT_BYTES for size in whole)


@given(st.text(max_size=300), st.integers(0, 100), st.integers(0, 100))
def test_clipping_keeps_both_ends_and_says_how_much_is_missing(text, head, tail):
    short = clipped(text, head, tail)
    if len(text) <= head + tail:
        assert short == text
    else:
        assert short.startswith(text[:head])
        assert short.endswith(text[len(text) - tail :])
        assert f"{len(text) - head - tail:,} characters" in short


@pytest.mark.parametrize("limit", [50, 1000, 100_000])
def test_the_request_for_a_summary_is_bounded_whatever_is_summed_up(limit):
    like = Request((), system="s", model="m", max_tokens=7, stream=False)
    old = [
        user("begin"),
        *(message for number in range(200) for message in step(number, "y" * 5000)),
        user("end"),
    ]
    request = summary_request(old, limit, like)
    assert (request.model, request.max_tokens, request.stream, request.tools) == ("m", None, False, ())
    assert estimates.tokens(request.messages) <= max(limit, LEAST_RECORD) + 400
    assert "user: begin" in request.messages[0].text
    assert "user: end" in request.messages[0].text


@pytest.mark.parametrize("keep", [0, 8, 1000])
def test_there_is_one_summary_however_often_it_is_summed_up(keep):
    history = [user("mend it"), *step(1), *step(2)]
    for number in range(5):
        history = [*split(history, keep).joined(f"summary {number}"), *step(10 + number)]
    text = "\n".join(message.text for message in history)
    assert text.count("was summed up") == 1
    assert "summary 4" in text
    assert text.count("mend it") == 1
    assert text.count("last message follows") <= 1
