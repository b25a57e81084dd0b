"""Plain faces for pipes and scripts: the answer as text, or the whole turn as one JSON object (product H1, R8, U8)."""

from collections.abc import Callable
from typing import Any, BinaryIO, TextIO

import msgspec

from mini_agent.core.errors import ErrorInfo
from mini_agent.core.events import (
    AgentEvent,
    ApprovalGiven,
    Completed,
    Failed,
    Notice,
    Retrying,
    TurnFinished,
)
from mini_agent.ui.text import neutralise

Say = Callable[[str], None]
"""Writes one line to standard error."""


class TextWriter:
    """The last response's text, once, when the turn has ended well: never half an answer as an answer."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, event: AgentEvent) -> None:
        if isinstance(event, TurnFinished) and event.reason in ("done", "denied") and event.text:
            # A file or a pipe gets the text as it is; a terminal must not be driven by it.
            text = neutralise(event.text) if self._out.isatty() else event.text
            self._out.write(text if text.endswith("\n") else text + "\n")
            self._out.flush()


class JsonWriter:
    """One object at the end, also of a turn that failed: {reason, text, stop_reason, usage, cost_usd, steps, error}."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._steps = 0
        self._stop_reason: str | None = None
        self._error: ErrorInfo | None = None

    def write(self, event: AgentEvent) -> None:
        match event:
            case Completed():
                self._steps += 1
                self._stop_reason = event.response.stop_reason
            case Failed():
                self._error = event.error
            case TurnFinished():
                self._finish(event)
            case _:
                pass

    def _finish(self, turn: TurnFinished) -> None:
        whole: dict[str, Any] = {
            "reason": turn.reason,
            "text": turn.text,
            "stop_reason": self._stop_reason,
            "usage": turn.usage,
            "cost_usd": turn.cost_usd,
            "steps": self._steps,
            "error": self._error,
        }
        self._out.write(msgspec.json.encode(whole) + b"\n")
        self._out.flush()


def remark(event: AgentEvent, say: Say) -> None:
    """What standard error is told besides, whatever the format: retries, notices, denials, the error and its hint."""
    match event:
        case Retrying():
            say(
                f"retry {event.retry}/{event.max_retries} in {event.wait_s:.1f} s: {_line(event.error.message)}"
            )
        case Notice():
            say(_line(event.text))
        case ApprovalGiven(decision="deny"):
            say(f"a call was denied: {event.rule or 'the user said no'}")
        case Failed():
            say(f"{event.error.kind}: {_line(event.error.message)}")
            if event.error.hint:
                say(_line(event.error.hint))
        case _:
            pass


def _line(text: str) -> str:
    return neutralise(" ".join(text.split()))
