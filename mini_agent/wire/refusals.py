"""What of a request a provider will not take: images, reasoning, or one field of the body (product R6, R9). Pure.

`Attempt.without` is how the next request leaves it out; `shaping` says what the names in it mean. Codes, named parameters
and a validator's places come first; wording is for providers that give nothing else, in the tables of this file.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mini_agent.wire.asked import REASONING_FIELDS, carries_images, carries_reasoning
from mini_agent.wire.error_bodies import Said
from mini_agent.wire.shaping import IMAGES, REASONING, reference

NEEDED = frozenset({"model", "messages", "input", "tools", "stream", "system", "instructions"})
"""Fields that are never left out: without them it would be another request."""

_CODES = frozenset({"unsupported_parameter", "unknown_parameter", "unsupported_value"})
"""Of OpenAI's; they come with `param`. A value that the model has not is mended in the same way: by the provider's own."""

_FIELD_STATUSES = frozenset({None, 400, 422})

_NOT_TAKEN = (
    r"(?:un(?:supported|known|recogni[sz]ed|expected)|deprecated|no longer supported"
    r"|(?:not|only) (?:currently |yet )?(?:supported|permitted|allowed|recogni[sz]ed|accepted|implemented|available)"
    r"|not a (?:valid|supported|known|recogni[sz]ed) (?:parameter|argument|field|property|option))"
)
_NOUN = r"(?:parameter|argument|field|property|propertie|key|name|option)(?:\(?s\)?)?"
_OPEN = r"[\s\"'`“\[{(]*"
_CLOSE = r"[\"'`”\])}]*"
_NAME = r"(?>(?P<name>[a-z_]\w*(?:(?:[./]|\s*->\s*)\w+|\[\w*\])*))"
_WITHIN = r"(?:(?P<within>[#\w./\[\]]{1,80})['\"`]?\s?: )?"
"""A path that stands before the words: `messages[0]: unknown field`."""

_WORDINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # OpenAI, Azure, Ollama, serde, Go, Gemini (its path, where there is one, comes behind), zod, Python
        (
            rf"{_WITHIN}\b(?:unsupported|unknown|unrecogni[sz]ed|unexpected|extraneous)(?: keyword| request| body)*"
            rf" {_NOUN}(?: supplied| provided| in (?:request|object|body))*\s?:?{_OPEN}{_NAME}(?!{_CLOSE} at ')"
        ),
        # Anthropic, vLLM, Bedrock, Azure AI, FastAPI: Pydantic in its several forms
        rf"(?<![\w.\]/])(?:#?/)?{_NAME}\s*:?\s+extra (?:inputs?|fields?) (?:is |are )?not (?:permitted|allowed)",
        rf"['\"]body['\"],{_OPEN}{_NAME}['\"],?\), ['\"]msg['\"]: ['\"]extra (?:inputs?|fields?)",
        # Fireworks
        rf"extra inputs? (?:is|are) not permitted, field: {_OPEN}{_NAME}",
        # Groq, Bedrock
        rf"{_WITHIN}\b{_NOUN}{_OPEN}{_NAME}{_CLOSE} (?:is|are|was) (?:\w+ )?{_NOT_TAKEN}",
        # Anthropic, gateways
        rf"{_WITHIN}[\"'`]{_NAME}[\"'`](?: {_NOUN})? (?:is|are) (?:\w+ )?{_NOT_TAKEN}",
        rf"(?<![\w.\]/\"'`-])(?P<name>[a-z]+(?:_[a-z0-9]+)+) (?:is|are) {_NOT_TAKEN}",
        rf"(?:^|: |\badaptive |\bextended ){_NAME} (?:is|are) {_NOT_TAKEN}",
        # LiteLLM, xAI
        rf"(?:does not|doesn't|do not) support (?:the |this |these )?(?:following )?{_NOUN}:?{_OPEN}{_NAME}",
        rf"(?:does not|doesn't|do not) support (?:the |this )?{_OPEN}{_NAME}{_CLOSE} {_NOUN}",
        (
            rf"{_NOUN} (?:is |are )?not (?:supported|permitted|allowed|recogni[sz]ed)"
            rf"(?: (?:on|by|for|with) [\w ]{{1,40}})?:{_OPEN}{_NAME}"
        ),
        # JSON Schema
        rf"additional properties are not allowed \({_OPEN}{_NAME}",
    )
)
_EXTRA = re.compile(
    rf"extra_forbidden|value_error\.extra|extra (?:inputs?|fields?) (?:are )?not|{_NOT_TAKEN}", re.IGNORECASE
)
_UNWANTED = re.compile(
    rf"^(?:th(?:is|e|at) )?(?:{_NOUN} )?(?:(?:is|are) )?{_NOT_TAKEN}|extra (?:inputs?|fields?)", re.IGNORECASE
)
"""Of a parameter that is named beside the text."""
_SEALED = re.compile(rf"encrypted[_ ]content.*?{_NOT_TAKEN}", re.IGNORECASE)

_REASONING_CODES = frozenset(
    {"invalid_encrypted_content", "encrypted_reasoning_not_supported", "thinking_signature_invalid"}
)
_SEALS = (
    "invalid signature in thinking",  # Anthropic, Bedrock, Vertex
    "thinking block: invalid signature",  # gateways
    "redacted_thinking blocks in the latest assistant message cannot be modified",  # Anthropic
    "invalid data in redacted_thinking",  # Anthropic
    "thought signature is not valid",  # Gemini
    "corrupted thought signature",  # Gemini
    "encrypted content",  # OpenAI: could not be verified, decrypted, parsed
    "encrypted_content",  # gateways: is not supported
    "of type reasoning was provided without its required following item",  # OpenAI
    "item[content] is not an array",  # llama.cpp, of an item that has nothing but its seal
    "item[content] is empty",  # llama.cpp
)
"""Of reasoning that went back. Quotes are left out."""

_ECHOES = (
    "must be passed back to the api",  # DeepSeek, in each of its families
    "reasoning_content",  # DeepSeek, Kimi, Groq: it is missing, or it must not be there; nobody says it of anything else
)
"""Of reasoning that should have gone back, or should not have."""

_SIGHTLESS = (
    "support image",  # OpenRouter: no endpoints found that support image input; Ollama, LM Studio: does not support image
    "image input is not",  # llama.cpp: image input is not supported; Mistral: is not enabled for this model
    "image inputs are not supported",  # xAI
    "images are not supported",
    "image_url is only supported",  # OpenAI: by certain models
    "type image_url is not supported",  # infini-ai
    "unknown variant image_url",  # DeepSeek
    "unknown variant input_image",
    "unknown variant image",
    "invalid content type. image_url",  # OpenAI
    "not a multimodal model",  # vLLM
    "image(s) may be provided",  # vLLM: at most N
    "support vision",
    "vision is not",
    "support multimodal",
    "mmproj",  # llama.cpp
    "allowed values: [text]",  # Zhipu: messages.content.type is invalid
    "content must be a string",  # text-only models of Groq and Cerebras
    "content : value must be a string",  # Groq
    "invalid type: sequence, expected a string",  # serde
    "could not process image",  # Anthropic
    "unable to process input image",  # Gemini
    "failed to load image",  # llama.cpp
    "failed to decode image",
    "failed to process image",
    "image exceeds",  # Anthropic: 5 MB maximum
    "image dimensions exceed",  # Anthropic: max allowed size
    "image is too large",
    "image too large",
    "not represent a valid image",  # OpenAI
    "unsupported image",  # OpenAI
    "invalid image",
    "image_url must be",
    "base64 image",
    "image media type",
)
"""Of models without eyes, and of images that can't be read. Quotes are left out."""

