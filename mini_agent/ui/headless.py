"""One turn without a screen: `-p`, or a pipe at either end (product H1, U8).

The event stream goes to one of three writers; approvals are denied, because nobody is there to be asked; the way the
turn ended becomes the exit code.
"""

import asyncio
import contextlib
import io
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Literal, Protocol

from mini_agent.core.errors import ErrorInfo
from mini_agent.core.events import AgentEvent, Failed, TurnFinished, TurnReason
from mini_agent.core.permission import ApprovalRequest, Approve, Decision
from mini_agent.ui.jsonl import StreamJsonWriter
from mini_agent.ui.plain import JsonWriter, TextWriter, remark
from mini_agent.ui.ports import Queued, SessionPort
from mini_agent.ui.stdin import piped_prompt

Format = Literal["text", "json", "stream-json"]

NOT_WRITTEN = 1
USAGE_ERROR = 2
TRANSIENT = 75
"""EX_TEMPFAIL of sysexits.h: trying again later may help."""
_CODES: dict[TurnReason, int] = {
    "done": 0,
    "max_steps": 3,
    "repetition": 3,
    "budget": 3,
    "denied": 4,
    "cancelled": 130,
}


class Writer(Protocol):
    """One output format."""

    def write(self, event: AgentEvent) -> None: ...


def answer(
    open_session: Callable[[Approve, Queued], SessionPort],
    prompt: str,
    output: Format,
    notices: Sequence[str] = (),
    *,
    can_go_on: bool = False,
) -> int:
    """Answers `prompt` (`-`: from standard input; else what is piped in is appended). Returns the exit code.

    notices: what the user should be told first. can_go_on: whether the session stopped before an answer, so that no prompt
    is needed.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="replace"
            )  # a character the terminal has no code for must not end the answer
    for notice in notices:
        _say(notice)
    try:
        whole = piped_prompt(prompt, sys.stdin, _say)
        if not whole.strip() and not can_go_on:
            _say("there is no prompt: give one after -p, or pipe it in")
            return USAGE_ERROR
        return asyncio.run(_answer(open_session, whole if whole.strip() else None, _writer(output)))
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            _say(f"the answer can't be written: {error}")
        return NOT_WRITTEN


def _say(line: str) -> None:
    """Standard error is a courtesy: where it is closed, the answer goes on without it."""
    with contextlib.suppress(OSError, ValueError):
        print(f"mini-agent: {line}", file=sys.stderr, flush=True)  # noqa: T201


def _writer(output: Format) -> Writer:
    match output:
        case "text":
            return TextWriter(sys.stdout)
        case "json":
            return JsonWriter(sys.stdout.buffer)
        case "stream-json":
            return StreamJsonWriter(sys.stdout.buffer)


async def _answer(
    open_session: Callable[[Approve, Queued], SessionPort], prompt: str | None, writer: Writer
) -> int:
    session = open_session(_deny, tuple)
    restore = _on_interrupt(session.cancel)
    error: ErrorInfo | None = None
    reason: TurnReason = "failed"
    try:
        async with aclosing(session.run(prompt)) as events:
            async for event in events:
                writer.write(event)
                remark(event, _say)
                if isinstance(event, Failed):
                    error = event.error
                elif isinstance(event, TurnFinished):
                    reason = event.reason
    finally:
        restore()
        await session.aclose()
    code = exit_code(reason, error)
    if code == TRANSIENT and session.is_waiting and session.id:
        _say("mini-agent -c -p '' goes on from there")
    return code


async def _deny(request: ApprovalRequest) -> Decision:
    return Decision(False, f"nobody can be asked here, and {request.reason}")


def _on_interrupt(cancel: Callable[[], None]) -> Callable[[], None]:
    """Makes Ctrl+C and SIGTERM cancel the turn, once; the next one ends the process. Returns what undoes it."""
    loop = asyncio.get_running_loop()
    names = (signal.SIGINT, signal.SIGTERM)
    before = {name: signal.getsignal(name) for name in names}

    def restore() -> None:
        for name, handler in before.items():
            signal.signal(name, handler)

    def handle(*_: object) -> None:
        for name in names:  # whatever hangs now (a pipe that nobody reads, say), the second one ends
            signal.signal(name, signal.SIG_DFL)
        loop.call_soon_threadsafe(cancel)

    for name in names:
        signal.signal(name, handle)
    return restore


def exit_code(reason: TurnReason, error: ErrorInfo | None) -> int:
    """The documented code of a turn that ended so."""
    if reason != "failed":
        return _CODES[reason]
    if error is None:
        return 1
    if error.kind == "repetition":
        return 3
    if error.kind == "config":
        return USAGE_ERROR
    return TRANSIENT if error.retryable or error.kind == "total_timeout" else 1
