"""What each vendor really streams, in its own shape and our own words, and what its next request must look like.

Chat completions; the other two families are in vendor_shapes_other.py.

One conversation for all: the model thinks, says a little, and calls a tool.
"""

import json
from typing import Any

import msgspec

from mini_agent.core.profile import Api


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """One vendor in one family.

    stream: what comes. ids, usage, raw: what is read from it (the rest is the same for all). sent: the body of the next
    request with effort `high` and a cap of 100 tokens, without the conversation and its tools. off: fields of the same
    with effort `off`. back: what its assistant message carries beside role, content and calls; in the other families the
    item or block of reasoning. call: what a call carries there beside id, type and function.
    """

    vendor: str
    api: Api = "chat"
    stream: bytes
    ids: tuple[str, ...]
    usage: dict[str, int]
    raw: str = "tool_calls"
    reasoning: str = "I must look."
    text: str = "Let me see."
    sent: dict[str, Any]
    off: dict[str, Any]
    back: dict[str, Any] = {}
    call: dict[str, Any] = {}


def sse(*payloads: Any, done: bytes = b"data: [DONE]\n\n") -> bytes:
    """Events without a name; text is put in as it is."""
    events = (one if isinstance(one, str) else f"data: {json.dumps(one)}\n\n" for one in payloads)
    return "".join(events).encode() + done


def delta(finish: str | None = None, *, beside: dict[str, Any] | None = None, **piece: Any) -> dict[str, Any]:
    """A chunk with one choice. beside: what stands next to the choices."""
    choice = {"index": 0, "delta": piece, "finish_reason": finish}
    return {
        "id": "r1",
        "object": "chat.completion.chunk",
        "model": "m",
        "choices": [choice],
        **(beside or {}),
    }


def calls(
    call_id: Any, arguments: str, *, name: Any = "read_file", index: Any = 0, **extra: Any
) -> list[Any]:
    """The `tool_calls` of a delta."""
    function = {"name": name, "arguments": arguments}
    return [{"index": index, "id": call_id, "type": "function", "function": function, **extra}]


def usage(read: int, written: int, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written, **more}


ASKED = {"stream_options": {"include_usage": True}}
WHOLE = '{"path":"a"}'


def counted(**counts: Any) -> dict[str, Any]:
    """A last chunk that has usage and no choices."""
    return {"id": "r1", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": counts}


DEEPSEEK = Shape(
    vendor="deepseek",
    stream=sse(
        ": keep-alive\n\n",
        delta(role="assistant", content=None, reasoning_content=""),
        delta(content=None, reasoning_content="I must "),
        ": keep-alive\n\n",
        delta(content=None, reasoning_content="look."),
        delta(content="Let me see.", reasoning_content=None),
        delta(tool_calls=calls("call_00_Zx9", "")),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '{"path":'}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '"a"}'}}]),
        delta(
            "tool_calls",
            content="",
            reasoning_content=None,
            beside={
                "usage": usage(
                    40,
                    20,
                    prompt_tokens_details={"cached_tokens": 32},
                    completion_tokens_details={"reasoning_tokens": 9},
                    prompt_cache_hit_tokens=32,
                    prompt_cache_miss_tokens=8,
                )
            },
        ),
    ),
    ids=("call_00_Zx9",),
    usage={"input_tokens": 40, "output_tokens": 20, "cached_tokens": 32, "reasoning_tokens": 9},
    sent={**ASKED, "max_tokens": 100, "thinking": {"type": "enabled"}, "reasoning_effort": "high"},
    off={"thinking": {"type": "disabled"}},
    back={"reasoning_content": "I must look."},
)

