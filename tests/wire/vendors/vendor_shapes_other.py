"""What vendors really stream in the Responses and the Messages family; as vendor_shapes.py for chat completions."""

import json
from typing import Any

from vendor_shapes import WHOLE, Shape


def named(*payloads: dict[str, Any]) -> bytes:
    """Events that are called what their type says."""
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in payloads).encode()


def responses(response_id: str, reasoning: dict[str, Any], thought: tuple[dict[str, Any], ...]) -> bytes:
    """The stream of a Responses endpoint. reasoning: its item when done. thought: the events of its text."""
    message = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}],
    }
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read_file"}
    counts = {
        "input_tokens": 40,
        "input_tokens_details": {"cached_tokens": 32},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 9},
        "total_tokens": 60,
    }
    head = {"id": response_id, "object": "response", "model": "m"}
    begun: dict[str, Any] = {**head, "status": "in_progress", "output": [], "usage": None}
    whole = {**call, "arguments": WHOLE, "status": "completed"}
    done = {**head, "status": "completed", "output": [reasoning, message, whole], "usage": counts}
    return named(
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "reasoning", "id": "rs_1", "summary": []},
        },
        *thought,
        {"type": "response.output_item.done", "output_index": 0, "item": reasoning},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {**message, "status": "in_progress", "content": []},
        },
        {
            "type": "response.content_part.added",
            "output_index": 1,
            "content_index": 0,
            "item_id": "msg_1",
            "part": {"type": "output_text", "text": "", "annotations": []},
        },
        *(
            {
                "type": "response.output_text.delta",
                "output_index": 1,
                "content_index": 0,
                "item_id": "msg_1",
                "delta": piece,
            }
            for piece in ("Let me ", "see.")
        ),
        {
            "type": "response.output_text.done",
            "output_index": 1,
            "content_index": 0,
            "item_id": "msg_1",
            "text": "Let me see.",
        },
        {"type": "response.output_item.done", "output_index": 1, "item": message},
        {
            "type": "response.output_item.added",
            "output_index": 2,
            "item": {**call, "arguments": "", "status": "in_progress"},
        },
        *(
            {
                "type": "response.function_call_arguments.delta",
                "output_index": 2,
                "item_id": "fc_1",
                "delta": piece,
            }
            for piece in ('{"path"', ':"a"}')
        ),
        {
            "type": "response.function_call_arguments.done",
            "output_index": 2,
            "item_id": "fc_1",
            "arguments": WHOLE,
        },
        {"type": "response.output_item.done", "output_index": 2, "item": whole},
        {"type": "response.completed", "response": done},
    )


SUMMARY = {"type": "summary_text", "text": "I must look."}

OPENAI = Shape(
    vendor="openai",
    api="responses",
    stream=responses(
        "resp_1",
        {"type": "reasoning", "id": "rs_1", "summary": [SUMMARY], "encrypted_content": "SEAL"},
        (
            {
                "type": "response.reasoning_summary_part.added",
                "output_index": 0,
                "summary_index": 0,
                "item_id": "rs_1",
                "part": {"type": "summary_text", "text": ""},
            },
            {
                "type": "response.reasoning_summary_text.delta",
                "output_index": 0,
                "summary_index": 0,
                "item_id": "rs_1",
                "delta": "I must look.",
            },
            {
                "type": "response.reasoning_summary_text.done",
                "output_index": 0,
                "summary_index": 0,
                "item_id": "rs_1",
                "text": "I must look.",
            },
        ),
    ),
    ids=("call_1",),
    usage={"input_tokens": 40, "output_tokens": 20, "cached_tokens": 32, "reasoning_tokens": 9},
    raw="completed",
    sent={
        "max_output_tokens": 100,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "high", "summary": "auto"},
    },
    off={"reasoning": {"effort": "none"}},
    back={"type": "reasoning", "id": "rs_1", "summary": [SUMMARY], "encrypted_content": "SEAL"},
)

# It thinks behind closed doors and sends the seal only.
XAI = Shape(
    vendor="xai",
    api="responses",
    stream=responses(
        "r-1",
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [],
            "encrypted_content": "SEAL",
            "status": "completed",
        },
        (),
    ),
    ids=("call_1",),
    usage={"input_tokens": 40, "output_tokens": 20, "cached_tokens": 32, "reasoning_tokens": 9},
    raw="completed",
    reasoning="",
    sent={"max_output_tokens": 100, "reasoning": {"effort": "high"}},
    off={"reasoning": {"effort": "low"}},
    back={"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "SEAL"},
)


def messages(seal: str, *, cached: int) -> bytes:
    """The stream of a Messages endpoint. seal: of the thinking, "" for none."""
    counts = {"input_tokens": 8, "cache_read_input_tokens": cached, "output_tokens": 1}
    start = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": counts,
    }
    blocks = (
        ({"type": "thinking", "thinking": "", "signature": ""}, "thinking", ("I must ", "look.")),
        ({"type": "text", "text": ""}, "text", ("Let me ", "see.")),
        (
            {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}},
            "partial_json",
            ("", '{"path"', ':"a"}'),
        ),
    )
    kinds = {"thinking": "thinking_delta", "text": "text_delta", "partial_json": "input_json_delta"}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, (block, field, pieces) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        deltas: list[dict[str, Any]] = [{"type": kinds[field], field: piece} for piece in pieces]
        if field == "thinking" and seal:
            deltas.append({"type": "signature_delta", "signature": seal})
        events += ({"type": "content_block_delta", "index": index, "delta": one} for one in deltas)
        events.append({"type": "content_block_stop", "index": index})
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 20},
    }
    return named(*events, end, {"type": "message_stop"})


ANTHROPIC = Shape(
    vendor="anthropic",
    api="messages",
    stream=messages("SEAL", cached=32),
    ids=("toolu_1",),
    usage={"input_tokens": 40, "output_tokens": 20, "cached_tokens": 32},
    raw="tool_use",
    sent={
        "max_tokens": 100,
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "high"},
    },
    off={"thinking": {"type": "between_tools"}},
    back={"type": "thinking", "thinking": "I must look.", "signature": "SEAL"},
)

DEEPSEEK_MESSAGES = Shape(
    vendor="deepseek",
    api="messages",
    stream=messages("", cached=0),
    ids=("toolu_1",),
    usage={"input_tokens": 8, "output_tokens": 20, "cached_tokens": 0},
    raw="tool_use",
    sent={"max_tokens": 100, "thinking": {"type": "enabled"}, "output_config": {"effort": "high"}},
    off={"thinking": {"type": "disabled"}},
    back={"type": "thinking", "thinking": "I must look.", "signature": ""},
)

DEEPSEEK_RESPONSES = Shape(
    vendor="deepseek",
    api="responses",
    stream=responses(
        "r1",
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "I must look."}],
        },
        (
            {
                "type": "response.reasoning_text.delta",
                "output_index": 0,
                "content_index": 0,
                "item_id": "rs_1",
                "delta": "I must look.",
            },
        ),
    ),
    ids=("call_1",),
    usage={"input_tokens": 40, "output_tokens": 20, "cached_tokens": 32, "reasoning_tokens": 9},
    raw="completed",
    sent={"max_output_tokens": 100, "reasoning": {"effort": "high"}},
    off={"reasoning": {"effort": "none"}},
    back={
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "I must look."}],
    },
)

OTHERS = (OPENAI, XAI, ANTHROPIC, DEEPSEEK_MESSAGES, DEEPSEEK_RESPONSES)
