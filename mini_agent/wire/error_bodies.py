"""What an error body says. Error bodies come in every shape; whatever comes, there is one line of text to show.

Only what the provider says about the request is read, not what it quotes of it: validators send the conversation back,
and a conversation may be about anything, errors included.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mini_agent.wire.loading import encodable, loads

SAID_LIMIT = 4000
"""Characters of a message that are looked at; gateways wrap the words of others in their own, several times over."""

_INNER = ("error", "response", "errors", "base_resp", "fault")
_MESSAGES = ("message", "msg", "error", "error_msg", "status_msg", "reason", "detail", "title")
_QUOTED = frozenset({"input", "ctx", "input_value"})
"""Where validators put what they were given."""


class Said(NamedTuple):
    """What an error body says: one line of text, and its code, its type and the parameter it names where it has them.

    fields: the object that the text stood in. problems: where and what, of each problem that a validator lists.
    renewed_in_s, renewed_t: when a spent quota is renewed, in seconds from now or in unix seconds. wait_s: seconds to wait
    before another try, where a field of its own says so. quotas: the names of those that were exceeded.
    """

    message: str
    code: str | None = None
    type: str | None = None
    param: str | None = None
    fields: Mapping[str, Any] = {}
    problems: tuple[tuple[tuple[str, ...], str], ...] = ()
    renewed_in_s: float | None = None
    renewed_t: float | None = None
    wait_s: float | None = None
    quotas: tuple[str, ...] = ()


def read(text: str) -> Said:
    """What a body says, whatever it is."""
    try:
        return said(encodable(loads(text)))
    except ValueError:
        return Said(without_tags(text)[:SAID_LIMIT])


def said(payload: object) -> Said:
    """What a decoded body says."""
    return _said(payload)._replace(problems=tuple(_problems(payload)))


def number(value: object) -> float | None:
    """A time that can be waited: a number, or a text that is one; None for anything else, negative or without end."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _said(payload: object) -> Said:
    """From the shapes errors come in: nested, flat, a list, a string, FastAPI's `detail`."""
    if isinstance(payload, list):
        return _said(payload[0]) if payload else Said("")
    if not isinstance(payload, dict):
        return Said(_line(payload))
    inner: Any = next((payload[key] for key in _INNER if isinstance(payload.get(key), dict | list)), None)
    if inner:
        nested = _said(inner)
        if nested.message:
            return nested
    message = next(
        (payload[key] for key in _MESSAGES if payload.get(key) and payload[key] is not True), payload
    )
    if isinstance(message, list):
        return _said(message)
    code = next((payload[key] for key in ("code", "status_code", "error_code") if payload.get(key)), None)
    kind = payload.get("type")
    param = payload.get("param")
    details = [one for one in _list(payload.get("details")) if isinstance(one, dict)]
    found = Said(
        _line(message),
        str(code) if isinstance(code, str | int) and not isinstance(code, bool) and code != "" else None,
        kind if isinstance(kind, str) and kind != "error" else None,
        param if isinstance(param, str) and param else None,
        payload,
        renewed_in_s=number(payload.get("resets_in_seconds")),
        renewed_t=number(payload.get("resets_at")),
        wait_s=max(_delays(details), default=None),
        quotas=tuple(_quotas(details)),
    )
    metadata = payload.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return _passed_on(found, raw) if raw and isinstance(raw, str) else found


def _passed_on(found: Said, raw: str) -> Said:
    """With the body that a gateway got itself: its own text says no more than that there was one (OpenRouter)."""
    theirs = read(raw)
    return found._replace(
        message=f"{found.message}: {theirs.message}"[:SAID_LIMIT],
        type=found.type or theirs.code or theirs.type,
        param=found.param or theirs.param,
        fields=theirs.fields,
        wait_s=theirs.wait_s,
        quotas=theirs.quotas,
    )


def _delays(details: Sequence[Mapping[str, Any]]) -> Iterator[float]:
    """Seconds of Google's `RetryInfo`: a text that ends in s, or an object, as the two JSON forms of a Duration are."""
    for detail in details:
        delay = detail.get("retryDelay")
        if isinstance(delay, dict):
            delay = delay.get("seconds")
        seconds = number(delay.removesuffix("s") if isinstance(delay, str) else delay)
        if seconds is not None:
            yield seconds


def _quotas(details: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Names, or what stands for them, out of Google's `QuotaFailure` and `ErrorInfo`."""
    for detail in details:
        for place in (*_list(detail.get("violations")), detail.get("metadata")):
            if isinstance(place, dict):
                names = (place.get(field) for field in ("quotaId", "description", "quota_limit"))
                yield from (name for name in names if isinstance(name, str))


def _problems(payload: object, depth: int = 4) -> Iterator[tuple[tuple[str, ...], str]]:
    """Pydantic's: objects with `loc` and `msg`, under `detail`, under `message`, wherever they lie."""
    if depth == 0:
        return
    if isinstance(payload, list):
        for one in payload:
            yield from _problems(one, depth - 1)
    elif isinstance(payload, dict):
        where = payload.get("loc")
        if isinstance(where, list):
            yield tuple(map(str, where)), f"{payload.get('type')} {payload.get('msg')}"
            return
        for name, value in payload.items():
            if name not in _QUOTED:
                yield from _problems(value, depth - 1)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _line(value: object) -> str:
    return " ".join(str(value).split())[:SAID_LIMIT] if value else ""


def without_tags(text: str) -> str:
    """A page's title, or its text, on one line; the beginning of it, because the patterns take their time."""
    text = text[:SAID_LIMIT]
    if not text.startswith("<"):
        return " ".join(text.split())
    title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    if title:
        return " ".join(title[1].split())
    bare = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", text, flags=re.IGNORECASE | re.DOTALL)
    return " ".join(bare.split())
