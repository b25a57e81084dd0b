"""What can be seen of a request in its body, whatever the family: an error is read with that in mind. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

REASONING_FIELDS = frozenset(
    {"reasoning_content", "reasoning_details", "reasoning", "thinking", "signature", "encrypted_content"}
)
"""Fields of a message, an item or a block that hold reasoning, or its seal."""

CAPS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Fields that say how many tokens an answer may have, by family and vendor."""

_REASONING_TYPES = frozenset({"thinking", "redacted_thinking", "reasoning"})
_IMAGE_TYPES = frozenset({"image_url", "input_image", "image"})


def carries_images(body: Mapping[str, Any]) -> bool:
    """Whether there is an image in it."""
    return any(part.get("type") in _IMAGE_TYPES for part in _parts(body))


def carries_reasoning(body: Mapping[str, Any]) -> bool:
    """Whether reasoning goes back with it."""
    return any(
        part.get("type") in _REASONING_TYPES or REASONING_FIELDS & part.keys() for part in _parts(body)
    )


def cap(body: Mapping[str, Any]) -> str | None:
    """The field of it that caps the answer, None where there is none."""
    return next((name for name in CAPS if body.get(name) is not None), None)


def text_bytes(value: object) -> int:
    """The size of all texts in it, names of fields aside; an image is not counted: its size says nothing of its tokens."""
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, Mapping):
        return 0 if value.get("type") in _IMAGE_TYPES else sum(map(text_bytes, value.values()))
    return sum(map(text_bytes, value)) if isinstance(value, list) else 0


def _parts(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The messages or items, and the parts of their content."""
    for name in ("messages", "input"):
        entries = body.get(name)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping):
                yield entry
                content = entry.get("content")
                yield from (
                    (part for part in content if isinstance(part, Mapping))
                    if isinstance(content, list)
                    else ()
                )
