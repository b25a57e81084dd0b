"""From what a server said of a failure to a `ModelError`: status, code and type first (product R2, R4, W13, W14).

Error bodies come in every shape; whatever comes, the result has a readable message and the status survives.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any

from mini_agent.core.errors import DETAIL_LIMIT, ErrorKind, ModelError, ProtocolError, ProviderError
from mini_agent.wire.asked import cap, text_bytes
from mini_agent.wire.error_bodies import Said, number, read, said, without_tags
from mini_agent.wire.loading import dumps
from mini_agent.wire.overflow import LARGE_BYTES, Size, can_never_fit, is_too_long, named
from mini_agent.wire.profiles import shown
from mini_agent.wire.quotas import is_spent
from mini_agent.wire.refusals import refused

RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, *range(520, 525), 529})

_MESSAGE_LIMIT = 500

# What a code or type means, as the providers' documents name them; the status speaks where none of these is given.
_KINDS: Mapping[str, ErrorKind] = {
    "insufficient_quota": "quota",
    "insufficient_balance": "quota",
    "insufficient_user_quota": "quota",
    "exceeded_current_quota_error": "quota",
    "billing_error": "quota",
    "billing_hard_limit_reached": "quota",
    "usage_limit_reached": "quota",
    "usage_not_included": "quota",
    "arrearage": "quota",
    # Zhipu (https://docs.z.ai/api-reference/api-code): an account inactive, unknown, locked, in arrears, locked for good,
    "1110": "quota",
    "1111": "quota",
    "1112": "quota",
    "1113": "quota",
    "1121": "quota",
    # the calls of a day, the usage of a plan, its end, its week or month
    "1304": "quota",
    "1308": "quota",
    "1309": "quota",
    "1310": "quota",
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
_REFUSING_KINDS = frozenset({"provider", "overloaded", "bad_request", "too_large"})
"""Kinds of errors that may be about a part of the request."""

_FINAL_KINDS = frozenset({"quota", "auth", "context_overflow", "too_large", "bad_request"})

_FINAL_STATUSES = frozenset({401, 402, 403})
"""Said of whoever asks, whatever was asked."""

_WEAK_STATUSES = frozenset({None, 400, 413, 422})
"""Statuses that may be about the request, and are not said of throttling."""

_SPAN = re.compile(
    r"(\d[\d,]*(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])",
    re.IGNORECASE,
)
_WAIT = re.compile(
    r"\b(?:(?:try again|retry)[ -](?:in|after)|please wait(?: for)?|retrydelay)[\s:\"'=]{0,5}(?:about )?"
    rf"((?:{_SPAN.pattern}(?:[\s,]|and\b)*)+)",
    re.IGNORECASE,
)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def failure(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: float,
    key_env: Sequence[str] = (),
    asked: Mapping[str, Any] | None = None,
) -> ModelError:
    """The error of an HTTP answer that is not a success.

    headers: names in lower case. body: its beginning is enough. now: unix seconds, for dates in `Retry-After`. key_env:
    the variable that holds the key, named in the hint where the key is the trouble. asked: the body of the request, which
    tells what of it can have been refused.
    """
    text = body.decode("utf-8", "replace").strip()
    heard = read(text)
    told = heard.message[:_MESSAGE_LIMIT]
    message = f"HTTP {status}: {told}" if told else f"HTTP {status} with an empty body"
    if 300 <= status < 400:
        message = (
            f"HTTP {status}: moved to {shown(headers.get('location', 'nowhere'))}; redirects are not followed"
        )
    return _error(heard, status, message, text, asked or {}, headers=headers, now=now, key_env=key_env)


def failure_inside(payload: object, asked: Mapping[str, Any] | None = None) -> ModelError:
    """The error that an endpoint put into the body of a success: an object with `error`, or one of type `error`."""
    heard = said(payload)
    status = int(heard.code) if heard.code is not None and re.fullmatch(r"[45]\d\d", heard.code) else None
    message = heard.message[:_MESSAGE_LIMIT] or "the provider reported an error without a text"
    return _error(heard, status, message, dumps(payload), asked or {})


def misdirected(head: bytes, *, url: str, content_type: str) -> ProtocolError:
    """A success whose body is no model's answer: an HTML page, a portal, some other JSON."""
    text = head.decode("utf-8", "replace").strip()
    what = (
        "an HTML page"
        if text.startswith("<")
        else f"{content_type or 'something'} that is no answer of a model"
    )
    excerpt = without_tags(text)[:120]
    return ProtocolError(
        f"{shown(url)} sent {what}: {excerpt!r}",
        retryable=False,
        body=text[:DETAIL_LIMIT],
        hint="Check the base URL (it often ends in /v1) and the API family (--api).",
    )


