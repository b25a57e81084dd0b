"""What providers of the chat-completions family really send, by the id of its case. Bytes of our own making."""

import json
from typing import Any

import msgspec
from chat_player import DONE, call, calls, delta, sse


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Chunks as the network cuts them, and what becomes of them. calls: id, name, arguments."""

    id: str
    chunks: tuple[bytes, ...]
    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str, Any], ...] = ()
    raw: str | None = None
    stop: str = "end_turn"
    usage: dict[str, int] = {}


STOP = delta(finish="stop")
RUN = delta(finish="tool_calls")


def _raw(text: str, finish: str = "null") -> bytes:
    """A delta whose content is this JSON text, escapes and all."""
    return f'data: {{"choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":{finish}}}]}}\n\n'.encode()


def _usage(read: int, written: int) -> dict[str, int]:
    return {"prompt_tokens": read, "completion_tokens": written}


def _counted(text: str | None, usage: Any, finish: str | None = None) -> bytes:
    piece = {} if text is None else {"content": text}
    return sse({"choices": [{"index": 0, "delta": piece, "finish_reason": finish}], "usage": usage})


FRAMED = (
    Case(
        id="a01 line separators inside a text",
        chunks=(_raw("a\u2028b\u2029c\x85d"), DONE),
        text="a\u2028b\u2029c\x85d",
    ),
    Case(
        id="a04 characters cut between chunks",
        chunks=(
            b'data: {"choices":[{"index":0,"delta":{"content":"\xe6',
            b"\xb0\xb4 \xf0\x9f",
            b'\x8c\x8a"},"finish_reason":null}]}\n\n',
            DONE,
        ),
        text="水 🌊",
    ),
    Case(
        id="a06 comments between, before and after",
        chunks=(
            b": GATEWAY WORKING\n\n: keep-alive\n:\n\n",
            delta("hi")[:-1] + b": {not json\n\n: bye\n\n" + DONE,
        ),
        text="hi",
    ),
    Case(
        id="a07 blocks without data",
        chunks=(
            b"retry: 3000\n\n",
            b"id: 7\n" + delta("a"),
            b": ping\n\n",
            b"event: ping\n\n",
            delta("b"),
            DONE,
        ),
        text="ab",
    ),
    Case(
        id="a09 no line end after the last event",
        chunks=(delta("ok"), delta(finish="stop").rstrip()),
        text="ok",
        raw="stop",
    ),
    Case(
        id="a10 a byte order mark, and a second one that is text",
        chunks=(b"\xef\xbb", b"\xbf" + _raw("x\ufeffy"), DONE),
        text="x\ufeffy",
    ),
    *(
        Case(id=f"a11 the end mark spelled {mark!r}", chunks=(delta("w"), mark), text="w")
        for mark in (
            b"data:[DONE]\n\n",
            b"data: [DONE] \r\n\r\n",
            b"data: [DONE]\r\n",
            b"data: DONE\n\n",
            b'data: "[DONE]"\n\n',
            b"data:\t[DONE]",
            b"data: [done]\n\n",
            b'data: "DONE" \n\n',
        )
    ),
    Case(
        id="a14 one JSON document in place of a stream",
        chunks=(
            b'{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",',
            b'"content":"hello"},"finish_reason":"stop"}]}',
        ),
        text="hello",
        raw="stop",
    ),
    Case(
        id="a15 blank lines before the document",
        chunks=(
            b"\n\n\n",
            b'{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}',
        ),
        text="hi",
        raw="stop",
    ),
    Case(
        id="a18 chunks on a line each",
        chunks=(delta("a")[6:-1], delta("b")[6:-1], STOP[6:-1]),
        text="ab",
        raw="stop",
    ),
)

CHUNKS = (
    Case(
        id="b01 choices empty, null, missing",
        chunks=(
            sse({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}),
            delta("", role="assistant"),
            delta("x"),
            STOP,
            sse({"choices": None}),
            sse({"id": "1"}),
            sse({"choices": [], "usage": _usage(3, 1)}),
            DONE,
        ),
        text="x",
        raw="stop",
        usage={"input_tokens": 3, "output_tokens": 1},
    ),
    Case(
        id="b02 usage in every chunk",
        chunks=(
            _counted("a", _usage(9, 1)),
            _counted("b", _usage(9, 2)),
            _counted(None, _usage(9, 2), "stop"),
            DONE,
        ),
        text="ab",
        raw="stop",
        usage={"input_tokens": 9, "output_tokens": 2},
    ),
    Case(
        id="b03 usage null and with holes",
        chunks=(
            _counted("a", None),
            _counted(
                None,
                {
                    "prompt_tokens": 5,
                    "prompt_tokens_details": None,
                    "completion_tokens_details": 7,
                    "prompt_cache_hit_tokens": True,
                    "completion_tokens": "many",
                },
                "stop",
            ),
            DONE,
        ),
        text="a",
        raw="stop",
        usage={"input_tokens": 5},
    ),
    Case(
        id="b03 the details of usage",
        chunks=(
            _counted(
                "a",
                {
                    "prompt_cache_hit_tokens": 4,
                    "prompt_tokens": 10,
                    "completion_tokens": True,
                    "completion_tokens_details": {"reasoning_tokens": 2},
                },
            ),
            _counted(
                None,
                {
                    "prompt_tokens": None,
                    "prompt_tokens_details": {"cached_tokens": 6},
                    "completion_tokens": 3,
                },
            ),
            STOP,
        ),
        text="a",
        raw="stop",
        usage={"input_tokens": 10, "output_tokens": 3, "cached_tokens": 6, "reasoning_tokens": 2},
    ),
    Case(
        id="b04 delta null or missing, chunk null",
        chunks=(
            b"data: null\n\n",
            delta("a"),
            sse({"choices": [{"index": 0, "finish_reason": None}]}),
            sse({"choices": [{"index": 0, "finish_reason": "stop", "delta": None}]}),
            DONE,
        ),
        text="a",
        raw="stop",
    ),
    Case(
        id="b05 stop although there is a call",
        chunks=(delta("look"), calls(call(0, "c1", "read_file", '{"path":"a"}')), STOP, DONE),
        text="look",
        calls=(("c1", "read_file", {"path": "a"}),),
        raw="stop",
        stop="tool_use",
    ),
    Case(
        id="b05 another word although there is a call",
        chunks=(calls(call(0, "c1", "f", "{}")), delta(finish="unknown"), DONE),
        calls=(("c1", "f", {}),),
        raw="unknown",
        stop="tool_use",
    ),
    Case(
        id="b05 tool_calls without a call",
        chunks=(delta("done"), RUN, DONE),
        text="done",
        raw="tool_calls",
    ),
    Case(
        id="b07 no index",
        chunks=(
            calls(call(None, "a", "f", '{"x":1}')),
            calls(call(None, "b", "g", '{"y"')),
            calls(call(None, arguments=":2}")),
            RUN,
            DONE,
        ),
        calls=(("a", "f", {"x": 1}), ("b", "g", {"y": 2})),
        raw="tool_calls",
        stop="tool_use",
    ),
    Case(
        id="b08 every call has the index 0",
        chunks=(
            calls(call(0, "c1", "read_file", '{"path":"a"}')),
            calls(call(0, "c2", "read_file", '{"path":"b"}')),
            RUN,
            DONE,
        ),
        calls=(("c1", "read_file", {"path": "a"}), ("c2", "read_file", {"path": "b"})),
        raw="tool_calls",
        stop="tool_use",
    ),
    Case(
        id="b10 empty and null ids and names",
        chunks=(
            calls(call(0, "c1", "calc", "{")),
            calls({"index": 0, "id": "", "function": {"name": "", "arguments": '"e":'}}),
            calls({"index": 0, "id": None, "function": {"name": None, "arguments": '"2"}'}}),
            RUN,
            DONE,
        ),
        calls=(("c1", "calc", {"e": "2"}),),
        raw="tool_calls",
        stop="tool_use",
    ),
    Case(
        id="b12 arguments null or missing, function null",
        chunks=(
            calls(
                {"index": 0, "id": "c1", "type": "function", "function": {"name": "ls", "arguments": None}}
            ),
            calls({"index": 0, "function": {}}),
            calls({"index": 0, "function": None}),
            calls(call(0, arguments='{"d":"."}', type="function")),
            RUN,
            DONE,
        ),
        calls=(("c1", "ls", {"d": "."}),),
        raw="tool_calls",
        stop="tool_use",
    ),
    Case(
        id="b14 an empty object before the arguments",
        chunks=(
            calls(call(0, "c1", "w", "{}")),
            calls(call(0, arguments='{"loc":')),
            calls(call(0, arguments='"B"}')),
            RUN,
            DONE,
        ),
        calls=(("c1", "w", {"loc": "B"}),),
        raw="tool_calls",
        stop="tool_use",
    ),
    Case(
        id="b17 arguments encoded twice",
        chunks=(
            calls(call(0, "c1", "edit_file", json.dumps(json.dumps({"path": "a", "old": "x", "new": "y"})))),
            RUN,
            DONE,
        ),
        calls=(("c1", "edit_file", {"path": "a", "old": "x", "new": "y"}),),
        raw="tool_calls",
        stop="tool_use",
    ),
    Case(
        id="b18 raw control characters in arguments",
        chunks=(calls(call(0, "c1", "write_file", '{"path":"p","content":"a\n\tb"}')), RUN, DONE),
        calls=(("c1", "write_file", {"path": "p", "content": "a\n\tb"}),),
        raw="tool_calls",
        stop="tool_use",
    ),
    Case(
        id="b19 reasoning under other names, and under two",
        chunks=(
            delta(reasoning="th"),
            delta(reasoning="ink", reasoning_content="ink"),
            delta("ans"),
            STOP,
            DONE,
        ),
        reasoning="think",
        text="ans",
        raw="stop",
    ),
    Case(
        id="b19 reasoning in parts",
        chunks=(
            delta(
                reasoning_details=[
                    {"type": "reasoning.text", "text": "th"},
                    {"summary": "ink"},
                    {"data": "#"},
                ]
            ),
            delta("ans"),
            STOP,
        ),
        reasoning="think",
        text="ans",
        raw="stop",
    ),
    Case(
        id="b20 think tags cut between deltas",
        chunks=(delta("<thi"), delta("nk>plan</th"), delta("ink>Answer: a < b"), STOP, DONE),
        reasoning="plan",
        text="Answer: a < b",
        raw="stop",
    ),
    Case(
        id="b20 a closing tag alone",
        chunks=(delta("x</th"), delta("ink>y"), STOP, DONE),
        text="xy",
        raw="stop",
    ),
    Case(
        id="b20 a think tag that is never closed",
        chunks=(delta("<think>only</thi"), STOP, DONE),
        reasoning="only</thi",
        raw="stop",
    ),
    Case(
        id="b25 a pair split over two deltas",
        chunks=(_raw("\\ud83d"), _raw("\\ude00x", '"stop"')),
        text="😀x",
        raw="stop",
    ),
    Case(
        id="b25 half a pair alone",
        chunks=(_raw("a\\ud83d"), STOP),
        text="a\ufffd",
        raw="stop",
    ),
    Case(
        id="b26 the whole message after its deltas",
        chunks=(
            delta("He"),
            delta("llo"),
            sse({"choices": [{"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}]}),
            DONE,
        ),
        text="Hello",
        raw="stop",
    ),
    Case(
        id="b30 several choices",
        chunks=(
            sse(
                {
                    "choices": [
                        {"index": 0, "delta": {"content": "a"}},
                        {"index": 1, "delta": {"content": "Z"}},
                    ]
                }
            ),
            sse({"choices": [{"index": 1, "delta": {"content": "Z"}, "finish_reason": "length"}]}),
            delta("b", finish="stop"),
            DONE,
        ),
        text="ab",
        raw="stop",
    ),
    Case(
        id="b33 tool_calls null or empty",
        chunks=(
            delta("a", tool_calls=None),
            delta("b", tool_calls=[]),
            delta("", tool_calls=[None, {}, 3]),
            STOP,
        ),
        text="ab",
        raw="stop",
    ),
    Case(
        id="b33 the old function_call",
        chunks=(
            delta(function_call={"name": "ls", "arguments": ""}),
            delta(function_call={"arguments": '{"d":'}),
            delta(function_call={"arguments": '"."}'}),
            delta(finish="function_call"),
        ),
        calls=(("call_0", "ls", {"d": "."}),),
        raw="function_call",
        stop="tool_use",
    ),
)
