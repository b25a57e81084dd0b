"""Requests that are too long, told from throttling, in the words of every provider (quirks D08, D22)."""

import json
from typing import Any

import pytest
from error_words import CAPPED, FITS_LATER, NEVER_FIT, NOT_TOKENS, OVERFLOWS, TOO_LARGE

from mini_agent.core.errors import ModelError
from mini_agent.wire.failures import failure, failure_inside
from mini_agent.wire.overflow import LARGE_BYTES, ROWS

SMALL = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
LARGE = {"model": "m", "messages": [{"role": "user", "content": "x" * LARGE_BYTES}]}


def said(text: str, status: int = 400, asked: dict[str, Any] | None = None, **fields: Any) -> ModelError:
    body = json.dumps({"error": {"message": text, **fields}}).encode()
    return failure(status, {}, body, now=0, asked=LARGE if asked is None else asked)


@pytest.mark.parametrize(
    ("text", "asked", "limit"), [row[1:] for row in OVERFLOWS], ids=[row[0] for row in OVERFLOWS]
)
@pytest.mark.parametrize("status", [400, 413, 500, 422])
def test_d08_every_wording_is_an_overflow_and_its_numbers_are_read(
    text: str, asked: int | None, limit: int | None, status: int
) -> None:
    error = said(text, status, asked=SMALL)
    assert (error.kind, error.retryable, error.refused) == ("context_overflow", False, None)
    assert (error.asked_tokens, error.limit_tokens) == (asked, limit)


@pytest.mark.parametrize("row", CAPPED, ids=[row[0] for row in CAPPED])
@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
@pytest.mark.parametrize("status", [400, 422, 500])
def test_d08_a_cap_that_leaves_the_prompt_no_room_is_what_is_refused(
    row: tuple[Any, ...], field: str, status: int
) -> None:
    _, text, prompt, limit, never = row
    for error in (
        said(text, status, asked={**SMALL, field: 1000}),
        failure_inside({"error": {"message": text}}, {**SMALL, field: 1000}),
    ):
        assert (error.refused, error.retryable, error.veto) == (field, False, None)
        assert (error.asked_tokens, error.limit_tokens) == (prompt, limit)
        # Where a shorter prompt helps as well it stays an overflow: Messages can't do without a cap.
        assert error.kind == ("bad_request" if never else "context_overflow")


@pytest.mark.parametrize("row", CAPPED, ids=[row[0] for row in CAPPED])
@pytest.mark.parametrize("sent", [{}, {"max_tokens": None}], ids=["not sent", "null"])
def test_d08_without_a_cap_in_the_request_it_is_the_prompt(
    row: tuple[Any, ...], sent: dict[str, Any]
) -> None:
    error = said(row[1], asked={**SMALL, **sent}, code="context_length_exceeded")
    assert (error.kind, error.refused) == ("context_overflow", None)
    assert (error.asked_tokens, error.limit_tokens) == row[2:4]


@pytest.mark.parametrize("row", OVERFLOWS, ids=[row[0] for row in OVERFLOWS])
def test_d08_a_prompt_that_is_too_long_by_itself_is_no_matter_of_the_cap(row: tuple[Any, ...]) -> None:
    _, text, prompt, limit = row
    error = said(text, asked={**SMALL, "max_tokens": 5})
    fits = prompt is not None and limit is not None and prompt < limit
    assert (error.kind, error.refused) == ("context_overflow", "max_tokens" if fits else None)
    assert error.asked_tokens == prompt


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.fragment)
def test_d08_every_fragment_counts_in_any_letters(row: Any) -> None:
    for text in (row.fragment, f"Error 17: {row.fragment.upper()}, sorry"):
        assert said(text).kind == "context_overflow"
        assert failure_inside({"error": {"message": text}}, LARGE).kind == "context_overflow"
        assert (said(text, asked=SMALL).kind == "context_overflow") == (not row.weak)
        assert failure(400, {}, b"", now=0, asked=SMALL).kind == "bad_request"


@pytest.mark.parametrize(
    "word",
    [
        "Rate limit hit:",
        "rate_limit_error",
        "Too many requests,",
        "ThrottlingException:",
        "Service Unavailable.",
        "please wait before you try again:",
        "tokens per minute:",
        "on TPM of the org:",
        "your quota:",
    ],
)
@pytest.mark.parametrize(
    "text", ["Too many tokens", "token limit exceeded", "prompt is too long", "maximum context length"]
)
@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit"), (503, "overloaded"), (400, "bad_request")])
def test_d08_throttling_that_counts_tokens_is_no_overflow(
    word: str, text: str, status: int, kind: str
) -> None:
    assert said(f"{word} {text}", status).kind == kind


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "context_overflow"),
        (422, "context_overflow"),
        (429, "rate_limit"),
        (500, "provider"),
        (503, "overloaded"),
    ],
)
def test_d08_weak_words_need_a_large_request_and_a_status_that_is_about_it(status: int, kind: str) -> None:
    assert said("Too many tokens", status).kind == kind
    assert said("Too many tokens", status, asked=SMALL).kind != "context_overflow"


