"""Errors of every shape become one readable line, with the status and the decision intact (quirks D01, D04, D07)."""

import json

import pytest
from error_words import SPENT, THROTTLED, numbered
from hypothesis import given
from hypothesis import strategies as st

from mini_agent.core.errors import ModelError
from mini_agent.wire.failures import failure, failure_inside, misdirected, retry_after, wait_named


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
        (408, b'{"error":{"type":"invalid_request_error","message":"timed out"}}', "provider", True),
        (409, b'{"error":{"type":"invalid_request_error","message":"x"}}', "provider", True),
        (500, b'{"error":{"type":"invalid_request_error","message":"x"}}', "provider", True),
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
        (429, "Rate limit reached for requests per day", "quota"),
        (400, "the page is rendered once per day", "bad_request"),
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


@pytest.mark.parametrize(("status", "said"), SPENT, ids=numbered(SPENT))
def test_d04_what_is_spent_is_not_asked_for_again_and_there_is_a_hint(status, said):
    error = failure(status, {"retry-after": "1"}, json.dumps({"error": said}).encode(), now=0)
    assert (error.kind, error.retryable) == ("quota", False)
    assert "top it up" in error.hint
    if status == 429:
        assert failure_inside({"error": {**said, "code": said.get("code", 429)}}).kind == "quota"


@pytest.mark.parametrize("said", THROTTLED, ids=numbered(THROTTLED))
def test_d04_a_limit_of_a_minute_is_throttling(said):
    error = failure(429, {}, json.dumps({"error": said}).encode(), now=0)
    assert (error.kind, error.retryable, error.hint) == ("rate_limit", True, None)


def google(
    *violated, delay=None, message="You exceeded your current quota, please check your plan.", **metadata
):
    """The error object of Google's APIs. violated: names of quotas. metadata: that of its ErrorInfo."""
    kind = "type.googleapis.com/google.rpc"
    details = [
        {"@type": f"{kind}.Help", "links": [{"description": "daily quotas", "url": "https://x/per-day"}]}
    ]
    if violated:
        violations = [{"quotaMetric": "x/requests", "quotaId": name} for name in violated]
        details.append({"@type": f"{kind}.QuotaFailure", "violations": violations})
    if delay is not None:
        details.append({"@type": f"{kind}.RetryInfo", "retryDelay": delay})
    if metadata:
        details.append({"@type": f"{kind}.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED", "metadata": metadata})
    return {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}


MINUTE, DAY = (
    "GenerateRequestsPerMinutePerProjectPerModel-FreeTier",
    "GenerateRequestsPerDayPerProjectPerModel",
)


@pytest.mark.parametrize(
    ("said", "kind", "wait"),
    [
        (google(MINUTE), "rate_limit", None),
        (google(MINUTE, delay="34s"), "rate_limit", 34),
        (google(delay="34.074824224s"), "rate_limit", 34.074824224),
        (google(delay={"seconds": "34", "nanos": 5}), "rate_limit", 34),
        (google(DAY, delay="34s"), "quota", 34),
        (google(MINUTE, DAY, delay="47s"), "quota", 47),
        (google(DAY, MINUTE, message="Resource has been exhausted"), "quota", None),
        (google(quota_limit="GenerateContentRequestsPerMinutePerProjectPerRegion"), "rate_limit", None),
        (google(quota_limit="GenerateContentRequestsPerDay"), "quota", None),
        (google(), "quota", None),
        (google(MINUTE, delay="3s", message="Slow down. Please retry in 40.5s."), "rate_limit", 40.5),
        *((google(MINUTE, delay=odd), "rate_limit", None) for odd in ("", "s", "-5s", "nans", "1e400s")),
        *((google(MINUTE, delay=odd), "rate_limit", None) for odd in ([], {}, True, {"seconds": None})),
    ],
)  # fmt: skip
def test_d04_googles_details_name_the_quota_and_the_wait(said, kind, wait):
    raw = json.dumps([{"error": said}])
    passed_on = {"message": "Provider returned error", "code": 429, "metadata": {"raw": raw}}
    for body in (raw, json.dumps({"error": passed_on})):
        error = failure(429, {}, body.encode(), now=0)
        assert (error.kind, error.retry_after_s) == (kind, wait)


def test_d04_googles_details_are_read_in_a_text_as_well():
    """LiteLLM makes one of the body that it got."""
    for said, kind in (
        (google(MINUTE, delay="34s"), "rate_limit"),
        (google(MINUTE, DAY, delay="34s"), "quota"),
    ):
        text = f"litellm.RateLimitError: VertexAIException - {json.dumps({'error': said})}"
        error = failure(429, {}, json.dumps({"error": {"message": text}}).encode(), now=0)
        assert (error.kind, error.retry_after_s) == (kind, 34)


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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("retry after 20 seconds", 20),
        ("please try again after 1 seconds", 1),
        ("Retry-After: 30s", 30),
        ("Please wait for 1 minute", 60),
        ("Please wait 71520 seconds before retrying.", 71520),
        ("try again in about 1,200 seconds", 1200),
        ("try again in 1 hour, 20 minutes and 5 seconds", 4805),
        ("try again in 2 days", 172800),
        ('{"retryDelay": "34s"}', 34),
        ("try again in 5s, or retry in 2m", 120),
        ("try again at 12:00", None),
        ("retry after -5 s", None),
        ("it took 30 seconds", None),
    ],
)
def test_r4_a_wait_is_read_in_a_message(text, seconds):
    assert wait_named(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("headers", "said", "seconds"),
    [
        ({"retry-after": "0"}, {"message": "Please try again in 17 seconds"}, 17),
        ({"retry-after": "5"}, {"message": "Please try again in 86400s"}, 86400),
        ({"retry-after": "60"}, {"message": "try again in 2s"}, 60),
        ({"retry-after": "60", "retry-after-ms": "10"}, {}, 60),
        ({"retry-after": "1", "retry-after-ms": "1500"}, {}, 1.5),
        ({"retry-after-ms": "250"}, {}, 0.25),
        ({"retry-after": "2", "retry-after-ms": "nan"}, {}, 2),
        ({"retry-after": "2", "retry-after-ms": "-5"}, {}, 2),
        ({"retry-after": "inf"}, {"message": "retry in 1m12.5s"}, 72.5),
        ({"retry-after": "Thu, 01 Jan 1970 00:16:43 GMT"}, {"message": "try again in 2s"}, 3),
        ({"retry-after": "5"}, {"resets_in_seconds": 9568}, 9568),
        ({"retry-after": "5"}, {"resets_in_seconds": -1}, 5),
        ({"retry-after": "5"}, {"details": [{"retryDelay": "34s"}, {"retryDelay": "2s"}]}, 34),
        ({}, {"message": "busy"}, None),
    ],
)
def test_r4_of_several_hints_the_largest_counts(headers, said, seconds):
    body = json.dumps({"error": {"message": "busy", **said}}).encode()
    assert failure(429, headers, body, now=1000.0).retry_after_s == seconds


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
