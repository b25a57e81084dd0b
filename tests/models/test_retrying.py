"""What is done about an error: said, counted, waited for, and asked again in the way the policy decided (R2-R8)."""

import asyncio
import random

import pytest
from played_attempts import ANSWER, REQUEST, Clock, drain, names, of, wrapped

from mini_agent.core.errors import CutError, EmptyAnswerError, ModelError, ProviderError, RepetitionError
from mini_agent.core.events import (
    BackendToolStarted,
    ChannelToken,
    Completed,
    DoomLoopSignal,
    ImagesStripped,
    Notice,
    Retrying,
)
from mini_agent.core.messages import Image, Message, Request, Text
from mini_agent.models.base import complete, new_attempt
from mini_agent.models.policy import PATIENT, RetryPolicy
from mini_agent.models.retrying import RetryingModel

PICTURE = Image("image/png", b"\x89PNG")
PICTURED = Request(
    (
        Message("user", (Text("look"), PICTURE, PICTURE)),
        Message("assistant", (Text("I see."),)),
        Message("user", (PICTURE,)),
    ),
    model="m",
)
LOOP = "Let me do it. " * 400


def busy(**more):
    return ProviderError("slow down", kind="rate_limit", retryable=True, status=429, **more)


def too_large():
    return ProviderError("HTTP 413: too large", kind="too_large", retryable=False, status=413)


def images(request):
    return sum(isinstance(block, Image) for message in request.messages for block in message.blocks)


def acts(at):
    """The provider begins to run a tool of its own."""
    return BackendToolStarted(**at, n=1, id="b", name="web_search", input={})


def signals(*labels):
    return lambda at: DoomLoopSignal(**at, labels=labels)


def thinks(text):
    return lambda at: ChannelToken(**at, n=1, channel="reasoning", text=text)


def courses(events):
    return [(one.decision, one.retry, one.max_retries) for one in of(events, Retrying)]


@pytest.fixture
def clock():
    return Clock()


async def fails(model, request=REQUEST, attempt=None):
    """The error that `model` ends with, and what it said before."""
    events = []
    with pytest.raises(ModelError) as raised:
        await drain(model, events, request, attempt)
    return raised.value, events


# Saying, counting, waiting


async def test_r7_before_each_wait_it_is_said_which_retry_how_long_and_why(clock):
    _, model = wrapped(clock, [CutError("one")], [busy(retry_after_s=7)], [CutError("three")], [ANSWER])
    events = []
    await drain(model, events)
    said = of(events, Retrying)
    assert courses(events) == [("fresh_connection", 1, 4), ("backoff", 2, 4), ("plain", 3, 4)]
    assert [one.error.message for one in said] == ["one", "slow down", "three"]
    assert [one.wait_s for one in said] == clock.waits
    assert clock.waits[1] == 7
    assert [one.attempt for one in said] == [1, 2, 3]


async def test_d11_only_the_attempt_after_the_first_such_fault_is_on_a_fresh_connection(clock):
    inner, model = wrapped(clock, [busy()], [CutError("one")], [CutError("two")], [ANSWER])
    await drain(model, [])
    assert [attempt.fresh_connection for attempt in inner.seen] == [False, False, True, False]


async def test_the_last_error_is_raised_with_a_word_on_the_retries(clock):
    _, model = wrapped(clock, *[[CutError("broke")]] * 3, max_retries=2)
    error, _ = await fails(model)
    assert isinstance(error, CutError)
    assert error.message == "broke (gave up after 2 retries)"
    assert len(clock.waits) == 2


async def test_so_is_one_that_ends_it_on_the_way(clock):
    hour = busy(retry_after_s=3600)
    error, _ = await fails(wrapped(clock, [CutError("broke")], [hour])[1])
    assert error.message == "slow down (gave up after 1 retry; the server asks to wait: come back in 1 h)"
    assert len(clock.waits) == 1


async def test_what_is_not_worth_it_is_raised_at_once_as_it_is(clock):
    refused = ProviderError("no", kind="bad_request", retryable=False, status=400)
    error, events = await fails(wrapped(clock, [refused])[1])
    assert (error, error.message, clock.waits) == (refused, "no", [])
    assert names(events) == ["StreamStarted"]


@pytest.mark.parametrize("kind", ["context_overflow", "auth"])
async def test_r6_what_goes_to_the_session_is_raised_as_it_is(clock, kind):
    away = ProviderError("no", kind=kind, retryable=False)
    error, _ = await fails(wrapped(clock, [CutError("broke")], [away])[1])
    assert (error, error.message, len(clock.waits)) == (away, "no", 1)


async def test_d13_an_empty_answer_is_asked_for_twice_more_and_then_said(clock):
    error, events = await fails(wrapped(clock, *[[EmptyAnswerError()]] * 3)[1])
    assert courses(events) == [("plain", 1, 2), ("plain", 2, 2)]
    assert error.message == "the model returned an empty answer (gave up after 2 retries)"
    assert of(events, Completed) == []


