"""Retry decisions (product R2-R6, A6): pure, so every rule is a table or a distribution."""

import math
import random
import statistics

import msgspec
import pytest

from mini_agent.core.errors import (
    ConnectionFailedError,
    CutError,
    DeadlineError,
    EmptyAnswerError,
    ProtocolError,
    ProviderError,
    RepetitionError,
)
from mini_agent.models.policy import (
    DEFAULT,
    PATIENT,
    Again,
    Backoff,
    FreshConnection,
    GiveUp,
    Plain,
    Resample,
    Spent,
    ToSession,
    WithoutImages,
    decide,
    is_doom_loop,
)
from mini_agent.wire.failures import failure

LINE_FAULTS = [
    CutError("cut"),
    ConnectionFailedError("refused"),
    ProtocolError("garbled", retryable=True),
    *(
        DeadlineError("silent", kind=kind)
        for kind in ("connect_timeout", "first_event_timeout", "idle_timeout", "stall_timeout")
    ),
]
DOOM = RepetitionError("again and again", ("again",))


def decided(error, policy=DEFAULT, seed=1, **spent):
    return decide(error, Spent(**spent), policy, random.Random(seed))


def provider(status, kind="provider", *, retryable=True, **more):
    return ProviderError("no", kind=kind, retryable=retryable, status=status, **more)


def rate_limited(**more):
    return provider(429, "rate_limit", **more)


def overloaded():
    return provider(529, "overloaded")


def refused(what, status=400):
    return provider(status, "bad_request", retryable=False, refused=what)


def waits(policy, retries, runs=2000, error=None):
    rng = random.Random(7)
    return [decide(error or overloaded(), Spent(retries=retries), policy, rng).wait_s for _ in range(runs)]


# What is worth another try


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529])
def test_d05_statuses_worth_another_try(status):
    assert isinstance(decided(failure(status, {}, b"", now=0)), Again)


@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 404, 405, 413, 422, 501, 505])
def test_d05_statuses_not_worth_another_try(status):
    assert isinstance(decided(failure(status, {}, b"", now=0)), GiveUp | ToSession)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, b'{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"exceeded"}}'),
        (429, b'{"error":{"type":"usage_limit_reached","message":"limit","resets_in_seconds":9568}}'),
        (402, b'{"error":{"message":"Insufficient Balance"}}'),
    ],
)
def test_d04_a_spent_quota_is_not_throttling(status, body):
    assert decided(failure(status, {}, body, now=0)) == GiveUp()


@pytest.mark.parametrize(
    "error",
    [
        DeadlineError("an hour", kind="total_timeout"),
        ProtocolError("a web page", retryable=False),
        ConnectionFailedError("no such scheme", retryable=False),
    ],
    ids=lambda error: error.kind,
)
def test_what_would_fail_again_is_not_tried_again(error):
    assert decided(error) == GiveUp()


# On which connection


@pytest.mark.parametrize("error", LINE_FAULTS, ids=lambda error: error.kind)
def test_r6_d11_the_first_retry_after_a_transport_fault_takes_a_fresh_connection(error):
    assert isinstance(decided(error), FreshConnection)
    assert isinstance(decided(error, retries=2), FreshConnection)
    assert isinstance(decided(error, retries=1, fresh=True), Plain)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 520, 524])
def test_r6_so_does_the_first_one_after_a_5xx(status):
    error = failure(status, {}, b"", now=0)
    assert isinstance(decided(error), FreshConnection)
    assert isinstance(decided(error, retries=1, fresh=True), Plain)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, b""),
        (529, b""),
        (503, b'{"error":{"type":"overloaded_error","message":"busy"}}'),
        (503, b'{"error":{"code":"server_is_overloaded","message":"busy"}}'),
        (503, b'{"error":{"code":"slow_down","message":"busy"}}'),
        (500, b'{"error":{"type":"overloaded","message":"busy"}}'),
    ],
)
def test_r6_a_provider_that_is_busy_needs_time_and_no_other_connection(status, body):
    error = failure(status, {}, body, now=0)
    assert isinstance(decided(error), Backoff)
    assert isinstance(decided(error, fresh=True), Backoff)


@pytest.mark.parametrize("error", [EmptyAnswerError(), provider(409), provider(408)], ids=str)
def test_r6_what_lies_in_neither_is_asked_again_as_it_was(error):
    assert isinstance(decided(error), Plain)


# How long, and how often