# Its output is counted without the reasoning.
XAI_CHAT = Shape(
    vendor="xai",
    stream=sse(
        delta(role="assistant", reasoning_content="I must look."),
        delta(content="Let me see.", role="assistant"),
        delta(tool_calls=calls("call_91827364", WHOLE)),
        delta("tool_calls"),
        {
            **counted(
                prompt_tokens=40,
                completion_tokens=12,
                total_tokens=61,
                prompt_tokens_details={"text_tokens": 40, "cached_tokens": 4},
                completion_tokens_details={"reasoning_tokens": 9},
                num_sources_used=0,
            ),
            "system_fingerprint": "fp_1",
        },
    ),
    ids=("call_91827364",),
    usage={"input_tokens": 40, "output_tokens": 21, "cached_tokens": 4, "reasoning_tokens": 9},
    sent={**ASKED, "max_tokens": 100, "reasoning_effort": "high"},
    off={"reasoning_effort": "low"},
)

OPENROUTER = Shape(
    vendor="openrouter",
    stream=sse(
        ": OPENROUTER PROCESSING\n\n",
        delta(
            role="assistant",
            content="",
            reasoning="I must ",
            reasoning_details=[{"type": "reasoning.text", "text": "I must ", "index": 0, "format": "f-1"}],
            beside={"provider": "P"},
        ),
        delta(
            content="",
            reasoning="look.",
            reasoning_details=[{"type": "reasoning.text", "text": "look.", "index": 0, "format": "f-1"}],
        ),
        delta(
            content="",
            reasoning=None,
            reasoning_details=[
                {"type": "reasoning.text", "signature": "SEAL", "index": 0, "format": "f-1"},
                {"type": "reasoning.encrypted", "data": "E1", "index": 1},
                {"type": "reasoning.encrypted", "data": "E2", "index": 1},
            ],
        ),
        delta(content="Let me see."),
        delta(tool_calls=calls("tool_0_read_file", WHOLE)),
        {
            **delta("tool_calls", content=""),
            "usage": usage(
                40,
                20,
                cost=0.01,
                prompt_tokens_details={"cached_tokens": 4, "cache_write_tokens": 30},
                completion_tokens_details={"reasoning_tokens": 9},
            ),
        },
    ),
    ids=("tool_0_read_file",),
    usage={
        "input_tokens": 40,
        "output_tokens": 20,
        "cached_tokens": 4,
        "cache_write_tokens": 30,
        "reasoning_tokens": 9,
    },
    sent={**ASKED, "max_tokens": 100, "reasoning": {"effort": "high"}},
    off={"reasoning": {"effort": "none"}},
    back={
        "reasoning_details": [
            {
                "type": "reasoning.text",
                "text": "I must look.",
                "signature": "SEAL",
                "index": 0,
                "format": "f-1",
            },
            {"type": "reasoning.encrypted", "data": "E1", "index": 1},
            {"type": "reasoning.encrypted", "data": "E2", "index": 1},
        ]
    },
)

_MOONSHOT_END = delta("tool_calls")
_MOONSHOT_END["choices"][0]["usage"] = usage(40, 20, cached_tokens=32)

MOONSHOT = Shape(
    vendor="moonshot",
    stream=sse(
        delta(role="assistant", content=""),
        delta(reasoning_content="I must "),
        delta(reasoning_content="look."),
        delta(content="Let me see."),
        delta(tool_calls=calls("read_file:0", "")),
        delta(tool_calls=[{"index": 0, "function": {"arguments": WHOLE}}]),
        _MOONSHOT_END,
    ),
    ids=("read_file:0",),
    usage={"input_tokens": 40, "output_tokens": 20, "cached_tokens": 32},
    sent={**ASKED, "max_completion_tokens": 100, "reasoning_effort": "high"},
    off={"thinking": {"type": "disabled"}},
    back={"reasoning_content": "I must look."},
)

QWEN = Shape(
    vendor="qwen",
    stream=sse(
        delta(role="assistant", content=None, reasoning_content=""),
        delta(content=None, reasoning_content="I must look."),
        delta(content="Let me see.", reasoning_content=None),
        delta(content=None, tool_calls=calls("call_5fd2", '{"path"')),
        delta(content=None, tool_calls=calls("", ':"a"}', name=None)),
        delta(content=None, tool_calls=calls("", None, name="")),  # type: ignore[arg-type]  # it does
        delta("tool_calls", content="", reasoning_content=None),
        counted(
            **usage(40, 20, completion_tokens_details={"reasoning_tokens": 9}), prompt_tokens_details=None
        ),
    ),
    ids=("call_5fd2",),
    usage={"input_tokens": 40, "output_tokens": 20, "reasoning_tokens": 9},
    sent={**ASKED, "max_tokens": 100, "enable_thinking": True},
    off={"enable_thinking": False},
)

