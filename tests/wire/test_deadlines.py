"""The deadlines of W9 as accounting: which clock runs when, and that nothing fires early."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_agent.core.profile import Deadlines
from mini_agent.wire.deadlines import AFTER_FINISH_S, Watch

LIMITS = Deadlines(first_event_s=10, idle_s=4, stall_s=6, whole_answer_s=20)


def watch(stream=True, left=None, limits=LIMITS):
    return Watch(limits, stream=stream, total_left_s=left)


def wait(one, seconds):
    """Waits in allowed steps; gives the deadline that passed, if one did."""
    while seconds > 1e-9 and one.expired() is None:
        step = min(one.allowance_s(), seconds)
        one.waited(step)
        seconds -= step
    expired = one.expired()
    return expired.kind if expired else None


def test_the_first_event_has_its_own_deadline_that_bytes_do_not_end():
    one = watch()
    one.sent()
    for _ in range(3):
        assert wait(one, 3) is None
        one.byte()
    assert wait(one, 1.5) == "first_event_timeout"


def test_the_wait_for_the_first_event_begins_when_the_request_is_out():
    one = watch()
    assert wait(one, 50) is None  # connecting has its own deadline
    one.sent()
    assert wait(one, 9) is None
    assert wait(one, 2) == "first_event_timeout"


def test_without_streaming_the_whole_answer_has_one():
    one = watch(stream=False)
    one.sent()
    assert wait(one, 19) is None
    assert wait(one, 2) == "first_event_timeout"


def test_after_the_first_event_silence_is_idle():
    one = watch()
    one.event()
    assert wait(one, 3.9) is None
    one.byte()
    one.progress()
    assert wait(one, 3.9) is None
    assert wait(one, 0.2) == "idle_timeout"


def test_d14_bytes_without_progress_are_a_stall():
    one = watch()
    wait(one, 9)
    one.byte()
    one.event()
    for _ in range(5):
        assert wait(one, 1) is None
        one.byte()
    one.progress()
    for _ in range(5):
        assert wait(one, 1) is None
        one.byte()
    assert wait(one, 2) == "stall_timeout"


def test_the_total_deadline_runs_all_the_time():
    one = watch(left=5.0)
    one.event()
    for _ in range(4):
        assert wait(one, 1) is None
        one.byte()
        one.progress()
    assert wait(one, 2) == "total_timeout"
    assert watch(left=-1.0).expired().kind == "total_timeout"


def test_zero_is_off():
    one = watch(limits=Deadlines(first_event_s=0, idle_s=0, stall_s=0))
    one.sent()
    assert wait(one, 5000) is None
    one.event()
    assert wait(one, 5000) is None


def test_a_complete_answer_is_not_waited_on_for_long():
    one = watch()
    one.event()
    one.finish()
    assert not one.over
    for _ in range(int(AFTER_FINISH_S)):  # comments, empty deltas: nothing of the answer can come any more
        assert one.expired() is None
        one.waited(1.0)
        one.byte()
    assert one.over
    assert wait(one, 1000) is None


@given(
    st.lists(st.tuples(st.sampled_from(["wait", "byte", "event", "progress"]), st.floats(0, 3)), max_size=60)
)
def test_no_deadline_fires_before_its_time_and_no_wait_is_too_long(steps):
    one = watch(left=30.0)
    one.sent()
    waited = 0.0
    for step, seconds in steps:
        if one.expired():
            assert waited >= 4 - 1e-6
            return
        assert 0 < one.allowance_s() <= 1
        if step == "wait":
            seconds = min(seconds, one.allowance_s())
            waited += seconds
            one.waited(seconds)
        else:
            getattr(one, step)()


@pytest.mark.parametrize("kind", ["first_event_timeout", "total_timeout"])
def test_the_message_names_the_limit(kind):
    one = watch(left=0.0) if kind == "total_timeout" else watch()
    one.sent()
    wait(one, 100)
    assert one.expired().kind == kind
    assert f"{LIMITS.total_s if kind == 'total_timeout' else 10:g} s" in one.expired().message
