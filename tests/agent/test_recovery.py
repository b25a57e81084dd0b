"""Errors that take another request (product R6, R9): what the agent does before it asks again, and when it stops."""

import asyncio
import re
from contextlib import aclosing
from pathlib import Path

import pytest
from scripted_model import Hang, ScriptedModel

from mini_agent.agent.asking import TurnSettings
from mini_agent.agent.loop import Agent
from mini_agent.agent.recovery import MOST_LEFT_OUT
from mini_agent.agent.tools import Registry, ToolContext
from mini_agent.core import estimates
from mini_agent.core.errors import EmptyAnswerError, ProviderError, RepetitionError
from mini_agent.core.events import (
    ChannelToken,
    Compacted,
    Completed,
    Failed,
    ImagesStripped,
    Notice,
)
from mini_agent.core.history import Conversation, repair
from mini_agent.core.messages import Message, Response, Text, ToolCall, ToolResult, Usage
from mini_agent.workspace.files import Files
from mini_agent.workspace.spill import Spill


def answer(text="fine", stop="end_turn", **usage):
    return Response((Text(text),) if text else (), stop_reason=stop, usage=Usage(**usage))


def refused(what):
    return ProviderError(f"400: no {what}", kind="bad_request", retryable=False, status=400, refused=what)


def too_long(asked=None, limit=None, kind="context_overflow"):
    return ProviderError(
        "400: too long", kind=kind, retryable=False, status=400, asked_tokens=asked, limit_tokens=limit
    )


def unauthorised():
    return ProviderError(
        "401: who are you", kind="auth", retryable=False, status=401, hint="Check the key in K."
    )


def old_turns(count, size=2000, result=0):
    """Turns that are over, each with a call whose result has `result` characters."""
    for number in range(count):
        call = ToolCall(f"c{number}", "read_file", {"path": "a"})
        yield Message("user", (Text(f"question {number} " + "q" * size),))
        if result:
            yield Message("assistant", (call,))
            yield Message("tool", (ToolResult("r" * result, call_id=call.id),))
        yield Message("assistant", (Text(f"answer {number} " + "a" * size),))


class Bench:
    def __init__(self, folder, *script, history=(), window=None, new_key=None, max_tokens=None):
        self.model = ScriptedModel(*script)
        self.conversation = Conversation(history)
        self.agent = Agent(
            self.model,
            Registry([]),
            self.conversation,
            self.approve,
            context=ToolContext(Files(folder), spill=Spill(folder / "spill", "run")),
            settings=TurnSettings(model="m", system="s", window=window, max_steps=4, max_tokens=max_tokens),
            new_key=new_key,
            now=lambda: 0.0,
        )

    async def approve(self, request):
        raise AssertionError

    async def turn(self, prompt="go"):
        async with aclosing(self.agent.run(prompt)) as events:
            return [event async for event in events]

    @property
    def left_out(self):
        return [set(attempt.without) for attempt in self.model.attempts]


def only(events, kind):
    return [event for event in events if isinstance(event, kind)]


def reason(events):
    return events[-1].reason


async def test_d20_a_refused_parameter_is_left_out_from_then_on(tmp_path):
    bench = Bench(tmp_path, refused("stream_options"), answer(), answer("again"))
    events = await bench.turn()
    assert reason(events) == "done"
    assert ["stream_options" in notice.text for notice in only(events, Notice)] == [True]
    await bench.turn("and once more")
    assert bench.left_out == [set(), {"stream_options"}, {"stream_options"}]


async def test_d20_one_thing_after_the_other_and_then_no_more(tmp_path):
    names = [f"field{number}" for number in range(MOST_LEFT_OUT + 1)]
    bench = Bench(tmp_path, *map(refused, names))
    events = await bench.turn()
    assert reason(events) == "failed"
    assert len(bench.model.requests) == MOST_LEFT_OUT + 1


