"""From what a server said of a failure to a `ModelError`: status, code and type first (product R2, R4, W13, W14).

Error bodies come in every shape; whatever comes, the result has a readable message and the status survives.
"""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from mini_agent.core.errors import DETAIL_LIMIT, ErrorKind, ModelError, ProtocolError, ProviderError
from mini_agent.wire.loading import dumps, encodable, loads
from mini_agent.wire.profiles import shown

RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, *range(520, 525), 529})

_MESSAGE_LIMIT = 500

# What a code or type means, as the providers' documents name them; the status speaks where none of these is given.
_KINDS: Mapping[str, ErrorKind] = {
    "insufficient_quota": "quota",
    "insufficient_balance": "quota",
    "billing_error": "quota",
    "billing_hard_limit_reached": "quota",
    "usage_limit_reached": "quota",
    "usage_not_included": "quota",
    "invalid_api_key": "auth",
    "authentication_error": "auth",
    "permission_error": "auth",
    "context_length_exceeded": "context_overflow",
    "model_context_window_exceeded": "context_overflow",
    "exceed_context_size_error": "context_overflow",
    "request_too_large": "too_large",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "too_many_requests": "rate_limit",
    "overloaded": "overloaded",
    "overloaded_error": "overloaded",
    "server_is_overloaded": "overloaded",
    "slow_down": "overloaded",
    "invalid_request_error": "bad_request",
    "invalid_prompt": "bad_request",
    "not_found_error": "bad_request",
}

_STATUS_KINDS: Mapping[int, ErrorKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    413: "too_large",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}

_RETRYABLE_KINDS = frozenset({"rate_limit", "overloaded"})
_FINAL_KINDS = frozenset({"quota", "auth", "context_overflow", "too_large", "bad_request"})


_SPAN = re.compile(
    r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])",
    re.IGNORECASE,
)
_WAIT = re.compile(rf"\b(?:try again|retry) (?:in|after) (?:about )?((?:{_SPAN.pattern}\s*)+)", re.IGNORECASE)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


_INNER = ("error", "response", "errors", "base_resp", "fault")
_MESSAGES = ("message", "msg", "error", "error_msg", "status_msg", "reason", "detail", "title")


class _Said(NamedTuple):
    """What an error body says: one line of text, and its code and type where it has them.

    renewed_in_s, renewed_t: when a spent quota is renewed, in seconds from now or in unix seconds.
    """

    message: str
    code: str | None
    type: str | None
    renewed_in_s: float | None = None
    renewed_t: float | None = None


def failure(
    status: int, headers: Mapping[str, str], body: bytes, *, now: float, key_env: Sequence[str] = ()
) -> ModelError:
    """The error of an HTTP answer that is not a success.

    headers: names in lower case. body: its beginning is enough. now: unix seconds, for dates in `Retry-After`. key_env:
    the variable that holds the key, named in the hint where the key is the trouble.
    """
    text = body.decode("utf-8", "replace").strip()
    said = _read(text)
    message = f"HTTP {status}: {said.message}" if said.message else f"HTTP {status} with an empty body"
    if 300 <= status < 400:
        message = (
            f"HTTP {status}: moved to {shown(headers.get('location', 'nowhere'))}; redirects are not followed"
        )
    return _error(
        said._replace(message=message), status, headers=headers, body=text, now=now, key_env=key_env
    )


def failure_inside(payload: object) -> ModelError:
    """The error that an endpoint put into the body of a success: an object with `error`, or one of type `error`."""
    said = _said(payload)
    status = int(said.code) if said.code is not None and re.fullmatch(r"[45]\d\d", said.code) else None
    message = said.message or "the provider reported an error without a text"
    return _error(said._replace(message=message), status, headers={}, body=dumps(payload), now=0.0)


def misdirected(head: bytes, *, url: str, content_type: str) -> ProtocolError:
    """A success whose body is no model's answer: an HTML page, a portal, some other JSON."""
    text = head.decode("utf-8", "replace").strip()
    what = (
        "an HTML page"
        if text.startswith("<")
        else f"{content_type or 'something'} that is no answer of a model"
    )
    excerpt = _without_tags(text)[:120]
    return ProtocolError(
        f"{shown(url)} sent {what}: {excerpt!r}",
        retryable=False,
        body=text[:DETAIL_LIMIT],
        hint="Check the base URL (it often ends in /v1) and the API family (--api).",
    )


