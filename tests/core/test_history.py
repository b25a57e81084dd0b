"""The iron rule (product A1): whatever the history was, what is sent has each call answered once and directly after."""

from hypothesis import given
from hypothesis import strategies as st

from mini_agent.core.history import INTERRUPTED, NO_OUTPUT, Conversation, repair
from mini_agent.core.messages import Image, Message, Reasoning, Response, Text, ToolCall, ToolResult


def user(text="hi"):
    return Message("user", (Text(text),))


def assistant(*blocks):
    return Message("assistant", blocks)


def tool(*results):
    return Message("tool", tuple(ToolResult(content, call_id=call_id) for call_id, content in results))


def call(call_id, name="read_file"):
    return ToolCall(call_id, name)


IDS = st.sampled_from(["", "a", "b", "c", "a-2"])
BLOCKS = st.one_of(
    st.builds(Text, st.sampled_from(["", " \n", "text"])),
    st.builds(Reasoning, st.sampled_from(["", "thought"])),
    st.builds(Image, st.just("image/png"), st.just(b"x")),
    st.builds(ToolCall, IDS, st.sampled_from(["read_file", "run_bash"])),
    st.builds(ToolResult, st.sampled_from(["", "done"]), st.booleans(), IDS),
)
MESSAGES = st.lists(
    st.builds(
        Message, st.sampled_from(["user", "assistant", "tool"]), st.lists(BLOCKS, max_size=4).map(tuple)
    ),
    max_size=8,
)


def assert_sendable(messages):
    ids = [call.id for message in messages for call in message.tool_calls]
    assert len(ids) == len(set(ids))
    assert all(ids)
    for position, message in enumerate(messages):
        following = messages[position + 1] if position + 1 < len(messages) else None
        if message.role == "assistant":
            assert any(not isinstance(block, Reasoning) for block in message.blocks)
            calls = [call.id for call in message.tool_calls]
            if calls:
                assert following is not None
                assert [result.call_id for result in following.blocks] == calls
        if message.role == "tool":
            assert position > 0
            assert messages[position - 1].tool_calls
            assert all(result.content.strip() for result in message.blocks)
        else:
            assert not message.tool_results
        assert message.blocks
        assert all(block.text.strip() for block in message.blocks if isinstance(block, Text))


@given(MESSAGES)
def test_any_history_becomes_sendable(messages):
    assert_sendable(repair(messages))


@given(MESSAGES)
def test_repairing_twice_changes_nothing_more(messages):
    once = repair(messages)
    assert repair(once) == once


@given(MESSAGES, st.integers(0, 8))
def test_any_cut_of_a_history_becomes_sendable(messages, cut):
    assert_sendable(repair(messages[cut:]))
    assert_sendable(repair(repair(messages)[:cut]))


def test_what_obeys_comes_back_equal():
    good = [
        user(),
        assistant(Reasoning("hm"), Text("look"), call("a"), call("b")),
        tool(("a", "1"), ("b", "2")),
        assistant(Text("x")),
    ]
    assert repair(good) == good


def test_e19_a_call_that_was_never_answered_gets_a_result_directly_behind_it():
    mended = repair([user(), assistant(call("c1"), call("c2")), tool(("c1", "one")), user("go on")])
    assert mended[2].tool_results == (
        ToolResult("one", call_id="c1"),
        ToolResult(INTERRUPTED, is_error=True, call_id="c2"),
    )
    assert mended[3] == user("go on")


def test_e03_results_without_their_call_go_with_it():
    assert repair([user(), tool(("c1", "one")), user("next")]) == [user(), user("next")]


def test_late_results_move_behind_their_call_and_second_ones_are_dropped():
    mended = repair([assistant(call("a")), user("meanwhile"), tool(("a", "late")), tool(("a", "again"))])
    assert mended == [assistant(call("a")), tool(("a", "late")), user("meanwhile")]


def test_ids_used_again_stay_with_their_own_results():
    turns = [
        assistant(call("call_0")),
        tool(("call_0", "first")),
        assistant(call("call_0")),
        tool(("call_0", "second")),
    ]
    mended = repair(turns)
    assert [message.tool_results[0].content for message in mended[1::2]] == ["first", "second"]
    assert mended[2].tool_calls[0].id != "call_0"


def test_two_calls_of_one_message_with_one_id_are_answered_in_order():
    mended = repair([assistant(call("x"), call("x")), tool(("x", "1"), ("x", "2"))])
    assert [result.content for result in mended[1].tool_results] == ["1", "2"]


def test_e06_e07_nothing_empty_is_sent():
    mended = repair(
        [
            user("  "),
            assistant(),
            assistant(Reasoning("only")),
            assistant(Text("\n"), call("a")),
            tool(("a", " ")),
        ]
    )
    assert mended == [assistant(call("a")), tool(("a", NO_OUTPUT))]


def test_results_enter_one_by_one_and_what_is_missing_is_known():
    conversation = Conversation([user()])
    conversation.add_response(Response((call("a"), call("b"))))
    conversation.add_result(ToolResult("1", call_id="a", detail="for the screen"))
    assert [one.id for one in conversation.unanswered()] == ["b"]
    conversation.add_result(ToolResult("2", call_id="b"))
    assert conversation.unanswered() == ()
    assert conversation.messages[-1] == tool(("a", "1"), ("b", "2"))


def test_b25_text_enters_encodable():
    conversation = Conversation()
    conversation.add_user("\ud83d\ude00 and \ud83d alone")
    assert conversation.messages[0].text == "😀 and \ufffd alone"


def test_an_interrupted_answer_keeps_its_words_and_an_empty_one_leaves_nothing():
    conversation = Conversation([user()])
    conversation.add_partial(" ")
    assert len(conversation.messages) == 1
    conversation.add_partial("half an ans")
    assert conversation.messages[-1] == assistant(Text("half an ans"))