async def test_d20_a_provider_that_refuses_what_is_not_sent_any_more_is_not_asked_for_ever(tmp_path):
    bench = Bench(tmp_path, refused("seed"), refused("seed"))
    assert reason(await bench.turn()) == "failed"
    assert len(bench.model.requests) == 2


@pytest.mark.parametrize("cap", [None, 300_000])
async def test_d20_a_cap_is_left_out_only_where_the_user_set_it(tmp_path, cap):
    over = ProviderError(
        "400: 100 + 300000 > 200000",
        kind="context_overflow",
        retryable=False,
        status=400,
        refused="max_tokens",
    )
    bench = Bench(tmp_path, over, answer("sum"), answer("ok"), history=old_turns(8), max_tokens=cap)
    events = await bench.turn()
    assert reason(events) == "done"
    assert len(only(events, Compacted)) == (1 if cap is None else 0)


async def test_e05_reasoning_that_is_refused_is_left_out(tmp_path):
    bench = Bench(tmp_path, refused("reasoning"), answer())
    assert reason(await bench.turn()) == "done"
    assert bench.left_out == [set(), {"reasoning"}]


async def test_images_that_were_refused_are_left_out_later_too(tmp_path):
    stripped = ImagesStripped(t=0, request_id="r", attempt=1, count=1, reason="413")
    bench = Bench(tmp_path, [stripped, answer()], answer())
    await bench.turn()
    await bench.turn()
    assert bench.left_out == [set(), {"images"}]


@pytest.mark.parametrize("changed", [True, False])
async def test_the_key_is_read_once_more_and_only_another_one_is_tried(tmp_path, changed):
    read = []
    script = [unauthorised(), unauthorised(), answer()] if changed else [unauthorised()]
    bench = Bench(tmp_path, *script, new_key=lambda: read.append(1) or changed)
    events = await bench.turn()
    assert reason(events) == "failed"
    assert len(read) == 1
    assert len(bench.model.requests) == (2 if changed else 1)
    assert only(events, Failed)[0].error.hint == "Check the key in K."


async def test_another_key_is_used(tmp_path):
    bench = Bench(tmp_path, unauthorised(), answer(), new_key=lambda: True)
    assert reason(await bench.turn()) == "done"


@pytest.mark.parametrize("kind", ["context_overflow", "too_large"])
async def test_d08_first_the_largest_results_are_shortened(tmp_path, kind):
    history = list(old_turns(3, size=10, result=20_000))
    bench = Bench(tmp_path, too_long(16_000, 12_000, kind), answer(), history=history)
    events = await bench.turn()
    assert reason(events) == "done"
    (compacted,) = only(events, Compacted)
    assert compacted.messages_before == compacted.messages_after
    assert compacted.tokens_after < compacted.tokens_before * 0.6
    content = bench.model.requests[1].messages[2].tool_results[0].content
    whole = re.search(r"the whole is in (\S+), which read_file shows", content)
    assert Path(whole[1]).read_text() == "r" * 20_000
    assert bench.model.requests[1].messages[0] == history[0]


async def test_d08_then_the_history_is_summed_up_by_the_model(tmp_path):
    history = list(old_turns(8))
    bench = Bench(
        tmp_path, too_long(9000, 8000), answer("they spoke of q"), answer("the end"), history=history
    )
    events = await bench.turn("what now?")
    assert reason(events) == "done"
    asked, summing, again = bench.model.requests
    assert summing.tools == ()
    assert "question 0" in summing.messages[0].text
    assert estimates.tokens(summing.messages) < estimates.tokens(asked.messages)
    assert "they spoke of q" in again.messages[0].text
    assert again.messages[-1].text == "what now?"
    assert estimates.tokens(again.messages) < 0.7 * estimates.tokens(asked.messages)
    assert repair(again.messages) == list(again.messages)
    # The summary is no answer: neither its text nor its end is told as one.
    assert [event.text for event in only(events, ChannelToken)] == ["the end"]
    assert len(only(events, Completed)) == 1
    assert events[-1].text == "the end"
    (compacted,) = only(events, Compacted)
    assert compacted.messages_after < compacted.messages_before


