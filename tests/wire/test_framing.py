"""Event streams by the standard's rules, and what comes in their place."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_agent.core.errors import ProtocolError
from mini_agent.wire import framing
from mini_agent.wire.framing import BodyDecoder, NDJSONDecoder, ServerSentEvent, SSEDecoder

Decoder = SSEDecoder | NDJSONDecoder | BodyDecoder


def drain(decoder: Decoder, chunks: list[bytes]) -> list[ServerSentEvent]:
    """All events of these chunks."""
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events + decoder.close()


def every_way(chunks: list[bytes]) -> list[ServerSentEvent]:
    """The events, which are the same as given, joined and byte by byte."""
    body = b"".join(chunks)
    events = drain(SSEDecoder(), chunks)
    assert drain(SSEDecoder(), [body]) == events
    assert drain(SSEDecoder(), single_bytes(body)) == events
    return events


def single_bytes(body: bytes) -> list[bytes]:
    return [body[place : place + 1] for place in range(len(body))]


def data_of(chunks: list[bytes]) -> list[str]:
    return [event.data for event in every_way(chunks)]


def by_the_standard(body: bytes) -> list[ServerSentEvent]:
    """The rules as the standard writes them, on the whole body; but the last event needs no blank line."""
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    events: list[ServerSentEvent] = []
    data, name, last_id, retry = "", "", None, None
    for line in [*re.split("\r\n|\n|\r", text), ""]:
        if not line:
            if data:
                events.append(ServerSentEvent(name or "message", data.removesuffix("\n"), last_id, retry))
            data, name, retry = "", "", None
            continue
        if line.startswith(":"):
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data += value + "\n"
        elif field == "event":
            name = value
        elif field == "id" and "\0" not in value:
            last_id = value
        elif field == "retry" and re.fullmatch("[0-9]{1,15}", value):
            retry = int(value)
    return events


BITS = st.sampled_from(
    [
        *(b"data", b"data: ", b"event", b"id", b"retry", b":", b" ", b"\r", b"\n", b"\r\n", b"\n\n", b"\0"),
        *(b"12", b"x", b"\xef\xbb\xbf", "é\u2028🌊".encode(), b"\xf0\x9f", b"\xff", b"{", b"<", b"[", b"\t"),
    ]
)
BODIES = st.one_of(st.binary(max_size=60), st.lists(BITS, max_size=30).map(b"".join))


@st.composite
def split_bodies(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A body, and the same cut anywhere."""
    body = draw(BODIES)
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=6)))
    return body, [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]


@settings(deadline=None, max_examples=300)
@given(split_bodies())
def test_any_split_of_any_bytes_gives_the_events_of_the_standard(case: tuple[bytes, list[bytes]]) -> None:
    body, chunks = case
    assert drain(SSEDecoder(), chunks) == by_the_standard(body)


@settings(deadline=None, max_examples=300)
@given(split_bodies())
def test_any_split_of_any_body_gives_the_same_kind_and_events(case: tuple[bytes, list[bytes]]) -> None:
    body, chunks = case
    whole, cut, bytewise = BodyDecoder(), BodyDecoder(), BodyDecoder()
    events = drain(whole, [body])
    assert drain(cut, chunks) == events
    assert drain(bytewise, single_bytes(body)) == events
    assert whole.kind == cut.kind == bytewise.kind
    assert whole.retry_ms == cut.retry_ms
    first = body.lstrip(b" \t\r\n\xef\xbb\xbf")[:1]
    if first not in (b"{", b"[", b"<"):
        assert events == by_the_standard(body)
    elif first != b"<":
        assert "".join(event.data for event in events).split() == (
            body.decode("utf-8", "replace").lstrip("\ufeff \t\r\n\ufffd").split()
        )


def test_a01_only_cr_and_lf_end_a_line() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    assert data_of([f"data: {text}\n\n".encode()]) == [text]


def test_a02_cr_and_lf_in_two_chunks() -> None:
    assert data_of([b"data: x\r", b"\ndata: y\r", b"\n\r", b"\n"]) == ["x\ny"]


def test_a02_an_event_is_out_at_its_cr_and_the_lf_is_no_further_line() -> None:
    decoder = SSEDecoder()
    assert [event.data for event in decoder.feed(b"data: x\r\n\r")] == ["x"]
    assert decoder.feed(b"") == []
    assert decoder.feed(b"\n") == []
    assert [event.data for event in decoder.feed(b"data: y\r\r")] == ["y"]


def test_a05_at_most_one_space_is_taken_off() -> None:
    assert data_of([b'data:{"n":1}\n\n', b"data:  two\n\n", b"data:\tthree\n\n"]) == [
        '{"n":1}',
        " two",
        "\tthree",
    ]


def test_a06_comments_are_no_events() -> None:
    assert data_of([b": WORKING\n\n:\n: {not json\n\n", b"data: a\n: in between\ndata: b\n\n"]) == ["a\nb"]


def test_a07_a_block_without_data_is_no_event_and_an_id_stays() -> None:
    events = every_way(
        [b"retry: 3000\n\n", b"id: 7\ndata: a\n\n: ping\n\nevent: ping\n\ndata: b\n\nid\ndata\n\n"]
    )
    assert [(event.event, event.data, event.id, event.retry) for event in events] == [
        ("message", "a", "7", None),
        ("message", "b", "7", None),
        ("message", "", "", None),
    ]


def test_a09_a_stream_may_end_without_a_line_end() -> None:
    assert data_of([b"data: a\n\ndata: b"]) == ["a", "b"]
    assert data_of([b"data: a\n\ndata: b\n"]) == ["a", "b"]
    assert data_of([b"data: a\n\nevent: x"]) == ["a"]


