"""The last step of every request body: what one vendor wants on top of its family, as its profile says (product W8)."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from mini_agent.core.messages import Request
from mini_agent.core.profile import Profile

IMAGES = "images"
REASONING = "reasoning"
"""What an attempt can leave out beside fields of the body: images (done before encoding), reasoning (by each family)."""


def reference(field: str) -> str:
    """A top-level field as `Attempt.without` names it: its name, as a JSON pointer (RFC 6901) where that means more.

    `reasoning` is both what a model thought and the field that asks it to think (OpenAI, OpenRouter).
    """
    return f"/{field}" if field in (IMAGES, REASONING) else field


def shaped(
    body: dict[str, Any], request: Request, profile: Profile, without: frozenset[str]
) -> dict[str, Any]:
    """`body` with the profile's effort and extra fields, its names, and without what it refuses.

    without: what this attempt leaves out; of that, the top-level fields, by our name or the vendor's.
    """
    body = merged(body, profile.effort.get(request.effort or "default", {}))
    body = merged(body, profile.extra_body)
    named = {name.removeprefix("/") for name in without - {IMAGES, REASONING}}
    left_out = named.union(profile.refuses)
    return {
        profile.rename.get(name, name): value
        for name, value in body.items()
        if name not in left_out and profile.rename.get(name, name) not in left_out
    }


def merged(body: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """`body` with `extra` laid over it; objects in objects are merged, everything else is replaced."""
    result = dict(body)
    for name, value in extra.items():
        mine = result.get(name)
        result[name] = merged(mine, value) if isinstance(mine, dict) and isinstance(value, dict) else value
    return result


def call_id(given: str, profile: Profile) -> str:
    """A call's id as the vendor takes it: the given one, or one made from it, so that call and result agree."""
    size = profile.call_id_chars
    if size is None or (len(given) == size and given.isascii() and given.isalnum()):
        return given
    return sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:size]