async def test_d17_each_request_has_its_own_count(clock):
    inner, model = wrapped(clock, *[*[[busy()]] * 4, [ANSWER]] * 3)
    for _ in range(3):
        events = []
        await drain(model, events)
        assert [one.retry for one in of(events, Retrying)] == [1, 2, 3, 4]
    assert [attempt.number for attempt in inner.seen] == [1, 2, 3, 4, 5] * 3


async def test_d17_a_wait_that_the_server_names_is_kept_every_time(clock):
    inner, model = wrapped(clock, *[[busy(retry_after_s=17)]] * 5, [ANSWER], max_retries=5)
    await drain(model, [])
    assert clock.waits == [17] * 5
    assert len(inner.seen) == 6


async def test_d17_the_patient_policy_waits_up_to_half_a_minute_fifteen_times(clock):
    error, _ = await fails(_with(PATIENT, clock, *[[CutError("broke")]] * 16))
    assert "gave up after 15 retries" in error.message
    grown = [2, 4, 8, 16, *[30] * 11]
    assert all(0.8 * whole <= wait <= 1.2 * whole for wait, whole in zip(clock.waits, grown, strict=True))


def _with(policy, clock, *script):
    inner, _ = wrapped(clock, *script)
    return RetryingModel(inner, policy, rng=random.Random(1), sleep=clock.sleep)


async def test_f09_cancel_ends_a_wait_at_once_and_nothing_more_is_asked(clock):
    inner, _ = wrapped(clock, [CutError("broke")])
    waiting = asyncio.Event()

    async def sleep(seconds):
        waiting.set()
        await asyncio.Event().wait()

    model = RetryingModel(inner, RetryPolicy(), rng=random.Random(1), sleep=sleep)
    task = asyncio.create_task(complete(model, REQUEST))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (len(inner.seen), inner.open) == (1, 0)


# Images


async def test_r6_images_are_left_out_and_the_request_asked_again_at_once(clock):
    inner, model = wrapped(clock, [too_large()], [ANSWER])
    events = []
    await drain(model, events, PICTURED)
    assert names(events) == ["StreamStarted", "ImagesStripped", "Retrying", "StreamStarted", "Completed"]
    (stripped,) = of(events, ImagesStripped)
    assert (stripped.count, stripped.reason, stripped.attempt) == (3, "HTTP 413: too large", 1)
    assert (courses(events), of(events, Retrying)[0].wait_s) == ([("without_images", 1, 1)], 0)
    assert clock.waits == []
    assert [images(request) for request in inner.requests] == [3, 0]
    assert [sorted(attempt.without) for attempt in inner.seen] == [[], ["images"]]


async def test_r6_in_place_of_each_image_the_model_is_told_that_there_was_one(clock):
    inner, model = wrapped(clock, [too_large()], [ANSWER])
    await drain(model, [], PICTURED)
    first, second, third = inner.requests[1].messages
    assert first.blocks[0] == Text("look")
    assert second == PICTURED.messages[1]
    assert [len(message.blocks) for message in (first, third)] == [3, 1]
    assert all("image" in block.text for block in (*first.blocks[1:], *third.blocks))
    assert images(PICTURED) == 3


async def test_r6_images_are_left_out_once_and_without_them_it_goes_to_the_session(clock):
    error, events = await fails(wrapped(clock, [too_large()], [too_large()])[1], PICTURED)
    assert error.message == "HTTP 413: too large"
    assert len(of(events, ImagesStripped)) == 1
    error, events = await fails(wrapped(clock, [too_large()])[1], REQUEST)
    assert (error.kind, names(events)) == ("too_large", ["StreamStarted"])


async def test_r6_leaving_images_out_costs_no_retry_and_lasts_for_the_request(clock):
    script = [[too_large()], *[[CutError("broke")]] * 4, [ANSWER]]
    inner, model = wrapped(clock, *script)
    events = []
    await drain(model, events, PICTURED)
    assert [one.retry for one in of(events, Retrying)] == [1, 1, 2, 3, 4]
    assert [images(request) for request in inner.requests] == [3, 0, 0, 0, 0, 0]
    assert all(attempt.without == {"images"} for attempt in inner.seen[1:])


async def test_r6_what_an_earlier_request_found_refused_is_left_out_from_the_start_without_a_word(clock):
    attempt = new_attempt(without=frozenset({"images", "top_p"}))
    inner, model = wrapped(clock, [ANSWER])
    events = []
    await drain(model, events, PICTURED, attempt)
    assert names(events) == ["StreamStarted", "Completed"]
    assert [images(request) for request in inner.requests] == [0]
    assert inner.seen[0].without == {"images", "top_p"}
    error, _ = await fails(wrapped(clock, [too_large()])[1], PICTURED, attempt)
    assert error.kind == "too_large"


# Repetition


