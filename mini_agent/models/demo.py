"""The model that needs no key: plays the demo scripts at a model's pace, with the faults one asks it for (product D1)."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from typing import TypedDict

from mini_agent.core.answers import Answer, CallPiece, Piece, ReasoningPiece
from mini_agent.core.errors import CutError, DeadlineError, ModelError, ProviderError
from mini_agent.core.events import (
    AttemptProgress,
    Channel,
    ChannelToken,
    Completed,
    FirstToken,
    Phase,
    StreamEvent,
    StreamStarted,
    ToolCallDelta,
)
from mini_agent.core.messages import AnyBlock, Reasoning, Request, Response, Text, ToolCall
from mini_agent.core.scripts import demo_answer
from mini_agent.models.base import Attempt, answered, new_attempt
from mini_agent.wire.loading import loads_arguments

SILENCE_S = 1.0
"""How often a long pause says that it is one."""

Arrival = Piece | Phase
"""What a wait ends with: a piece of the answer, or a sign of life."""


class DemoModel:
    """A `Streamer` without a network.

    delay_ms: the pause before each piece. fail_rate, cut_rate: the shares (0 to 1) of attempts that are refused and of
    streams that break half-way, drawn from `rng` anew for each attempt. sleep: waits that many seconds. now: unix seconds.
    """

    def __init__(
        self,
        *,
        delay_ms: float = 15,
        fail_rate: float = 0,
        cut_rate: float = 0,
        rng: random.Random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._delay_s = delay_ms / 1000
        self._fail_rate = fail_rate
        self._cut_rate = cut_rate
        self._rng = rng
        self._sleep = sleep
        self._now = now

    async def stream(
        self, request: Request, attempt: Attempt | None = None
    ) -> AsyncGenerator[StreamEvent, None]:
        """One attempt. Raises ModelError: the faults the rates ask for, an empty answer, the total deadline."""
        attempt = attempt or new_attempt()
        # Always as many draws, whatever their outcome: a seed then gives the same fates to the same attempts.
        fails, half, cut = (self._rng.random() for _ in range(3))
        recorder = _Recorder(attempt, self._now, streams=request.stream)
        yield recorder.started()
        try:
            if fails < self._fail_rate:
                await self._wait(self._delay_s, attempt)
                raise self._refusal(rate_limited=half < 0.5)
            answer = demo_answer(request)
            breaks = cut < self._cut_rate
            for wait_s, arrival in _with_silences(self._timeline(answer, request, breaks=breaks)):
                await self._wait(wait_s, attempt)
                for event in recorder.events(arrival, wait_s):
                    yield event
            if breaks:
                raise CutError(f"the stream broke half-way, on purpose (DEMO_CUT_RATE is {self._cut_rate:g})")
            yield recorder.completed(answer)
        except ModelError as error:
            error.request_id, error.attempt = attempt.request_id, attempt.number
            raise

    async def aclose(self) -> None:
        """Nothing is open."""

    def _timeline(self, answer: Answer, request: Request, *, breaks: bool) -> Iterator[tuple[float, Arrival]]:
        """What arrives, each with the seconds to wait for it first: as many in all, streamed or not (product D1)."""
        count = len(answer.pieces)
        if request.stream:
            yield self._delay_s, "headers"
            for piece in answer.pieces[: (count + 1) // 2 if breaks else None]:
                yield self._delay_s, piece
            return
        total_s = self._delay_s * (count + 1)
        yield total_s / 2 if breaks else total_s, "headers"
        for piece in () if breaks else answer.whole:
            yield 0, piece

    async def _wait(self, seconds: float, attempt: Attempt) -> None:
        """Sleeps, but not beyond the total deadline. Raises DeadlineError."""
        left = seconds
        if attempt.deadline is not None:
            left = max(0.0, attempt.deadline - asyncio.get_running_loop().time())
        await self._sleep(min(seconds, left))
        if left < seconds:
            raise DeadlineError("the answer was not complete by the total deadline", kind="total_timeout")

    def _refusal(self, *, rate_limited: bool) -> ProviderError:
        why = f"on purpose (DEMO_FAIL_RATE is {self._fail_rate:g})"
        if rate_limited:
            return ProviderError(
                f"429: the demo model is rate-limited, {why}",
                kind="rate_limit",
                retryable=True,
                status=429,
                headers={"retry-after": "1"},
                retry_after_s=1,
            )
        return ProviderError(
            f"503: the demo model is overloaded, {why}", kind="overloaded", retryable=True, status=503
        )


def _with_silences(timeline: Iterable[tuple[float, Arrival]]) -> Iterator[tuple[float, Arrival]]:
    """The same waits, a long one in parts, so that slow and dead look different."""
    for wait_s, arrival in timeline:
        while wait_s > SILENCE_S:
            yield SILENCE_S, "silent"
            wait_s -= SILENCE_S
        yield wait_s, arrival


class _Common(TypedDict):
    t: float
    request_id: str
    attempt: int


class _Recorder:
    """Makes the events of one attempt and writes its meter. Unstreamed, all pieces are one wire event."""

    def __init__(self, attempt: Attempt, now: Callable[[], float], *, streams: bool) -> None:
        self._attempt = attempt
        self._meter = attempt.meter
        self._now = now
        self._streams = streams
        self._began = self._last_read = now()
        self._silent_s = 0.0
        self._n = 0
        self._spoke = False

    def started(self) -> StreamStarted:
        return StreamStarted(**self._common(self._began), model="demo", api="demo")

    def events(self, arrival: Arrival, waited_s: float) -> Iterator[StreamEvent]:
        t = self._now()
        if isinstance(arrival, str):
            self._silent_s = self._silent_s + waited_s if arrival == "silent" else 0.0
            yield AttemptProgress(
                **self._common(t), phase=arrival, bytes=self._meter.bytes, silent_s=self._silent_s
            )
            return
        self._silent_s = 0.0
        said = arrival.arguments if isinstance(arrival, CallPiece) else arrival.text
        self._measure(said, t)
        if said and not self._spoke:
            self._spoke = True
            yield FirstToken(**self._common(t), n=self._n, ttft_s=t - self._began)
        if isinstance(arrival, CallPiece):
            yield ToolCallDelta(
                **self._common(t),
                n=self._n,
                index=arrival.index,
                id=arrival.id,
                name=arrival.name,
                arguments=arrival.arguments,
            )
        else:
            channel: Channel = "reasoning" if isinstance(arrival, ReasoningPiece) else "text"
            yield ChannelToken(**self._common(t), n=self._n, channel=channel, text=arrival.text)

    def completed(self, answer: Answer) -> Completed:
        """Raises EmptyAnswerError."""
        self._meter.usage = answer.usage
        return Completed(**self._common(self._now()), response=answered(_response(answer)))

    def _measure(self, said: str, t: float) -> None:
        """Counts what a socket would have brought: each piece by itself, or everything at once."""
        size = len(said.encode())
        self._meter.bytes += size
        if self._n and not self._streams:
            self._meter.event_bytes[-1] += size
            return
        if self._n:
            self._meter.read_gaps_s.append(t - self._last_read)
        else:
            self._meter.first_byte_s = t - self._began
        self._n += 1
        self._last_read = t
        self._meter.event_bytes.append(size)

    def _common(self, t: float) -> _Common:
        return {"t": t, "request_id": self._attempt.request_id, "attempt": self._attempt.number}


def _response(answer: Answer) -> Response:
    blocks: list[AnyBlock] = []
    if answer.reasoning:
        blocks.append(Reasoning(answer.reasoning))
    if answer.text:
        blocks.append(Text(answer.text))
    for call in answer.calls:
        arguments, invalid = loads_arguments(call.arguments)
        blocks.append(ToolCall(call.id, call.name, arguments, invalid))
    return Response(tuple(blocks), answer.stop_reason, usage=answer.usage, model=answer.model)