async def test_a_record_that_is_too_long_itself_is_asked_about_once_more_and_smaller(tmp_path):
    bench = Bench(tmp_path, too_long(), too_long(), answer("sum"), answer("the end"), history=old_turns(8))
    assert reason(await bench.turn()) == "done"
    sizes = [estimates.tokens(request.messages) for request in bench.model.requests]
    assert sizes[2] < sizes[1] < sizes[0]


@pytest.mark.parametrize(
    "summary",
    [
        [too_long(), too_long()],
        [EmptyAnswerError(), EmptyAnswerError()],
        [RepetitionError("again"), RepetitionError("again")],
        [answer("I can't help", "refusal"), answer("I can't", "content_filter")],
        [answer("the first half of", "max_tokens"), answer("the", "max_tokens")],
        [answer(""), answer(" ")],
        [answer("sum"), too_long()],
    ],
    ids=["too long", "empty", "repeating", "refused", "cut", "nothing", "too long all the same"],
)
async def test_compaction_has_an_end_and_says_so(tmp_path, summary):
    bench = Bench(tmp_path, too_long(), *summary, history=old_turns(8))
    events = await bench.turn()
    assert reason(events) == "failed"
    (failed,) = only(events, Failed)
    assert failed.error.kind == "context_overflow"
    assert "larger window" in failed.error.hint
    assert bench.conversation.is_waiting


async def test_a_single_message_that_is_too_long_is_said_at_once(tmp_path):
    bench = Bench(tmp_path, too_long())
    events = await bench.turn("x" * 50_000)
    assert reason(events) == "failed"
    assert len(bench.model.requests) == 1
    assert "too long" in only(events, Failed)[0].error.hint


async def test_a_summary_is_asked_for_again_where_that_helps(tmp_path):
    bench = Bench(
        tmp_path,
        too_long(),
        refused("stream_options"),
        unauthorised(),
        answer("sum"),
        answer("the end"),
        history=old_turns(8),
        new_key=lambda: True,
    )
    events = await bench.turn()
    assert reason(events) == "done"
    assert [bool(attempt.without) for attempt in bench.model.attempts] == [False, False, True, True, True]


async def test_a_message_too_long_by_itself_costs_no_summary_and_not_the_session(tmp_path):
    bench = Bench(
        tmp_path,
        too_long(30_000, 8000),
        too_long(30_000, 8000),
        answer("sum"),
        answer("small"),
        history=old_turns(2),
    )
    events = await bench.turn("x" * 100_000)
    assert reason(events) == "failed"
    assert len(bench.model.requests) == 1
    assert only(events, Notice) == []
    events = await bench.turn("a small one")
    assert events[-1].text == "small"
    assert "a small one" in bench.model.requests[-1].messages[-1].text
    assert estimates.tokens(bench.model.requests[-1].messages) < 8000


async def test_a_whole_answer_is_kept_where_nothing_can_be_made_shorter(tmp_path):
    bench = Bench(tmp_path, answer("whole", input_tokens=1500), window=1000)
    events = await bench.turn()
    assert (reason(events), events[-1].text) == ("done", "whole")
    assert "150%" in only(events, Notice)[0].text


@pytest.mark.parametrize("used", [{"output_tokens": 9}, {}, {"output_tokens": 0, "input_tokens": 10}])
async def test_a_small_conversation_is_not_summed_up_because_an_answer_was_cut(tmp_path, used):
    bench = Bench(tmp_path, answer("", "max_tokens", **used), history=old_turns(2, size=10), window=10_000)
    events = await bench.turn()
    assert only(events, Compacted) == []
    assert "max_tokens" in only(events, Failed)[0].error.message