_QUOTES = str.maketrans("", "", "\"'`\\")


def refused(said: Said, status: int | None, asked: Mapping[str, Any]) -> str | None:
    """What the provider refuses, by the name that `Attempt.without` gives it; None where the error is about something else.

    asked: the body of the request. status: None for an error inside a success.
    """
    if status in _FIELD_STATUSES and (field := _field(said, asked)) is not None:
        return field
    text = said.message.lower().translate(_QUOTES)
    if _is_of_reasoning(said, text, asked):
        return REASONING
    codes = f"{said.code} {said.type}".lower()
    if carries_images(asked) and ("image" in codes or any(one in text for one in _SIGHTLESS)):
        return IMAGES
    return None


def _field(said: Said, asked: Mapping[str, Any]) -> str | None:
    """The field of the body that is named as one that is not taken, if it was sent and can be left out.

    A part of a field counts as the field: nothing smaller can be left out (`reasoning.effort`).
    """
    sent = {_plain(name): name for name in asked if name not in NEEDED}
    for path in _named(said, asked):
        parts = [part for part in re.split(r"\W+", path) if part]
        root = parts[1:2] if parts[:1] == ["body"] else parts[:1]
        if root and (name := sent.get(_plain(root[0]))) is not None:
            return reference(name)
    return None


def _named(said: Said, asked: Mapping[str, Any]) -> Iterator[str]:
    """Paths of what is said not to be taken, the surest first."""
    if said.param is not None and (said.code in _CODES or _UNWANTED.search(said.message)):
        yield said.param
    for where, what in said.problems:
        if _EXTRA.search(what):
            yield ".".join(where)
    if _SEALED.search(said.message):  # no field: `include` asks for seals, and items of reasoning have them
        if not carries_reasoning(asked):
            yield "include"
        return
    # By their places in the text: one reading may see a whole path, another only its end.
    paths: dict[int, str] = {}
    for wording in _WORDINGS:
        for found in wording.finditer(said.message):
            groups, place = found.groupdict(), found.start("name")
            within = groups.get("within") or ""
            if re.split(r"\W+", within.lstrip("#/"))[0] in asked:
                paths[place] = f"{within}.{groups['name']}"
            else:
                paths.setdefault(place, groups["name"])
    yield from paths.values()


def _plain(name: str) -> str:
    """A name as it compares: some name a field in camel case that was sent in snake case (xAI)."""
    return name.replace("_", "").lower()


def _is_of_reasoning(said: Said, text: str, asked: Mapping[str, Any]) -> bool:
    if said.code in _REASONING_CODES or any(one in text for one in _ECHOES):
        return True
    if not carries_reasoning(asked):
        return False
    if any(one in text for one in _SEALS):
        return True
    # A field of a message: `messages.2.assistant.reasoning`, ('messages.1' : property 'reasoning' is unsupported)
    return any(REASONING_FIELDS & set(where) for where, what in said.problems if _EXTRA.search(what)) or any(
        REASONING_FIELDS & set(re.split(r"\W+", path)) and re.match(r"\W*(?:messages|input)\b", path)
        for path in _named(said, asked)
    )
