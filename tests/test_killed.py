"""The real program killed with SIGKILL, and what becomes of its session (issue 4); bench/kills.py kills it more often."""

import signal
import sys

import pytest
from kill_moments import MOMENTS
from killing import KillError, kills

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")

CHOSEN = (
    "before the first byte",
    "in an answer, by what came out",
    "in a tool",
    "in a summary",
    "between turns",
    "while resuming",
)


def of(*names):
    return [moment for moment in MOMENTS if moment.name in names]


def test_issue_4_killed_at_any_moment_it_goes_on_and_nothing_is_lost_or_done_twice(tmp_path):
    assert kills(len(CHOSEN), 1, tmp_path, of(*CHOSEN)) == dict.fromkeys(CHOSEN, 1)


FORGETFUL = """
from mini_agent.core.events import ToolFinished
from mini_agent.record.journal import Journal

write = Journal.write
Journal.write = lambda self, record: None if isinstance(record, ToolFinished) else write(self, record)

from mini_agent.__main__ import main
main()
"""
"""The program with a journal that loses the results of tools."""


def test_what_is_broken_on_purpose_is_found(tmp_path):
    program = tmp_path / "forgetful.py"
    program.write_text(FORGETFUL, encoding="utf-8")
    with pytest.raises(KillError, match="tool_finished"):
        kills(4, 1, tmp_path / "chains", of("between turns", "in a wait"), [sys.executable, str(program)])
