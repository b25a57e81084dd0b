"""What providers of the Responses family really send, by the id of its case. Bytes of our own making."""

import json
from typing import Any

from chat_player import DONE, sse
from family_player import Case


def event(kind: str, **fields: Any) -> bytes:
    """One event; what is None is left out."""
    name = f"response.{kind}"
    return sse({"type": name, **{key: value for key, value in fields.items() if value is not None}}, name)


CREATED = event(
    "created", response={"id": "r", "model": "gpt", "status": "in_progress", "usage": None, "error": None}
)


def at(index: int | None, item_id: str | None) -> dict[str, Any]:
    return {"output_index": index, "item_id": item_id}


def text(piece: str, index: int | None = 0, item_id: str | None = "i", part: int | None = 0) -> bytes:
    return event("output_text.delta", **at(index, item_id), content_index=part, delta=piece)


def text_done(whole: str, index: int | None = 0, item_id: str | None = "i", part: int | None = 0) -> bytes:
    return event("output_text.done", **at(index, item_id), content_index=part, text=whole)


def summary(piece: str, index: int | None = 0, item_id: str | None = "rs", part: int | None = 0) -> bytes:
    return event("reasoning_summary_text.delta", **at(index, item_id), summary_index=part, delta=piece)


def thought(piece: str, index: int | None = 0, item_id: str | None = "rs") -> bytes:
    return event("reasoning_text.delta", **at(index, item_id), content_index=0, delta=piece)


def fragment(piece: str, index: int | None = 0, item_id: str | None = "fc") -> bytes:
    return event("function_call_arguments.delta", **at(index, item_id), delta=piece)


def fragment_done(whole: Any, index: int | None = 0, item_id: str | None = "fc") -> bytes:
    return event("function_call_arguments.done", **at(index, item_id), arguments=whole)


def added(item: dict[str, Any], index: int | None = 0) -> bytes:
    return event("output_item.added", output_index=index, item=item)


def done(item: dict[str, Any], index: int | None = 0) -> bytes:
    return event("output_item.done", output_index=index, item=item)


def message(*texts: str, item_id: str | None = "i") -> dict[str, Any]:
    parts = [{"type": "output_text", "text": one, "annotations": []} for one in texts]
    item = {"type": "message", "id": item_id, "role": "assistant", "status": "completed", "content": parts}
    return {key: value for key, value in item.items() if value is not None}


def call(
    arguments: Any, name: str = "f", call_id: str | None = "c", item_id: str | None = "fc"
) -> dict[str, Any]:
    item = {"type": "function_call", "id": item_id, "call_id": call_id, "name": name, "arguments": arguments}
    return {key: value for key, value in item.items() if value is not None}


def reasoning(
    *summaries: str, content: str | None = None, sealed: str | None = None, item_id: str | None = "rs"
) -> dict[str, Any]:
    item: dict[str, Any] = {"type": "reasoning", "id": item_id}
    item["summary"] = [{"type": "summary_text", "text": one} for one in summaries]
    item["content"] = None if content is None else [{"type": "reasoning_text", "text": content}]
    item["encrypted_content"] = sealed
    return {key: value for key, value in item.items() if value is not None}


USAGE = {"input_tokens": 1, "output_tokens": 2}


def response(*output: dict[str, Any], status: str | None = "completed", **fields: Any) -> dict[str, Any]:
    """A response whole."""
    known = {
        "id": "r",
        "object": "response",
        "model": "gpt",
        "status": status,
        "error": None,
        "output": [*output],
    }
    return {key: value for key, value in {**known, "usage": USAGE, **fields}.items() if value is not None}


def completed(*output: dict[str, Any], **fields: Any) -> bytes:
    return event("completed", response=response(*output, **fields))


def incomplete(reason: str | None, *output: dict[str, Any]) -> bytes:
    details = None if reason is None else {"reason": reason}
    return event("incomplete", response=response(*output, status="incomplete", incomplete_details=details))


def whole(*output: dict[str, Any], **fields: Any) -> bytes:
    """A response that was not streamed."""
    return json.dumps(response(*output, **fields)).encode()


END = completed()
PARTS = (text("He"), text("llo"))
HALF = sse({"type": "response.output_text.delta", "delta": "\ud83d"})
OTHER_HALF = sse({"type": "response.output_text.delta", "delta": "\ude00x"})
TWO = (("a", "f", {"x": 1}), ("b", "g", {"y": 2}))