@pytest.mark.parametrize("size", [1, 14, 999, 10_000])
@pytest.mark.parametrize("channel", ["text", "reasoning"])
async def test_e13_a_loop_is_given_up_and_the_same_request_asked_again(clock, size, channel):
    pieces = [LOOP[at : at + size] for at in range(0, len(LOOP), size)]
    if channel == "reasoning":
        pieces = [thinks(piece) for piece in pieces]
    inner, model = wrapped(clock, [*pieces, None], ["whole", ANSWER])
    events = []
    await drain(model, events)
    assert [kind for kind in names(events) if kind not in ("ChannelToken", "FirstToken")] == [
        "StreamStarted",
        "DoomLoopSignal",
        "Retrying",
        "StreamStarted",
        "Completed",
    ]
    assert of(events, DoomLoopSignal)[0].labels == ("Let me do it.",)
    assert courses(events) == [("resample", 1, 2)]
    assert 0 <= clock.waits[0] <= 0.25
    assert [(attempt.number, attempt.fresh_connection) for attempt in inner.seen] == [(1, False), (2, False)]
    assert inner.requests == [REQUEST, REQUEST]
    assert inner.open == 0


async def test_e13_with_the_budget_spent_the_turn_ends_with_what_repeated_and_how_often(clock):
    inner, model = wrapped(clock, *[[LOOP, None]] * 3)
    error, events = await fails(model)
    assert isinstance(error, RepetitionError)
    assert error.message == ("the model repeats itself without end: Let me do it. (gave up after 2 retries)")
    assert (error.labels, error.attempt, error.request_id) == (
        ("Let me do it.",),
        3,
        inner.seen[0].request_id,
    )
    assert courses(events) == [("resample", 1, 2), ("resample", 2, 2)]
    assert len(of(events, DoomLoopSignal)) == 3
    assert names(events)[-1] == "DoomLoopSignal"
    assert of(events, Completed) == []


async def test_e13_a_signal_and_an_end_where_no_resample_is_allowed(clock):
    error, events = await fails(wrapped(clock, [LOOP], doom=0)[1])
    assert error.message == "the model repeats itself without end: Let me do it."
    assert names(events)[-1] == "DoomLoopSignal"
    assert (courses(events), clock.waits) == ([], [])


async def test_r5_the_budgets_do_not_touch(clock):
    script = [[LOOP], [CutError("broke")], [LOOP], *[[busy()]] * 3, [ANSWER]]
    events = []
    await drain(wrapped(clock, *script)[1], events)
    assert courses(events) == [
        ("resample", 1, 2),
        ("fresh_connection", 1, 4),
        ("resample", 2, 2),
        ("backoff", 2, 4),
        ("backoff", 3, 4),
        ("backoff", 4, 4),
    ]


async def test_e13_what_each_attempt_and_each_channel_says_is_looked_at_by_itself(clock):
    half = LOOP[: 14 * 200]
    _, model = wrapped(
        clock,
        [half, thinks(half), CutError("broke")],
        [half, thinks(half), CutError("broke")],
        [half, ANSWER],
    )
    events = []
    await drain(model, events)
    assert of(events, DoomLoopSignal) == []


async def test_a_doom_loop_that_the_provider_reports_is_one(clock):
    labels = ("low_logprob@response", "tail_repetition:4@thinking")
    inner, model = wrapped(clock, ["round and round", signals(*labels), None], ["whole", ANSWER])
    events = []
    await drain(model, events)
    assert [signal.labels for signal in of(events, DoomLoopSignal)] == [labels]
    assert courses(events) == [("resample", 1, 2)]
    assert of(events, Retrying)[0].error.kind == "repetition"
    assert inner.open == 0


async def test_other_signs_that_the_provider_reports_are_passed_on_and_change_nothing(clock):
    labels = ("low_logprob@response", "tail_repetition:4@response")
    _, model = wrapped(clock, ["fine", signals(*labels), ANSWER])
    events = []
    await drain(model, events)
    assert names(events)[-2:] == ["DoomLoopSignal", "Completed"]
    assert of(events, DoomLoopSignal)[0].labels == labels


# Tools that the provider runs itself


@pytest.mark.parametrize(
    ("trouble", "decision"),
    [
        (CutError("broke"), "fresh_connection"),
        (busy(), "backoff"),
        (too_large(), "without_images"),
        (LOOP, "resample"),
    ],
    ids=["cut", "busy", "images", "loop"],
)
async def test_r2_after_the_providers_own_tool_one_further_attempt_is_announced_as_such(
    clock, trouble, decision
):
    inner, model = wrapped(clock, [acts, trouble, None], [CutError("again")])
    error, events = await fails(model, PICTURED)
    (notice,) = of(events, Notice)
    assert notice.level == "warning"
    assert "act again" in notice.text
    assert [one.decision for one in of(events, Retrying)] == [decision]
    assert events.index(notice) < events.index(of(events, Retrying)[0])
    assert error.message == "again (gave up after 1 retry; a tool run by the provider may have acted)"
    assert len(inner.seen) == 2


async def test_r2_retries_before_it_acted_do_not_use_that_attempt_up(clock):
    script = [[busy()], [busy()], [acts, CutError("broke")], [acts, ANSWER]]
    inner, model = wrapped(clock, *script)
    events = []
    await drain(model, events)
    assert courses(events) == [("backoff", 1, 4), ("backoff", 2, 4), ("fresh_connection", 3, 3)]
    assert len(of(events, Notice)) == 1
    assert len(inner.seen) == 4
