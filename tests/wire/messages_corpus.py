"""What providers of the Messages family really send, by the id of its case. Bytes of our own making."""

import json
from collections.abc import Sequence
from typing import Any

from chat_player import DONE, sse
from family_player import Case

START = sse(
    {
        "type": "message_start",
        "message": {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "content": [],
            "stop_reason": None,
            "usage": {"input_tokens": 10, "output_tokens": 1},
        },
    },
    "message_start",
)
STOP = sse({"type": "message_stop"}, "message_stop")
PING = sse({"type": "ping"}, "ping")
USAGE = {"input_tokens": 10, "output_tokens": 5}


def block(index: int | None, **given: Any) -> bytes:
    """The start of a block."""
    place = {} if index is None else {"index": index}
    return sse({"type": "content_block_start", **place, "content_block": given}, "content_block_start")


def piece(index: int | None, kind: str, **fields: Any) -> bytes:
    """A delta."""
    place = {} if index is None else {"index": index}
    return sse(
        {"type": "content_block_delta", **place, "delta": {"type": kind, **fields}}, "content_block_delta"
    )


def text(index: int | None, words: str) -> bytes:
    return piece(index, "text_delta", text=words)


def thought(index: int | None, words: str) -> bytes:
    return piece(index, "thinking_delta", thinking=words)


def arguments(index: int | None, fragment: str) -> bytes:
    return piece(index, "input_json_delta", partial_json=fragment)


def end(index: int | None) -> bytes:
    place = {} if index is None else {"index": index}
    return sse({"type": "content_block_stop", **place}, "content_block_stop")


def finish(reason: str | None, **usage: Any) -> bytes:
    """The event with the stop reason."""
    return sse(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": usage or {"output_tokens": 5},
        },
        "message_delta",
    )


def said(*words: str, index: int = 0) -> tuple[bytes, ...]:
    """A block of text."""
    return (block(index, type="text", text=""), *(text(index, word) for word in words), end(index))


def call(index: int, call_id: str, name: str, *fragments: str) -> tuple[bytes, ...]:
    """A call."""
    start = block(index, type="tool_use", id=call_id, name=name, input={})
    return (start, *(arguments(index, fragment) for fragment in fragments), end(index))


def whole(content: Any, reason: str | None = "end_turn", **fields: Any) -> bytes:
    """A message that was not streamed."""
    message = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": content,
        "stop_reason": reason,
        "usage": USAGE,
    }
    return json.dumps({**message, **fields}).encode()


def unnamed(chunks: Sequence[bytes], name: str = "") -> tuple[bytes, ...]:
    """The same events without their names, or all with another one."""
    data = (chunk.partition(b"\n")[2] for chunk in chunks)
    return tuple(f"event: {name}\n".encode() + one if name else one for one in data)


HELLO = (START, *said("He", "llo"), finish("end_turn"), STOP)