def _error(
    said: _Said,
    status: int | None,
    *,
    headers: Mapping[str, str],
    body: str,
    now: float,
    key_env: Sequence[str] = (),
) -> ProviderError:
    kind = _kind(said, status)
    retryable = kind in _RETRYABLE_KINDS or (
        kind not in _FINAL_KINDS and (status is None or status in RETRYABLE_STATUSES)
    )
    return ProviderError(
        said.message,
        kind=kind,
        retryable=retryable,
        status=status,
        headers=headers,
        code=said.code,
        provider_type=said.type,
        retry_after_s=_first(retry_after(headers, now), said.renewed_in_s, wait_named(said.message)),
        veto={"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower()),
        body=body[:DETAIL_LIMIT],
        hint=_hint(kind, status, key_env, _renewal(said)),
    )


def _kind(said: _Said, status: int | None) -> ErrorKind:
    for word in (said.code, said.type):
        if word is not None and (known := _KINDS.get(word.lower())):
            # "rate limit" and "invalid request" are also said of other things; a definite status knows better.
            if status is None or known not in ("bad_request", "rate_limit") or status not in _STATUS_KINDS:
                return known
            break
    if status is None:
        return "provider"
    return _STATUS_KINDS.get(status) or (
        "bad_request" if status < 500 and status not in RETRYABLE_STATUSES else "provider"
    )


def _hint(kind: ErrorKind, status: int | None, key_env: Sequence[str], renewal: str) -> str | None:
    if kind == "auth":
        return f"Check the key in {' or '.join(key_env)}." if key_env else "Check the key."
    if kind == "quota":
        return f"The account's balance or quota is used up{renewal}: top it up, or choose another model."
    if status == 404:
        return "Check the model's name and the base URL."
    return None


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds the server asks to wait, from `retry-after-ms` or `Retry-After` (seconds or an HTTP date, RFC 9110
    10.2.3).

    None where it says nothing usable: not a number, negative, not finite.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        date = parsedate_to_datetime(value)
        if date.tzinfo is None:  # "-0000": a time in UTC from a server that does not know its zone
            date = date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - now)
    except (ValueError, OverflowError):
        return None


def wait_named(text: str) -> float | None:
    """Seconds that a message asks to wait: "try again in 1.2s", "in 6ms", "in 1m12.5s", "retry after 20 seconds".

    Some providers name the time nowhere else (product R4). None where there is none.
    """
    match = _WAIT.search(text)
    if match is None:
        return None
    spans = _SPAN.findall(match[1].lower())
    return _number(
        sum(
            float(number) * (0.001 if unit.startswith(("ms", "mil")) else _UNITS[unit[0]])
            for number, unit in spans
        )
    )


def _renewal(said: _Said) -> str:
    """When a quota is renewed, in words that go on with a sentence; "" where it was not said."""
    seconds = said.renewed_in_s
    if seconds is not None:
        return f" for {seconds / 3600:.1f} h" if seconds >= 3600 else f" for {seconds / 60:.0f} min"
    try:
        return (
            ""
            if said.renewed_t is None
            else f" until {datetime.fromtimestamp(said.renewed_t, UTC):%Y-%m-%d %H:%M} UTC"
        )
    except (ValueError, OverflowError, OSError):
        return ""  # a time that no calendar has


def _first(*waits: float | None) -> float | None:
    return next((wait for wait in waits if wait is not None), None)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _read(text: str) -> _Said:
    """What a body says, whatever it is."""
    try:
        return _said(encodable(loads(text)))
    except ValueError:
        return _Said(_without_tags(text)[:_MESSAGE_LIMIT], None, None)


def _said(payload: object) -> _Said:
    """Message, code and type, from the shapes errors come in: nested, flat, a list, a string, FastAPI's `detail`."""
    if isinstance(payload, list):
        return _said(payload[0]) if payload else _Said("", None, None)
    if not isinstance(payload, dict):
        return _Said(_line(payload), None, None)
    inner: Any = next((payload[key] for key in _INNER if isinstance(payload.get(key), dict | list)), None)
    if inner:
        nested = _said(inner)
        if nested.message:
            return nested
    code = next((payload[key] for key in ("code", "status_code", "error_code") if payload.get(key)), None)
    kind = payload.get("type")
    message = next(
        (payload[key] for key in _MESSAGES if payload.get(key) and payload[key] is not True), payload
    )
    if isinstance(message, list):
        return _said(message)
    return _Said(
        _line(message),
        str(code) if isinstance(code, str | int) and not isinstance(code, bool) and code != "" else None,
        kind if isinstance(kind, str) and kind != "error" else None,
        _number(payload.get("resets_in_seconds")),
        _number(payload.get("resets_at")),
    )


def _line(value: object) -> str:
    return " ".join(str(value).split())[:_MESSAGE_LIMIT] if value else ""


def _without_tags(text: str) -> str:
    """A page's title, or its text, on one line; the beginning of it, because the patterns take their time."""
    text = text[:4096]
    if not text.startswith("<"):
        return " ".join(text.split())
    title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    if title:
        return " ".join(title[1].split())
    bare = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", text, flags=re.IGNORECASE | re.DOTALL)
    return " ".join(bare.split())
