"""The shape that nearly every chunk of a stream has, decoded into structs: one piece of text, or of reasoning, no more.

A chunk that holds anything else that counts is refused here and goes the tolerant way. So this changes what a chunk costs
and never what becomes of it (a property test holds the two against each other).
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec

from mini_agent.core.events import Channel
from mini_agent.core.profile import Profile

_OURS = frozenset({"usage", "error", "choices", "id", "model"})

_Nothing = Literal["", None]
_NoCalls = Annotated[list[Any], msgspec.Meta(max_length=0)] | None

PlainDecoder = Callable[[str], Any]
"""A chunk from its JSON text. Raises msgspec.DecodeError, RecursionError for one that is not plain."""


def plain_decoders(profile: Profile) -> dict[Channel, PlainDecoder]:
    """One for text and one for reasoning; none where the profile's names are no names of Python's.

    A plain chunk has `choices`, each with `index` and `delta`; the delta has `content`, or one of the reasoning fields.
    """
    named = [*profile.reasoning_fields, *_tops(profile)]
    if (
        "content" in named
        or not all(name.isidentifier() and name[0] != "_" for name in named)
        or len(set(named)) < len(named)
    ):
        return {}
    if any(
        path.split(".")[0] in _OURS for path in (*profile.usage_paths, *profile.end_when) if path != "usage"
    ):
        return {}  # it looks where the structs have something of their own
    return {"text": _decoder(profile, text=True), "reasoning": _decoder(profile, text=False)}


def _tops(profile: Profile) -> list[str]:
    """What else the profile looks at in a chunk: it must be absent."""
    paths = (*profile.usage_paths, *profile.end_when)
    return sorted({path.split(".")[0] for path in paths} - _OURS)


def _decoder(profile: Profile, *, text: bool) -> PlainDecoder:
    said, other = (str | None, _Nothing) if text else (_Nothing, str | None)
    nothing: list[tuple[str, Any, Any]] = [
        ("refusal", _Nothing, None),
        ("tool_calls", _NoCalls, None),
        ("function_call", None, None),
        ("reasoning_details", _NoCalls, None),
    ]
    delta = msgspec.defstruct(
        "Delta",
        [
            ("content", said, None),
            *((name, other, None) for name in profile.reasoning_fields),
            *(field for field in nothing if field[0] not in profile.reasoning_fields),
        ],
        gc=False,
    )
    choice = msgspec.defstruct(
        "Choice",
        [
            ("delta", delta),
            ("index", int, 0),
            ("finish_reason", _Nothing, None),
            ("message", None, None),
            ("error", None, None),
        ],
        gc=False,
    )
    chunk = msgspec.defstruct(
        "Chunk",
        [
            ("choices", tuple[choice]),  # type: ignore[valid-type]  # made above
            ("usage", None, None),
            ("error", None, None),
            *((name, None, None) for name in _tops(profile)),
        ],
        gc=False,
    )
    return msgspec.json.Decoder(chunk).decode
