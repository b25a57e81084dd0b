"""Errors of every shape become one readable line, with the status and the decision intact (quirks D01, D04, D07)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_agent.core.errors import ModelError
from mini_agent.wire.failures import failure, failure_inside, misdirected, retry_after


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'[{"error":{"code":400,"message":"m"}}]', "m"),
        (b'{"error":"m"}', "m"),
        (b'{"error":{"message":"m","type":"t"}}', "m"),
        (b'{"detail":"m"}', "m"),
        (b'{"detail":[{"loc":["body"],"msg":"m"}]}', "m"),
        (b'{"message":"m"}', "m"),
        (b'{"object":"error","message":"m","code":400}', "m"),
        (b'{"error":{"message":{"x":1}}}', "{'x': 1}"),
        (b"<html><head><title>502 Bad\nGateway</title></head></html>", "502 Bad Gateway"),
        (b"<html><style>a{}</style><p>Too <b>busy</b></p></html>", "Too busy"),
        (b"plain words", "plain words"),
        ('{"error":{"message":"жар"}}'.encode("utf-16"), None),
        (b"\xff", "\ufffd"),
        (b"[]", None),
        (b"null", None),
    ],
)
def test_d07_a_message_is_found_in_every_shape(body, message):
    error = failure(400, {}, body, now=0)
    assert error.status == 400
    assert error.message == f"HTTP 400: {message}" if message else error.message.startswith("HTTP 400")
    assert "\n" not in error.message


def test_d07_an_empty_body_is_said():
    assert failure(400, {}, b"", now=0).message == "HTTP 400 with an empty body"


@given(st.integers(300, 599), st.binary(max_size=200))
def test_d07_no_body_breaks_the_error_path(status, body):
    error = failure(status, {}, body, now=0)
    assert error.info().message


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "code", "type", "detail", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(json_values)
def test_no_error_object_breaks_the_error_path(payload):
    assert isinstance(failure_inside(payload), ModelError)


@pytest.mark.parametrize(
    ("payload", "kind", "retryable"),
    [
        ({"error": {"code": 502, "message": "upstream"}}, "provider", True),
        ({"error": {"type": "overloaded_error", "message": "busy"}}, "overloaded", True),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}, "rate_limit", True),
        ({"type": "error", "code": "server_error", "message": "x"}, "provider", True),
        ({"error": {"type": "invalid_request_error", "message": "bad"}}, "bad_request", False),
        ({"error": {"code": "insufficient_quota", "message": "pay"}}, "quota", False),
        ({"error": {"code": 401, "message": "who"}}, "auth", False),
        ({"error": {"code": "context_length_exceeded", "message": "long"}}, "context_overflow", False),
        ({"error": "boom"}, "provider", True),
    ],
)
def test_errors_inside_a_success_are_classed_like_statuses(payload, kind, retryable):
    error = failure_inside(payload)
    assert (error.kind, error.retryable) == (kind, retryable)


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (429, b'{"error":{"code":"insufficient_quota","message":"x"}}', "quota", False),
        (429, b'{"error":{"type":"usage_limit_reached","message":"x"}}', "quota", False),
        (429, b"", "rate_limit", True),
        (429, b'{"error":{"type":"invalid_request_error","message":"x"}}', "rate_limit", True),
        (402, b"", "quota", False),
        (401, b"", "auth", False),
        (413, b"<html></html>", "too_large", False),
        (503, b"", "overloaded", True),
        (500, b"", "provider", True),
        (400, b'{"error":{"code":"context_length_exceeded","message":"x"}}', "context_overflow", False),
        (500, b'{"error":{"type":"exceed_context_size_error","message":"x"}}', "context_overflow", False),
        (404, b"", "bad_request", False),
    ],
)
def test_d04_code_and_type_decide_before_the_status(status, body, kind, retryable):
    error = failure(status, {}, body, now=0)
    assert (error.kind, error.retryable) == (kind, retryable)


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (429, "Quota exceeded for quota metric 'Requests' and limit 'Requests per day'", "quota"),
        (429, "You exceeded your current quota, please check your plan and billing details.", "quota"),
        (429, "You exceeded your current quota: requests per day. Please retry in 36.9s.", "quota"),
        (429, "You exceeded your current quota, limit: 20. Please retry in 36.9s.", "rate_limit"),
        (429, "Insufficient account balance", "quota"),
        (400, "Your credit balance is too low to access the Anthropic API.", "quota"),
        (403, "Sorry, your account balance is insufficient", "quota"),
        (429, "Too many requests, slow down", "rate_limit"),
        (429, "Rate limit reached for requests per day", "rate_limit"),
        (400, "the account page was not found", "bad_request"),
    ],
)
def test_d04_a_spent_quota_is_told_by_its_words_where_there_are_only_words(status, message, kind):
    body = json.dumps({"error": {"message": message, "type": "invalid_request_error"}}).encode()
    error = failure(status, {}, body, now=0)
    assert (error.kind, error.retryable) == (kind, kind == "rate_limit")
    assert error.message == f"HTTP {status}: {message}"


def test_d04_a_quota_of_a_day_is_told_by_its_details():
    """Gemini names a wait of seconds in the same breath."""
    details = [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]
    said = {
        "code": 429,
        "message": "You exceeded your current quota. Please retry in 36s.",
        "details": details,
    }
    assert failure(429, {}, json.dumps([{"error": said}]).encode(), now=0).kind == "quota"


def test_d07_what_a_gateway_got_itself_is_told():
    """OpenRouter's own text says nothing but that there was an error."""
    for raw, told in (
        ('{"error":{"message":"the model is asleep"}}', "Provider returned error: the model is asleep"),
        ("upstream is down", "Provider returned error: upstream is down"),
        (7, "Provider returned error"),
        ("", "Provider returned error"),
    ):
        said = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}}
        assert failure(400, {}, json.dumps(said).encode(), now=0).message == f"HTTP 400: {told}"


