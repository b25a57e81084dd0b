"""Retry decisions (product R2-R4, A6): pure, so every rule is a table or a distribution."""

import random
import statistics

import pytest

from mini_agent.core.errors import (
    ConnectionFailedError,
    CutError,
    DeadlineError,
    EmptyAnswerError,
    ProtocolError,
    ProviderError,
)
from mini_agent.models.policy import DEFAULT, PATIENT, GiveUp, Retry, Spent, decide
from mini_agent.wire.failures import failure


def rate_limited(**more):
    return ProviderError("slow down", kind="rate_limit", retryable=True, status=429, **more)


def overloaded():
    return ProviderError("busy", kind="overloaded", retryable=True, status=503)


def waits(policy, retries, runs=2000):
    rng = random.Random(7)
    return [decide(overloaded(), Spent(retries=retries), policy, rng).wait_s for _ in range(runs)]


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529])
def test_d05_statuses_worth_another_try(status):
    assert isinstance(decide(failure(status, {}, b"", now=0), Spent(), DEFAULT, random.Random(1)), Retry)


@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 404, 405, 413, 422, 501, 505])
def test_d05_statuses_not_worth_another_try(status):
    assert decide(failure(status, {}, b"", now=0), Spent(), DEFAULT, random.Random(1)) == GiveUp()


@pytest.mark.parametrize(
    "error",
    [
        CutError("cut"),
        ConnectionFailedError("refused"),
        DeadlineError("silent", kind="idle_timeout"),
        DeadlineError("silent", kind="connect_timeout"),
        DeadlineError("silent", kind="first_event_timeout"),
        DeadlineError("silent", kind="stall_timeout"),
        EmptyAnswerError(),
        ProtocolError("garbled", retryable=True),
    ],
    ids=lambda error: error.kind,
)
def test_transport_faults_are_worth_another_try(error):
    assert decide(error, Spent(), DEFAULT, random.Random(1)).decision == "plain"


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
    assert isinstance(decide(error, Spent(), DEFAULT, random.Random(1)), GiveUp)


@pytest.mark.parametrize(("retries", "whole"), [(0, 1), (1, 2), (2, 4), (3, 8)])
def test_r3_half_of_a_wait_is_fixed_and_half_random(retries, whole):
    seen = waits(DEFAULT, retries)
    assert whole / 2 <= min(seen) < whole * 0.53
    assert whole * 0.97 < max(seen) <= whole
    assert statistics.mean(seen) == pytest.approx(whole * 0.75, rel=0.02)


def test_r3_the_cap_holds_before_the_jitter():
    patient = waits(PATIENT, 10)
    assert 24 <= min(patient) < 24.5
    assert 35.5 < max(patient) <= 36


def test_r3_four_retries_and_then_no_more():
    rng = random.Random(1)
    assert isinstance(decide(overloaded(), Spent(retries=3), DEFAULT, rng), Retry)
    assert decide(overloaded(), Spent(retries=4), DEFAULT, rng) == GiveUp("gave up after 4 retries")
    assert isinstance(decide(overloaded(), Spent(retries=14), PATIENT, rng), Retry)


def test_r2_after_a_tool_run_by_the_provider_there_is_one_retry_at_most():
    rng = random.Random(1)
    assert isinstance(decide(CutError("cut"), Spent(acted=True), DEFAULT, rng), Retry)
    assert isinstance(decide(CutError("cut"), Spent(retries=1, acted=True), DEFAULT, rng), GiveUp)


def test_r4_the_wait_is_the_larger_of_the_hint_and_our_own():
    rng = random.Random(1)
    assert decide(rate_limited(retry_after_s=20), Spent(), DEFAULT, rng) == Retry(20, "backoff", 4)
    assert decide(rate_limited(retry_after_s=0.01), Spent(), DEFAULT, rng).wait_s >= 0.5


def test_d02_a_hint_beyond_two_minutes_ends_it_and_says_when_to_come_back():
    assert "3600 s" in decide(rate_limited(retry_after_s=3600), Spent(), DEFAULT, random.Random(1)).why
    assert isinstance(decide(rate_limited(retry_after_s=120), Spent(), DEFAULT, random.Random(1)), Retry)


def test_r4_the_servers_veto_counts_either_way():
    rng = random.Random(1)
    assert decide(rate_limited(veto=False), Spent(), DEFAULT, rng) == GiveUp()
    permitted = ProviderError("odd", kind="bad_request", retryable=False, status=400, veto=True)
    assert isinstance(decide(permitted, Spent(), DEFAULT, rng), Retry)
    assert isinstance(decide(permitted, Spent(retries=4), DEFAULT, rng), GiveUp)


def test_a6_an_empty_answer_is_asked_for_twice_more():
    rng = random.Random(1)
    assert isinstance(decide(EmptyAnswerError(), Spent(retries=1, empty=1), DEFAULT, rng), Retry)
    assert decide(EmptyAnswerError(), Spent(), DEFAULT, rng).of == 2
    assert decide(EmptyAnswerError(), Spent(retries=3, empty=1), DEFAULT, rng).of == 4
    assert decide(EmptyAnswerError(), Spent(retries=2, empty=2), DEFAULT, rng) == GiveUp("asked 3 times")