ZHIPU = Shape(
    vendor="zhipu",
    stream=sse(
        delta(role="assistant", reasoning_content="I must "),
        delta(role="assistant", reasoning_content="look."),
        delta(role="assistant", content="Let me see."),
        delta(role="assistant", tool_calls=calls("call_-80", '{"path":')),
        delta(role="assistant", tool_calls=calls("call_-80", '"a"}', name="")),
        delta(
            "tool_calls",
            role="assistant",
            content="",
            beside={"usage": usage(40, 20, prompt_tokens_details={"cached_tokens": 4})},
        ),
    ),
    ids=("call_-80",),
    usage={"input_tokens": 40, "output_tokens": 20, "cached_tokens": 4},
    sent={
        **ASKED,
        "max_tokens": 100,
        "tool_stream": True,
        "thinking": {"type": "enabled", "clear_thinking": False},
    },
    off={"thinking": {"type": "disabled"}},
    back={"reasoning_content": "I must look."},
)

MISTRAL = Shape(
    vendor="mistral",
    stream=sse(
        delta(role="assistant", content=""),
        delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "I must "}]}]),
        delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "look."}]}]),
        delta(content=[{"type": "text", "text": "Let me "}]),
        delta(content="see."),
        delta(
            "tool_calls",
            content="",
            tool_calls=[
                {"id": "D681PevKs", "function": {"name": "read_file", "arguments": WHOLE}, "index": 0}
            ],
            beside={"usage": usage(40, 20)},
        ),
    ),
    ids=("D681PevKs",),
    usage={"input_tokens": 40, "output_tokens": 20},
    sent={"max_tokens": 100, "reasoning_effort": "high"},
    off={"reasoning_effort": "none"},
)

# Both calls have index 0; usage grows from chunk to chunk and has no completion_tokens at first.
GEMINI = Shape(
    vendor="gemini",
    stream=sse(
        delta(role="assistant", content="Let me see.", beside={"usage": {"prompt_tokens": 40}}),
        delta(
            role="assistant",
            tool_calls=calls(
                "function-call-1", WHOLE, extra_content={"google": {"thought_signature": "SEAL"}}
            ),
            beside={"usage": usage(40, 11)},
        ),
        delta(
            "stop",
            role="assistant",
            tool_calls=calls("function-call-2", WHOLE),
            beside={"usage": usage(40, 20)},
        ),
    ),
    ids=("function-call-1", "function-call-2"),
    usage={"input_tokens": 40, "output_tokens": 20},
    raw="stop",
    reasoning="",
    sent={**ASKED, "max_tokens": 100, "reasoning_effort": "high"},
    off={"reasoning_effort": "minimal"},
    call={"extra_content": {"google": {"thought_signature": "SEAL"}}},
)

GROQ = Shape(
    vendor="groq",
    stream=sse(
        delta(role="assistant", content="", beside={"x_groq": {"id": "req_1"}}),
        delta(reasoning="I must look.", channel="analysis"),
        delta(content="Let me see."),
        delta(tool_calls=calls("fc_6a1b", WHOLE)),
        delta(
            "tool_calls",
            beside={"x_groq": {"id": "req_1", "usage": usage(40, 20, queue_time=0.01, total_time=0.1)}},
        ),
    ),
    ids=("fc_6a1b",),
    usage={"input_tokens": 40, "output_tokens": 20},
    sent={**ASKED, "max_completion_tokens": 100, "reasoning_effort": "high"},
    off={"reasoning_effort": "low"},
)

