"""One answer shaped as DeepSeek sends it, as bytes: streamed in `CHUNKS`, and the same answer whole in `UNSTREAMED`.

Shapes: https://api-docs.deepseek.com/api/create-chat-completion (keep-alive comments: its rate-limit page).
"""

import json
from typing import Any

from mini_agent.lab.replies import Reply, event_stream

REASONING = "The user wants the file."
TEXT = "Let me look."
CALL_ID = "call_0_7f3a"
ARGUMENTS = '{"path":"a.go"}'
USAGE = {
    "prompt_tokens": 30,
    "completion_tokens": 25,
    "total_tokens": 55,
    "prompt_tokens_details": {"cached_tokens": 10},
    "completion_tokens_details": {"reasoning_tokens": 6},
    "prompt_cache_hit_tokens": 10,
    "prompt_cache_miss_tokens": 20,
}
_ENVELOPE = {"id": "930c60df", "created": 1718345013, "model": "deepseek-reasoner"}


def _chunk(delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    body = {**_ENVELOPE, "object": "chat.completion.chunk", "choices": [choice], **more}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def _call(**fields: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, **fields}]}


CHUNKS: tuple[bytes, ...] = (
    _chunk({"role": "assistant", "content": None, "reasoning_content": REASONING}),
    _chunk({"content": TEXT[:6], "reasoning_content": None}),
    _chunk({"content": TEXT[6:], "reasoning_content": None}),
    b": keep-alive\n\n",
    _chunk(_call(id=CALL_ID, type="function", function={"name": "read_file", "arguments": ""})),
    _chunk(_call(function={"arguments": ARGUMENTS[:9]})),
    _chunk(_call(function={"arguments": ARGUMENTS[9:]})),
    _chunk({"content": "", "reasoning_content": None}, "tool_calls", usage=USAGE),
    b"data: [DONE]\n\n",
)

UNSTREAMED: bytes = json.dumps(
    {
        **_ENVELOPE,
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": TEXT,
                    "reasoning_content": REASONING,
                    "tool_calls": [
                        {
                            "index": 0,
                            "id": CALL_ID,
                            "type": "function",
                            "function": {"name": "read_file", "arguments": ARGUMENTS},
                        }
                    ],
                },
                "logprobs": None,
                "finish_reason": "tool_calls",
            }
        ],
        "usage": USAGE,
    }
).encode()


def streamed() -> Reply:
    return event_stream(*CHUNKS)


def unstreamed() -> Reply:
    return Reply(200, {"content-type": "application/json"}, (UNSTREAMED,), "length")
