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
    Row(
        "tokens + `max_new_tokens` must be",
        "Hugging Face TGI: `inputs` tokens + `max_new_tokens` must be <= N",
    ),
    Row("`inputs` must have less than", "Hugging Face TGI"),
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

_COUNT = r"(\d[\d,]{0,24})"
_LIMIT = re.compile(rf"\blimit(?: is| of)?:? {_COUNT}\b")
_REQUESTED = re.compile(rf"\brequested:? {_COUNT}\b(?! output)")

_TOKENS = re.compile(r"\btokens?\b|\btp[md]\b")
_OTHERS = re.compile(
    r"\brequests per|\b(?:rp[md]|ip[md])\b|\bimages\b|\b(?:image|body|file) size|bytes\b|\d ?[km]i?b\b"
    r"|\bconcurren|\bconnections\b"
)
"""What is counted: tokens, of which a shorter request has fewer, or something else."""

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
        rf"max_new_tokens`? must be <= {_COUNT}",
        rf"must have less than {_COUNT} tokens",
        rf"\bn_ctx\W{{1,3}}{_COUNT}",
        rf"> {_COUNT}\b",
        _LIMIT.pattern,
    )
)
_PROMPTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"resulted in {_COUNT} tokens",
        rf"too long: {_COUNT} (?:tokens )?>",
        rf"token count (?:of )?\(?{_COUNT}",
        rf"(?:request|prompt) (?:contains|has) (?:at least )?{_COUNT}",
        rf"(?:request|input|prompt) \({_COUNT} tokens\)",
        rf"passed {_COUNT} input tokens",
        rf"given: {_COUNT}\b",
        rf"input length:? \(?{_COUNT}\)? exceeds",
        rf"keep the first {_COUNT} tokens",
        rf"\bn_keep\W{{1,3}}{_COUNT}",
    )
)
_TOTALS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\btotal of (?:at least )?{_COUNT} tokens",
        rf"\brequested:? (?:about )?{_COUNT}\b(?! output)",
    )
)
_CAPS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_COUNT} (?:tokens )?(?:in|for) the (?:completion|output)",  # OpenAI, DeepSeek, vLLM; OpenRouter; SGLang
        rf"requested {_COUNT} output tokens",  # vLLM
        rf"tokens\W is too large: {_COUNT}",  # vLLM, of the field
        rf"and {_COUNT} `?max_new_tokens",  # Hugging Face
    )
)
_SUM = re.compile(rf"{_COUNT} \+ {_COUNT} > {_COUNT}")
"""Anthropic's: the prompt, the cap on the answer, the limit."""


class Size(NamedTuple):
    """Tokens, as far as an error names them: what the prompt has, what the answer may have at most, and what both may have
    together.
    """

    prompt: int | None = None
    cap: int | None = None
    limit: int | None = None

    @property
    def prompt_fits(self) -> bool:
        """Whether the prompt would fit but for the cap: a lower one mends it."""
        if self.prompt is None or self.cap is None or self.limit is None:
            return False
        return self.prompt < self.limit < self.prompt + self.cap

    @property
    def cap_never_fits(self) -> bool:
        """Whether no prompt is short enough for the cap."""
        return self.cap is not None and self.limit is not None and self.cap >= self.limit


def can_never_fit(text: str) -> bool:
    """Whether a limit per minute is less than the tokens of this one request: it reads like throttling, and waiting is no
    use.
    """
    text = text.lower()
    if _OTHERS.search(text):
        return False
    if "request too large for" in text:
        return True
    limit, requested = _LIMIT.search(text), _REQUESTED.search(text)
    if limit is None or requested is None or _TOKENS.search(text) is None:
        return False
    return _int(requested[1]) > _int(limit[1])


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


def named(text: str, fields: Mapping[str, Any]) -> Size:
    """The numbers that an error names. fields: the error's own (llama.cpp)."""
    text = text.lower()
    if (found := _SUM.search(text)) is not None:
        return Size(_int(found[1]), _int(found[2]), _int(found[3]))
    prompt, limit = fields.get("n_prompt_tokens"), fields.get("n_ctx")
    cap = _first(_CAPS, text)
    return Size(
        prompt if type(prompt) is int else _prompt(text, cap),
        cap,
        limit if type(limit) is int else _first(_LIMITS, text),
    )


def _prompt(text: str, cap: int | None) -> int | None:
    """The prompt's own part. It is in several parts, some of them unheard of: what is not the cap's is the prompt's."""
    prompt = _first(_PROMPTS, text)
    if prompt is not None:
        return prompt
    total = _first(_TOTALS, text)
    return total - cap if total is not None and cap is not None and cap < total else total


def _first(patterns: Iterable[re.Pattern[str]], text: str) -> int | None:
    return next((_int(found[1]) for one in patterns if (found := one.search(text)) is not None), None)


def _int(digits: str) -> int:
    return int(digits.replace(",", "")[:18])
