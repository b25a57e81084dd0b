"""JSON as providers send it, and the arguments of tool calls."""

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_agent.wire.loading import DEPTH_LIMIT, dumps, encodable, loads, loads_arguments

TEXTS = st.text(st.characters(codec=None), max_size=10)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
SCRAPS = st.lists(
    st.sampled_from(
        [
            *("{", "}", "[", "]", '"', ":", ",", "\\", "u", "\\ud83d", "\\ude00", "\n", "1", "-", ".", "e9"),
            *("null", "true", "NaN", "Infinity", "a", "é", "\ud800", "\ufeff", " ", "{}", '"a":1', "\0"),
        ]
    ),
    max_size=12,
).map("".join)


@settings(deadline=None)
@given(VALUES)
def test_what_the_standard_library_writes_is_read(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), dumps(value)):
        assert loads(text) == value
    assert loads(json.dumps(value).encode()) == value


@settings(deadline=None, max_examples=300)
@given(st.one_of(SCRAPS, st.text(max_size=30), st.binary(max_size=30)))
def test_anything_is_a_value_or_a_value_error(data: str | bytes) -> None:
    try:
        value = loads(data)
    except ValueError:
        return
    msgspec.json.encode(encodable(value))


@settings(deadline=None, max_examples=300)
@given(st.one_of(SCRAPS, st.text(max_size=30), VALUES.map(json.dumps)))
def test_arguments_are_always_an_object_that_can_be_kept(text: str) -> None:
    arguments, invalid = loads_arguments(text)
    assert isinstance(arguments, dict)
    msgspec.json.encode(arguments)
    assert invalid is None or arguments == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"\\ud83d"', "\ud83d"),
        ('"\ud83d"', "\ud83d"),
        ('"a\n\tb\x00"', "a\n\tb\x00"),
        ("[Infinity, -Infinity, 1e400]", [math.inf, -math.inf, math.inf]),
        ('\ufeff{"a":1}', {"a": 1}),
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b'"\xff"', "\ufffd"),
        ("1" * 30, int("1" * 30)),
    ],
)
def test_b18_b25_what_is_forgiven(text: str | bytes, value: Any) -> None:
    assert loads(text) == value


def test_nan_is_forgiven() -> None:
    assert math.isnan(loads("NaN"))


@pytest.mark.parametrize(
    "text", ["", " ", "{", "{]", "'a'", "01", "[1,]", "1" * 5000, "nul", '{"a":1}{"b":2}']
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"line 1|digits"):
        loads(text)


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}")])
def test_nesting_has_a_limit(begin: str, end: str) -> None:
    def nested(levels: int) -> str:
        return begin * levels + "1" + end * levels

    loads(nested(DEPTH_LIMIT))
    for levels in (DEPTH_LIMIT + 1, 950, 100_000):
        with pytest.raises(ValueError, match="deep"):
            loads(nested(levels))
        arguments, invalid = loads_arguments(nested(levels))
        assert arguments == {}
        assert "deep" in (invalid or "")
    loads(json.dumps("[" * 10_000))
    loads(json.dumps([[]] * 10_000))


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"a":1}', {"a": 1}),
        ("", {}),
        (" \n", {}),
        ("null", {}),
        ("{}", {}),
        ('""', {}),
        (json.dumps('{"a": "b"}'), {"a": "b"}),
        ('{"a":"x\n\ty"}', {"a": "x\n\ty"}),
        ('{"a":"\\ud83d"}', {"a": "\ufffd"}),
        ('{"\\uD83D\\uDE00":["\\udE00"]}', {"😀": ["\ufffd"]}),
        ('{"a":"\ud83d\ude00"}', {"a": "😀"}),
        (json.dumps('{"a":"\\ud83d"}'), {"a": "\ufffd"}),
        ('{"a":"{\\"b\\":1}"}', {"a": '{"b":1}'}),
    ],
)
def test_b12_b17_b18_usable_arguments(text: str, arguments: dict[str, Any]) -> None:
    assert loads_arguments(text) == (arguments, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"path": ', "char 9"),
        ('{"path":"a","content":"abc', "line 1 column 23"),
        ('{"a":1}{"b":2}', "char 7"),
        ('"not json"', "char 0"),
        ('"\\"twice\\""', "a string"),
        ("[1]", "an array"),
        ("[]", "an array"),
        ("1", "a number"),
        ("1.5", "a number"),
        ("NaN", "a number"),
        ("true", "a boolean"),
    ],
)
def test_e11_b23_unusable_arguments_say_why_and_where(text: str, reason: str) -> None:
    arguments, invalid = loads_arguments(text)
    assert arguments == {}
    assert reason in (invalid or "")