def test_a10_one_byte_order_mark_is_taken_off() -> None:
    assert data_of([b"\xef\xbb", b"\xbfdata: x\xef\xbb\xbfy\n\n"]) == ["x\ufeffy"]
    assert data_of([b"\xef\xbb\xbf\xef\xbb\xbfdata: x\n\n"]) == []


def test_a04_characters_are_decoded_in_whole_lines_and_broken_ones_replaced() -> None:
    assert data_of([b"data: \xe6", b"\xb0\xb4 \xf0\x9f", b"\x8c\x8a\n\n"]) == ["水 🌊"]
    assert data_of([b"data: \xe6\xb0\ndata: \xffy\n\n"]) == ["\ufffd\n\ufffdy"]


def test_all_fields_of_an_event() -> None:
    body = b"event: one\nid: 1\nretry: 250\ndata: a\nunknown: b\n\ndata: c\nid: 2\0\nretry: 1.5\nretry: \xd9\xa1\n\n"
    decoder = SSEDecoder()
    assert drain(decoder, [body]) == [
        ServerSentEvent("one", "a", "1", 250),
        ServerSentEvent("message", "c", "1", None),
    ]
    assert decoder.retry_ms == 250


@pytest.mark.timeout(20)  # a quadratic buffer would need minutes
def test_a13_an_event_of_many_megabytes_in_small_chunks() -> None:
    text = "x" * 24_000_000
    body = f"data: {text}\n\n".encode()
    decoder = BodyDecoder()
    events = drain(decoder, [body[place : place + 1460] for place in range(0, len(body), 1460)])
    assert [event.data for event in events] == [text]
    lines = BodyDecoder()
    events = drain(lines, [b"data: x\n"] * 200_000)
    assert [len(event.data) for event in events] == [399_999]


@pytest.mark.parametrize(
    "begin", [b"data: x", b"data: x\ndata: y\n", b"junk", b'{"a":', b'{}\n{"a":', b": note"]
)
def test_a13_an_endless_event_is_an_error(begin: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "EVENT_LIMIT", 1000)
    with pytest.raises(ProtocolError) as caught:
        drain(BodyDecoder(), [begin, *[b"0123456789"] * 101])
    assert not caught.value.retryable


def test_a13_an_event_of_endless_lines_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "EVENT_LIMIT", 1000)
    with pytest.raises(ProtocolError):
        drain(BodyDecoder(), [b"data: 0123456789\n"] * 60)


def test_many_small_events_are_not_taken_for_an_endless_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "EVENT_LIMIT", 1000)
    for chunk in (b"data: x\n\n", b": keep-alive\n", b"\n"):
        decoder = BodyDecoder()
        for _ in range(1000):
            decoder.feed(chunk)
    lines = BodyDecoder()
    for _ in range(1000):
        lines.feed(b'{"a":1}\n')
    assert lines.kind == "ndjson"


@pytest.mark.parametrize(
    ("body", "kind", "data"),
    [
        (b"", "unknown", []),
        (b"\n \r\n", "unknown", []),
        (b"data: x\n\n", "sse", ["x"]),
        (b"\n\ndata: x\n\n", "sse", ["x"]),
        (b": keep-alive\n\n", "sse", []),
        (b"retry: 10\n\n", "sse", []),
        (b"data", "sse", [""]),
        (b"dat", "other", []),
        (b"unknown: 1\ndata: x\n\n", "sse", ["x"]),
        (b"not found", "other", []),
        (b"upstream: connect error\n", "other", []),
        (b"\x00\x01\xff", "other", []),
        (b"<!DOCTYPE html>\ndata: x\n\n", "other", []),
        (b" \n<html>", "other", []),
        (b'{"a": 1}', "json", ['{"a": 1}']),
        (b'\xef\xbb\xbf \n{"a": 1}\n\n', "json", ['{"a": 1}']),
        (b'{\n  "a": 1\n}\n', "json", ['{\n  "a": 1\n}']),
        (b'[\n{"a": 1}\n]', "json", ['[\n{"a": 1}\n]']),
        (b'{\n"a": 1}\n{"b": 2}', "json", ['{\n"a": 1}\n{"b": 2}']),
        (b'{"a": 1} trailing', "json", ['{"a": 1} trailing']),
        (b'{"a": 1}\n{"b": 2}\n', "ndjson", ['{"a": 1}', '{"b": 2}']),
        (b'\n{"a": 1}\r\n\r\n{"b": 2}', "ndjson", ['{"a": 1}', '{"b": 2}']),
        (b'{"a": 1}\nnot json', "ndjson", ['{"a": 1}', "not json"]),
    ],
)
def test_a14_a15_a18_kinds_of_bodies(body: bytes, kind: str, data: list[str]) -> None:
    for chunks in ([body], single_bytes(body)):
        decoder = BodyDecoder()
        assert [event.data for event in drain(decoder, chunks)] == data
        assert decoder.kind == kind
        if kind in ("json", "other"):
            assert decoder.head == body.lstrip(b"\xef\xbb\xbf \r\n")


def test_a14_only_the_beginning_of_a_page_is_kept() -> None:
    decoder = BodyDecoder()
    drain(decoder, [b"<html>" + b"x" * 50_000] * 3)
    assert len(decoder.head) == framing.HEAD_LIMIT
    assert decoder.head.startswith(b"<html>x")


def test_a18_a_line_is_out_as_soon_as_it_is_known_to_be_one_of_several() -> None:
    decoder = BodyDecoder()
    assert decoder.feed(b'{"a": 1}\n') == []
    assert decoder.kind == "unknown"
    assert [event.data for event in decoder.feed(b'{"b": 2}\n{"c"')] == ['{"a": 1}', '{"b": 2}']
    assert [event.data for event in decoder.feed(b": 3}\n")] == ['{"c": 3}']
    assert decoder.close() == []
