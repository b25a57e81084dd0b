"""Repeated calls: found at the third round, asked about after the fourth, and never seen where there are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_agent.core.repetition import LONGEST, ROUNDS, CallGuard, Repetition


def verdicts(calls, guard=None):
    """Of each call; a call is a letter."""
    guard = guard or CallGuard()
    return [guard.feed(call, "{}").verdict for call in calls]


def last(calls):
    guard = CallGuard()
    return [guard.feed(call, "{}") for call in calls][-1]


def test_the_same_call_is_warned_of_at_the_third_time_and_asked_about_from_the_fourth():
    assert verdicts("aaaaa") == ["ok", "ok", "warn", "ask", "ask"]
    assert last("aaa") == Repetition("warn", period=1, times=3)
    assert last("aaaa") == Repetition("ask", period=1, times=4)


def test_a_cycle_is_warned_of_at_its_third_round_and_asked_about_when_the_next_is_complete():
    assert verdicts("abababab") == ["ok"] * 5 + ["warn", "ok", "ask"]
    assert verdicts("abcabcabcabc") == ["ok"] * 8 + ["warn", "ok", "ok", "ask"]
    assert last("xyababab") == Repetition("warn", period=2, times=3)
    assert last("abcdabcdabcdabcd") == Repetition("ask", period=4, times=4)


def test_name_and_arguments_both_count():
    guard = CallGuard()
    made = [("read", "a"), ("read", "b"), ("list", "b"), ("read", "a"), ("read", "a")]
    assert {guard.feed(*call).verdict for call in made} == {"ok"}
    assert guard.feed("read", "a").verdict == "warn"


def test_a_repetition_that_is_broken_off_is_forgotten_and_the_next_is_warned_of_anew():
    assert verdicts("aaab") == ["ok", "ok", "warn", "ok"]
    assert verdicts("aaabaaa") == ["ok", "ok", "warn", "ok", "ok", "ok", "warn"]
    assert verdicts("abababa" + "xy") == ["ok"] * 5 + ["warn", "ok", "ok", "ok"]


def test_a_pause_between_repetitions_is_part_of_a_longer_cycle():
    assert verdicts("aaab" * 4)[11:] == ["warn", "ok", "ok", "ok", "ask"]


def test_reset_forgets_everything():
    guard = CallGuard()
    assert verdicts("aaaa", guard)[-1] == "ask"
    guard.reset()
    assert verdicts("aaaa", guard) == ["ok", "ok", "warn", "ask"]
    guard.reset()
    assert verdicts("ab" * 2, guard) == ["ok"] * 4


@given(st.lists(st.integers(), unique=True))
def test_calls_that_are_all_different_are_fine(calls):
    assert set(verdicts(map(str, calls))) <= {"ok"}


@given(st.lists(st.sampled_from("xyz"), max_size=8), st.text("abcd", min_size=1, max_size=LONGEST))
def test_every_cycle_of_one_to_four_calls_is_found_at_its_third_round(before, cycle):
    found = verdicts([*before, *cycle * ROUNDS])
    assert found[-1] != "ok"
    if len(set(cycle)) == len(cycle):
        assert found[len(before) :].index("warn") == len(cycle) * ROUNDS - 1


@given(st.lists(st.sampled_from("xyz"), max_size=8), st.text("abcd", min_size=1, max_size=LONGEST))
def test_a_cycle_that_goes_on_is_asked_about_by_the_end_of_its_fourth_round(before, cycle):
    assert verdicts([*before, *cycle * (ROUNDS + 1)])[-1] == "ask"


@given(st.text("abc", max_size=60))
def test_nothing_is_said_where_the_last_calls_are_no_repetition(calls):
    said = verdicts(calls)
    for place, verdict in enumerate(said, 1):
        rounds = {"warn": ROUNDS, "ask": ROUNDS + 1}.get(verdict, 0)
        assert not rounds or any(
            calls[:place].endswith(calls[place - period : place] * rounds) for period in range(1, LONGEST + 1)
        )


@pytest.mark.parametrize("period", [5, 6])
def test_longer_cycles_are_left_to_the_cap_on_steps(period):
    assert set(verdicts("abcdef"[:period] * 10)) == {"ok"}