def _error(
    heard: Said,
    status: int | None,
    message: str,
    body: str,
    asked: Mapping[str, Any],
    *,
    headers: Mapping[str, str] = MappingProxyType({}),
    now: float = 0.0,
    key_env: Sequence[str] = (),
) -> ProviderError:
    kind = _kind(heard, status, asked, is_page=body.startswith("<"))
    refusal = refused(heard, status, asked) if kind in _REFUSING_KINDS else None
    too_long = kind == "context_overflow"
    size = named(heard.message, heard.fields) if too_long else Size()
    if size.prompt_fits and (field := cap(asked)) is not None:
        refusal = field
    # A refusal said with a 5xx is no less final. A cap that leaves some room remains an overflow: where leaving it out does
    # not help, because the family needs one (Messages), a shorter prompt does.
    if refusal is not None and (kind in ("provider", "overloaded") or size.cap_never_fits):
        kind = "bad_request"
    retryable = kind in _RETRYABLE_KINDS or (
        kind not in _FINAL_KINDS and (status is None or status in RETRYABLE_STATUSES)
    )
    veto = {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())
    return ProviderError(
        _with_numbers(message, size),
        kind=kind,
        retryable=retryable,
        status=status,
        headers=headers,
        code=heard.code,
        provider_type=heard.type,
        retry_after_s=_longest(
            retry_after(headers, now), heard.wait_s, heard.renewed_in_s, wait_named(heard.message)
        ),
        # Its word is about the same request: neither permission nor veto says anything of a shorter or a plainer one.
        veto=None if too_long or refusal is not None else veto,
        body=body[:DETAIL_LIMIT],
        hint=None if refusal is not None else _hint(kind, status, key_env, _renewal(heard)),
        refused=refusal,
        asked_tokens=size.prompt,
        limit_tokens=size.limit,
    )


def _kind(heard: Said, status: int | None, asked: Mapping[str, Any], *, is_page: bool) -> ErrorKind:
    """Code and type first, wording last; of wording, what says that nothing but another request helps."""
    known = next(
        (kind for word in (heard.code, heard.type) if (kind := _KINDS.get((word or "").lower()))), None
    )
    if known in ("quota", "auth"):
        return known
    words = f"{heard.code} {heard.type} {heard.message or '(no body)'}"
    if can_never_fit(words):
        return "context_overflow"
    if known not in (None, "bad_request", "rate_limit"):
        return known
    spent = not is_page and is_spent(
        words,
        heard.quotas,
        throttled=known == "rate_limit" or status == 429,
        waits=heard.wait_s is not None or wait_named(heard.message) is not None,
    )
    # "rate limit" and "invalid request" are also said of other things; a definite status knows better.
    if known == "rate_limit" and status not in _STATUS_KINDS:
        return "quota" if spent else known
    if not is_page and _is_too_long(words, heard, status, asked):
        return "context_overflow"
    if spent:
        return "quota"
    if status is None:
        return known or "provider"
    if status in RETRYABLE_STATUSES:  # "invalid request" is what some say of a time-out, too
        return _STATUS_KINDS.get(status, "provider")
    return _STATUS_KINDS.get(status) or known or ("bad_request" if status < 500 else "provider")


def _is_too_long(words: str, heard: Said, status: int | None, asked: Mapping[str, Any]) -> bool:
    """Whether a text says so that may say it: some statuses are about whoever asks."""
    # An empty body says only what its status does, but for one.
    if status in _FINAL_STATUSES or not (heard.message or status == 400):
        return False
    large = status in _WEAK_STATUSES and text_bytes(asked) >= LARGE_BYTES
    return is_too_long(words, large=large)


def _with_numbers(message: str, size: Size) -> str:
    """The message with the sizes that it lacks: they stand in fields of their own, or behind its end."""
    digits = re.sub(r"(?<=\d),(?=\d)", "", message)
    missing = [
        f"{count} {what}"
        for count, what in ((size.prompt, "tokens asked for"), (size.limit, "allowed"))
        if count is not None and str(count) not in digits
    ]
    return f"{message} ({', '.join(missing)})" if missing else message


def _hint(kind: ErrorKind, status: int | None, key_env: Sequence[str], renewal: str) -> str | None:
    if kind == "auth":
        return f"Check the key in {' or '.join(key_env)}." if key_env else "Check the key."
    if kind == "quota":
        return f"The account's balance or quota is used up{renewal}: top it up, or choose another model."
    if status == 404:
        return "Check the model's name and the base URL."
    return None


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds the server asks to wait, from `retry-after-ms` and `Retry-After` (seconds or an HTTP date, RFC 9110 10.2.3),
    the longer of the two.

    None where they say nothing usable: not a number, negative, not finite.
    """
    milliseconds = number(headers.get("retry-after-ms"))
    return _longest(
        None if milliseconds is None else milliseconds / 1000, _seconds(headers.get("retry-after"), now)
    )


def _seconds(value: str | None, now: float) -> float | None:
    seconds = number(value)
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

    Some providers name the time nowhere else (product R4). The longest, where there are several; None where there is none.
    """
    return _longest(*(_span(found[1]) for found in _WAIT.finditer(text)))


def _span(text: str) -> float | None:
    """Seconds of a time in one or several units."""
    return number(
        sum(
            float(count.replace(",", "")) * (0.001 if unit.startswith(("ms", "mil")) else _UNITS[unit[0]])
            for count, unit in _SPAN.findall(text.lower())
        )
    )


def _renewal(heard: Said) -> str:
    """When a quota is renewed, in words that go on with a sentence; "" where it was not said."""
    seconds = heard.renewed_in_s
    if seconds is not None:
        return f" for {seconds / 3600:.1f} h" if seconds >= 3600 else f" for {seconds / 60:.0f} min"
    try:
        return (
            ""
            if heard.renewed_t is None
            else f" until {datetime.fromtimestamp(heard.renewed_t, UTC):%Y-%m-%d %H:%M} UTC"
        )
    except (ValueError, OverflowError, OSError):
        return ""  # a time that no calendar has


def _longest(*waits: float | None) -> float | None:
    """The longest of several hints (product R4): whoever heeds the shorter one is turned away again."""
    return max((wait for wait in waits if wait is not None), default=None)