CASES = (
    *(
        Case(
            id=f"a11 the end mark spelled {mark!r}",
            chunks=(START, *said("w"), mark),
            text="w",
            usage={"input_tokens": 10, "output_tokens": 1},
        )
        for mark in (b"data:[DONE]\n\n", b"data: [DONE] \r\n\r\n", b"data: DONE\n\n", b"data: [done]")
    ),
    Case(
        id="a11 the end mark behind the last event",
        chunks=(*HELLO, DONE),
        text="Hello",
        raw="end_turn",
        usage=USAGE,
    ),
    Case(
        id="b25 a pair split over two deltas",
        chunks=(
            START,
            block(0, type="text", text=""),
            text(0, "\ud83d"),
            text(0, "\ude00x"),
            end(0),
            finish("end_turn"),
            STOP,
        ),
        text="😀x",
        raw="end_turn",
        usage=USAGE,
    ),
    Case(
        id="b25 half a pair alone, in text, thought and arguments",
        chunks=(
            START,
            block(0, type="thinking", thinking="\ud83d", signature=""),
            end(0),
            *said("a\ud83d", index=1),
            *call(2, "t", "f", '{"x":"\ud83d', '"}'),
            finish("tool_use"),
            STOP,
        ),
        text="a\ufffd",
        reasoning="\ufffd",
        calls=(("t", "f", {"x": "\ufffd"}),),
        raw="tool_use",
        stop="tool_use",
        usage=USAGE,
    ),
    Case(
        id="c02 the stop reason, but no message_stop",
        chunks=(START, *said("hi"), finish("end_turn")),
        text="hi",
        raw="end_turn",
        usage=USAGE,
    ),
    Case(
        id="c02 message_stop, but no stop reason",
        chunks=(START, *said("hi"), STOP),
        text="hi",
        usage={"input_tokens": 10, "output_tokens": 1},
    ),
    Case(
        id="c04 arguments in fragments",
        chunks=(START, *call(0, "t1", "read_file", '{"pa', 'th":"', 'a"}'), finish("tool_use"), STOP),
        calls=(("t1", "read_file", {"path": "a"}),),
        raw="tool_use",
        stop="tool_use",
        usage=USAGE,
    ),
    Case(
        id="c04 no fragment at all, and an empty one",
        chunks=(
            START,
            *call(0, "t1", "ls"),
            *call(1, "t2", "ls", ""),
            *call(2, "t3", "ls", "", "{}"),
            finish("tool_use"),
            STOP,
        ),
        calls=(("t1", "ls", {}), ("t2", "ls", {}), ("t3", "ls", {})),
        raw="tool_use",
        stop="tool_use",
        usage=USAGE,
    ),
    Case(
        id="c04 the input whole in the start",
        chunks=(
            START,
            block(0, type="tool_use", id="t1", name="f", input={"x": [1]}),
            end(0),
            block(1, type="tool_use", id="t2", name="f", input={"x": 2}),
            arguments(1, '{"x": '),
            arguments(1, "2}"),
            end(1),
            block(2, type="tool_use", id="t3", name="f", input={"x": 3}),
            finish("tool_use"),
            STOP,
        ),
        calls=(("t1", "f", {"x": [1]}), ("t2", "f", {"x": 2}), ("t3", "f", {"x": 3})),
        raw="tool_use",
        stop="tool_use",
        usage=USAGE,
    ),
    Case(
        id="c04 two calls that interleave",
        chunks=(
            START,
            block(1, type="tool_use", id="a", name="f", input={}),
            block(2, type="tool_use", id="b", name="g", input=None),
            arguments(2, '{"y"'),
            arguments(1, '{"x"'),
            arguments(2, ":2}"),
            arguments(1, ":1}"),
            end(2),
            end(1),
            finish("tool_use"),
            STOP,
        ),
        calls=(("a", "f", {"x": 1}), ("b", "g", {"y": 2})),
        raw="tool_use",
        stop="tool_use",
        usage=USAGE,
    ),
    Case(
        id="c06 what is unknown is skipped, and the indices keep their meaning",
        chunks=(
            PING,
            START,
            sse({"type": "future_event", "x": 1}, "future_event"),
            block(0, type="server_tool_use", id="s", name="web_search", input={}),
            end(0),
            block(1, type="text", text=""),
            piece(1, "citations_delta", citation={}),
            PING,
            text(1, "o"),
            block(2, type="hologram", text="no"),
            text(2, "no"),
            piece(2, "hologram_delta", x=1),
            piece(1, "future_delta", text="no"),
            text(1, "k"),
            end(2),
            end(1),
            finish("end_turn"),
            STOP,
        ),
        text="ok",
        raw="end_turn",
        usage=USAGE,
    ),
    *(
        Case(
            id=f"c08 {reason}",
            chunks=(START, *said("cut"), finish(reason), STOP),
            text="cut",
            raw=reason,
            stop=stop,
            usage=USAGE,
        )
        for reason, stop in (
            ("end_turn", "end_turn"),
            ("max_tokens", "max_tokens"),
            ("stop_sequence", "end_turn"),
            ("refusal", "refusal"),
            ("pause_turn", "pause"),
            ("model_context_window_exceeded", "context_overflow"),
            ("tool_use", "end_turn"),
            ("end_of_days", "other"),
        )
    ),
    *(
        Case(
            id=f"c08 {reason} although there is a call",
            chunks=(START, *call(0, "t", "ls", "{}"), finish(reason), STOP),
            calls=(("t", "ls", {}),),
            raw=reason,
            stop=stop,
            usage=USAGE,
        )
        for reason, stop in (
            ("refusal", "refusal"),
            ("max_tokens", "max_tokens"),
            ("model_context_window_exceeded", "context_overflow"),
            ("end_turn", "tool_use"),
            ("odd", "tool_use"),
        )
    ),
    Case(
        id="c15 text and thought in the start of a block",
        chunks=(
            START,
            block(0, type="thinking", thinking="h", signature=""),
            thought(0, "m"),
            end(0),
            block(1, type="text", text="He"),
            text(1, "llo"),
            end(1),
            finish("end_turn"),
            STOP,
        ),
        reasoning="hm",
        text="Hello",
        raw="end_turn",
        usage=USAGE,
    ),
    *(
        Case(
            id=f"the type in the data decides, not the name {name!r}",
            chunks=unnamed(HELLO, name),
            text="Hello",
            raw="end_turn",
            usage=USAGE,
        )
        for name in ("", "message", "data", "ping", "message_stop", "content_block_start")
    ),
    Case(
        id="the name of the event where the data has no type",
        chunks=(
            START,
            b'event: content_block_start\ndata: {"index":0,"content_block":{"type":"text","text":"H"}}\n\n',
            b'event: content_block_delta\ndata: {"index":0,"delta":{"type":"text_delta","text":"i"}}\n\n',
            b'event: message_delta\ndata: {"delta":{"stop_reason":"end_turn"}}\n\n',
            b"event: message_stop\ndata: {}\n\n",
        ),
        text="Hi",
        raw="end_turn",
        usage={"input_tokens": 10, "output_tokens": 1},
    ),
    Case(
        id="a18 events on a line each",
        chunks=tuple(chunk.partition(b"data: ")[2][:-1] for chunk in HELLO),
        text="Hello",
        raw="end_turn",
        usage=USAGE,
    ),
    Case(
        id="no indices",
        chunks=(
            START,
            block(None, type="thinking", thinking=""),
            thought(None, "hm"),
            end(None),
            block(None, type="text", text=""),
            text(None, "Hi"),
            end(None),
            block(None, type="tool_use", id="a", name="f", input={}),
            arguments(None, '{"x":'),
            arguments(None, "1}"),
            end(None),
            block(None, type="tool_use", id="b", name="f", input={}),
            arguments(None, '{"x":2}'),
            end(None),
            finish("tool_use"),
            STOP,
        ),
        reasoning="hm",
        text="Hi",
        calls=(("a", "f", {"x": 1}), ("b", "f", {"x": 2})),
        raw="tool_use",
        stop="tool_use",
        usage=USAGE,
    ),
    Case(
        id="every block has the index 0",
        chunks=(
            START,
            block(0, type="thinking", thinking=""),
            thought(0, "hm"),
            end(0),
            block(0, type="text", text=""),
            text(0, "Hi"),
            end(0),
            *call(0, "a", "f", '{"x":', "1}"),
            *call(0, "b", "f", '{"x":2}'),
            finish("tool_use"),
            STOP,
        ),
        reasoning="hm",
        text="Hi",
        calls=(("a", "f", {"x": 1}), ("b", "f", {"x": 2})),
        raw="tool_use",
        stop="tool_use",
        usage=USAGE,
    ),
    Case(
        id="deltas without a start, starts without a stop, a start said twice",
        chunks=(
            START,
            thought(0, "hm"),
            text(1, "H"),
            text(1, "i"),
            block(2, type="tool_use", id="a", name="f", input={}),
            block(2, type="tool_use", id="a", name="f", input={}),
            arguments(2, '{"x":1}'),
            block(3, type="tool_use", id="b", name="f", input={}),
            arguments(3, "{}"),
            finish("tool_use"),
        ),
        reasoning="hm",
        text="Hi",
        calls=(("a", "f", {"x": 1}), ("b", "f", {})),
        raw="tool_use",
        stop="tool_use",
        usage=USAGE,
    ),
    Case(
        id="starts and deltas that disagree about the index",
        chunks=(
            START,
            block(0, type="tool_use", id="a", name="f", input={}),
            arguments(1, '{"x":'),
            arguments(1, "1}"),
            end(1),
            block(None, type="text", text=""),
            text(2, "Hi"),
            finish("tool_use"),
        ),
        text="Hi",
        calls=(("a", "f", {"x": 1}),),
        raw="tool_use",
        stop="tool_use",
        usage=USAGE,
    ),
    Case(
        id="text blocks that interleave",
        chunks=(
            START,
            block(0, type="text", text=""),
            block(1, type="text", text=""),
            text(1, "He"),
            text(0, "l"),
            text(1, "lo"),
            finish("end_turn"),
        ),
        text="Hello",
        raw="end_turn",
        usage=USAGE,
    ),
    Case(
        id="a block that says nothing of itself",
        chunks=(START, block(0), thought(0, "hm"), end(0), block(1), text(1, "Hi"), finish("end_turn")),
        reasoning="hm",
        text="Hi",
        raw="end_turn",
        usage=USAGE,
    ),
    Case(
        id="a14 a whole message in place of a stream",
        chunks=(
            whole([{"type": "text", "text": "Hello"}])[:50],
            whole([{"type": "text", "text": "Hello"}])[50:],
        ),
        text="Hello",
        raw="end_turn",
        usage=USAGE,
    ),
    Case(
        id="a14 a whole message as one event",
        chunks=(b"data: " + whole([{"type": "text", "text": "Hello"}]) + b"\n\n",),
        text="Hello",
        raw="end_turn",
        usage=USAGE,
    ),
    Case(
        id="a14 a whole message without a stop reason, its content a text, its type missing",
        chunks=(whole("Hello", None, type=None),),
        text="Hello",
        usage=USAGE,
    ),
    Case(
        id="a14 a whole message within message_start",
        chunks=(
            sse({"type": "message_start", "message": json.loads(whole([{"type": "text", "text": "Hello"}]))}),
            STOP,
        ),
        text="Hello",
        usage=USAGE,
    ),
    Case(
        id="the whole message behind its deltas",
        chunks=(START, *said("Hello"), sse(json.loads(whole([{"type": "text", "text": "Hello"}])))),
        text="Hello",
        raw="end_turn",
        usage=USAGE,
    ),
    Case(
        id="usage with holes, told only at the end, and zeros in place of what was told",
        chunks=(
            sse({"type": "message_start", "message": {"usage": None}}),
            *said("a"),
            finish(None, input_tokens=7, cache_read_input_tokens=None, output_tokens="many"),
            finish(
                "end_turn",
                input_tokens=0,
                cache_read_input_tokens=2,
                cache_creation_input_tokens=1,
                output_tokens=3,
                output_tokens_details={"thinking_tokens": 2},
                server_tool_use={"web_search_requests": 0},
            ),
            STOP,
        ),
        text="a",
        raw="end_turn",
        usage={
            "input_tokens": 10,
            "cached_tokens": 2,
            "cache_write_tokens": 1,
            "output_tokens": 3,
            "reasoning_tokens": 2,
        },
    ),
)