async def test_a_summary_that_fails_for_another_reason_fails_the_turn_and_loses_nothing(tmp_path):
    down = ProviderError("503", kind="overloaded", retryable=True, status=503)
    bench = Bench(tmp_path, too_long(), down, history=old_turns(8))
    before = bench.conversation.messages
    events = await bench.turn()
    assert only(events, Failed)[0].error.kind == "overloaded"
    assert bench.conversation.messages[:-1] == before


async def test_cancel_in_the_middle_of_a_summary_leaves_the_history_as_it_was(tmp_path):
    bench = Bench(tmp_path, too_long(), ["so far", Hang], answer(), history=old_turns(8))
    before = bench.conversation.messages
    events = []
    async with aclosing(bench.agent.run("go")) as stream:
        stopping = asyncio.ensure_future(bench.model.hanging.wait())
        stopping.add_done_callback(lambda _: bench.agent.cancel())
        events = [event async for event in stream]
    assert reason(events) == "cancelled"
    assert bench.conversation.messages[:-1] == before
    assert bench.conversation.messages[-1].text == "go"
    assert bench.model.closed == 2
    assert reason(await bench.turn("again")) == "done"


@pytest.mark.parametrize(
    "silent",
    [
        answer("to half a prompt", input_tokens=1000),
        answer("", "max_tokens", output_tokens=0, input_tokens=900),
        answer("", "context_overflow"),
        answer("half a", "context_overflow"),
    ],
    ids=[
        "the prompt fills the window",
        "cut before the first token",
        "said at the end",
        "said in the middle",
    ],
)
async def test_d09_an_overflow_without_an_error_is_one(tmp_path, silent):
    bench = Bench(tmp_path, silent, answer("sum"), answer("the end"), history=old_turns(8), window=1000)
    events = await bench.turn()
    assert reason(events) == "done"
    assert len(only(events, Compacted)) == 1
    assert [event.response.text for event in only(events, Completed)] == ["the end"]
    assert all(silent.text not in message.text for message in bench.conversation.messages if silent.text)


async def test_d09_an_empty_answer_to_a_full_window_is_an_overflow(tmp_path):
    bench = Bench(
        tmp_path, EmptyAnswerError(), answer("sum"), answer("the end"), history=old_turns(8), window=8500
    )
    assert reason(await bench.turn()) == "done"
    roomy = Bench(tmp_path, EmptyAnswerError(), history=old_turns(8), window=90_000)
    assert reason(await roomy.turn()) == "failed"


async def test_d09_a_window_that_is_told_too_small_costs_one_summary_not_the_answer(tmp_path):
    over = answer("it goes on", input_tokens=5000)
    bench = Bench(tmp_path, over, answer("sum"), over, history=old_turns(8), window=1000)
    events = await bench.turn()
    assert events[-1].text == "it goes on"
    assert reason(events) == "done"


async def test_d09_a_window_that_is_nearly_full_is_told_once(tmp_path):
    near = answer("ok", input_tokens=900)
    bench = Bench(tmp_path, near, near, answer("ok", input_tokens=100), near, window=1000)
    warned = [len(only(await bench.turn(), Notice)) for _ in range(4)]
    assert warned == [1, 0, 0, 1]


async def test_d09_where_nothing_is_counted_our_own_estimate_warns(tmp_path):
    bench = Bench(tmp_path, answer("ok"), history=old_turns(8), window=9000)
    assert "about" in only(await bench.turn(), Notice)[0].text


async def test_a_turn_that_failed_goes_on_from_the_exact_step(tmp_path):
    down = ProviderError("503", kind="overloaded", retryable=True, status=503)
    bench = Bench(tmp_path, down, answer("here"))
    await bench.turn("do it")
    events = await bench.turn(None)
    assert reason(events) == "done"
    assert events[0].prompt == ""
    assert [message.text for message in bench.model.requests[1].messages] == ["do it"]
