"""From records back to the conversation: as the agent has it, and fit to be sent where that had no time to see to it."""

import pytest
from record_lives import (
    HEADER,
    RESUMED,
    WRONG,
    answered,
    at,
    begun,
    call,
    ended,
    ran,
    retrying,
    runs,
    said,
    started,
)

from mini_agent.core.events import (
    AttemptEnded,
    Compacted,
    Failed,
    UserMessage,
)
from mini_agent.core.history import CANCELLED
from mini_agent.core.messages import Message, Reasoning, Text, ToolCall, ToolResult
from mini_agent.record.journal import Journal
from mini_agent.record.rebuild import NOT_RUN, STARTED, State, rebuild
from mini_agent.record.records import Checkpoint
from mini_agent.record.sessions import load


def messages(*records):
    return list(rebuild(records)[0])


def state(*records):
    return rebuild(records)[1]


def user(text):
    return Message("user", (Text(text),))


def assistant(*blocks):
    return Message("assistant", blocks)


def results(*pairs, is_error=False):
    return Message("tool", tuple(ToolResult(content, is_error, call_id) for call_id, content in pairs))


def attempt_ended(outcome):
    return AttemptEnded(**at(), outcome=outcome, total_s=1.0)


def test_e19_a_call_that_no_end_is_known_of_has_a_result_that_says_what_is_known():
    calls = (call("c1"), call("c2"), call("c3"))
    records = [begun("hi"), started(), answered(*calls), runs("c1"), ran("c1", "one"), runs("c2")]
    for later, follows in (
        ([], []),
        ([RESUMED], []),
        ([begun("and")], [user("and")]),
        ([RESUMED, begun("and"), ended()], [user("and")]),
        ([RESUMED, UserMessage(t=1.0, text="and", queued=False)], [user("and")]),
    ):
        first, answer, told, *rest = messages(HEADER, *records, *later)
        assert [first, answer, *rest] == [user("hi"), assistant(*calls), *follows]
        assert told.tool_results == (
            ToolResult("one", call_id="c1"),
            ToolResult(STARTED, is_error=True, call_id="c2"),
            ToolResult(NOT_RUN, is_error=True, call_id="c3"),
        )


def test_a_call_whose_id_another_had_before_is_not_taken_for_that():
    first = [begun(), answered(call("c1")), runs("c1"), ran("c1")]
    for between in ([], [ended(), begun("next")]):
        last = messages(*first, *between, answered(call("c1")))[-1]
        assert [result.content for result in last.tool_results] == [NOT_RUN]


def test_a_call_of_a_cancelled_turn_was_cancelled():
    records = [begun(), answered(call("c1"), call("c2")), runs("c1"), ended("cancelled")]
    assert messages(*records)[2] == results(("c1", CANCELLED), ("c2", CANCELLED), is_error=True)


@pytest.mark.parametrize(
    "end", [[], [RESUMED], [attempt_ended("cancelled"), ended("cancelled")], [begun("on")]]
)
def test_what_an_unfinished_attempt_had_said_stays(end):
    records = [begun(), started(), said("th", channel="reasoning"), said("half "), said("an ans"), *end]
    assert messages(*records)[:2] == [user("go"), assistant(Text("half an ans"))]
    assert state(*records).text == "half an ans"


@pytest.mark.parametrize(
    "given_up",
    [
        retrying(),
        started(attempt=2),
        Failed(t=1.0, error=WRONG),
        attempt_ended("failed"),
        attempt_ended("completed"),
        Compacted(t=1.0, messages_before=2, messages_after=1, tokens_before=2, tokens_after=1),
    ],
    ids=lambda record: type(record).__name__,
)
def test_w11_what_an_attempt_that_was_given_up_had_said_does_not(given_up):
    assert messages(begun(), started(), said("half"), given_up) == [user("go")]
    assert messages(begun(), started(), said("half"), given_up, ended("cancelled")) == [user("go")]


def test_a_turn_without_a_prompt_goes_on_with_the_history_as_it_is():
    failed = [begun("do"), started(), said("half"), Failed(t=1.0, error=WRONG), ended("failed")]
    assert messages(*failed, begun(""), started(), answered(Text("done")), ended()) == [
        user("do"),
        assistant(Text("done")),
    ]
    assert state(*failed, begun("")).turns == 1


def test_a_message_that_entered_while_the_turn_ran_is_in_its_place():
    records = [
        begun(),
        answered(call("c")),
        runs("c"),
        ran("c"),
        UserMessage(t=1.0, text="wait", queued=True),
    ]
    assert [message.role for message in messages(*records)] == ["user", "assistant", "tool", "user"]


def test_nothing_before_a_checkpoint_counts():
    kept = (user("summary"), assistant(call("a")), results(("a", "kept")))
    before = [begun("old"), answered(call("c1")), runs("c1"), ran("c1"), started(), said("half")]
    after = [started(), answered(Text("new")), ended()]
    rebuilt, where = rebuild([*before, Checkpoint(t=1.0, messages=kept), *after])
    assert list(rebuilt) == [*kept, assistant(Text("new"))]
    assert (where.turns, where.prompt) == (1, "old")


def test_a_checkpoint_comes_back_from_a_file_as_it_was(tmp_path):
    kept = (
        user("é"),
        assistant(
            Reasoning("hm", signature="S"), Text("x"), ToolCall("a", "echo", {"n": [1, None]}, extra={"k": 1})
        ),
        results(("a", "kept"), is_error=True),
    )
    journal = Journal(tmp_path / "s.jsonl", HEADER)
    journal.write(Checkpoint(t=1.0, messages=kept))
    journal.close()
    assert load(journal.path).messages == kept


def test_the_state_says_where_the_conversation_stands():
    assert state(HEADER) == State()
    one = [HEADER, begun("one"), started(), answered(Text("first"))]
    two = [begun("two"), started(), answered(Text("second"), call("c")), runs("c"), ran("c")]
    assert state(*one) == State(turns=1, prompt="one", text="first", has_ended=False)
    assert state(*one, ended()) == State(turns=1, prompt="one", text="first", reason="done")
    assert state(*one, ended(), *two) == State(
        turns=2, prompt="two", text="second", has_ended=False, is_waiting=True
    )
    failed = state(*one, ended(), *two, Failed(t=1.0, error=WRONG), ended("failed"))
    assert (failed.has_ended, failed.reason, failed.is_waiting) == (True, "failed", True)
    assert state(begun("one")).is_waiting