@pytest.mark.parametrize(("retries", "whole"), [(0, 1), (1, 2), (2, 4), (3, 8)])
@pytest.mark.parametrize(
    "error", [overloaded(), CutError("cut"), rate_limited()], ids=lambda error: error.kind
)
def test_d17_r3_half_of_a_wait_is_fixed_and_half_random(error, retries, whole):
    seen = waits(DEFAULT, retries, error=error)
    assert whole / 2 <= min(seen) < whole * 0.53
    assert whole * 0.97 < max(seen) <= whole
    assert statistics.mean(seen) == pytest.approx(whole * 0.75, rel=0.02)
    halves = statistics.quantiles(seen, n=4)  # evenly spread, not heaped anywhere
    assert halves == pytest.approx([whole * share for share in (0.625, 0.75, 0.875)], rel=0.03)


def test_d17_r3_the_cap_holds_before_the_jitter():
    patient = waits(PATIENT, 10)
    assert 24 <= min(patient) < 24.5
    assert 35.5 < max(patient) <= 36


def test_r3_four_retries_and_then_no_more():
    assert isinstance(decided(overloaded(), retries=3), Backoff)
    assert decided(overloaded(), retries=4) == GiveUp()
    assert isinstance(decided(overloaded(), PATIENT, retries=14), Backoff)
    assert decided(overloaded(), PATIENT, retries=15) == GiveUp()


def test_a6_d13_an_empty_answer_is_asked_for_twice_more_out_of_the_transport_budget():
    assert decided(EmptyAnswerError()).of == 2
    assert isinstance(decided(EmptyAnswerError(), retries=1, empty=1), Plain)
    assert decided(EmptyAnswerError(), retries=3, empty=1).of == 4
    assert decided(EmptyAnswerError(), retries=2, empty=2) == GiveUp()
    assert decided(EmptyAnswerError(), retries=4, empty=1) == GiveUp()
    assert decided(EmptyAnswerError(), PATIENT, retries=9, empty=2) == GiveUp()


# The server's word


def test_r4_the_wait_is_the_larger_of_the_hint_and_our_own():
    assert decided(rate_limited(retry_after_s=20)) == Backoff(20, 4)
    assert decided(rate_limited(retry_after_s=0.01)).wait_s >= 0.5
    assert decided(provider(503, retry_after_s=20)) == FreshConnection(20, 4)
    assert decided(rate_limited(retry_after_s=2), retries=3).wait_s >= 4


@pytest.mark.parametrize("hint", [None, 0, -5, -math.inf, math.nan, math.inf])
def test_d01_a_hint_that_nobody_can_wait_for_is_none(hint):
    assert decided(rate_limited(retry_after_s=hint)) == decided(rate_limited())


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        ("1.5", 1.5, 1.5),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.5, 1),
        ("Thu, 01 Jan 1970 00:00:03 GMT", 3, 3),
        ("Thu, 01 Jan 1970 00:00:03 -0000", 3, 3),
        *((value, 0.5, 1) for value in ("-5", "nan", "inf", "1e400", "", "soon")),
    ],
)
def test_d01_retry_after_in_all_its_forms(value, least, most):
    now = 0 if "1970" in value else 2_000_000_000
    wait_s = decided(failure(429, {"retry-after": value}, b"", now=now)).wait_s
    assert least <= wait_s <= most


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (121, "3 min"),
        (3600, "1 h"),
        (3601, "1 h 1 min"),
        (9568, "2 h 40 min"),
        (86400, "1 day"),
        (100_000, "1 day 4 h"),
        (604_800, "7 days"),
        (1e300, "more than a year"),
    ],
)
def test_d02_a_hint_beyond_two_minutes_ends_it_and_says_when_to_come_back(seconds, words):
    assert decided(rate_limited(retry_after_s=seconds)) == GiveUp(
        f"the server asks to wait: come back in {words}"
    )


def test_d02_two_minutes_are_waited():
    assert decided(rate_limited(retry_after_s=120)) == Backoff(120, 4)


def test_d22_throttling_that_names_its_end_is_waited_for_and_a_day_is_not():
    def said(text):
        return failure(429, {}, b'{"error":{"message":"%s"}}' % text, now=0)

    used = b"Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000."
    assert decided(said(used + b" Please try again in 2s")) == Backoff(2, 4)
    assert decided(said(b"Please retry after 86400 seconds")).why.endswith("come back in 1 day")


