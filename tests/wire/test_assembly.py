"""Deltas to blocks: text made whole, calls told apart."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_agent.core.events import ChannelToken, FirstToken, ToolCallDelta
from mini_agent.core.messages import Reasoning, Text, ToolCall
from mini_agent.core.surrogates import join_surrogates
from mini_agent.wire.assembly import Assembler, Origin

ORIGIN = Origin("request", 2, 100.0)

Piece = tuple[Any, Any, Any, Any]
"""Index, id, name, arguments of one delta."""


def assembled(*pieces: Piece) -> tuple[ToolCall, ...]:
    """The calls that these deltas make, after checking that the events tell the same."""
    assembler = Assembler(ORIGIN)
    for piece in pieces:
        assembler.tool_call(*piece)
    assembler.end()
    deltas = [event for event in assembler.take() if isinstance(event, ToolCallDelta)]
    calls = [block for block in assembler.blocks() if isinstance(block, ToolCall)]
    assert list(dict.fromkeys(delta.index for delta in deltas)) == list(range(len(calls)))
    for place, call in enumerate(calls):
        last = [delta for delta in deltas if delta.index == place][-1]
        assert last.name in (call.name, "")
        assert call.id.startswith(last.id)
    return tuple(calls)


def seen(*pieces: Piece) -> list[tuple[str, str, Any]]:
    return [(call.id, call.name, call.arguments) for call in assembled(*pieces)]


def test_events_are_stamped_and_the_first_token_comes_once() -> None:
    assembler = Assembler(ORIGIN)
    assembler.at(1, 101.0)
    assembler.text("")
    assembler.tool_call(0, "c1", "f", "")
    common = {"request_id": "request", "attempt": 2}
    assert assembler.take() == [
        ToolCallDelta(t=101.0, n=1, index=0, id="c1", name="f", arguments="", **common)
    ]
    assembler.at(2, 102.5)
    assembler.reasoning("r", "thinking")
    assembler.text("a")
    assembler.tool_call(0, None, None, "{")
    assert assembler.take() == [
        FirstToken(t=102.5, n=2, ttft_s=2.5, **common),
        ChannelToken(t=102.5, n=2, channel="reasoning", text="r", **common),
        ChannelToken(t=102.5, n=2, channel="text", text="a", **common),
        ToolCallDelta(t=102.5, n=2, index=0, id="c1", name="f", arguments="{", **common),
    ]
    assert assembler.take() == []
    assert assembler.describe() == "characters of reasoning: 1, characters of text: 1, tool calls: 1"


def test_the_order_of_the_blocks_and_the_field_of_the_reasoning() -> None:
    assembler = Assembler(ORIGIN)
    assembler.tool_call(0, "c1", "f", "{}")
    assembler.text("a")
    assembler.reasoning("r", "reasoning")
    assembler.text("b")
    assembler.reasoning("s", "thinking")
    assert assembler.blocks() == (Reasoning("rs", field="reasoning"), Text("ab"), ToolCall("c1", "f"))


def test_nothing_makes_no_block() -> None:
    assembler = Assembler(ORIGIN)
    assembler.tool_call(0, None, "", None, {"x": 1})
    assert assembler.blocks() == ()
    assert assembler.describe() == "nothing"


HALVES = st.lists(st.text(st.sampled_from("ab\ud83d\ude00\ud800\udfff🌊é"), max_size=3), max_size=12)


@settings(deadline=None, max_examples=300)
@given(HALVES)
def test_b25_pieces_add_up_and_show_no_half(pieces: list[str]) -> None:
    whole = join_surrogates("".join(pieces))
    assembler = Assembler(ORIGIN)
    for piece in pieces:
        assembler.text(piece)
        assembler.reasoning(piece)
        assembler.tool_call(0, "c1", "f", piece)
    assembler.end()
    events = assembler.take()
    msgspec.json.encode(events)
    for channel in ("text", "reasoning"):
        tokens = [event for event in events if isinstance(event, ChannelToken) and event.channel == channel]
        assert "".join(token.text for token in tokens) == whole
        assert all(token.text for token in tokens)
    assert "".join(event.arguments for event in events if isinstance(event, ToolCallDelta)) == whole
    assert sum(isinstance(event, FirstToken) for event in events) == bool(whole)
    assert "".join(block.text for block in assembler.blocks() if isinstance(block, Text)) == whole


@settings(deadline=None)
@given(
    st.lists(
        st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=8), max_size=3), max_size=4
    ),
    st.sampled_from(["index", "id", "both"]),
    st.randoms(use_true_random=False),
)
def test_interleaved_calls_do_not_mix(wanted: list[dict[str, Any]], told_by: str, random: Any) -> None:
    queues = []
    for place, arguments in enumerate(wanted):
        text = json.dumps(arguments)
        cuts = sorted(random.randrange(len(text) + 1) for _ in range(3))
        pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        index = None if told_by == "id" else place + 1
        call_id = f"c{place}"
        first: Piece = (index, call_id, f"tool{place}", pieces[0])
        queues.append(
            [first, *((index, None if told_by == "index" else call_id, None, piece) for piece in pieces[1:])]
        )
    order = [queue.pop(0) for queue in queues]
    while any(queues):
        order.append(random.choice([queue for queue in queues if queue]).pop(0))
    assert seen(*order) == [
        (f"c{place}", f"tool{place}", arguments) for place, arguments in enumerate(wanted)
    ]


ANY = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 2),
    st.floats(),
    st.sampled_from(["", "a", "b", "0", "{}", '{"a":1}', "{", "}", "\ud83d"]),
    st.lists(st.integers(), max_size=1),
    st.dictionaries(st.just("\ude00"), st.just("\ud83d"), max_size=1),
)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(ANY, ANY, ANY, ANY), max_size=8))
def test_any_deltas_make_calls_with_ids_and_names_of_their_own(pieces: list[Piece]) -> None:
    calls = assembled(*pieces)
    ids = [call.id for call in calls]
    assert len(set(ids)) == len(ids)
    assert all(ids)
    assert all(call.name for call in calls)
    msgspec.json.encode(calls)


def test_b07_new_ids_without_index_are_new_calls() -> None:
    assert seen((None, "a", "f", '{"x":1}'), (None, "b", "g", '{"y"'), (None, None, None, ":2}")) == [
        ("a", "f", {"x": 1}),
        ("b", "g", {"y": 2}),
    ]


def test_b07_an_id_without_index_goes_on_with_its_own_call() -> None:
    assert seen(
        (None, "a", "f", "{"), (None, "b", "g", "{"), (None, "a", None, "}"), (None, "b", None, "}")
    ) == [
        ("a", "f", {}),
        ("b", "g", {}),
    ]


def test_b07_an_id_that_comes_after_the_name() -> None:
    assert seen((None, None, "f", None), (None, "a", None, "{}")) == [("a", "f", {})]
    assert seen((0, None, "f", None), (0, "a", None, "{}")) == [("a", "f", {})]


def test_b07_calls_with_neither_index_nor_id_are_told_apart_by_their_names() -> None:
    assert seen((None, None, "f", {"x": 1}), (None, None, "f", {"x": 2}), (None, None, "g", {})) == [
        ("call_0", "f", {"x": 1}),
        ("call_1", "f", {"x": 2}),
        ("call_2", "g", {}),
    ]


@pytest.mark.parametrize(("first", "second"), [("0", 0), (1, 1), (2.0, "2"), (-1, -1), ("x", "x")])
def test_b07_an_index_of_any_kind(first: Any, second: Any) -> None:
    assert seen((first, "a", "f", "{"), (7, "b", "g", "{}"), (second, None, None, "}")) == [
        ("a", "f", {}),
        ("b", "g", {}),
    ]


def test_b07_an_index_that_comes_only_later() -> None:
    assert seen((None, "a", "f", "{"), (0, None, None, '"x":'), (0, None, None, "1}")) == [
        ("a", "f", {"x": 1})
    ]


def test_b08_one_index_and_other_ids_are_other_calls_even_interleaved() -> None:
    assert seen(
        (0, "c1", "f", "{"), (0, "c2", "g", "{"), (0, "c1", None, '"x":1}'), (0, "c2", None, "}")
    ) == [
        ("c1", "f", {"x": 1}),
        ("c2", "g", {}),
    ]


def test_b08_one_index_and_no_ids_but_names() -> None:
    assert seen((0, None, "f", '{"p":"a"}'), (0, None, "f", '{"p":"b"}'), (0, None, "g", "{}")) == [
        ("call_0", "f", {"p": "a"}),
        ("call_1", "f", {"p": "b"}),
        ("call_2", "g", {}),
    ]


def test_b08_two_calls_under_one_id_get_two() -> None:
    assert seen((0, "c", "f", "{}"), (1, "c", "g", "{}"), (2, "c_1", "h", "{}")) == [
        ("c", "f", {}),
        ("c_1_", "g", {}),
        ("c_1", "h", {}),
    ]


def test_b08_an_index_that_changes_within_a_call() -> None:
    assert seen((0, "c", "f", "{"), (1, "c", None, "}")) == [("c", "f", {})]


def test_b10_empty_and_null_change_nothing() -> None:
    assert seen((0, "c1", "f", "{"), (0, "", "", '"e":'), (0, None, None, '"2"}'), (0, "", None, "")) == [
        ("c1", "f", {"e": "2"})
    ]


def test_b10_what_changes_nothing_is_no_event() -> None:
    assembler = Assembler(ORIGIN)
    assembler.tool_call(0, "c1", "f", "{}")
    assembler.take()
    assembler.tool_call(0, "c1", "f", "")
    assembler.tool_call(0, None, None, None)
    assert assembler.take() == []


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (None, {}),
        ("", {}),
        ({"x": [1, None, "é"]}, {"x": [1, None, "é"]}),
        ({"\ud83d": "\ude00"}, {"\ufffd": "\ufffd"}),
    ],
)
def test_b12_arguments_that_are_no_text(arguments: Any, value: dict[str, Any]) -> None:
    assert seen((0, "c1", "f", arguments)) == [("c1", "f", value)]


@pytest.mark.parametrize("arguments", [3, True, [], [1], '"x"', "{"])
def test_e11_unusable_arguments_are_empty_with_a_reason(arguments: Any) -> None:
    (call,) = assembled((0, "c1", "f", arguments))
    assert call.arguments == {}
    assert call.invalid


def test_b14_an_empty_object_first() -> None:
    assert seen((0, "c1", "w", "{}"), (0, None, None, '{"loc":'), (0, None, None, '"B"}')) == [
        ("c1", "w", {"loc": "B"})
    ]
    assert seen((0, "c1", "w", {}), (0, "c1", "w", {"loc": "B"})) == [("c1", "w", {"loc": "B"})]
    assert seen((0, "c1", "w", "{"), (0, None, None, "}"), (0, None, None, "{}")) == [("c1", "w", {})]
    assert seen((0, None, "w", "{}"), (0, None, "w", '{"loc":"B"}')) == [("call_0", "w", {"loc": "B"})]


def test_arguments_said_once_more_are_not_said_twice() -> None:
    whole = (0, "c1", "w", '{"a":{"b":1}}')
    assert seen((0, "c1", "w", '{"a":'), (0, None, None, '{"b":1}}'), whole) == [("c1", "w", {"a": {"b": 1}})]
    assert seen((0, None, "w", {"a": 1}), (0, None, "w", {"a": 1})) == [("call_0", "w", {"a": 1})]
    assert seen((0, "c1", "w", '{"a":'), (0, None, None, '{"a":'), (0, None, None, "1}}")) == [
        ("c1", "w", {"a": {"a": 1}})
    ]


@pytest.mark.parametrize(
    "names",
    [
        ("read_file",),
        ("read_file", "read_file"),
        ("read_", "file"),
        ("read_", "read_file"),
        ("read_", "", None, "file"),
    ],
)
def test_a_name_repeated_split_or_growing(names: tuple[Any, ...]) -> None:
    for call_id in ("c1", None):
        pieces = [(0, call_id, name, "") for name in names]
        ((_, name, _),) = seen(*pieces, (0, None, None, "{}"))
        assert name == "read_file"


def test_a_name_repeated_with_every_piece_of_arguments() -> None:
    pieces = ['{"code":"if (x) {', "}", "{ y", '}"}']
    for call_id in ("c1", None):
        ((_, name, arguments),) = seen(*((0, call_id, "run", piece) for piece in pieces))
        assert (name, arguments) == ("run", {"code": "if (x) {}{ y}"})


def test_a_call_without_a_name_is_refused() -> None:
    (call,) = assembled((0, "c1", None, '{"a":1}'))
    assert (call.name, call.arguments) == ("unnamed", {})
    assert call.invalid == "the call has no name"


def test_b31_unknown_keys_are_kept() -> None:
    assembler = Assembler(ORIGIN)
    assembler.tool_call(0, "c1", "ls", "{", {"seal": {"google": "\ud83d"}})
    assembler.tool_call(0, None, None, "}", {"more": 1})
    assert assembler.blocks() == (ToolCall("c1", "ls", extra={"seal": {"google": "\ufffd"}, "more": 1}),)


@pytest.mark.timeout(20)  # quadratic joining would need minutes
def test_a13_arguments_in_very_many_pieces() -> None:
    assembler = Assembler(ORIGIN)
    assembler.tool_call(0, "c1", "w", '{"text":"')
    for _ in range(300_000):
        assembler.tool_call(0, "c1", "w", "xxxxxxxx")
    assembler.tool_call(0, "c1", "w", '"}')
    (call,) = assembler.blocks()
    assert isinstance(call, ToolCall)
    assert call.arguments == {"text": "xxxxxxxx" * 300_000}