def hello(id_: str, *chunks: bytes, **expected: Any) -> Case:
    """A case that says Hello."""
    return Case(id=id_, chunks=chunks, **{"text": "Hello", "raw": "completed", "usage": USAGE, **expected})


def calls(id_: str, *chunks: bytes, **expected: Any) -> Case:
    """A case with a call."""
    known = {"calls": (("c", "f", {"x": 1}),), "raw": "completed", "stop": "tool_use", "usage": USAGE}
    return Case(id=id_, chunks=chunks, **{**known, **expected})


CASES = (
    *(
        hello(f"a11 the end mark spelled {mark!r}", CREATED, *PARTS, mark, raw=None, usage={})
        for mark in (b"data:[DONE]\n\n", b"data: [DONE] \r\n\r\n", b"data: DONE\n\n", b"data: [done]")
    ),
    hello("a11 the end mark behind the last event", CREATED, *PARTS, END, DONE),
    hello("a18 events on a line each", *(one.partition(b"data: ")[2][:-1] for one in (CREATED, *PARTS, END))),
    hello("b25 a pair split over two deltas", HALF, OTHER_HALF, END, text="😀x"),
    hello("b25 half a pair alone", HALF, END, text="\ufffd"),
    hello(
        "b25 half a pair, the rest only in the whole text",
        HALF,
        text_done("\ud83d\ude00!", part=None),
        END,
        text="😀!",
    ),
    hello(
        "c09 cut at max_output_tokens",
        CREATED,
        text("par"),
        incomplete("max_output_tokens"),
        text="par",
        raw="max_output_tokens",
        stop="max_tokens",
    ),
    hello(
        "c09 stopped by the content filter",
        text("par"),
        incomplete("content_filter"),
        text="par",
        raw="content_filter",
        stop="content_filter",
    ),
    hello(
        "c09 incomplete without a reason",
        text("par"),
        incomplete(None),
        text="par",
        raw="incomplete",
        stop="max_tokens",
    ),
    hello(
        "c09 incomplete, though its event says completed",
        text("par"),
        completed(status="incomplete"),
        text="par",
        raw="incomplete",
        stop="max_tokens",
    ),
    calls(
        "c09 a call in an incomplete response is not run",
        added(call("")),
        fragment('{"x":1}'),
        incomplete("odd", call('{"x":1}')),
        raw="odd",
        stop="max_tokens",
    ),
    hello(
        "c15 text in output_item.added",
        added(message("He")),
        text("llo"),
        done(message("Hello")),
        completed(message("Hello")),
    ),
    hello(
        "c15 text in content_part.added",
        added(message()),
        event(
            "content_part.added", **at(0, "i"), content_index=0, part={"type": "output_text", "text": "He"}
        ),
        text("llo"),
        event(
            "content_part.done", **at(0, "i"), content_index=0, part={"type": "output_text", "text": "Hello"}
        ),
        END,
    ),
    hello("text in deltas only", *PARTS, END),
    hello("text in its done event only", CREATED, text_done("Hello"), END),
    hello(
        "text in its part only",
        event(
            "content_part.done", **at(0, "i"), content_index=0, part={"type": "output_text", "text": "Hello"}
        ),
        END,
    ),
    hello("text in its item only", done(message("Hello")), END),
    hello("text in the finished response only", CREATED, completed(message("Hello"))),
    hello(
        "text everywhere, said once",
        added(message()),
        *PARTS,
        text_done("Hello"),
        event(
            "content_part.done", **at(0, "i"), content_index=0, part={"type": "output_text", "text": "Hello"}
        ),
        done(message("Hello")),
        completed(message("Hello")),
    ),
    hello(
        "the end of a text in its item only", text("Hel"), done(message("Hello")), completed(message("Hello"))
    ),
    hello(
        "a whole text that differs from what was shown",
        *PARTS,
        done(message("Hallo")),
        completed(message("Hel")),
    ),
    hello(
        "two parts of a text",
        text("He"),
        text("llo", part=1),
        text_done("He"),
        text_done("llo", part=1),
        done(message("He", "llo")),
        END,
    ),
    hello(
        "two items of text",
        text("He"),
        text("llo", 1, "j"),
        done(message("He")),
        done(message("llo", item_id="j"), 1),
        completed(message("He"), message("llo", item_id="j")),
    ),
    hello(
        "two items of text, listed the other way round",
        text("He"),
        text("llo", 1, "j"),
        completed(message("llo", item_id="j"), message("He")),
    ),
    hello(
        "a whole text under another index", *PARTS, text_done("Hello", part=1), done(message("Hello")), END
    ),
    hello(
        "two items of which the response alone knows the second",
        text("He"),
        completed(message("He"), message("llo", item_id="j")),
    ),
    hello(
        "no ids",
        text("He", item_id=None),
        text("llo", item_id=None),
        done(message("Hello", item_id=None)),
        completed(message("Hello", item_id=None)),
    ),
    hello(
        "no indices",
        text("He", None),
        text("llo", None),
        done(message("Hello"), None),
        completed(message("Hello")),
    ),
    hello(
        "neither",
        text("He", None, None, None),
        text("llo", None, None),
        done(message("Hello", item_id=None), None),
        completed(message("Hello")),
    ),
    hello(
        "an id of its own for each event",
        added(message(item_id="a")),
        text("He", item_id="b"),
        text("llo", item_id="c"),
        text_done("Hello", item_id="d"),
        done(message("Hello", item_id="e")),
        completed(message("Hello", item_id="f")),
    ),
    hello(
        "the name of the event where the data has no type",
        b'event: response.output_text.delta\ndata: {"delta":"Hello"}\n\n',
        END,
    ),
    hello(
        "the type in the data decides, not the name",
        *(b"event: ping\n" + one.partition(b"\n")[2] for one in (*PARTS, END)),
    ),
    hello(
        "what is unknown is skipped",
        event("hologram.delta", delta="no"),
        added({"type": "hologram", "text": "no"}, 7),
        event("queued"),
        *PARTS,
        event("output_text.annotation.added", annotation={}),
        done({"type": "hologram"}, 7),
        done({"type": "compaction", "encrypted_content": "E"}, 8),
        completed({"type": "hologram"}, message("Hello")),
    ),
    hello("response.done", *PARTS, event("done", response={"usage": USAGE})),
    hello(
        "a refusal in pieces",
        event("refusal.delta", delta="No"),
        event("refusal.done", refusal="No."),
        END,
        text="No.",
        stop="refusal",
    ),
    hello(
        "a refusal whole",
        completed({"type": "message", "id": "i", "content": [{"type": "refusal", "refusal": "No."}]}),
        text="No.",
        stop="refusal",
    ),
    hello("a14 a whole response", whole(message("Hello"))[:40], whole(message("Hello"))[40:]),
    hello("a14 a whole response without a status", whole(message("Hello"), status=None), raw=None),
    hello(
        "a whole response that is incomplete",
        whole(message("par"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        text="par",
        raw="max_output_tokens",
        stop="max_tokens",
    ),
    hello(
        "usage with details, nulls and holes",
        *PARTS,
        completed(
            usage={
                "input_tokens": 9,
                "input_tokens_details": {"cached_tokens": 4},
                "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 3},
                "total_tokens": 14,
            }
        ),
        usage={"input_tokens": 9, "cached_tokens": 4, "output_tokens": 5, "reasoning_tokens": 3},
    ),
    hello(
        "usage that is no usage",
        *PARTS,
        completed(
            usage={
                "input_tokens": None,
                "input_tokens_details": None,
                "output_tokens": True,
                "output_tokens_details": 7,
            }
        ),
        usage={},
    ),
    calls("arguments in deltas only", added(call("")), fragment('{"x"'), fragment(":1}"), END),
    calls("arguments in their done event only", added(call("")), fragment_done('{"x":1}'), END),
    calls("arguments in their item only", done(call('{"x":1}')), END),
    calls("arguments in the finished response only", CREATED, completed(call('{"x":1}'))),
    calls("arguments in output_item.added only", added(call('{"x":1}')), END),
    calls("arguments as an object", added(call({})), done(call({"x": 1})), completed(call({"x": 1}))),
    calls(
        "arguments everywhere, said once",
        added(call("")),
        fragment('{"x"'),
        fragment(":1}"),
        fragment_done('{"x":1}'),
        done(call('{"x":1}')),
        completed(call('{"x":1}')),
    ),
    calls(
        "arguments written anew",
        added(call("")),
        fragment('{"x":1}'),
        done(call('{"x": 1}')),
        completed(call({"x": 1})),
    ),
    calls(
        "arguments whose first piece was lost", added(call("")), fragment('x":1}'), done(call('{"x":1}')), END
    ),
    calls(
        "an empty object before the arguments", added(call("{}")), fragment("{}"), done(call('{"x":1}')), END
    ),
    calls(
        "an empty object behind the arguments",
        added(call("")),
        fragment('{"x":1}'),
        done(call("{}")),
        completed(call("")),
    ),
    calls("no arguments", added(call("")), done(call("")), END, calls=(("c", "f", {}),)),
    calls(
        "deltas that name the call, not the item",
        added(call("", item_id=None)),
        event("function_call_arguments.delta", call_id="c", delta='{"x":1}'),
        END,
    ),
    calls(
        "a call without an item before it",
        fragment('{"x":1}'),
        done(call('{"x":1}')),
        completed(call('{"x":1}')),
    ),
    calls(
        "a call without an id of its own",
        added(call("", call_id=None)),
        fragment('{"x":1}'),
        done(call('{"x":1}', call_id=None)),
        END,
        calls=(("fc", "f", {"x": 1}),),
    ),
    calls(
        "an item that is said to be added twice", added(call("")), added(call("")), fragment('{"x":1}'), END
    ),
    calls(
        "two calls that interleave",
        added(call("", "f", "a", "fa"), 0),
        added(call("", "g", "b", "fb"), 1),
        fragment('{"y"', 1, "fb"),
        fragment('{"x"', 0, "fa"),
        fragment(":2}", 1, "fb"),
        fragment(":1}", 0, "fa"),
        END,
        calls=TWO,
    ),
    calls(
        "two calls with the index 0",
        added(call("", "f", "a", "fa")),
        fragment('{"x":1}', 0, "fa"),
        done(call('{"x":1}', "f", "a", "fa")),
        added(call("", "g", "b", "fb")),
        fragment('{"y":2}', 0, "fb"),
        done(call('{"y":2}', "g", "b", "fb")),
        completed(call('{"x":1}', "f", "a", "fa"), call('{"y":2}', "g", "b", "fb")),
        calls=TWO,
    ),
    calls(
        "two calls with the index 0, whole",
        done(call('{"x":1}', "f", "a", "fa")),
        done(call('{"y":2}', "g", "b", "fb")),
        END,
        calls=TWO,
    ),
    calls(
        "two calls told apart by their index",
        added(call("", "f", "a", None), 0),
        added(call("", "g", "b", None), 1),
        fragment('{"y":2}', 1, None),
        fragment('{"x":1}', 0, None),
        END,
        calls=TWO,
    ),
    calls(
        "two calls, ids made up anew in the finished response",
        done(call('{"x":1}', "f", "a", "1"), 0),
        done(call('{"y":2}', "g", "b", "2"), 1),
        completed(call('{"x":1}', "f", "p", "3"), call('{"y":2}', "g", "q", "4")),
        calls=TWO,
    ),
    calls(
        "reasoning as a summary, in paragraphs",
        added(reasoning()),
        event(
            "reasoning_summary_part.added",
            **at(0, "rs"),
            summary_index=0,
            part={"type": "summary_text", "text": ""},
        ),
        summary("on"),
        summary("e"),
        event("reasoning_summary_text.done", **at(0, "rs"), summary_index=0, text="one"),
        event(
            "reasoning_summary_part.done",
            **at(0, "rs"),
            summary_index=0,
            part={"type": "summary_text", "text": "one"},
        ),
        summary("two", part=1),
        done(reasoning("one", "two", sealed="E")),
        added(call(""), 1),
        fragment('{"x":1}', 1),
        completed(reasoning("one", "two", sealed="E"), call('{"x":1}')),
        reasoning="one\n\ntwo",
    ),
    hello("reasoning in its item only", done(reasoning("one", "two")), *PARTS, END, reasoning="one\n\ntwo"),
    hello(
        "reasoning in the finished response only",
        completed(reasoning(content="hm"), message("Hello")),
        reasoning="hm",
    ),
    hello(
        "reasoning as text, its item has it as a summary",
        thought("h"),
        thought("m"),
        event("reasoning_text.done", **at(0, "rs"), text="hm"),
        done(reasoning("hm")),
        text("Hello", 1),
        completed(reasoning("hm"), message("Hello")),
        reasoning="hm",
    ),
    hello(
        "reasoning as text and as a summary",
        thought("hmm"),
        summary("h"),
        done(reasoning("h", content="hmm")),
        text("Hello", 1),
        END,
        reasoning="hmm",
    ),
    hello(
        "reasoning with an id of its own for each piece",
        added(reasoning()),
        thought("h", item_id="a"),
        thought("m", item_id="b"),
        text("Hello", 0),
        done(reasoning("hm", item_id="z")),
        completed(reasoning("hm", item_id="y"), message("Hello")),
        reasoning="hm",
    ),
)
