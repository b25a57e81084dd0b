"""What a journal may hold: single records, and whole lives of a session as the agent tells them."""

import sys
from pathlib import Path

from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "core"))
from test_history import MESSAGES

from mini_agent.core.errors import ErrorInfo
from mini_agent.core.events import (
    AttemptEnded,
    AttemptProgress,
    ChannelToken,
    Compacted,
    Completed,
    Failed,
    FirstToken,
    Notice,
    Retrying,
    StreamStarted,
    ToolCallDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UserMessage,
)
from mini_agent.core.history import repair
from mini_agent.core.messages import Response, Text, ToolCall, Usage
from mini_agent.record.journal import Journal
from mini_agent.record.lines import Reader
from mini_agent.record.records import Checkpoint, Header, Resumed

ABOUT = {"t": 1.0, "id": "s", "folder": "/w", "version": "1", "model": "m", "profile": "p"}
HEADER = Header(**ABOUT)
RESUMED = Resumed(**ABOUT)
WRONG = ErrorInfo(kind="cut", message="cut")


def at(request="r", attempt=1):
    return {"t": 2.0, "request_id": request, "attempt": attempt}


def said(text, n=None, channel="text", **where):
    return ChannelToken(**at(**where), n=n, channel=channel, text=text)


def started(**where):
    return StreamStarted(**at(**where), model="m", api="chat")


def answered(*blocks, **where):
    return Completed(**at(**where), response=Response(blocks))


def begun(prompt="go"):
    return TurnStarted(t=2.0, prompt=prompt)


def ended(reason="done"):
    return TurnFinished(t=3.0, reason=reason, text="", usage=Usage())


def retrying(**where):
    return Retrying(**at(**where), retry=1, max_retries=4, wait_s=1.0, decision="backoff", error=WRONG)


def call(call_id, **arguments):
    return ToolCall(call_id, "echo", arguments)


def runs(call_id):
    return ToolStarted(t=2.0, call_id=call_id, name="echo", arguments={})


def ran(call_id, content="done", *, is_error=False):
    return ToolFinished(
        t=2.0, call_id=call_id, name="echo", is_error=is_error, content=content, elapsed_s=0.1
    )


def written(path, records, **options):
    """A journal of these records; its path."""
    journal = Journal(path, HEADER, **options)
    for record in records:
        journal.write(record)
    journal.close()
    assert journal.problem is None
    return path


def read(path):
    return list(Reader(path.read_bytes().splitlines(keepends=True)))


class Later:
    """Timers that go off when the test says so."""

    def __init__(self):
        self.waiting = []

    def __call__(self, delay_s, callback):
        assert delay_s <= 0.25
        self.waiting.append(callback)
        return self

    def cancel(self):
        self.waiting.pop()

    def fire(self):
        self.waiting.pop()()


WORDS = st.sampled_from(["a ", "word\n", '"\\', "é", "完", "😀", "\x00", "  "])
CALL_IDS = st.sampled_from(["c1", "c2", "c3"])
RECORDS = st.one_of(
    st.builds(begun, st.sampled_from(["", "go", " "])),
    st.builds(UserMessage, t=st.just(1.0), text=WORDS, queued=st.booleans()),
    st.builds(started, attempt=st.integers(1, 2)),
    st.builds(said, WORDS, st.integers(1, 9), st.sampled_from(["text", "reasoning"])),
    st.builds(
        ToolCallDelta,
        t=st.just(1.0),
        request_id=st.just("r"),
        attempt=st.just(1),
        n=st.integers(1, 9),
        index=st.integers(0, 1),
        id=CALL_IDS,
        name=st.just("echo"),
        arguments=WORDS,
    ),
    st.builds(ToolOutput, t=st.just(1.0), call_id=CALL_IDS, text=WORDS),
    st.just(retrying()),
    st.builds(
        AttemptEnded,
        outcome=st.sampled_from(["completed", "failed", "cancelled"]),
        t=st.just(1.0),
        request_id=st.just("r"),
        attempt=st.just(1),
        total_s=st.just(1.0),
    ),
    st.lists(st.builds(Text, WORDS) | st.builds(call, CALL_IDS), max_size=4).map(
        lambda blocks: answered(*blocks)
    ),
    st.just(Failed(t=1.0, error=WRONG)),
    st.builds(runs, CALL_IDS),
    st.builds(ran, CALL_IDS, WORDS),
    st.builds(ended, st.sampled_from(["done", "cancelled", "failed"])),
    st.builds(Checkpoint, t=st.just(1.0), messages=MESSAGES.map(tuple)),
    st.just(RESUMED),
)
"""Records in no order that the agent knows."""


@st.composite
def lives(draw):
    """What an agent may tell of a few turns, to its end or not; every result says something of its own."""
    records, results = [], 0
    for turn in range(draw(st.integers(1, 3))):
        records.append(begun(draw(st.sampled_from([f"turn {turn}", f"turn {turn}", ""]))))
        for step in range(draw(st.integers(0, 3))):
            request = f"r{turn}-{step}"
            for attempt in range(1, draw(st.integers(1, 3))):
                records += [started(request=request, attempt=attempt), *draw(_pieces(request, attempt))]
                records.append(retrying(request=request, attempt=attempt))
            records += [started(request=request, attempt=9), FirstToken(**at(request, 9), n=1, ttft_s=0.1)]
            records += draw(_pieces(request, 9))
            if draw(st.integers(0, 9)) == 0:
                records.append(Failed(t=2.0, error=WRONG))
                break
            calls = [call(f"c{number}", text="x") for number in range(draw(st.integers(0, 3)))]
            records.append(answered(Text(draw(WORDS) + "!"), *calls, request=request, attempt=9))
            for one in calls[: draw(st.integers(0, len(calls)))]:
                results += 1
                records += [
                    runs(one.id),
                    ToolOutput(t=2.0, call_id=one.id, text="live\n"),
                    ran(one.id, f"result {results}"),
                ]
            if not calls:
                break
            if draw(st.integers(0, 9)) == 0:
                records += [
                    Compacted(t=2.0, messages_before=9, messages_after=1, tokens_before=9, tokens_after=1),
                    Checkpoint(t=2.0, messages=tuple(repair(draw(MESSAGES)))),
                ]
        match draw(st.integers(0, 3)):
            case 0:
                records.append(RESUMED)
            case 1:
                records.append(ended("cancelled"))
            case _:
                records.append(ended())
    return records


def _pieces(request, attempt):
    return st.lists(
        st.one_of(
            st.builds(said, WORDS, request=st.just(request), attempt=st.just(attempt)),
            st.just(Notice(t=2.0, level="info", text="by the way")),
            st.just(AttemptProgress(**at(request, attempt), phase="streaming", bytes=1, silent_s=0.0)),
        ),
        max_size=4,
    )