@pytest.mark.parametrize(
    "error", [rate_limited(), CutError("cut"), refused("images"), DOOM], ids=lambda e: e.kind
)
def test_r4_a_veto_ends_it_whatever_it_is(error):
    vetoed = type(error)(error.message) if isinstance(error, CutError | RepetitionError) else error
    vetoed.veto = False
    assert isinstance(decided(vetoed, images=True), GiveUp)


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "bad_request"), (401, "auth"), (501, "provider"), (429, "quota")]
)
def test_r4_a_permit_lets_it_be_tried_within_the_budget(status, kind):
    permitted = provider(status, kind, retryable=False, veto=True)
    assert isinstance(decided(permitted), Plain | FreshConnection)
    assert decided(permitted, retries=4) == GiveUp()


# Repetition


def test_r5_an_answer_that_repeats_itself_is_asked_for_anew_at_once():
    pauses = [decided(DOOM, seed=seed).wait_s for seed in range(400)]
    assert all(0 <= pause <= 0.25 for pause in pauses)
    assert statistics.mean(pauses) == pytest.approx(0.125, rel=0.1)
    assert isinstance(decided(DOOM), Resample)


@pytest.mark.parametrize("doom", range(6))
def test_r5_as_often_as_its_own_budget_allows(doom):
    policy = msgspec.structs.replace(DEFAULT, doom=doom)
    assert all(decided(DOOM, policy, resamples=used).of == doom for used in range(doom))
    assert decided(DOOM, policy, resamples=doom) == GiveUp()


def test_r5_the_two_budgets_never_touch():
    assert isinstance(decided(DOOM, retries=4, empty=2), Resample)
    assert decided(CutError("cut"), resamples=2) == decided(CutError("cut"))
    assert decided(EmptyAnswerError(), resamples=2) == decided(EmptyAnswerError())


@pytest.mark.parametrize(
    ("label", "verdict"),
    [
        ("tail_repetition:4@thinking", True),
        ("tail_repetition:64@thinking", True),
        ("tail_repetition:65@thinking", False),
        ("tail_repetition:1024@thinking", False),
        ("tail_repetition:4@response", False),
        ("tail_repetition:@thinking", False),
        ("tail_repetition:-4@thinking", False),
        ("tail_repetition@thinking", False),
        ("exact_repetition:2x9@thinking", False),
        ("low_logprob@response", False),
        ("a@b@c", False),
        ("repetition", True),
        ("loop:9", True),
    ],
)
def test_which_labels_of_a_provider_mean_a_doom_loop(label, verdict):
    assert is_doom_loop([label]) is verdict
    assert is_doom_loop(["low_logprob@response", label]) is verdict


def test_no_labels_mean_no_doom_loop():
    assert is_doom_loop([]) is False


# What takes another request


@pytest.mark.parametrize(
    "error", [refused("images"), refused("images", 500), failure(413, {}, b"", now=0)], ids=str
)
def test_r6_images_are_left_out_once_and_at_once(error):
    assert decided(error, images=True) == WithoutImages(0, 1)
    assert decided(error, images=True, retries=4, resamples=2) == WithoutImages(0, 1)
    assert decided(error) == ToSession()


@pytest.mark.parametrize(
    "error",
    [
        refused("stream_options"),
        refused("reasoning"),
        provider(500, refused="reasoning"),
        provider(401, "auth", retryable=False),
        provider(400, "context_overflow", retryable=False),
        provider(500, "context_overflow", retryable=True),
        provider(429, "too_large", retryable=False),
    ],
    ids=lambda error: f"{error.kind}-{error.refused}",
)
def test_r6_what_takes_another_request_or_another_key_goes_to_the_session(error):
    assert decided(error) == ToSession()


# A tool that the provider runs itself


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (CutError("cut"), FreshConnection),
        (rate_limited(), Backoff),
        (DOOM, Resample),
        (refused("images"), WithoutImages),
    ],
)
def test_r2_after_a_tool_run_by_the_provider_there_is_one_further_attempt_of_any_kind(error, kind):
    for spent in ({}, {"retries": 3}, {"resamples": 1}):
        first = decided(error, images=True, acted=True, **spent)
        assert isinstance(first, kind)
    assert decided(CutError("cut"), acted=True, retries=2).of == 3
    assert isinstance(decided(error, images=True, acted=True, risked=True), GiveUp)


def test_r2_the_one_further_attempt_does_not_exceed_a_budget():
    assert decided(CutError("cut"), acted=True, retries=4) == GiveUp()
    assert isinstance(decided(DOOM, acted=True, resamples=2), GiveUp)