def test_d07_a_long_message_is_cut_for_the_eye_and_read_whole():
    said = f"{'x' * 600} Please try again in 3s"
    error = failure(429, {}, json.dumps({"message": said}).encode(), now=0)
    assert (len(error.message), error.retry_after_s) == (len("HTTP 429: ") + 500, 3)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("1.5", 1.5),
        ("0", 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Thu, 01 Jan 1970 00:16:43 GMT", 3),
        ("Thu, 01 Jan 1970 00:16:43 -0000", 3),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("1e400", None),
        ("", None),
        ("soon", None),
        ("Wed, 99 Oct 2015 07:28:00 GMT", None),
    ],
)
def test_d01_retry_after_in_all_its_forms(value, seconds):
    assert retry_after({"retry-after": value}, now=1000.0) == seconds


def test_r4_milliseconds_are_finer_than_seconds():
    assert retry_after({"retry-after-ms": "250", "retry-after": "1"}, now=0) == 0.25


def test_r4_the_veto_is_read():
    assert failure(503, {"x-should-retry": "false"}, b"", now=0).veto is False
    assert failure(400, {"x-should-retry": "TRUE"}, b"", now=0).veto is True
    assert failure(503, {}, b"", now=0).veto is None


def test_auth_names_the_variable_and_secrets_stay_out():
    error = failure(
        401, {}, b'{"error":{"message":"bad key sk-abcdefghijklmnop"}}', now=0, key_env=("SOME_API_KEY",)
    )
    info = error.info()
    assert "SOME_API_KEY" in info.hint
    assert "abcdefghijklmnop" not in str(info)


def test_w14_a_page_in_place_of_an_answer_says_what_came_and_what_to_check():
    error = misdirected(
        b"<!doctype html><title>Log in</title>", url="http://x/v1/chat/completions", content_type="text/html"
    )
    assert "Log in" in error.message
    assert "base URL" in error.hint
    assert not error.retryable
