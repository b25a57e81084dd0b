"""A Streamer that measures every attempt: what goes through it and what the meter says (product W11, S3).

It stands outside the retries, sees each `StreamStarted` and each `Retrying`, and gives one `AttemptEnded` per attempt
to its sink: also for one that failed or was cancelled.
"""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TypeVar

from mini_agent.core.errors import ErrorInfo, ModelError
from mini_agent.core.estimates import CHARACTERS_PER_TOKEN
from mini_agent.core.events import (
    AttemptEnded,
    ChannelToken,
    Completed,
    FirstToken,
    Outcome,
    Retrying,
    StreamEvent,
    StreamStarted,
    ToolCallDelta,
)
from mini_agent.core.messages import Request, Usage
from mini_agent.models.base import Attempt, Meter, Streamer, new_attempt

N = TypeVar("N", int, float)


class TracedModel:
    """A `Streamer` around a `Streamer`.

    sink: called once per attempt, synchronously, so that a cancelled attempt is told as well. total_s: the total
    deadline of a request, 0 for none. now: unix seconds.
    """

    def __init__(
        self,
        model: Streamer,
        sink: Callable[[AttemptEnded], None],
        *,
        total_s: float = 0,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._model = model
        self._sink = sink
        self._total_s = total_s
        self._now = now

    async def stream(
        self, request: Request, attempt: Attempt | None = None
    ) -> AsyncGenerator[StreamEvent, None]:
        """The model's own events, unchanged. Raises its ModelError."""
        attempt = attempt or new_attempt()
        if attempt.deadline is None and self._total_s:
            attempt = replace(attempt, deadline=asyncio.get_running_loop().time() + self._total_s)
        measured: _Measured | None = None
        outcome: Outcome = "cancelled"
        error: ErrorInfo | None = None
        try:
            async with aclosing(self._model.stream(request, attempt)) as events:
                async for event in events:
                    if isinstance(event, StreamStarted):
                        attempt.meter.reset()
                        measured = _Measured(event, self._now())
                    elif isinstance(event, Retrying) and measured is not None:
                        self._sink(measured.ended("failed", event.error, attempt.meter, self._now()))
                        measured = None
                    elif measured is not None:
                        measured.see(event)
                        if isinstance(event, Completed):
                            outcome = "completed"
                    yield event
        except ModelError as failed:
            outcome, error = "failed", failed.info()
            raise
        finally:
            if measured is not None:
                self._sink(measured.ended(outcome, error, attempt.meter, self._now()))

    async def aclose(self) -> None:
        await self._model.aclose()


class _Measured:
    """One attempt under way."""

    def __init__(self, started: StreamStarted, now: float) -> None:
        self._started = started
        self._began = now
        self._first_token_s: float | None = None
        self._characters = 0
        self._usage: Usage | None = None

    def see(self, event: StreamEvent) -> None:
        match event:
            case FirstToken():
                self._first_token_s = event.ttft_s
            case ChannelToken():
                self._characters += len(event.text)
            case ToolCallDelta():
                self._characters += len(event.arguments)
            case Completed():
                self._usage = event.response.usage
            case _:
                pass

    def ended(self, outcome: Outcome, error: ErrorInfo | None, meter: Meter, now: float) -> AttemptEnded:
        usage = self._usage or meter.usage
        estimated = usage is None and self._characters > 0
        if estimated:
            usage = Usage(output_tokens=math.ceil(self._characters / CHARACTERS_PER_TOKEN))
        gaps, sizes = sorted(meter.read_gaps_s), sorted(meter.event_bytes)
        return AttemptEnded(
            t=now,
            request_id=self._started.request_id,
            attempt=self._started.attempt,
            outcome=outcome,
            connect_s=meter.connect_s,
            first_byte_s=meter.first_byte_s,
            first_token_s=self._first_token_s,
            total_s=now - self._began,
            gap_p50_s=_at(gaps, 0.5),
            gap_p95_s=_at(gaps, 0.95),
            gap_max_s=gaps[-1] if gaps else None,
            events=len(sizes),
            bytes=meter.bytes,
            event_bytes_p50=_at(sizes, 0.5),
            event_bytes_max=sizes[-1] if sizes else None,
            usage=usage or Usage(),
            estimated=estimated,
            error=error,
        )


def _at(ordered: Sequence[N], share: float) -> N | None:
    """The value that `share` of the values do not exceed (nearest rank)."""
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)] if ordered else None