OLLAMA = Shape(
    vendor="ollama",
    stream=sse(
        delta(role="assistant", content="", reasoning="I must "),
        delta(role="assistant", content="", reasoning="look."),
        delta(role="assistant", content="Let me see."),
        delta(role="assistant", content="", tool_calls=calls("call_a1", WHOLE)),
        delta(role="assistant", content="", tool_calls=calls("call_b2", WHOLE)),
        delta("tool_calls", role="assistant", content=""),
        counted(**usage(40, 20)),
    ),
    ids=("call_a1", "call_b2"),
    usage={"input_tokens": 40, "output_tokens": 20},
    sent={**ASKED, "max_tokens": 100, "reasoning_effort": "high"},
    off={"reasoning_effort": "none"},
    back={"reasoning": "I must look."},
)

LLAMA_CPP = Shape(
    vendor="llama.cpp",
    stream=sse(
        delta(role="assistant", content=None),
        delta(reasoning_content="I must look."),
        delta(content="Let me see."),
        delta(tool_calls=calls("zQ7x", "{")),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '"path":"a"}'}}]),
        delta("tool_calls"),
        {
            **counted(**usage(40, 20, prompt_tokens_details={"cached_tokens": 30})),
            "timings": {"prompt_n": 10, "predicted_n": 20, "cache_n": 30},
        },
    ),
    ids=("zQ7x",),
    usage={"input_tokens": 40, "output_tokens": 20, "cached_tokens": 30},
    sent={
        **ASKED,
        "max_tokens": 100,
        "chat_template_kwargs": {"enable_thinking": True, "reasoning_effort": "high"},
    },
    off={"chat_template_kwargs": {"enable_thinking": False}},
    back={"reasoning_content": "I must look."},
)

VLLM = Shape(
    vendor="vllm",
    stream=sse(
        delta(role="assistant", content="", reasoning=None),
        delta(reasoning="I must look."),
        delta(content="Let me see."),
        delta(tool_calls=calls("chatcmpl-tool-8f", "")),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '{"path": "a"'}}]),
        delta("tool_calls", tool_calls=[{"index": 0, "function": {"arguments": "}"}}], content=""),
        counted(**usage(40, 20), prompt_tokens_details=None),
    ),
    ids=("chatcmpl-tool-8f",),
    usage={"input_tokens": 40, "output_tokens": 20},
    sent={
        **ASKED,
        "max_tokens": 100,
        "reasoning_effort": "high",
        "chat_template_kwargs": {"enable_thinking": True, "thinking": True},
    },
    off={"chat_template_kwargs": {"enable_thinking": False, "thinking": False}},
    back={"reasoning": "I must look."},
)

LM_STUDIO = Shape(
    vendor="lm-studio",
    stream=sse(
        delta(role="assistant", reasoning_content="I must "),
        delta(reasoning_content="look."),
        delta(role="assistant", content="Let me see."),
        delta(tool_calls=calls("365174485", "")),
        delta(tool_calls=[{"index": 0, "type": "function", "function": {"arguments": WHOLE}}]),
        delta("tool_calls"),
        counted(**usage(40, 20)),
    ),
    ids=("365174485",),
    usage={"input_tokens": 40, "output_tokens": 20},
    sent={**ASKED, "max_tokens": 100},
    off={},
)

# A gateway that nobody knows: ids that are missing, tags in place of a field, no end mark.
GENERIC = Shape(
    vendor="generic",
    stream=sse(
        delta(content="<think>I must look.</think>Let me see."),
        delta("tool_calls", tool_calls=[{"function": {"name": "read_file", "arguments": {"path": "a"}}}]),
        done=b"",
    ),
    ids=("call_0",),
    usage={},
    sent={**ASKED, "max_tokens": 100, "reasoning_effort": "high"},
    off={"reasoning_effort": "none"},
)

CHAT = (
    DEEPSEEK,
    XAI_CHAT,
    OPENROUTER,
    MOONSHOT,
    QWEN,
    ZHIPU,
    MISTRAL,
    GEMINI,
    GROQ,
    OLLAMA,
    LLAMA_CPP,
    VLLM,
    LM_STUDIO,
    GENERIC,
)
