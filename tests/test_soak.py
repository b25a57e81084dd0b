"""Turns with tools through the whole stack while all goes wrong that can (issue 4); bench/soak.py takes more of them.

A soak that never finds anything proves nothing: the second half breaks the program on purpose and sees it found.
"""

import pytest
from soak_kinds import BY_NAME
from soak_user import AFTER_A_RETRY
from soaking import SoakError, soak

from mini_agent.agent import asking
from mini_agent.agent.calls import CallRunner
from mini_agent.core import history
from mini_agent.core.events import ToolFinished
from mini_agent.record.journal import Journal
from mini_agent.wire.exchange import Exchange

SEED = 1


def test_issue_4_every_turn_ends_well_whatever_the_provider_does(tmp_path):
    tally = soak(100, SEED, tmp_path)
    assert tally.seen["turns"] == 100
    assert tally.seen["resumed"] > 5
    assert tally.seen["tools run"] > 100
    assert len(tally.attempts) > 60


class _Never:
    """An event that never comes."""


def keep_the_text_of_attempts_that_were_given_up(monkeypatch):
    monkeypatch.setattr(asking, "StreamStarted", _Never)
    monkeypatch.setattr(asking, "Retrying", _Never)


def run_each_call_twice(monkeypatch):
    once = CallRunner._execute

    async def twice(self, *arguments):
        await once(self, *arguments)
        return await once(self, *arguments)

    monkeypatch.setattr(CallRunner, "_execute", twice)


def run_calls_that_were_cut(monkeypatch):
    async def run(self, calls, why):
        await self.run(calls, stopped=lambda: False)

    monkeypatch.setattr(CallRunner, "refuse", run)


def do_not_repair(monkeypatch):
    monkeypatch.setattr(history, "repair", list)


def leave_connections_open(monkeypatch):
    async def leave(self, *_):
        pass

    monkeypatch.setattr(Exchange, "__aexit__", leave)


def lose_results_in_the_journal(monkeypatch):
    write = Journal.write

    def losing(self, record):
        if not (isinstance(record, ToolFinished) and record.is_error):
            write(self, record)

    monkeypatch.setattr(Journal, "write", losing)


@pytest.mark.parametrize(
    ("breakage", "kind", "found"),
    [
        (
            keep_the_text_of_attempts_that_were_given_up,
            "cut at an event",
            "what was said|given up|several answers",
        ),
        (run_each_call_twice, "503", "once too often"),
        (run_calls_that_were_cut, "calls cut at max_tokens", "once too often"),
        (do_not_repair, "the same ids", "request [0-9]+: "),
        (leave_connections_open, "stalls at an event", "tasks are left"),
        (lose_results_in_the_journal, "broken arguments", "the journal gives another history"),
    ],
)
def test_the_soak_finds_what_is_broken_on_purpose(monkeypatch, tmp_path, breakage, kind, found):
    breakage(monkeypatch)
    with pytest.raises(SoakError, match=found):
        soak(100, SEED, tmp_path, [BY_NAME["500"], BY_NAME[kind]], [AFTER_A_RETRY])
