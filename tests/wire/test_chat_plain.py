"""The short way of plain chunks comes to the same end as the tolerant way, whatever the chunks are."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_agent.core.errors import ModelError
from mini_agent.core.profile import Profile
from mini_agent.wire.assembly import Origin
from mini_agent.wire.chat_completions import ChatDecoder
from mini_agent.wire.framing import ServerSentEvent
from mini_agent.wire.profiles import shipped

TEXTS = st.sampled_from(
    ["", "word ", "a < b", "<think>", "</think>", "é", "\ud83d", "\ude00", "\n", "x" * 40]
)
DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": TEXTS | st.none() | st.just([{"type": "text", "text": "part"}]),
        "reasoning_content": TEXTS | st.none() | st.just(7),
        "reasoning": TEXTS | st.none(),
        "reasoning_details": st.sampled_from([[], None, [{"type": "reasoning.text", "text": "t"}]]),
        "role": st.just("assistant"),
        "refusal": st.sampled_from([None, "", "no"]),
        "tool_calls": st.sampled_from(
            [None, [], [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]]
        ),
        "function_call": st.sampled_from([None, {"name": "g"}]),
        "unknown": st.just({"deep": [1]}),
    },
)
CHOICES = st.fixed_dictionaries(
    {"delta": DELTAS | st.none()},
    optional={
        "index": st.sampled_from([0, 1, None, "0"]),
        "finish_reason": st.sampled_from([None, "", "stop", "length", 5]),
        "message": st.none() | st.just({"content": "whole"}),
        "error": st.none() | st.just({"message": "boom"}),
        "logprobs": st.none() | st.just({"content": []}),
        "usage": st.just({"prompt_tokens": 9, "completion_tokens": 1}),
    },
)
CHUNKS = st.fixed_dictionaries(
    {"choices": st.lists(CHOICES, max_size=2) | st.none()},
    optional={
        "id": st.sampled_from(["c1", "c2", 5, None]),
        "model": st.sampled_from(["m", None]),
        "usage": st.none() | st.just({"prompt_tokens": 3, "completion_tokens": 1}),
        "x_groq": st.just({"usage": {"prompt_tokens": 9}}),
        "done": st.booleans(),
        "error": st.none() | st.just("broken"),
        "type": st.sampled_from(["error", "chunk"]),
        "object": st.just("chat.completion.chunk"),
    },
)
PLAIN = st.builds(
    lambda text: {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": {"content": text}}]}, TEXTS
)
THOUGHT = st.builds(
    lambda text: {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": {"reasoning_content": text}}]},
    TEXTS,
)
RAW = st.sampled_from(
    ["[DONE]", "{", "null", '{"choices":[{"delta":{"content":"\x01"}}]}', '{"a":' * 300 + "1" + "}" * 300]
)
EVENTS = st.lists(st.builds(json.dumps, CHUNKS) | st.builds(json.dumps, PLAIN | THOUGHT) | RAW, max_size=12)


def outcome(profile, events, *, plain):
    """Everything that can be seen of a decoder fed with these events."""
    decoder = ChatDecoder(profile, Origin("r", 1, 0.0))
    if not plain:
        decoder._plain = {}
    seen = []
    try:
        for number, data in enumerate(events, 1):
            seen.append(decoder.decode(ServerSentEvent(data=data), number, float(number)))
            seen.append((decoder.ended, decoder.finished, decoder.usage, repr(decoder.failure)))
        seen.append(decoder.close())
    except ModelError as error:
        seen.append((type(error), error.message, error.kind, error.body))
    return seen


@pytest.mark.parametrize(
    "name", ["generic", "deepseek", "groq", "ollama", "openrouter", "mistral", "moonshot"]
)
@settings(max_examples=150)
@given(EVENTS)
def test_both_ways_come_to_the_same_end(name, events):
    profile = shipped()[name]
    assert outcome(profile, events, plain=True) == outcome(profile, events, plain=False)


def test_the_short_way_is_taken():
    """Else the property above would hold for nothing."""
    decoder = ChatDecoder(Profile(), Origin("r", 1, 0.0))
    taken = []
    decode_plain = decoder._decode_plain
    decoder._decode_plain = lambda *args: taken.append(decode_plain(*args)) or taken[-1]
    for number, (field, text) in enumerate([("reasoning", "a")] * 4 + [("content", "b")] * 4, 1):
        chunk = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {field: text}}]}
        decoder.decode(ServerSentEvent(data=json.dumps(chunk)), number, 0.0)
    assert [bool(events) for events in taken] == [False, True, True, False, True, True, True]


def test_a_provider_whose_chunks_are_never_plain_is_not_asked_for_ever():
    decoder = ChatDecoder(Profile(), Origin("r", 1, 0.0))
    choice = {"index": 0, "delta": {"content": "a"}}
    chunk = {"id": "c", "model": "m", "choices": [choice], "usage": {"prompt_tokens": 1}}
    for number in range(1, 200):
        decoder.decode(ServerSentEvent(data=json.dumps(chunk)), number, 0.0)
    assert decoder._misses < 60


@pytest.mark.parametrize(
    "fields",
    [
        {"end_when": {"choices.0.delta.end": True}},
        {"end_when": {"model": "END"}},
        {"usage_paths": ("__init__.x",)},
        {"usage_paths": ("usage.total",)},
        {"reasoning_fields": ("think-ing",)},
        {"reasoning_fields": ("content",)},
    ],
)
def test_a_profile_that_looks_where_the_structs_look_goes_the_long_way(fields):
    assert ChatDecoder(Profile(**fields), Origin("r", 1, 0.0))._plain == {}


def test_a_message_that_repeats_short_pieces_is_not_said_twice():
    def chunk(**choice):
        return json.dumps({"id": "c", "model": "m", "choices": [{"index": 0, **choice}]})

    events = [
        chunk(message={"content": "a"}),
        chunk(delta={"content": "b"}),
        chunk(message={"content": "ab"}, finish_reason="stop"),
    ]
    assert outcome(Profile(), events, plain=True) == outcome(Profile(), events, plain=False)
