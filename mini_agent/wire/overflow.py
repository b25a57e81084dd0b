"""Whether an error says that the request is too long, by its words. Pure.

Codes and types come first and are looked up elsewhere; this is for providers that give nothing but a text (product R6, R9).
What looks alike is throttling: it counts tokens as well, and there waiting helps and shortening the conversation does harm.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

LARGE_BYTES = 32_000
"""From this size on a request can be meant by words that are also said of other things.

The smallest window that providers still serve is 8,192 tokens, and a token of code or prose is about four bytes: what is
smaller than this has hardly overflown anything.
"""


class Row(NamedTuple):
    """A wording, and where it was seen. unless: what else it is said of. weak: only of a large request."""

    fragment: str
    seen: str
    unless: re.Pattern[str] | None = None
    weak: bool = False


_OTHER_LIMITS = re.compile(r"max_\w*tokens|max tokens|\b(?:image|file|tool|stop|header|tag)s?\b")

ROWS = (
    Row("context_length_exceeded", "OpenAI and Groq, as a code; gateways that wrap it"),
    Row("context length exceeded", "gateways"),
    Row("maximum context length", "OpenAI, DeepSeek, OpenRouter, vLLM, SGLang, LiteLLM"),
    Row("maximum model length", "vLLM: longer than the maximum model length of N"),
    Row("context length is only", "vLLM: the model's context length is only N tokens"),
    Row("exceeds the context window", "OpenAI Responses"),
    Row("exceeds model context window", "Anthropic: request size exceeds model context window"),
    Row("prompt is too long", "Anthropic"),
    Row("request_too_large", "Anthropic, wrapped by a gateway; as a type it is about bytes"),
    Row("exceed context limit", "Anthropic: input length and max_tokens exceed context limit"),
    Row("model_context_window_exceeded", "Anthropic, Z.ai: a finish reason"),
    Row("input is too long for requested model", "Bedrock"),
    Row("input token count", "Gemini: exceeds the maximum number of tokens allowed"),
    Row("maximum prompt length is", "xAI"),
    Row("reduce the length of the messages", "Groq, OpenAI"),
    Row("reduce the length of the input", "vLLM"),
    Row("maximum allowed input length", "OpenRouter, Poolside"),
    Row("longer than the model's context length", "Together, SGLang"),
    Row(
        "exceeds the limit of",
        "GitHub Copilot: prompt token count of N exceeds the limit of M",
        _OTHER_LIMITS,
    ),
    Row("exceeds the available context size", "llama.cpp"),
    Row("exceed_context_size_error", "llama.cpp, as a type"),
    Row("context size has been exceeded", "llama.cpp, LM Studio (MLX)"),
    Row("greater than the context length", "LM Studio: tokens to keep from the initial prompt"),
    Row("when context the overflows", "LM Studio: trying to keep the first N tokens"),
    Row("configured context size is", "other engines: prompt has N tokens, but"),
    Row("context window exceeds limit", "MiniMax"),
    Row("exceeded model token limit", "Kimi, Moonshot"),
    Row("too large for model with", "Mistral: N maximum context length"),
    Row("prompt too long; exceeded", "Ollama: max context length by N tokens"),
    Row("range of input length should be", "Alibaba Cloud"),
    Row("prompt exceeds max length", "Zhipu, code 1261"),
    Row("exceeds max_seq_len", "other engines"),
    Row("contextwindowexceedederror", "LiteLLM, the name of its exception"),
    Row("string_too_long", "OpenAI: a content string longer than its limit"),
    Row("string_above_max_length", "OpenAI, as a code"),
    Row("(no body)", "Cerebras, through a gateway: 400 status code (no body)", weak=True),
    Row("too many tokens", "many, also of throttling", weak=True),
    Row("token limit exceeded", "many", weak=True),
)
"""In the words of the providers, in lower case."""

_THROTTLED = re.compile(
    r"rate[ _-]?limit|too many requests|throttl|service unavailable|please wait|tokens per min|(?<![a-z])tpm(?![a-z])|quota"
)
"""Throttling and billing, whatever else is said."""

_COUNT = r"(\d[\d,]*)"
_LIMIT = re.compile(rf"\blimit(?: is| of)?:? {_COUNT}\b")
_REQUESTED = re.compile(rf"\brequested:? {_COUNT}\b(?! output)")

_LIMITS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"maximum (?:context|prompt|model|allowed input) length (?:is |of )?\(?{_COUNT}",
        rf"context (?:length|size|window|limit)(?: is| of)*(?: only)? \(?{_COUNT}",
        rf"number of tokens allowed \(?{_COUNT}",
        rf"exceeds the limit of {_COUNT}",
        rf"token limit: {_COUNT}",
        rf"with {_COUNT} maximum context length",
        rf"input length should be \[\d+, {_COUNT}\]",
        rf"\bn_ctx\W{{1,3}}{_COUNT}",
        rf"> {_COUNT}\b",
        _LIMIT.pattern,
    )
)
_ASKED = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\btotal of (?:at least )?{_COUNT} tokens",
        rf"\brequested:? (?:about )?{_COUNT}\b(?! output)",
        rf"resulted in {_COUNT} tokens",
        rf"too long: {_COUNT} (?:tokens )?>",
        rf"token count (?:of )?\(?{_COUNT}",
        rf"(?:request|prompt) (?:contains|has) (?:at least )?{_COUNT}",
        rf"(?:request|input|prompt) \({_COUNT} tokens\)",
        rf"passed {_COUNT} input tokens",
        rf"input length:? \(?{_COUNT}\)? exceeds",
        rf"keep the first {_COUNT} tokens",
        rf"\bn_keep\W{{1,3}}{_COUNT}",
    )
)
_SUM = re.compile(rf"{_COUNT} \+ {_COUNT} > {_COUNT}")


def can_never_fit(text: str) -> bool:
    """Whether a limit per minute is less than this one request takes: it reads like throttling, and waiting is no use."""
    text = text.lower()
    limit, requested = _LIMIT.search(text), _REQUESTED.search(text)
    if limit is not None and requested is not None and _int(requested[1]) > _int(limit[1]):
        return True
    return "request too large for" in text


def is_too_long(text: str, *, large: bool) -> bool:
    """Whether the words mean that the request is longer than the model's window.

    text: code, type and message. large: whether the request had LARGE_BYTES or more.
    """
    text = text.lower()
    if _THROTTLED.search(text):
        return False
    return any(
        row.fragment in text
        and (large or not row.weak)
        and not (row.unless is not None and row.unless.search(text))
        for row in ROWS
    )


def named(text: str, fields: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The tokens that were asked for and the limit, None for what is not named. fields: the error's own (llama.cpp)."""
    text = text.lower()
    if (found := _SUM.search(text)) is not None:
        return _int(found[1]) + _int(found[2]), _int(found[3])
    asked, limit = fields.get("n_prompt_tokens"), fields.get("n_ctx")
    return (
        asked if type(asked) is int else _first(_ASKED, text),
        limit if type(limit) is int else _first(_LIMITS, text),
    )


def _first(patterns: Iterable[re.Pattern[str]], text: str) -> int | None:
    return next((_int(found[1]) for one in patterns if (found := one.search(text)) is not None), None)


def _int(digits: str) -> int:
    return int(digits.replace(",", "")[:18])