@pytest.mark.parametrize(
    ("status", "body", "asked", "kind"),
    [
        (400, b"", LARGE, "context_overflow"),
        (400, b" \n", LARGE, "context_overflow"),
        (400, b"", SMALL, "bad_request"),
        (400, b"", {}, "bad_request"),
        (413, b"", LARGE, "too_large"),
        (413, b"<html><title>413 Request Entity Too Large</title></html>", LARGE, "too_large"),
        (413, b"<html><p>the prompt is too long</p></html>", LARGE, "too_large"),
        (413, b'{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}', LARGE, "too_large"),
        (413, b'{"error":{"message":"413 status code (no body)"}}', LARGE, "context_overflow"),
        (500, b"", LARGE, "provider"),
        (502, b'{"message":"502 status code (no body)"}', LARGE, "provider"),
        (429, b"", LARGE, "rate_limit"),
        (401, b'{"message":"prompt is too long"}', LARGE, "auth"),
    ],
)  # fmt: skip
def test_d08_bodies_that_say_nothing(status: int, body: bytes, asked: dict[str, Any], kind: str) -> None:
    assert failure(status, {}, body, now=0, asked=asked).kind == kind


def test_d08_an_image_does_not_make_a_request_large() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * LARGE_BYTES}}
    asked = {"messages": [{"role": "user", "content": [picture, {"type": "text", "text": "what is it?"}]}]}
    assert failure(400, {}, b"", now=0, asked=asked).kind == "bad_request"


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 128000 exceeds the limit of 64000",
        "image size exceeds the limit of 5 MB",
        "number of tools exceeds the limit of 128",
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
        "Model not found",
        "The prompt was blocked",
    ],
)
def test_d08_other_limits_are_no_overflow(text: str) -> None:
    assert said(text).kind == "bad_request"


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"code": "context_length_exceeded"}, "context_overflow"),
        ({"type": "exceed_context_size_error"}, "context_overflow"),
        ({"code": "insufficient_quota"}, "quota"),
        ({"type": "authentication_error"}, "auth"),
        ({"type": "overloaded_error"}, "overloaded"),
    ],
)
def test_d08_code_and_type_come_before_any_wording(fields: dict[str, str], kind: str) -> None:
    assert said("Rate limit: please wait, the prompt is too long", 400, **fields).kind == kind


def test_d08_numbers_of_their_own_are_read_and_told() -> None:
    error = said(
        "the request exceeds the available context size, try increasing it",
        500,
        type="exceed_context_size_error",
        n_prompt_tokens=4010,
        n_ctx=2560,
    )
    assert (error.kind, error.retryable) == ("context_overflow", False)
    assert (error.asked_tokens, error.limit_tokens) == (4010, 2560)
    assert "4010" in error.message
    assert "2560" in error.message


def test_d08_an_overflow_inside_a_success_counts() -> None:
    for payload in (
        {"error": {"message": "prompt is too long: 212345 tokens > 200000 maximum", "type": "server_error"}},
        {"error": "Trying to keep the first 6269 tokens when context the overflows."},
        {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long"}},
        {"error": {"code": 400, "message": "maximum context length is 8192 tokens"}},
    ):
        error = failure_inside(payload)
        assert (error.kind, error.retryable) == ("context_overflow", False)


def test_d08_what_a_gateway_passes_on_counts() -> None:
    theirs = {
        "type": "invalid_request_error",
        "message": "prompt is too long: 212345 tokens > 200000 maximum",
    }
    raw = json.dumps({"type": "error", "error": theirs})
    error = said("Provider returned error", code=400, metadata={"raw": raw, "provider_name": "Anthropic"})
    assert error.kind == "context_overflow"
    assert (error.asked_tokens, error.limit_tokens) == (212345, 200000)
    assert "prompt is too long" in error.message


def test_d08_what_a_validator_quotes_is_not_what_it_says() -> None:
    problem = {
        "type": "missing",
        "loc": ["body", "model"],
        "msg": "Field required",
        "input": "prompt is too long",
    }
    assert failure(422, {}, json.dumps({"detail": [problem]}).encode(), now=0).kind == "bad_request"


@pytest.mark.parametrize("text", NEVER_FIT)
@pytest.mark.parametrize("status", [429, 413])
def test_d22_what_can_never_fit_is_an_overflow_and_not_throttling(text: str, status: int) -> None:
    headers = {"retry-after": "2", "x-should-retry": "true"}
    body = json.dumps({"error": {"message": text, "type": "tokens", "code": "rate_limit_exceeded"}}).encode()
    error = failure(status, headers, body, now=0)
    assert (error.kind, error.retryable, error.veto) == ("context_overflow", False, None)
    assert error.asked_tokens in (34031, 50136)
    assert error.limit_tokens in (8000, 30000)


@pytest.mark.parametrize("text", NOT_TOKENS)
def test_d22_a_limit_on_something_else_than_tokens_is_throttling(text: str) -> None:
    error = said(text, 429, code="rate_limit_exceeded")
    assert (error.kind, error.retryable, error.retry_after_s) == ("rate_limit", True, 2)


def test_d22_the_message_names_both_numbers() -> None:
    error = said(TOO_LARGE, 429, type="tokens", code="rate_limit_exceeded")
    assert "34031" in error.message
    assert "8000" in error.message


@pytest.mark.parametrize("status", [429, 503])
def test_d22_what_fits_later_is_throttling(status: int) -> None:
    error = said(FITS_LATER, status, type="tokens", code="rate_limit_exceeded")
    assert (error.kind, error.retryable) == ("rate_limit" if status == 429 else "overloaded", True)
    assert error.retry_after_s == 2


def test_d22_a_long_wait_that_only_the_text_names_is_read() -> None:
    error = said("Requests have exceeded the call rate limit. Please retry after 86400 seconds.", 429)
    assert (error.kind, error.retry_after_s) == ("rate_limit", 86400)
